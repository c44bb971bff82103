"""``run``: one run of the program in a task folder, or a benchmark run of a project.

Also the runs of a task as a table, ``star`` and ``unstar`` (nothing is published), ``claims``, ``withdraw``.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from shlex import quote
from typing import Annotated, Any

import typer

from autoresearch.ask import publishing, questions, requests
from autoresearch.ask.acts.edited_program import Idea
from autoresearch.ask.node_acts import Node
from autoresearch.ask.people.claims import own_record
from autoresearch.ask.show import record_view
from autoresearch.errors import AutoresearchError, CannotRunHere, DaemonNotRunning, UsageError
from autoresearch.face.columns.column import short
from autoresearch.face.columns.people import CLAIM_COLUMNS
from autoresearch.face.columns.runs import RUN_COLUMNS, group_columns
from autoresearch.log.standing.queries import run_body
from autoresearch.record.encoding import format_id, parse_id
from autoresearch.text import counted, value
from autoresearch.words import HELD, WorkState
from autoresearch_cli import catalogue, home
from autoresearch_cli.acts.packages import ask_for_packages
from autoresearch_cli.agent.projects import From, Set, Trust, chosen, do_run, finish_run, means_project, project_path
from autoresearch_cli.event_display import Display, EventMonitor, choose_display, text_in
from autoresearch_cli.groups import VerbAndNoun
from autoresearch_cli.ideas import (
    Again,
    Anyway,
    Hypothesis,
    Parent,
    idea_in,
    refuse_dead_end,
    request,
    with_seeds,
)
from autoresearch_cli.local_log import open_desk
from autoresearch_cli.outcomes import record_of, tell_run
from autoresearch_cli.rendering.boards import row_words
from autoresearch_cli.rendering.output import confirm, paged, print_list, say, say_hidden
from autoresearch_cli.rendering.status import state_sentence

app = catalogue.CommandApp()


@app.command(
    "run",
    ("autoresearch run", "the program of the task folder here, or of the configured task"),
    ("autoresearch run ~/moons --hypothesis 'larger steps'", "your edit, as a change of a known run"),
    ("autoresearch run agent.ini", "a benchmark run of a project"),
    cls=VerbAndNoun,
    see="run checkout, run propose, train, task get, show, diff",
)
def run(  # noqa: PLR0913 - each is an option of the command
    folder: Annotated[
        str,
        typer.Argument(
            metavar="DIR|INI",
            help="A task folder or a project; ./list for a folder called list. Left out: this, or the configured.",
            autocompletion=catalogue.complete_run,
        ),
    ] = "",
    *,
    file: Annotated[str, typer.Option("--file", "-f", metavar="INI", help="A project's agent.ini.")] = "",
    episodes: Annotated[
        int, typer.Option("--episodes", "-n", min=1, max=10**9, help="Of a project: how many episodes.")
    ] = 20,
    assignments: Set = None,
    start: From = "",
    seed: Annotated[
        int, typer.Option("--seed", min=0, max=2**62, help="Of a project: the seed of the first episode.")
    ] = 0,
    trust: Trust = False,
    hypothesis: Hypothesis = "",
    parent: Parent = "",
    replicate: Annotated[
        int,
        typer.Option(
            "--replicate", min=0, max=1_000_000, help="Which seed: 0 for a new attempt, 1 and up to repeat it."
        ),
    ] = 0,
    seeds: Annotated[
        int, typer.Option("--seeds", min=1, max=100, help="So many seeds that were not run yet, from --replicate on.")
    ] = 1,
    allow_packages: catalogue.AllowPackages = False,
    again: Again = False,
    anyway: Anyway = False,
    json: catalogue.Json = False,
) -> None:
    """Train the program of a task folder once and compare it with the run that it changes; or benchmark a project.

    A folder with an agent.ini is a project: its agent runs, nothing learns, the rewards are kept as a run.
    """
    if means_project(file or folder):
        if hypothesis or parent or replicate or again or seeds > 1:
            raise UsageError("this is a project; that option is for a task folder", hint="autoresearch run --help")
        path = project_path(file or folder)
        choices = chosen(path, assignments, start, seed, trust=trust, allow_packages=allow_packages)
        finish_run(do_run(choices, "bench", episodes, json=json), json=json)
        return
    if assignments:
        values = "".join(f" --set {quote(each)}" for each in assignments)
        raise UsageError(
            "this is a task folder; --set is for a project",
            hint=f"autoresearch run vary {quote(folder or '.')}{values}",
        )
    if start or seed or trust:
        raise UsageError("this is a task folder; that option is for a project", hint="autoresearch run --help")
    idea = idea_in(home.task_folder(folder), parent=parent, hypothesis=hypothesis, replicate=replicate)
    ideas = with_seeds(idea, seeds, again=again)
    if not anyway:
        refuse_dead_end(idea)
    ask_for_packages(idea.task, [idea.program], allowed=allow_packages)
    records: list[str] = []
    for each in ideas:
        with choose_display(quiet=True) as display:
            try:
                record = _through_daemon(each, display, again=again)
            except DaemonNotRunning:
                record = _run_in_process(each, display)
        records.append(record)
    tell_run(records[-1], idea.task, json=json)
    if home.manifest().trust.founders:
        from autoresearch_cli.acts.contests import say_contest  # most networks hold none

        say_contest(idea.task.digest)
    if seeds > 1:
        _say_deviation(records)


def _say_deviation(records: Sequence[str]) -> None:
    """What several seeds of a program gave: what ``metric.noise`` is."""
    import statistics  # which few commands need

    with open_desk() as desk:
        values = [run_body(desk.log, parse_id(record)).value for record in records]
    measured = [each for each in values if each is not None]
    if len(measured) > 1:
        mean, deviation = value(statistics.fmean(measured)), value(statistics.stdev(measured))
        say(f"{len(measured)} seeds: mean {mean}, standard deviation {deviation}")


def _through_daemon(idea: Idea, display: Display, *, again: bool) -> str:
    """Have the daemon do it and wait for the end. Returns the record's id.

    Raises DaemonNotRunning where none runs or it is killed, CannotRunHere where this machine can't begin it,
    AutoresearchError where a person stops the daemon, it is killed before the run begins, or the same waits already and
    that is not meant ``again``.
    """
    client, state = home.client(), ""
    with client.events() as events:
        proposed = client.ask(Node.propose, request(idea, once=not again)).proposed[0]
        status = client.ask(Node.status)
        if status.state in HELD:
            say(f"the run waits: {state_sentence(status, home.now_ms())}")
        elif waits := next((each for each in status.queue if each.name == proposed), None):
            say(f"{waits.title} waits: {waits.reason} (Ctrl-C leaves it in the queue)")
        monitor = EventMonitor(display, only=proposed)
        try:
            with suppress(DaemonNotRunning):  # why it ended is seen below
                for event in events:
                    state = text_in(event, "state") if event.kind == "state" else state
                    if event.kind == "worker":
                        client.check_can_begin(proposed)
                    if event.kind == "state" and state in HELD and state != WorkState.STOPPING:
                        say(f"the run waits: {text_in(event, 'reason')} (Ctrl-C leaves it in the queue)")
                    if monitor.take(event):
                        return record_of(event)
        except CannotRunHere:
            client.ask(Node.drop_proposal, requests.DropRequest(name=proposed))
            raise
        except KeyboardInterrupt:
            say("the run stays with the daemon: autoresearch status")
            raise
    if state == WorkState.STOPPING:
        raise AutoresearchError(
            "the daemon was stopped before the run ended", hint="autoresearch up, then the same again"
        )
    if not monitor.in_hand:
        raise AutoresearchError("the daemon ended before the run began, which stays in its queue",
                                hint=f"autoresearch up, then: autoresearch run wait {proposed}")  # fmt: skip
    raise DaemonNotRunning("the daemon ended meanwhile", hint="autoresearch up")


def _run_in_process(idea: Idea, display: Display) -> str:
    """Do it in this process, without the daemon. Returns the record's id."""
    from autoresearch.ask.acts.edited_program import run_once

    say("the daemon is not running: this process does it")
    name = idea.task.name
    return run_once(
        idea,
        home.paths(),
        now_ms=home.now_ms,
        work=home.settings().work,
        device=home.first_device(),
        progress=lambda fraction, note: display.progress("run", name, fraction, note),
    )


