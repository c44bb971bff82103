"""``join``: another machine's one command, from an invite to its first run on the task of a network."""

from __future__ import annotations

import re
import time
from contextlib import suppress
from pathlib import Path
from typing import Annotated

import typer

from autoresearch.ask import questions
from autoresearch.ask.acts.joining import Membership
from autoresearch.ask.health import passed
from autoresearch.ask.node import Check, StatusAnswer
from autoresearch.ask.node_acts import Node
from autoresearch.ask.people.voters import ADMISSION_MS
from autoresearch.ask.requests import DialRequest, OfTask, TopOf, WorkRequest
from autoresearch.ask.runs.answers import BestAnswer
from autoresearch.errors import AutoresearchError, CannotRunHere, NotFound, Refused, TimedOut, install_command
from autoresearch.face.columns.column import person
from autoresearch.log.standing.answers import ProgramView
from autoresearch.run.sandbox.job import Level
from autoresearch.task.loading import load_task
from autoresearch.text import counted, duration, parse_duration, sanitised
from autoresearch.trust.manifest import NetworkManifest
from autoresearch.words import BoardSection, NetworkState, Part, Result, WorkState
from autoresearch_cli import home, starting
from autoresearch_cli.acts import joining
from autoresearch_cli.acts.contests import say_contest
from autoresearch_cli.acts.packages import ask_for_agents, ask_for_packages, can_ask, must_ask, name_packages
from autoresearch_cli.acts.task_folders import cached_folder
from autoresearch_cli.catalogue import AllowPackages, CommandApp, Json, Yes
from autoresearch_cli.commands.voters import is_founder
from autoresearch_cli.commands.work import say_orders
from autoresearch_cli.local_log import open_desk
from autoresearch_cli.models import JoinAnswer
from autoresearch_cli.rendering.answers import reason
from autoresearch_cli.rendering.boards import other_tasks, program_line
from autoresearch_cli.rendering.output import print_json, print_labelled, say
from autoresearch_cli.rendering.status import best_so_far, state_sentence

# A first exchange takes seconds: a node that has not answered by then is down, or can't be reached.
LIMIT = "60s"
# Who knows the task already waits no longer for a peer.
ALONE_SECONDS = 10.0
# So long a founder's node may take: then it is known why it does not admit.
ADMISSION_SECONDS = ADMISSION_MS / 1000 + 1
POLL_SECONDS = 0.25
BOARD_ROWS = 200
WALLED_IN = "programs of other participants run inside, without a network, your files or your keys"
# The checks of the network that say why no node answers; others say what follows from that.
CAUSES = ("process", "beginning", "peers")
app = CommandApp()


@app.command(
    "join",
    ("autoresearch join autoresearch1…", "with an invite: all that it takes, and one question"),
    ("autoresearch join tea.toml --yes --wait", "no question; it ends when your first run is on the board"),
    ("autoresearch join tea --json", "a network of this home: go on where an earlier join stopped"),
    see="network join, network invite, work, status",
)
def join(
    where: Annotated[
        str,
        typer.Argument(
            metavar="INVITE|FILE|ADDRESS",
            help="An invite, a manifest, a node's address, or the name of a network of this home.",
        ),
    ],
    *,
    yes: Yes = False,
    wait: Annotated[bool, typer.Option("--wait", help="Then wait until your first run is on the board.")] = False,
    within: Annotated[
        str, typer.Option("--within", metavar="TIME", help="Wait no longer for the network's task: 90s, 5m.")
    ] = LIMIT,
    bring: joining.Bring = False,
    allow_packages: AllowPackages = False,
    json: Json = False,
) -> None:
    """Join a network and work on its task: keys, daemon, records, first run. May be typed again at any time."""
    seconds = parse_duration(within) / 1000
    before = home.manifest()
    joined = joining.become_member(where, bring=bring)
    network = joined.manifest.network
    if not json:
        print_labelled([("network", f"{network.name}, {network.id.hex()}")])
    if not joined.enabled:
        raise AutoresearchError("libp2p is not installed, so no node can be reached", hint=install_command("network"))
    _start(joined.manifest, before)
    sandbox = _sandbox()
    if not json:
        print_labelled([("sandbox", sandbox.sentence)])
    status, best = _wait_for_task(joined, seconds)
    if not json:
        print_labelled(_lines(status, best))
    working = False
    if best is None:
        say(
            "you are its first node, and no task is in it yet → autoresearch work DIR, then autoresearch network invite"
        )
    else:
        working = _begin(status, best, sandbox, asks=not (yes or json), agreed=yes, allow_packages=allow_packages)
    place = _wait_for_place(best.task.digest, status.participant.key) if best and working and wait else None
    if json:
        answer = JoinAnswer(
            network=network.name,
            network_id=network.id.hex(),
            sandbox=sandbox,
            connected=status.net.connected if status.net else 0,
            records=status.records,
            task=best.task if best else None,
            other_tasks=best.other_tasks if best else [],
            voter=status.voter,
            way=status.to_count,
            working=working,
            place=place,
        )
        print_json(answer)
    elif place is not None:
        print_labelled([("place", f"{place.position or place.section} · {program_line(place, home.now_ms())}")])
    if working and not json:
        say("→ autoresearch top and autoresearch open show it; autoresearch node pause stops the work")
    peers = home.client().ask(Node.peers).peers if joined.way and status.to_count else []
    up = {peer.participant.key for peer in peers if peer.connected}
    if any(founder.hex() in up for founder in joined.manifest.trust.founders):
        say(f"you are in {network.name}, but this invite did not admit you: your verifications do not count")
        say(f"→ {status.to_count}")
        raise typer.Exit(Refused.exit_status)


