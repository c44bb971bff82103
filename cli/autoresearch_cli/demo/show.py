"""Several daemons do research together while a person watches: asks them, follows them, sums up."""

from __future__ import annotations

import queue
import shlex
import shutil
import signal
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import msgspec

from autoresearch.ask.node import Event
from autoresearch.ask.node_acts import Node
from autoresearch.ask.requests import WorkRequest
from autoresearch.errors import AutoresearchError
from autoresearch.face.columns.runs import leading_words
from autoresearch.log.log import Log
from autoresearch.log.standing.answers import RunNumbers, numbers_of
from autoresearch.log.standing.cache import roster_of
from autoresearch.log.standing.verification import judgement
from autoresearch.record.record import Record
from autoresearch.text import counted, value
from autoresearch.words import RunState
from autoresearch_cli import home
from autoresearch_cli.demo.attested import (
    ATTESTORS,
    Daemon,
    DaemonSetup,
    PostOffice,
    demo_cluster,
    plain_network,
    trust_of,
)
from autoresearch_cli.demo.display import DemoDisplay, DemoState, done_twice
from autoresearch_cli.demo.plan import ending, free_cores, is_late, parts_of, say_dropped, say_part, task_of
from autoresearch_cli.models import DemoAnswer
from autoresearch_cli.rendering.output import print_json, say
from autoresearch_cli.starting import announce_pages

LOOK_SECONDS = 1.0
# At the end everybody may take so long to fetch what the others did last.
SETTLE_SECONDS = 30.0
# Participants of an attested demo give this share of their time to it, so that the words change while one watches.
VERIFY_SHARE = 0.5
# How long participants verify after the last run of an attested demo, at most.
VERIFY_SECONDS = 300
# How long the others wait for the first one's first claim, so that they don't all begin with the baseline.
FIRST_SECONDS = 60.0
IDLE = "exchanges records, runs nothing"
Inbox = queue.SimpleQueue[tuple[str, Event]]


def demo_of_many(
    count: int, *, attested: bool, runs: int | None, until_ms: int | None, workers: int | None, json: bool
) -> None:
    """Start so many daemons, let them work together, stop them, and say what was reached.

    When they are to be attested two attestors join them, which do nothing else.
    """
    setups = [DaemonSetup(f"peer-{number}", workers) for number in range(1, count + 1)]
    # Attested participants verify each other, so each has to train.
    training = count if attested or workers is not None else min(count, free_cores())
    whole = WorkRequest(runs=runs, verify_share=VERIFY_SHARE if attested else None)
    parts = parts_of(whole, quick=not home.settings().work.task)
    office = PostOffice() if attested else None
    if office:
        setups = [*setups, *office.attestors()]
    attestors = f", {ATTESTORS} of them attestors, which run nothing" if office else ""
    say(f"starting {len(setups)} daemons{attestors}, each with a home of its own, in a network of their own")
    with demo_cluster(setups, create_network=office.found_network if office else plain_network, tell=say) as daemons:
        if office:
            with office.open():
                for daemon in daemons[:count]:
                    say(office.attest(daemon))
        if not json:
            announce_pages(daemons[0].client().ask(Node.status))
        if training < count:
            say(f"{training} of {count} daemons train: {counted(training, 'core')} of this machine free; "
                "the others only exchange records")  # fmt: skip
        state, inbox = DemoState.of(daemon.name for daemon in daemons), _open_inbox(daemons)
        for part in parts:
            say_part(part)
            state.task = task_of(part).digest.hex()
            requests = [_share(ending(part, until_ms), number, training) for number in range(len(daemons))]
            seen_enough = _follow(daemons, state, inbox, requests, json=json)
            if seen_enough or is_late(until_ms):
                break
        if office and runs is not None and not seen_enough:
            _verify(daemons, inbox, count, until_ms, json=json)
        answer = _answer(daemons, state)
        say_dropped((f"{member.name}, “{member.doing}”", member.fraction) for member in state.alive() if member.in_hand)
        say("stopping the daemons")
    if json:
        print_json(answer)
    else:
        sum_up(answer)


def _share(request: WorkRequest, number: int, count: int) -> WorkRequest | None:
    """What one of ``count`` is asked for: its part of the runs; nothing where there are fewer runs, or it is none."""
    if request.runs is None:
        return request if number < count else None
    runs = request.runs // count + (number < request.runs % count) if number < count else 0
    return msgspec.structs.replace(request, runs=runs) if runs else None