@app.command(
    "run list",
    ("autoresearch run list", "the newest runs of the task of this folder, or worked on last"),
    ("autoresearch run list --state confirmed --sort value", "the confirmed ones, by value"),
    ("autoresearch run list --has muon --group LR", "by what they change, in groups by a setting"),
    see="top, node records, show, task effects",
)
def runs(  # noqa: PLR0913 - one for each way to choose
    *,
    task: catalogue.Task = "",
    state: Annotated[str, typer.Option("--state", metavar="STATES", help="Only in these states: a,b.")] = "",
    by: Annotated[str, typer.Option("--by", metavar="KEY", help="Only of this participant: a key, or me.")] = "",
    has: Annotated[str, typer.Option("--has", metavar="NAME", help="Only those that change this setting.")] = "",
    find: Annotated[str, typer.Option("--find", metavar="TEXT", help="Only with this in id or title.")] = "",
    hardware: Annotated[str, typer.Option("--hardware", metavar="NAME", help="Only on this hardware.")] = "",
    where: Annotated[str, typer.Option("--where", metavar="CONDITIONS", help="Only LR>=0.01,value<1.1.")] = "",
    sort: Annotated[
        str, typer.Option("--sort", metavar="KEY", help="number, time, value, change, cost; -KEY: largest first.")
    ] = "-time",
    group: Annotated[
        list[str] | None, typer.Option("--group", metavar="NAME", help="Groups by this setting, or by two, not runs.")
    ] = None,
    page: Annotated[int, typer.Option("--page", min=1, max=10**6, help="Which page.")] = 1,
    limit: Annotated[int, typer.Option("-n", "--limit", min=1, max=requests.MAXIMUM_ROWS, help="Runs a page.")] = 20,
    hidden: catalogue.Hidden = False,
) -> catalogue.Answered:
    """The runs of a task as a table: reported and verified value, gain against the parent, state, what was changed."""
    criteria: dict[str, Any] = {
        "task": home.task_meant(task),
        "state": state,
        "by": by,
        "has": has,
        "q": find,
        "hardware": hardware,
        "where": where,
        "hidden": hidden,
    }
    if group:
        yield from _groups(criteria, group, task)
        return
    answer = home.ask(questions.runs, requests.RunsOf(**criteria, sort=sort, page=page, size=limit))
    if page > answer.pages:
        raise UsageError(f"there is no page {page}", hint=f"the last one is --page {answer.pages}")
    yield answer
    say(f"the task {answer.task.name}: {answer.task.metric}, {answer.task.direction}")
    with paged():
        print_list(RUN_COLUMNS, answer.runs, now_ms=home.now_ms())
    say_hidden(answer.hidden, "run")
    if not answer.runs:
        name = answer.task.name
        say(f"no run on {name} is like that" if answer.task.runs else f"no run on {name} yet")
        return
    for line in row_words(answer.runs):
        say(line)
    if answer.pages > 1:
        say(f"page {answer.page} of {answer.pages}, {counted(answer.total, 'run')} (--page N)")
    say("→ autoresearch show ID, autoresearch diff ID")


