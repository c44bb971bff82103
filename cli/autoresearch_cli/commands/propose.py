"""``checkout`` brings a task folder to the program to build on.

``propose`` puts a program into the daemon's queue, ``wait`` and ``cancel`` are for what is in it. ``claim`` says that a
program is being tried, before it is run somewhere else.
"""

from __future__ import annotations

import shlex
import time
from pathlib import Path
from typing import Annotated

import msgspec
import typer

from autoresearch.ask.acts.varying import read_values
from autoresearch.ask.node import QueuedRun
from autoresearch.ask.node_acts import Node
from autoresearch.ask.requests import SUGGESTIONS_MOST, ClaimRequest, DropRequest
from autoresearch.errors import AutoresearchError, TimedOut, UsageError
from autoresearch.face.columns.column import short
from autoresearch.task.loading import load_task
from autoresearch.text import clock, counted, parse_duration, value
from autoresearch.words import RunStatus
from autoresearch_cli import home
from autoresearch_cli.acts.edits import bring
from autoresearch_cli.catalogue import Answered, CommandApp, Folder, Json, complete_reference
from autoresearch_cli.ideas import (
    Again,
    Anyway,
    Hypothesis,
    Parent,
    idea_in,
    idea_of,
    refuse_dead_end,
    request,
    vary,
    wait_for_runs,
    with_seeds,
)
from autoresearch_cli.local_log import open_desk
from autoresearch_cli.models import WaitedAnswer, WaitedRun
from autoresearch_cli.outcomes import ended_run, is_own, print_run, record_of, tell_run
from autoresearch_cli.rendering.experiments import print_experiment, print_suggestions
from autoresearch_cli.rendering.output import print_json, say
from autoresearch_cli.rendering.status import queued_line

# How often is looked whether other nodes have run their part of an experiment.
_LOOK_SECONDS = 1.0

app = CommandApp()
Program = Annotated[str, typer.Argument(metavar="DIR|FILE", help="A task folder, or a program for --task.")]
TaskOfFile = Annotated[
    str,
    typer.Option("--task", metavar="DIR", help="The task folder of a FILE. Left out: the one here, or the configured."),
]


@app.command(
    "run checkout",
    ("autoresearch run checkout ~/moons", "its program becomes the best one"),
    ("autoresearch run checkout . --run g3xk", "the program of another run, as the start of your next edit"),
    ("autoresearch run checkout . --json | jq -r .kept", "where the edit lies that was there and never run"),
    see="run, task get, best, diff",
)
def next_program(
    folder: Folder = "",
    *,
    run: Annotated[
        str,
        typer.Option(
            "--run",
            metavar="ID",
            help="The run to build on. Left out: the best one (@).",
            autocompletion=complete_reference,
        ),
    ] = "",
) -> Answered:
    """Bring the best program into a task folder and write history.md anew; an edit that was never run is kept."""
    place = home.task_folder(folder)
    if not is_own(place):
        name = shlex.quote(load_task(place).name)
        raise UsageError(f"{place} is no folder to work in", hint=f"autoresearch task get {name} makes one")
    answer, lines = bring(place, run)
    yield answer
    files = " and ".join(answer.edit)
    named = "the baseline" if answer.run is None else f"the program of {short(answer.run)} “{answer.title}”"
    measured = "" if answer.value is None else f": {value(answer.value)}"
    be = "is" if len(answer.edit) == 1 else "are"
    say(f"{files} {f'{be} now' if answer.changed else f'already {be}'} {named}{measured}")
    if answer.backup:
        back = f"cp {shlex.quote(answer.backup)} {shlex.quote(f'{answer.folder}/{answer.edit[0]}')}"
        say(f"your edit was never run; it is kept: {back} brings it back")
    for line in lines:
        say(line)
    again = shlex.quote(folder or answer.folder)
    say(f"→ read {answer.history}, edit {files}, then: autoresearch run {again} --hypothesis '…'")


@app.command(
    "run propose",
    ("autoresearch run propose ~/moons --hypothesis 'larger steps'", "the program of a task folder"),
    ("autoresearch run propose new.py --parent @ --seeds 3", "a file, as a change of the best run, on three seeds"),
    ("autoresearch run wait $(autoresearch run propose . --json | jq -r '.proposed[0]')", "and what came of it"),
    see="run, run wait, run cancel, status, node events",
)
def propose(
    program: Program,
    *,
    task: TaskOfFile = "",
    hypothesis: Hypothesis = "",
    parent: Parent = "",
    seeds: Annotated[
        int, typer.Option("--seeds", min=1, max=100, help="Run it with so many seeds that were not run yet.")
    ] = 1,
    again: Again = False,
    anyway: Anyway = False,
) -> Answered:
    """Hand a program to the running daemon, which runs it as a change of a known run when a worker is free."""
    idea = idea_of(program, task, parent, hypothesis)
    client = home.client()
    ideas = with_seeds(idea, seeds, again=again)
    if not anyway:
        refuse_dead_end(idea)
    answers = [client.ask(Node.propose, request(each, once=not again)) for each in ideas]
    answer = msgspec.structs.replace(answers[-1], proposed=[name for each in answers for name in each.proposed])
    yield answer
    of = f", a change of {short(answer.parent)}" if answer.parent else ""
    say(f"proposed “{answer.title}”{of}: {', '.join(answer.proposed)}")
    _print_queue(answer.queue)
    say(f"→ autoresearch run wait {' '.join(answer.proposed)}, autoresearch run cancel {answer.proposed[0]}")