def _verify(daemons: list[Daemon], inbox: Inbox, count: int, until_ms: int | None, *, json: bool) -> None:
    """Have the participants verify each other's runs until one is confirmed, or for some minutes."""
    say("the runs are done; now the daemons verify each other's runs")
    latest_ms = home.now_ms() + VERIFY_SECONDS * 1000
    request = ending(WorkRequest(verify_share=1), min(until_ms or latest_ms, latest_ms))
    requests = [request if number < count else None for number in range(len(daemons))]
    state = DemoState.of(daemon.name for daemon in daemons)
    state.task = task_of(request).digest.hex()
    _follow(daemons, state, inbox, requests, json=json, is_enough=lambda: _states(daemons[0])[RunState.CONFIRMED] > 0)


def _states(daemon: Daemon) -> Counter[str]:
    """How many runs a daemon's log has in which state."""
    with Log.open(daemon.paths.log, daemon.network, read_only=True, trust=trust_of(daemon)) as log:
        return Counter(judgement(log, record.id).state.value for record in log.records.newest(kind="run", limit=10_000))


def _follow(
    daemons: list[Daemon],
    state: DemoState,
    inbox: Inbox,
    requests: list[WorkRequest | None],
    *,
    json: bool,
    is_enough: Callable[[], bool] = lambda: False,
) -> bool:
    """Show what they do until they have done it; whether a person ended it before."""
    display, runs_before = DemoDisplay(state, quiet=json), state.runs
    with interruptible() as interrupted, suppress(KeyboardInterrupt), display.live():
        waiting = list(zip(daemons, requests, strict=True))
        _ask(state, *waiting.pop(0))
        began, ended = time.monotonic(), 0.0
        while state.alive():
            _take_in(inbox, state, display, json=json)
            _look(daemons, state, display)
            now = time.monotonic()
            if waiting and (state.runs > runs_before or _has_begun(state) or now - began > FIRST_SECONDS):
                while waiting:
                    _ask(state, *waiting.pop(0))
            if interrupted.is_set() or is_enough():
                return interrupted.is_set()
            if waiting or not state.is_over():
                ended = now
            elif state.is_equal() or now - ended > SETTLE_SECONDS:
                return False
        raise AutoresearchError("all daemons ended", hint=f"their logs: {daemons[0].paths.daemon_log}")
    return True


@contextmanager
def interruptible() -> Iterator[threading.Event]:
    """An event that is set by the first Ctrl-C; the second interrupts as usual.

    Python throws an interrupt away that is raised while it clears up an object.
    """
    interrupted = threading.Event()

    def take(*_: object) -> None:
        if interrupted.is_set():
            raise KeyboardInterrupt
        interrupted.set()

    before = signal.signal(signal.SIGINT, take)
    try:
        yield interrupted
    finally:
        signal.signal(signal.SIGINT, before)


def _has_begun(state: DemoState) -> bool:
    """Whether the first has claimed its first run, and everybody knows."""
    return any(member.in_hand for member in state.alive()) and state.is_equal()


def _ask(state: DemoState, daemon: Daemon, request: WorkRequest | None) -> None:
    if request is None:
        member = state.members[daemon.name]
        member.done, member.doing = True, IDLE
        return
    state.members[daemon.name].done = False
    with suppress(AutoresearchError):
        daemon.client().ask(Node.work, request)


def _open_inbox(daemons: list[Daemon]) -> Inbox:
    """Where the events of all daemons arrive."""
    inbox: Inbox = queue.SimpleQueue()
    for daemon in daemons:
        threading.Thread(target=_listen, args=(daemon, inbox), daemon=True).start()
    return inbox


def _listen(daemon: Daemon, inbox: Inbox) -> None:
    """Put a daemon's events into the inbox until its process is gone."""
    while daemon.runs():
        with suppress(AutoresearchError), daemon.client().events() as events:
            for event in events:
                inbox.put((daemon.name, event))
        time.sleep(LOOK_SECONDS)


def _take_in(inbox: Inbox, state: DemoState, display: DemoDisplay, *, json: bool) -> None:
    """Take in what the daemons say, for one round."""
    deadline = time.monotonic() + LOOK_SECONDS
    while (left := deadline - time.monotonic()) > 0:
        try:
            name, event = inbox.get(timeout=left)
        except queue.Empty:
            return
        if json:
            print_json(Event(id=event.id, kind=event.kind, time_ms=event.time_ms, text=event.text,
                             data={**event.data, "peer": name}))  # fmt: skip
        if line := state.hear(name, event):
            display.line(line)


