"""``propose``: put a program into the daemon's queue, or take it out again."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from autoresearch.api import DropRequest, QueuedRun, operations
from autoresearch.errors import UsageError
from autoresearch.ideas import Idea
from autoresearch.paths import typed_path
from autoresearch.tasks import Task, check_source, is_lone, join_files, load_task
from autoresearch_cli import here
from autoresearch_cli.ideas import Hypothesis, Parent, idea_in, request
from autoresearch_cli.options import Json, command_app, examples
from autoresearch_cli.rendering.ids import short
from autoresearch_cli.rendering.output import print_json, say
from autoresearch_cli.rendering.status import queued_line

app = command_app()
apps = {"propose": app}


@app.command(
    epilog=examples(
        ("autoresearch propose ~/grammar --hypothesis 'longer warm-up'", "the program of a task folder"),
        ("autoresearch propose new.py --parent @ --seeds 3", "a file, as a change of the best run, on three seeds"),
        ("autoresearch propose --drop proposal-3", "take it out of the queue"),
        see="run, status, task get, events",
    )
)
def propose(
    program: Annotated[str, typer.Argument(metavar="[DIR|FILE]", help="A task folder, or a program for --task.")] = "",
    *,
    task: Annotated[
        str, typer.Option("--task", metavar="DIR", help="The task folder of a FILE. Left out: the configured task.")
    ] = "",
    hypothesis: Hypothesis = "",
    parent: Parent = "",
    seeds: Annotated[int, typer.Option("--seeds", min=1, max=100, help="Run it with so many seeds.")] = 1,
    drop: Annotated[str, typer.Option("--drop", metavar="NAME", help="Take a proposal out of the queue.")] = "",
    json: Json = False,
) -> None:
    """Hand a program to the running daemon, which runs it as a change of a known run when a worker is free."""
    if bool(program) == bool(drop):
        raise UsageError("give a folder or a file to propose, or --drop NAME", hint="autoresearch propose --help")
    if drop:
        left = here.client().ask(operations.DROP_PROPOSAL, DropRequest(name=drop))
        if json:
            print_json(left)
        else:
            say(f"{drop} is out of the queue")
            _print_queue(left.queue)
        return
    asked = request(_idea(program, task, parent, hypothesis), seeds=seeds)
    answer = here.client().ask(operations.PROPOSE, asked)
    if json:
        print_json(answer)
        return
    of = f", a change of {short(answer.parent)}" if answer.parent else ""
    say(f"proposed “{answer.title}”{of}: {', '.join(answer.proposed)}")
    _print_queue(answer.queue)
    say("→ autoresearch status, autoresearch events --follow")


def _idea(program: str, task: str, parent: str, hypothesis: str) -> Idea:
    place = typed_path(program).absolute()
    if place.is_dir():
        if task:
            raise UsageError("--task goes with a file; a folder is a task itself", hint="leave --task out")
        return idea_in(here.existing_folder(program), parent=parent, hypothesis=hypothesis)
    known = load_task(here.task_folder(task))
    return Idea(known, _text(place, known), parent, hypothesis)


def _text(place: Path, task: Task) -> str:
    """The program in a file: the one that may change, or all of them as ``show --code`` prints them."""
    try:
        content = place.read_bytes()
    except OSError as error:
        raise UsageError(f"{place} can't be read: {error.strerror}", hint="give a task folder or a program") from error
    first, *others = task.recipe.edit
    if is_lone(content.decode("utf-8", "replace")):
        if others:
            raise UsageError(f"the program of {task.name} has several files", hint=f"propose a folder: {task.folder}")
        content = join_files({first: ""}).encode() + content
    check_source(place, content)
    return content.decode()


def _print_queue(queue: list[QueuedRun]) -> None:
    for each in queue:
        say(f"  {queued_line(each)}")