Name = Annotated[str, typer.Argument(metavar="NAME", help="What `run propose` and `status` call it: proposal-3.")]
Names = Annotated[list[str], typer.Argument(metavar="NAME…", help="What `run propose` and `status` call them.")]


@app.command(
    "run wait",
    ("autoresearch run wait proposal-3 proposal-4 --any", "whichever ends first; without --any all of them"),
    ("autoresearch run wait proposal-3 --timeout 10m", "exit status 7 where it goes on after ten minutes"),
    ("autoresearch run wait proposal-3 --json | jq -r .outcome.verdict", "keep, discard, failed"),
    see="run propose, run cancel, status, show",
)
def wait(
    names: Names,
    *,
    first: Annotated[bool, typer.Option("--any", help="Only until the first of them has ended.")] = False,
    timeout: Annotated[
        str, typer.Option("--timeout", metavar="TIME", help="Wait so long at most: 90s, 30m, 2h. Left out: for ever.")
    ] = "",
    json: Json = False,
) -> None:
    """Wait until proposed runs have ended, and say what came of each. They go on if you don't wait.

    The folder that a run was proposed from goes on from it: its history.md and the parent of its next edit.
    """
    end = time.monotonic() + parse_duration(timeout) / 1000 if timeout else None
    client, left, ended = home.client(), list(dict.fromkeys(names)), list[WaitedRun]()
    while left and not (first and ended):
        event = client.ended(*left, seconds=None if end is None else max(0.0, end - time.monotonic()))
        if event is None:
            break
        left.remove(str(event.data["assignment"]))
        if len(names) == 1:
            tell_run(record_of(event), str(event.data["folder"]), json=json)
            return
        name, run, lost, lines = str(event.data["assignment"]), None, "", list[str]()
        try:
            run, lines = ended_run(record_of(event), str(event.data["folder"]))
        except AutoresearchError as error:
            lost = str(error)
        ended.append(WaitedRun(name=name, run=run, lost=lost))
        if not json:
            say(f"{name}: did not take place: {lost}" if run is None else f"{name}:")
            if run is not None:
                print_run(run, lines)
    again = f"autoresearch run wait {' '.join(left)}{' --any' if first and len(left) > 1 else ''}"
    if ended and json:
        print_json(WaitedAnswer(ended=ended, left=left))
    if left and not (first and ended):
        if ended and json:
            raise typer.Exit(TimedOut.exit_status)
        sentence = f"{', '.join(left)} {'has' if len(left) == 1 else 'have'} not ended within {timeout}"
        raise TimedOut(sentence, hint=f"{again}, or status")
    if left:
        say(f"→ {again}")
    runs = [each.run.run for each in ended if each.run is not None and each.run.run is not None]
    if len(runs) < len(ended) or any(run.run.status != RunStatus.OK for run in runs):
        raise typer.Exit(1)


@app.command(
    "run cancel",
    ("autoresearch run cancel proposal-3", "take it out of the queue, or stop it"),
    ("autoresearch status", "the names of those that wait or run"),
    ("autoresearch run cancel proposal-3 --json", "and what waits still, for a program"),
    see="run propose, run wait, node pause",
)
def cancel(name: Name) -> Answered:
    """Take a proposed run out of the queue, or stop it where it has begun."""
    left = home.client().ask(Node.drop_proposal, DropRequest(name=name))
    yield left
    say(f"{name} is cancelled")
    _print_queue(left.queue)


def _print_queue(queue: list[QueuedRun]) -> None:
    for each in queue:
        say(f"  {queued_line(each)}")


