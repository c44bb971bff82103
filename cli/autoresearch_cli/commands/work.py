"""``status``: what this node does, and why; ``work``: let it run experiments.

``pause``, ``resume``, ``finish``: when not; ``events``: what happened on it, and what happens.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from contextlib import nullcontext, suppress
from math import isfinite
from pathlib import Path
from typing import Annotated, Literal
from urllib.parse import urlencode

import msgspec
import typer

from autoresearch.ask import questions
from autoresearch.ask.node import Event, OrderView, StatusAnswer
from autoresearch.ask.node_acts import Node
from autoresearch.ask.requests import CancelRequest, OfTask, PauseRequest, SinceOf, WorkRequest
from autoresearch.errors import BEGIN, AutoresearchError, NotFound, TimedOut, UsageError
from autoresearch.extensions import EXECUTORS, extension_names
from autoresearch.face.columns.node import order_words
from autoresearch.text import parse_duration
from autoresearch.version import __version__
from autoresearch.words import Part, Result
from autoresearch_cli import catalogue, home, starting
from autoresearch_cli.event_display import PROGRESS, EventLines, EventMonitor, choose_display
from autoresearch_cli.rendering.output import print_json, print_labelled, say
from autoresearch_cli.rendering.status import next_step, proposer_line, report_lines, state_sentence, status_lines

app = catalogue.CommandApp()


@app.command(
    "status",
    ("autoresearch status", "the daemon, the run in progress, the best so far"),
    ("autoresearch status --json | jq -r .state", "for another program"),
    ("autoresearch status --since 7d", "what happened on the task in the last week, in a sentence"),
    see="best, node events, node doctor",
)
def status(
    *,
    task: catalogue.Task = "",
    since: Annotated[
        str,
        typer.Option("--since", metavar="TIME", help="Only what happened on the task in the last 90s, 30m, 2h, 3d."),
    ] = "",
    json: catalogue.Json = False,
) -> None:
    """What this node does, and why; without a daemon, what its log holds."""
    if since:
        question = SinceOf(task=home.task_meant(task), since_ms=home.now_ms() - parse_duration(since))
        happened = home.ask(questions.since, question)
        if json:
            print_json(happened)
        else:
            say(f"{happened.task}, {happened.sentence}")
        return
    answer = starting.daemon_status() or stopped()
    if task:
        answer = msgspec.structs.replace(answer, task=home.ask(questions.best, OfTask(task=task)).task)
    if json:
        print_json(answer)
    else:
        print_labelled(status_lines(answer, home.now_ms()))
        say(f"→ {next_step(answer)}")
    if any(condition.result == Result.FAILED for condition in answer.conditions):
        raise typer.Exit(1)


def stopped() -> StatusAnswer:
    """The state of a node without a running daemon, by its log where that can be read."""
    from autoresearch.ask.health import conditions, examine, failed, is_usable
    from autoresearch.record.record import DEFAULT_NETWORK

    answer = StatusAnswer(
        running=False,
        state="stopped",
        why="not_running",
        reason="the daemon is not running",
        version=__version__,
        network=DEFAULT_NETWORK.name,
        conditions=conditions(examine(home.paths(), home.environment(), home.now_ms())),
    )
    if home.is_new():
        return answer
    # What reads a log takes longer to load than all the rest.
    from autoresearch_cli.local_log import with_log

    try:
        return with_log(answer)
    except (AutoresearchError, ValueError) as error:
        if is_usable(answer.conditions):
            return msgspec.structs.replace(answer, conditions=[failed(Part.LOG, error), *answer.conditions])
        return answer  # a condition says why


def complete_executor(incomplete: str) -> list[str]:
    """Names of executors that begin so."""
    names = ("here", *map(catalogue.harmless, extension_names(EXECUTORS)))
    return [name for name in names if name.startswith(incomplete)]


def _finite(text: str) -> float:
    """A number that is one."""
    with suppress(ValueError):
        if isfinite(number := float(text)):
            return number
    raise typer.BadParameter(f"“{text}” is no number")


@app.command(
    "work",
    ("autoresearch work ~/my-task --runs 20 --follow", "twenty runs on a task of your own, shown here"),
    ("autoresearch work grammar --for 2h --then", "two hours behind them; --instead of --then ends them"),
    (
        "autoresearch work --patience 30 && autoresearch work --report",
        "until 30 runs bring nothing; what a night brought",
    ),
    see="up, node pause, node finish, status, run",
)
def work(  # noqa: PLR0913 - one option for each part of an order
    task: Annotated[
        str | None,
        typer.Argument(
            metavar="TASK",
            help="A task folder, or the name of a task that is published or ships (moons, grammar, gpt-small). "
            "Left out: the one here, of the settings, of the contest, or moons.",
            autocompletion=catalogue.complete_task,
        ),
    ] = None,
    *,
    budget: Annotated[
        str, typer.Option("--budget", metavar="SIZE", help="A size of the task, such as m or l: the task gpt-small-m.")
    ] = "",
    how_long: catalogue.For = None,
    runs: catalogue.Runs = None,
    verify_share: Annotated[
        float | None,
        typer.Option("--verify-share", min=0, max=1, help="Most time for verification over 24 hours (setting: 0.2)."),
    ] = None,
    only: Annotated[
        Literal["search", "verify"] | None,
        typer.Option("--only", help="Only search for changes, or only verify others' runs."),
    ] = None,
    proposer: Annotated[
        Literal["search", "llm", "command", "mix"] | None,
        typer.Option("--proposer", help="Who invents the changes (setting: search). mix: shared by what each brought."),
    ] = None,
    executor: Annotated[
        str,
        typer.Option(
            "--executor",
            metavar="NAME",
            help="Who carries the runs out: here, slurm, ssh, or another extension.",
            autocompletion=complete_executor,
        ),
    ] = "",
    host: Annotated[
        str, typer.Option("--host", metavar="NAME", help="With ssh: the machine, as in the command ssh NAME.")
    ] = "",
    at_most: Annotated[
        int | None,
        typer.Option("--at-most", min=1, max=10_000, metavar="N", help="Runs there at a time, waiting ones included."),
    ] = None,
    goal: Annotated[
        float | None,
        typer.Option(
            "--until", metavar="VALUE", parser=_finite, help="Stop when the task's best value is as good as this."
        ),
    ] = None,
    patience: Annotated[
        int | None,
        typer.Option("--patience", min=1, max=10**6, metavar="N", help="Stop when N runs in a row were no new best."),
    ] = None,
    place: Annotated[
        bool | None,
        typer.Option("--then/--instead", help="Behind the orders that end (the default), or in place of all orders."),
    ] = None,
    listed: Annotated[bool, typer.Option("--list", help="Only list the orders.")] = False,
    cancel: Annotated[
        int | None, typer.Option("--cancel", min=1, metavar="N", help="Only end order N, and its runs in progress.")
    ] = None,
    report: Annotated[
        bool, typer.Option("--report", help="Only say what the order brought that began last, on TASK if it is given.")
    ] = False,
    allow_packages: catalogue.AllowPackages = False,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Then show what happens, until Ctrl-C.")] = False,
    json: catalogue.Json = False,
) -> None:
    """Let the daemon choose changes, train them, publish the results and verify others' runs, until you stop it.

    Each call is an order: so many runs, so long, until a value, or without an end. Orders that end are done one after
    the other, then the one that does not; a new one without an end takes its place. It starts a daemon where none runs.
    """
    if listed or cancel is not None or report:
        _report_order(task, json=json) if report else _change_orders(cancel, json=json)
        return
    if only is not None and verify_share is not None:
        raise UsageError("--only and --verify-share contradict each other", hint="give one of them")
    share = verify_share if only is None else float(only == "verify")
    for_ms = parse_duration(how_long) if how_long is not None else None
    # `status`, which many scripts ask, stands in this file and needs none of these.
    from autoresearch.run.executors import HERE, executor_class
    from autoresearch.task.loading import load_task
    from autoresearch_cli.acts.packages import ask_for_agents, ask_for_packages
    from autoresearch_cli.acts.task_folders import named_folder, network_task

    if budget and task is None:
        raise UsageError("--budget is a size of a task", hint="name the task: autoresearch work gpt-small --budget m")
    folder = (
        home.folder_here() or network_task()
        if task is None
        else str(named_folder(task if budget.lower() in SMALLEST else f"{task}-{budget.lower()}"))
    )
    if folder or home.settings().work.task:
        asked_of = load_task(home.task_folder(folder))
        ask_for_packages(asked_of, allowed=allow_packages)
        ask_for_agents(asked_of, allowed=allow_packages)
    if executor not in ("", HERE):
        executor_class(executor)  # it is named before a daemon is started
    starting.ensure_running()
    client = home.client()
    before = client.ask(Node.status).orders
    request = WorkRequest(
        task=folder,
        runs=runs,
        for_ms=for_ms,
        instead=not place if place is not None else _asks_instead(before, json=json),
        verify_share=share,
        proposer=proposer or "",
        executor=executor,
        host=host,
        at_most=at_most,
        goal=goal,
        patience=patience,
    )
    # Subscribed before: of runs that take milliseconds nothing would be left to show.
    with client.events() if follow else nullcontext(()) as events:
        status = client.ask(Node.work, request)
        if json:
            print_json(status)
        else:
            say(state_sentence(status, home.now_ms()))
            if before:
                say_orders(before, status, instead=request.instead)
            for each in status.proposers:
                if proposer in (each.name, "mix") and each.state == "waiting":
                    say(f"meanwhile the search makes the changes: {proposer_line(each)}")
            _say_task(folder, searches=only != "verify")
        if follow:
            _show(events, json=json)


def _show(events: Iterable[Event], *, json: bool) -> None:
    """Show what happens, until Ctrl-C."""
    with choose_display() as display:
        take = print_json if json else EventMonitor(display).take
        try:
            for event in events:
                take(event)
        except KeyboardInterrupt:
            say("the work goes on: autoresearch status; autoresearch node finish ends it")
            raise


def _asks_instead(orders: list[OrderView], *, json: bool) -> bool:
    """Whether a new order ends those that there are: asked on a terminal, no elsewhere."""
    if json or not sys.stdin.isatty() or all(order.runs is None and order.for_ms is None for order in orders):
        return False
    for order in orders:
        say(f"order {order_words(order, home.now_ms())}")
    return not typer.confirm("Do the new order after those that end? (n: instead of them)", default=True, err=True)


def say_orders(before: list[OrderView], status: StatusAnswer, *, instead: bool = False) -> None:
    """Say what became of the orders of before, and where the new one stands; ``instead``: it ended their runs too."""
    numbers = [order.number for order in status.orders]
    for order in before:
        if order.number not in numbers:
            runs = "its runs in progress are stopped" if instead else "a run in progress goes on"
            say(f"order {max(numbers, default='')} takes the place of order {order.number}, on {order.task}: {runs}")
    for order in status.orders:
        say(f"order {order_words(order, home.now_ms())}")
    if len(status.orders) > 1:
        say("→ autoresearch work --cancel N ends one of them; --instead in place of the default --then ends all before")


def _change_orders(cancel: int | None, *, json: bool) -> None:
    """List the orders, after one was cancelled."""
    client = home.client()
    status = client.ask(Node.status) if cancel is None else client.ask(Node.cancel_order, CancelRequest(number=cancel))
    if json:
        print_json(status)
        return
    if cancel is not None:
        say(f"order {cancel} is cancelled")
    print_labelled([("order", order_words(order, home.now_ms())) for order in status.orders])
    if not status.orders:
        say(f"no work is ordered → {BEGIN}")
    elif any(order.state == "passed over" for order in status.orders):
        say("→ autoresearch node resume tries now what was passed over")


def _report_order(task: str | None, *, json: bool) -> None:
    """Say what the order brought that began last, on the task of this name where one is given."""
    status = home.client().ask(Node.status)
    begun = [order for order in (*status.past_orders, *status.orders) if order.began_ms is not None]
    if task is not None:
        name = Path(task).name
        begun = [order for order in begun if order.task == name]
    if not begun:
        raise NotFound("no order has begun" + (f" on {task}" if task else ""), hint="autoresearch work --list")
    order = max(begun, key=lambda each: (each.began_ms or 0, each.number))
    span = SinceOf(task=order.task, since_ms=order.began_ms or 0, to_ms=order.ended_ms or 0)
    happened = home.ask(questions.since, span)
    if json:
        print_json(happened)
        return
    print_labelled(report_lines(order, happened, home.now_ms()))
    say(f"→ autoresearch diff @ --task {order.task} · autoresearch best --task {order.task} --code")
    if status.pages:
        query = urlencode({"task": order.task, "x": "time", "since": happened.since_ms, "to": happened.to_ms})
        say(f"→ {status.pages.rstrip('/')}/?{query} (autoresearch open first, where the browser asks for a token)")


def _say_task(folder: str, *, searches: bool) -> None:
    """Say which task it is where nobody named one, and where the contest on it has ended."""
    if searches:
        say_default(folder)
    if home.manifest().trust.founders:
        from autoresearch.task.loading import load_task
        from autoresearch_cli.acts.contests import say_contest

        say_contest(load_task(home.task_folder(folder)).digest)


def say_default(folder: str) -> None:
    """Say which task it is where nobody named one."""
    if not (folder or home.settings().work.task):
        say("the task is moons, whose runs take seconds → of minutes: autoresearch work grammar")


@app.command(
    "node pause",
    ("autoresearch node pause", "stop working until `autoresearch node resume`, across restarts too"),
    ("autoresearch node pause --for 2h", "go on by itself in two hours"),
    ("autoresearch node pause --for 1h30m --json", "the same for a program"),
    see="node resume, node finish, work, down",
)
def pause(*, how_long: catalogue.For = None) -> catalogue.Answered:
    """Stop the run in progress and start no other, for a while or until `autoresearch node resume`."""
    until_ms = home.now_ms() + parse_duration(how_long) if how_long is not None else None
    yield from _report(home.client().ask(Node.pause, PauseRequest(until_ms=until_ms)))


@app.command(
    "node resume",
    ("autoresearch node resume", "end a pause"),
    ("autoresearch node resume && autoresearch status", "and show the state"),
    ("autoresearch node resume --json", "the same for a program"),
    see="node pause, work, status",
)
def resume() -> catalogue.Answered:
    """End a pause. The work that you asked for goes on."""
    yield from _report(home.client().ask(Node.resume))


@app.command(
    "node finish",
    ("autoresearch node finish", "let the run in progress end, then stop working"),
    ("autoresearch node finish && autoresearch status", "and show the state"),
    ("autoresearch node finish --json", "the same for a program"),
    see="node pause, work, down",
)
def finish() -> catalogue.Answered:
    """Let the run in progress end and be published, then stop working."""
    yield from _report(home.client().ask(Node.finish))


def _report(status: StatusAnswer) -> catalogue.Answered:
    yield status
    say(state_sentence(status, home.now_ms()))


# What people call the size of a task that has no letter in its name.
SMALLEST = ("", "s")
# The daemon sends the kept events in one go; this much silence after them means that there are no more.
QUIET_SECONDS = 0.5


@app.command(
    "node events",
    ("autoresearch node events", "everything that is kept, oldest first"),
    ("autoresearch node events --follow", "from now on, until Ctrl-C"),
    ("autoresearch node events --since 120 --follow --json", "catch up after event 120, then go on"),
    see="status, node records, work --follow",
)
def events(
    *,
    since: Annotated[
        int | None, typer.Option("--since", min=0, max=2**53, metavar="ID", help="Only events after this one.")
    ] = None,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Wait for more.")] = False,
    json: catalogue.JsonLines = False,
) -> None:
    """What happened on this node, and with --follow what happens. Needs the daemon."""
    from autoresearch.ask.client import STREAM_TIMEOUT_SECONDS

    begin_ms = home.now_ms()
    cursor = since if follow else since or 0
    lines = EventLines(json=json)
    quiet_seconds = STREAM_TIMEOUT_SECONDS if follow else QUIET_SECONDS
    try:
        with home.client().events(since=cursor, quiet_seconds=quiet_seconds) as stream:
            for event in stream:
                if not follow and (event.time_ms > begin_ms or event.kind == PROGRESS):
                    return
                lines.print(event)
        say("the daemon has ended")
    except TimedOut:
        if follow:
            raise
