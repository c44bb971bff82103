"""``demo``: watch this machine run experiments for a few minutes."""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Annotated

import typer

from autoresearch.ask.acts.joining import can_connect
from autoresearch.ask.client import Client
from autoresearch.ask.node import StatusAnswer, TaskStatus
from autoresearch.ask.node_acts import Node
from autoresearch.ask.requests import CancelRequest, WorkRequest
from autoresearch.errors import DaemonNotRunning, NotFound, install_command
from autoresearch.face.columns.runs import leading_words
from autoresearch.log.standing.answers import RunNumbers, numbers_of
from autoresearch.text import counted, parse_duration, percent, value
from autoresearch_cli import home, starting
from autoresearch_cli.catalogue import CommandApp, For, JsonLines, Runs, Workers
from autoresearch_cli.demo.plan import ending, is_late, parts_of, say_dropped, say_part, task_to_name
from autoresearch_cli.demo.show import best_sentence, demo_of_many, say_what_next
from autoresearch_cli.event_display import EventMonitor, choose_display
from autoresearch_cli.models import DemoAnswer
from autoresearch_cli.rendering.output import print_json, say
from autoresearch_cli.starting import announce_pages

STOP_SECONDS = 10.0
PEERS_MAX = 10
# Fewer can't confirm each other's runs.
ATTESTED_PEERS = 3
app = CommandApp()


@app.command(
    "demo",
    ("autoresearch demo", "run experiments here until Ctrl-C"),
    ("autoresearch demo --runs 3 --workers 2", "three of them, two at a time"),
    ("autoresearch demo --peers 3 --for 10m", "three daemons that share the work, for ten minutes"),
    see="up, work, best, top",
)
def demo(
    *,
    runs: Runs = None,
    how_long: For = None,
    workers: Workers = None,
    peers: Annotated[
        int, typer.Option("--peers", min=1, max=PEERS_MAX, help="How many daemons, in a network of their own.")
    ] = 1,
    attested: Annotated[
        bool, typer.Option("--attested", help="Three daemons, or as many as --peers, that are attested by mail first.")
    ] = False,
    json: JsonLines = False,
) -> None:
    """Watch this machine propose a change, train it and measure it, again and again. Ctrl-C ends it cleanly."""
    until_ms = home.now_ms() + parse_duration(how_long) if how_long is not None else None
    # A terminal that closes or a plain `kill` ends the demo as Ctrl-C does, so that no daemon is left behind.
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.default_int_handler)
    if attested:
        peers = max(peers, ATTESTED_PEERS)
    if peers > 1 and can_connect():
        demo_of_many(peers, attested=attested, runs=runs, until_ms=until_ms, workers=workers, json=json)
        return
    if peers > 1:
        how = install_command("network")
        say(f"several daemons need libp2p, which is not installed here ({how}); going on with one")
    with demo_daemon(workers) as owned:
        answer = _watch(WorkRequest(runs=runs), until_ms, json=json, owned=owned)
        if owned:
            say("stopping the daemon")
    if json:
        print_json(answer)
    else:
        _sum_up(answer, owned=owned)


@contextmanager
def demo_daemon(workers: int | None) -> Iterator[bool]:
    """A daemon for as long as the context lasts; one that runs already is used and left running.

    Gives whether the daemon is ours, to be stopped.
    """
    if starting.daemon_status() is not None:
        say("the daemon runs already; it goes on after this demo")
        yield False
        return
    process = starting.start(workers=workers, detached=True, bound=True)
    try:
        say("starting: testing the sandbox, then making the task's data, once")
        starting.wait_until_ready(process)
        yield True
    finally:
        _stop(process)


def _stop(process: subprocess.Popen[bytes]) -> None:
    """End the daemon within ten seconds; a second Ctrl-C, or a daemon that hangs, ends it the hard way."""
    try:
        home.client().ask(Node.stop)
        process.wait(STOP_SECONDS)
    except (DaemonNotRunning, subprocess.TimeoutExpired, KeyboardInterrupt):
        process.terminate()
        try:
            process.wait(2.0)
        except (subprocess.TimeoutExpired, KeyboardInterrupt):
            process.kill()