def _start(manifest: NetworkManifest, before: NetworkManifest) -> None:
    """Have a daemon run in the network; one that runs in it dials now, not only when its next dial is due."""
    status = starting.daemon_status()
    if status is None:
        starting.ensure_running()
    elif status.network_id != manifest.network.id.hex() or status.net is None or status.net.state == NetworkState.OFF:
        say("the daemon begins again, in the network that you joined")
        starting.restart()
    elif manifest != before or not status.net.connected:
        for address in manifest.bootstrap:
            with suppress(AutoresearchError):
                home.client().ask(Node.dial, DialRequest(address=address))


def _sandbox() -> Check:
    """How the running daemon walls programs in, by the attacks that it tried, and what that means for others'."""
    client, deadline = home.client(), time.monotonic() + starting.READY_SECONDS
    while (status := client.ask(Node.status)).sandbox is None:
        if time.monotonic() > deadline:
            raise TimedOut("the test of the sandbox does not end", hint="autoresearch node doctor")
        time.sleep(POLL_SECONDS)
    level = Level(status.sandbox)
    lacking = (condition for condition in status.conditions if condition.name == Part.SANDBOX)
    return next(lacking, passed(Part.SANDBOX, f"{level.label}, {level.sentence}; {WALLED_IN}"))


def _wait_for_task(joined: Membership, seconds: float) -> tuple[StatusAnswer, BestAnswer | None]:
    """The node's status and the task of the network, as soon as they are here; None for a network's first node.

    Who knows the task and reaches nobody goes on with what is here.

    Raises:
        TimedOut: no task is here in time; the sentence says why.
    """
    manifest, client = joined.manifest, home.client()
    is_first = not manifest.bootstrap and is_founder(manifest)
    begin, reached, spoken = time.monotonic(), None, False
    try:
        while True:
            status = client.ask(Node.status)
            waited = time.monotonic() - begin
            is_in_touch = status.net is not None and status.net.connected > 0 and status.net.exchanged_ms > 0
            if is_in_touch:
                reached = waited if reached is None else reached
                is_due = not (joined.way and status.to_count) or waited >= min(seconds, reached + ADMISSION_SECONDS)
            else:
                is_due = is_first or waited >= min(seconds, ALONE_SECONDS)
            if is_due and (best := _best(manifest)) is not None:
                if not is_in_touch:
                    say("no node answers now; what this machine does is sent when one answers")
                return status, best
            if is_first:
                return status, None
            if waited >= seconds or (status.net and status.net.state == NetworkState.OFF):
                raise _no_task(manifest, status, waited)
            if not spoken:
                limit = duration(seconds * 1000)
                say(f"waiting for records of {manifest.network.name}, at most {limit}; Ctrl-C ends the waiting only")
                spoken = True
            time.sleep(POLL_SECONDS)
    except KeyboardInterrupt:
        say(f"the daemon goes on → autoresearch join {manifest.network.name} goes on from here")
        raise


def _best(manifest: NetworkManifest) -> BestAnswer | None:
    """The task of the network with its best: the first that it names, else the one that was run last."""
    for digest in manifest.tasks or (None,):
        with suppress(NotFound):
            return home.client().ask(questions.best, OfTask(task=digest.hex() if digest else None))
    return None