@app.command(
    "run vary",
    ("autoresearch run vary . --set LR=0.001,0.003 --set DEPTH=3,4", "four programs, and what each value did"),
    ("autoresearch run vary . --set +muon=on,off --seeds 3 --wait", "a patch on three seeds; wait for all runs"),
    ("autoresearch run vary . --set LR=0.001,0.003 --show --json", "what is known of it, and nothing is run"),
    see="run propose, run wait, task effects, work",
)
def vary_settings(
    folder: Folder = "",
    *,
    values: Annotated[
        list[str],
        typer.Option("--set", metavar="NAME=V,V", help="A setting and its values; repeatable: every combination."),
    ],
    seeds: Annotated[int, typer.Option("--seeds", min=1, max=100, help="Run each program with so many seeds.")] = 1,
    hypothesis: Hypothesis = "",
    parent: Parent = "",
    show: Annotated[bool, typer.Option("--show", help="Only say what is known of it.")] = False,
    wait_for_all: Annotated[bool, typer.Option("--wait", help="Wait until all runs have ended.")] = False,
) -> Answered:
    """Run a program with every combination of some values, and say what each value did and which depend on each other.

    Again, it goes on: what was run, waits or runs now is not run twice. Nodes that are asked for the same divide it.
    """
    grid, idea = read_values(values), idea_in(Path(home.task_folder(folder)), parent=parent, hypothesis=hypothesis)
    client = None if show else home.client()
    answer = vary(idea, grid, seeds, client)
    if wait_for_all and client is not None:
        latest = wait_for_runs(idea, grid, seeds, client)
        while latest.elsewhere:
            time.sleep(_LOOK_SECONDS)
            latest = vary(idea, grid, seeds, None)
        answer = msgspec.structs.replace(latest, proposed=answer.proposed)
    yield answer
    print_experiment(answer, list(grid), idea.task.metric.name)
    if answer.proposed:
        names = answer.proposed[:1] + (["to", answer.proposed[-1]] if len(answer.proposed) > 1 else [])
        say(f"{counted(len(answer.proposed), 'run')} proposed: {' '.join(names)}")
    words = [folder or str(idea.task.folder), *(word for each in values for word in ("--set", each))]
    again = shlex.join(["autoresearch", "run", "vary", *words, "--seeds", str(seeds), "--wait"])
    others = f", {answer.elsewhere} of them on other nodes now" if answer.elsewhere else ""
    if answer.to_go:
        say(f"{counted(answer.to_go, 'run')} to go{others} → {again}")
        return
    say("all runs have ended")
    if is_own(idea.task.folder):
        say(f"→ autoresearch run checkout {shlex.quote(folder or str(idea.task.folder))}")


@app.command(
    "run suggest",
    ("autoresearch run suggest .", "three changes, with the value that is expected of each"),
    ("autoresearch run suggest . --set LR=0.003 --set DEPTH=4", "what is expected of the best program with these"),
    ("autoresearch run suggest . -n 8 --json", "eight changes for a program"),
    see="run vary, task effects, work, best",
)
def suggest_changes(
    folder: Folder = "",
    *,
    count: Annotated[int, typer.Option("-n", min=1, max=SUGGESTIONS_MOST, help="So many changes.")] = 3,
    values: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="NAME=V", help="A setting of the best program; repeatable: all of them at once."),
    ] = None,
) -> Answered:
    """Say what the search would try next, and what it expects of it. Nothing is run, and nothing is claimed."""
    from autoresearch.ask.acts.suggesting import suggest  # with numpy, which the other commands here go without

    grid = read_values(values or [])
    if several := next((name for name, choices in grid.items() if len(choices) > 1), ""):
        raise UsageError(f"{several} has several values here", hint="run vary runs every combination of some values")
    task = load_task(home.task_folder(folder))
    with open_desk() as desk:
        settings = {name: only for name, (only,) in grid.items()}
        answer = suggest(desk.log, desk.blobs, task, count, settings, me=desk.me, now_ms=home.now_ms())
    yield answer
    print_suggestions(answer, task.metric.name, folder or ("." if home.folder_here() else str(task.folder)))


MINUTES = 30


@app.command(
    "run claim",
    ("autoresearch run claim ~/moons", "the program of a task folder, for half an hour"),
    (
        "autoresearch run claim new.py --parent @ --minutes 120",
        "a file, as a change of the best run, for two hours",
    ),
    ("autoresearch run claim ~/moons --json", "the claim's record, for a program"),
    see="run claims, run, run propose",
)
def claim(
    program: Program,
    *,
    task: TaskOfFile = "",
    hypothesis: Hypothesis = "",
    parent: Parent = "",
    minutes: Annotated[int, typer.Option("--minutes", min=1, max=1440, help="How long it holds.")] = MINUTES,
) -> Answered:
    """Tell the network that you try a program, so that nobody else runs it meanwhile. `run` claims by itself."""
    idea = idea_of(program, task, parent, hypothesis)
    names = {"task": str(idea.task.folder), "parent": idea.parent, "hypothesis": idea.hypothesis}
    answer = home.client().ask(Node.claim, ClaimRequest(program=idea.program, minutes=minutes, **names))
    yield answer
    say(f"claimed “{answer.claim.title}” until {clock(answer.claim.until_ms)}")
    say(f"→ autoresearch run, autoresearch run claims {idea.task.name}")
