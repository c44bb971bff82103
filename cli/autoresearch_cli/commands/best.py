"""``best``: the best program of a task so far."""

from __future__ import annotations

from typing import Annotated

import typer

from autoresearch.api import BestAnswer, OfTask, operations
from autoresearch.errors import DaemonNotRunning, NoTaskYet, NotFound
from autoresearch_cli import here
from autoresearch_cli.models import TextAnswer
from autoresearch_cli.options import Json, Task, command_app, examples
from autoresearch_cli.rendering.boards import explained, other_tasks, print_best
from autoresearch_cli.rendering.output import print_exactly, print_json, say
from autoresearch_cli.rendering.paging import paged

app = command_app()
apps = {"best": app}


@app.command(
    epilog=examples(
        ("autoresearch best", "the best run, and how far the floor is"),
        ("autoresearch best --code > train.py", "its source"),
        ("autoresearch best --task grammar --json", "of one task, for a program"),
        see="top, show, lineage, diff",
    )
)
def best(
    *,
    task: Task = "",
    code: Annotated[bool, typer.Option("--code", help="Print its program, and nothing else.")] = False,
    json: Json = False,
) -> None:
    """The best program of a task so far: the best confirmed run, and the best provisional and reported ones."""
    if not code:
        _report(_answer(task), json=json, named=bool(task))
        return
    from autoresearch.answers import task_status
    from autoresearch_cli.reading import open_notebook

    with open_notebook() as notebook:
        program = task_status(notebook.log, notebook.task(task), author=notebook.me).best
        if program is None:
            raise NotFound("nothing is measured yet", hint="autoresearch up --work")
        source = notebook.source(program.id)
    if json:
        print_json(TextAnswer(id=program.id, what="code", text=source))
    else:
        with paged():
            print_exactly(source)


def _answer(task: str) -> BestAnswer:
    """What the daemon says; without one, what the log holds."""
    try:
        return here.client().ask(operations.BEST, OfTask(task=task or None))
    except DaemonNotRunning:
        if here.is_new() and not task:
            raise NoTaskYet from None
    # What reads a log takes longer to load than all the rest.
    from autoresearch.answers import best_answer, with_headlines
    from autoresearch_cli.reading import open_notebook

    with open_notebook() as notebook:
        found = best_answer(notebook.log, notebook.task(task), author=notebook.me, archived=notebook.archived)
        return with_headlines(notebook.log, notebook.blobs, found, me=notebook.me)


def _report(answer: BestAnswer, *, json: bool, named: bool) -> None:
    if json:
        print_json(answer)
        return
    print_best(answer, now_ms=here.now_ms())
    shown = (answer.confirmed, answer.provisional, answer.reported, answer.task.best)
    for line in explained([program for program in shown if program]):
        say(line)
    if others := other_tasks(answer.other_tasks):
        say(others)
    at = f" --task {answer.task.name}" if named else ""
    say(f"→ autoresearch best --code{at}, autoresearch lineage @{at}, autoresearch diff @{at}")