def _is_new(before: StatusAnswer) -> bool:
    """Whether nobody has worked here yet, and nobody else sees what is tried here."""
    is_usual = not home.settings().work.task and not home.settings().network.enabled
    return is_usual and (before.task is None or before.task.runs == 0)


def _watch(request: WorkRequest, until_ms: int | None, *, json: bool, owned: bool) -> DemoAnswer:
    """Ask for work and show what happens, until it is done or a person has seen enough."""
    seen_enough, order = False, 0

    def end(*_: object) -> None:
        """Python throws an interrupt away that comes while it clears up an object: the next event ends it then."""
        nonlocal seen_enough
        seen_enough = True
        raise KeyboardInterrupt

    client = home.client()
    with choose_display(quiet=json) as display:
        before = client.ask(Node.status)
        parts = parts_of(request, quick=owned and _is_new(before))
        if not json:
            announce_pages(before)
        tasks: list[TaskStatus] = []
        monitor = EventMonitor(display, standing=lambda: _standing(client))
        try:
            for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
                signal.signal(number, end)
            with client.events() as events:
                say("Ctrl-C ends it")
                order = _next_part(client, parts, until_ms)
                for event in events:
                    if json:
                        print_json(event)
                    monitor.take(event)
                    if seen_enough:
                        break
                    if event.kind == "order_ended" and event.data.get("order") == order:
                        tasks += _task_of(client)
                        if not parts or is_late(until_ms):
                            break
                        order = _next_part(client, parts, until_ms)
        except KeyboardInterrupt:
            pass
        tasks += _task_of(client)
        with suppress(DaemonNotRunning, NotFound):  # the next start of the daemon would go on with it
            if order:
                client.ask(Node.cancel_order, CancelRequest(number=order))
    if owned:
        say_dropped((f"“{title}”", fraction) for title, fraction in monitor.in_hand.values())
    return _answer(monitor, before, task_to_name(tasks) or before.task)


def _next_part(client: Client, parts: list[WorkRequest], until_ms: int | None) -> int:
    """Order the next part of the demo, and say what it is about; returns the number of the order."""
    say_part(parts[0])
    status = client.ask(Node.work, ending(parts.pop(0), until_ms))
    return max(order.number for order in status.orders)


def _standing(client: Client) -> str:
    """The best so far, and how far it is on the way to the floor."""
    task = client.ask(Node.status).task
    if task is None or task.best is None:
        return ""
    way = "" if task.closed is None else f", {percent(task.closed)} of the way to {value(task.floor)}"
    return f"best {leading_words(task.best)}{way}"


def _task_of(client: Client) -> list[TaskStatus]:
    """The task that the daemon works on; none without a daemon."""
    with suppress(DaemonNotRunning):
        task = client.ask(Node.status).task
        return [task] if task else []
    return []


def _answer(monitor: EventMonitor, before: StatusAnswer, task: TaskStatus | None) -> DemoAnswer:
    before_it = RunNumbers(reported=task.baseline) if task else None
    if task and before.task and before.task.best and task.digest == before.task.digest:
        before_it = numbers_of(before.task.best)
    return DemoAnswer(
        runs=monitor.runs,
        failed=monitor.failed,
        task=task.name if task else "",
        metric=task.metric if task else "",
        best_before=before_it,
        best=numbers_of(task.best) if task and task.best else None,
        floor=task.floor if task else None,
    )


def _sum_up(answer: DemoAnswer, *, owned: bool) -> None:
    say(f"{counted(answer.runs, 'run')}, {answer.failed} of them failed")
    if answer.best is not None:
        say(best_sentence(answer))
    say_what_next(answer, goes_on=owned)