def _look(daemons: list[Daemon], state: DemoState, display: DemoDisplay) -> None:
    """Ask those that are there how they are, and compare what all hold."""
    for daemon in daemons:
        if not daemon.runs():
            if line := state.lose(daemon.name, _how_it_ended(daemon)):
                display.line(line)
            continue
        with suppress(AutoresearchError):
            state.see(daemon.name, daemon.client().ask(Node.status))
    held = {}
    for daemon in daemons:
        with suppress(AutoresearchError):
            held[daemon.name] = daemon.records()
    state.compare(held)
    display.look()


def _how_it_ended(daemon: Daemon) -> str:
    code = daemon.process.returncode
    if code < 0:
        with suppress(ValueError):
            return f"was killed ({signal.Signals(-code).name})"
    return f"ended with exit status {code}"


def _answer(daemons: list[Daemon], state: DemoState) -> DemoAnswer:
    task = state.task_to_name()
    alive = {member.name for member in state.alive()}
    records: list[Record] = []
    voters, states = 0, Counter[str]()
    for daemon in [daemon for daemon in daemons if daemon.name in alive][:1]:
        with Log.open(daemon.paths.log, daemon.network, read_only=True, trust=trust_of(daemon)) as log:
            records = log.records.newest(kind="run", limit=10_000)
            states = _states(daemon)
            voters = roster_of(log).count(home.now_ms())
    return DemoAnswer(
        runs=state.runs,
        failed=state.failed,
        task=task.name if task else "",
        metric=task.metric if task else "",
        best_before=RunNumbers(reported=task.baseline) if task else None,
        best=numbers_of(task.best) if task and task.best else None,
        floor=task.floor if task else None,
        peers=len(daemons),
        peers_left=len(alive),
        equal=state.is_equal() and len({member.best for member in state.alive()} - {None}) <= 1,
        done_twice=done_twice(records),
        attested=voters,
        states=dict(states),
        home=daemons[0].home,
    )


def sum_up(answer: DemoAnswer) -> None:
    """Say what a demo reached."""
    lost = f", {counted(answer.peers - answer.peers_left, 'daemon')} lost" if answer.peers_left < answer.peers else ""
    say(f"{counted(answer.runs, 'run')} by {counted(answer.peers, 'daemon')}{lost}; {answer.failed} failed, "
        f"{answer.done_twice} done twice")  # fmt: skip
    if answer.best is not None:
        say(best_sentence(answer))
    if answer.attested:
        words = ", ".join(f"{number} {state}" for state, number in sorted(answer.states.items()))
        of_runs = f"; of all runs: {words}" if words else ""
        say(f"{counted(answer.attested, 'attested participant')}{of_runs}")
    who = "all" if not lost else "those that are left"
    same = "the same records and the same best" if answer.runs > answer.failed else "the same records"
    say(f"{who} hold {same}" if answer.equal else f"stopped before {who} had everything")
    say("the next demo begins anew")
    say_what_next(answer, goes_on=False)


def best_sentence(answer: DemoAnswer) -> str:
    """What a demo reached on a task, beside where that began."""
    floor = f"; a perfect model has {value(answer.floor)}" if answer.floor is not None else ""
    before = f", from {leading_words(answer.best_before)}" if answer.best_before is not None else ""
    return f"{answer.task}: best {answer.metric} {leading_words(answer.best or RunNumbers())}{before}{floor}"


def say_what_next(answer: DemoAnswer, *, goes_on: bool) -> None:
    """Lines that can be typed in the shell of the demo: its best program, one's own idea, one's own program."""
    activate = Path(sys.prefix, "bin", "activate")
    if shutil.which("autoresearch") is None and activate.exists():
        place = activate.relative_to(Path.cwd()) if activate.is_relative_to(Path.cwd()) else activate
        say(f"→ first, so that this shell finds autoresearch: . {shlex.quote(str(place))}")
    home_folder = answer.home or home.environment().get("AUTORESEARCH_HOME", "")
    program = f"AUTORESEARCH_HOME={shlex.quote(home_folder)} autoresearch" if home_folder else "autoresearch"
    if answer.best is not None:
        say(f"→ {program} best {answer.task} --code")
        say(f"→ {program} top {answer.task}")
    if goes_on:
        say(f"→ to go on in the background: {program} up --work")
    say("→ your own idea: autoresearch task get moons my-idea, edit my-idea/train.py, autoresearch run my-idea")
    say("→ your own program: autoresearch task new DIR, autoresearch work DIR")
