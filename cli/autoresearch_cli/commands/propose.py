"""``propose``: put a program into the daemon's queue, or take it out again."""

from __future__ import annotations

from typing import Annotated

import typer

from autoresearch.api import DropRequest, QueuedRun, operations
from autoresearch.errors import UsageError
from autoresearch_cli import here
from autoresearch_cli.ideas import Hypothesis, Parent, idea_of, request
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
    asked = request(idea_of(program, task, parent, hypothesis), seeds=seeds)
    answer = here.client().ask(operations.PROPOSE, asked)
    if json:
        print_json(answer)
        return
    of = f", a change of {short(answer.parent)}" if answer.parent else ""
    say(f"proposed “{answer.title}”{of}: {', '.join(answer.proposed)}")
    _print_queue(answer.queue)
    say("→ autoresearch status, autoresearch events --follow")


def _print_queue(queue: list[QueuedRun]) -> None:
    for each in queue:
        say(f"  {queued_line(each)}")