def _no_task(manifest: NetworkManifest, status: StatusAnswer, waited: float) -> TimedOut:
    """Why no task is here, and what happens next."""
    name, again = manifest.network.name, f"autoresearch join {manifest.network.name} goes on from here"
    if status.net and status.net.connected and status.net.exchanged_ms:
        sentence = f"{name} has no task yet: {counted(status.records, 'record')} are here, and none is a task"
        return TimedOut(sentence, hint=f"ask who began it, or begin one yourself: autoresearch work DIR; then {again}")
    from autoresearch_cli.acts.network_checks import network_checks

    causes = [check for check in network_checks() if check.name in CAUSES and check.result != Result.OK]
    cause = f": {causes[0].sentence}" if causes else ""
    sentence = f"no node of {name} answered within {duration(waited * 1000)}, so its task is not here{cause}"
    return TimedOut(sentence, hint=f"the daemon goes on trying by itself; when a node is up, {again}")


def _lines(status: StatusAnswer, best: BestAnswer | None) -> list[tuple[str, str]]:
    """What a person wants to know before deciding: how they count, what the task is, how far it is, by whom."""
    now_ms = home.now_ms()
    way = f"your verifications do not count yet → {status.to_count}" if status.to_count else ""
    lines = [
        (
            "you",
            " · ".join(
                filter(None, (person(status.participant), reason(status.voter, now_ms) if status.voter else way))
            ),
        )
    ]
    if best is not None:
        task = best.task
        better = "lower is better" if task.direction == "minimize" else "higher is better"
        lines.append(("task", f"{task.name}: {task.metric}, {better}, {counted(task.runs, 'run')}"))
        lines.append(("best", best_so_far(task)))
        lines += [("by", program_line(task.best, now_ms))] if task.best else []
        lines += [("others", text)] if (text := other_tasks(best.other_tasks)) else []
    failed = (condition for condition in status.conditions if condition.result == Result.FAILED)
    return [*lines, *(("!", f"{condition.name}: {condition.sentence}") for condition in failed)]


def _begin(
    status: StatusAnswer, best: BestAnswer, sandbox: Check, *, asks: bool, agreed: bool, allow_packages: bool
) -> bool:
    """Begin to work on the task, where a person says so; whether this machine works on it.

    Raises:
        CannotRunHere: it was agreed to, and there is no sandbox.
        Refused: its packages were not allowed.
    """
    name = best.task.name
    if status.state != WorkState.PAUSED and any(order.task == name for order in status.orders):
        say(f"this machine works on {name} already")
        return True
    if sandbox.result != Result.OK:
        sentence = f"this machine reads and proposes; without a sandbox it runs no experiments on {name}"
        if agreed:
            raise CannotRunHere(sentence, hint=sandbox.fix)
        say(f"{sentence} → {sandbox.fix}")
        return False
    if not agreed and not (asks and can_ask()):
        say(f"→ autoresearch work {_typed(best)} lets this machine run experiments on it and verify others'")
        return False
    with open_desk() as desk:
        folder = cached_folder(desk, bytes.fromhex(best.task.digest))
    task = load_task(folder)
    say_contest(bytes.fromhex(best.task.digest))
    brings = False
    if not agreed:
        brings = bool(task.packages) and must_ask(task) and not allow_packages
        if brings:
            name_packages(name, task.packages)
        installs = f", with {counted(len(task.packages), 'Python package')} installed for it" if brings else ""
        question = f"Let this machine run experiments on {name} and verify others' now{installs}?"
        if not typer.confirm(sanitised(question), default=True, err=True):
            say(f"→ autoresearch work {_typed(best)} does so later")
            return False
    ask_for_packages(task, allowed=allow_packages or brings)
    ask_for_agents(task, allowed=allow_packages)
    working = home.client().ask(Node.work, WorkRequest(task=str(folder)))
    say(f"{name}: {state_sentence(working, home.now_ms())}")
    if status.orders:
        say_orders(status.orders, working)
    return True


def _typed(best: BestAnswer) -> str:
    """How the task is typed: its name, unless the shell, or a file of this name, gives that another meaning."""
    name = best.task.name
    is_plain = re.fullmatch(r"\w[\w.-]*", name, re.ASCII) and not Path(name).exists()
    return name if is_plain else best.task.digest[:12]


def _wait_for_place(task: str, participant: str) -> ProgramView:
    """The best program of a participant on a task's board, as soon as it has one.

    Raises:
        CannotRunHere: the node works no longer; the sentence says why.
    """
    client = home.client()
    say("waiting for your first run; Ctrl-C ends the waiting only")
    while True:
        board = client.ask(questions.top, TopOf(task=task, limit=BOARD_ROWS))
        for program in board.programs:
            if program.participant.key == participant and program.section != BoardSection.FAILED:
                return program
        status = client.ask(Node.status)
        if status.state == WorkState.WAITING:
            raise CannotRunHere(f"no run of yours is on the board: {status.reason}", hint="autoresearch status")
        time.sleep(POLL_SECONDS)