def _groups(criteria: dict[str, Any], group: list[str], task: str) -> catalogue.Answered:
    """The runs that are chosen in groups by one setting or two; ``task`` as it was typed."""
    if len(group) > 2:
        raise UsageError("runs are grouped by one setting or two", hint="autoresearch run list --group LR --group OPT")
    answer = home.ask(questions.groups, requests.GroupsOf(**criteria, setting=group))
    yield answer
    if not answer.groups:
        say(f"no run on {answer.task.name} is like that" if answer.task.runs else f"no run on {answer.task.name} yet")
        return
    say(f"the task {answer.task.name}: {answer.task.metric}, {answer.task.direction}")
    with paged():
        print_list(group_columns(answer), answer.groups, now_ms=home.now_ms())
    if first := next((view.where for view in answer.groups if view.where), ""):
        chosen = {"state": "state", "by": "by", "has": "has", "q": "find", "hardware": "hardware"}
        words = [f" --{option} {quote(criteria[name])}" for name, option in chosen.items() if criteria[name]]
        words += [f" --task {quote(task)}"] if task else []
        where = quote(",".join(filter(None, [criteria["where"], first])))
        say(f"→ autoresearch run list{''.join(words)} --where {where} lists the runs of the first")


@app.command(
    "run star",
    ("autoresearch run star @", "the best run of today"),
    ("autoresearch run star g3xk", "a run by the beginning of its id"),
    ("autoresearch node records --starred", "all that you starred"),
    see="run unstar, node records, note add",
)
def star(reference: catalogue.Reference, *, task: catalogue.Task = "") -> catalogue.Answered:
    """Star a run or another record, to find it again. Only this machine knows; `node records` and `show` say so."""
    yield from _choose(reference, task, starred=True)


@app.command(
    "run unstar",
    ("autoresearch run unstar g3xk", "a run by the beginning of its id"),
    ("autoresearch run unstar @ --task moons", "the best run of a task"),
    ("autoresearch node records --starred", "what is left"),
    see="run star, node records",
)
def unstar(reference: catalogue.Reference, *, task: catalogue.Task = "") -> catalogue.Answered:
    """Take the star of a record away."""
    yield from _choose(reference, task, starred=False)


def _choose(reference: str, task: str, *, starred: bool) -> catalogue.Answered:
    identified = home.ask(
        questions.record, requests.OneRecord(id=reference, task=home.task_meant(task, reference))
    ).record.id
    answer = home.ask(questions.star, requests.StarRequest(id=identified, starred=starred))
    yield answer
    state = "starred" if starred else "not starred"
    say(f"{short(answer.id)} is {state}{' now' if answer.changed else ' already'}")
    say("→ autoresearch node records --starred")


@app.command(
    "run believe",
    ("autoresearch run believe g3xk", "you looked at its program, and the number is true"),
    ("autoresearch run believe g3xk --undo", "no longer"),
    ("autoresearch run list --state 'not believed'", "what waits for your word"),
    see="show, diff, run withdraw, verify",
)
def believe(
    reference: catalogue.Reference,
    *,
    undo: Annotated[bool, typer.Option("--undo", help="Believe it no longer.")] = False,
    task: catalogue.Task = "",
) -> catalogue.Answered:
    """Believe a number that its program printed itself: the run may be the best and a parent. Only on this machine.

    Runs that measure in the same way, and values as good, are believed with it. Look at `diff ID` before.
    """
    identified = home.ask(
        questions.record, requests.OneRecord(id=reference, task=home.task_meant(task, reference))
    ).record.id
    answer = home.ask(publishing.believe, requests.BelieveRequest(id=identified, believed=not undo))
    yield answer
    belief = "no longer believed" if undo else "believed"
    say(f"{short(answer.id)} is {belief}{'' if answer.changed else ', as before'}; its state is: {answer.state}")
    if answer.others:
        say(f"that changes {counted(answer.others, 'other run')} that measure alike, or are as good")
    say("this holds on this machine; others decide for themselves")
    say(f"→ autoresearch best, autoresearch run believe {short(answer.id)}{'' if undo else ' --undo'}")


@app.command(
    "run claims",
    ("autoresearch run claims", "on the task of this folder, or worked on last"),
    ("autoresearch run claims moons", "on one task"),
    ("autoresearch run claims --json", "the same for a program"),
    see="note list, note ask, run propose, node records --claims",
)
def claims(*, task: catalogue.Task = "") -> catalogue.Answered:
    """What is being tried on a task now, by whom, and until when. Others do not try the same meanwhile."""
    answer = home.ask(questions.claims, requests.OfTask(task=home.task_meant(task)))
    yield answer
    if not answer.claims:
        say(f"nothing is being tried on {answer.task} now → {home.next_run()}")
        return
    with paged():
        print_list(CLAIM_COLUMNS, answer.claims, now_ms=home.now_ms())
    say(f"claims on {answer.task}")
    say("→ autoresearch show ID, autoresearch run propose DIR")


@app.command(
    "run withdraw",
    ("autoresearch run withdraw g3xk", "asks first, on a terminal"),
    ("autoresearch run withdraw @mine --reason 'wrong data'", "with a public reason"),
    ("autoresearch run withdraw g3xk --yes --json", "without a question, for a program"),
    see="show, node records, verify",
)
def withdraw(
    reference: catalogue.Reference,
    *,
    task: catalogue.Task = "",
    reason: Annotated[str, typer.Option("--reason", metavar="TEXT", help="The reason, public.")] = "",
    yes: catalogue.Yes = False,
) -> catalogue.Answered:
    """Withdraw a run or a note of this machine. It stays in every log and does not rank; this can't be undone."""
    about = home.task_meant(task, reference)
    with open_desk() as desk:
        meant = format_id(desk.record(reference, about)) if about else reference
        record = own_record(desk.log, meant, desk.me, archived=desk.archived())
        view = record_view(desk.log, record)
    if not yes:
        confirm(f"Withdraw the {view.kind} {short(view.id)} “{view.summary}” for good?")
    answer = home.ask(publishing.withdraw, requests.WithdrawRecordRequest(record=view.id, reason=reason))
    yield answer
    say(f"{short(answer.id)} is withdrawn: it stays in the log and does not rank")
    say(f"→ autoresearch show {short(answer.id)}")
