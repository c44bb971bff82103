"""``top``: the leaderboard of a task."""

from __future__ import annotations

from typing import Annotated

import typer

from autoresearch.answers import top_answer, with_headlines
from autoresearch_cli import here
from autoresearch_cli.options import Json, Task, command_app, examples
from autoresearch_cli.reading import open_notebook
from autoresearch_cli.rendering.boards import explained, other_tasks, print_top
from autoresearch_cli.rendering.output import print_json, say
from autoresearch_cli.rendering.paging import paged

app = command_app()
apps = {"top": app}


@app.command(
    epilog=examples(
        ("autoresearch top", "the twenty best of the task here"),
        ("autoresearch top --task grammar -n 5", "the five best of one task"),
        ("autoresearch top | cut -f2 | xargs -n1 autoresearch show", "look at each"),
        see="best, lineage, show",
    )
)
def top(
    *,
    task: Task = "",
    limit: Annotated[int, typer.Option("-n", "--limit", min=1, max=200, help="How many.")] = 20,
    json: Json = False,
) -> None:
    """The leaderboard: confirmed runs ranked by the values that verifiers measured, then reported ones.

    Marks stand beside participants, copy and re-test before a run's title. They are explained below the table.
    """
    with open_notebook(task) as notebook:
        found, archived = notebook.task(), notebook.archived
        answer = top_answer(notebook.log, found, limit=limit, author=notebook.me, archived=archived)
        answer = with_headlines(notebook.log, notebook.blobs, answer, me=notebook.me)
    if json:
        print_json(answer)
        return
    say(f"the task {answer.task.name}: {answer.task.metric}, {answer.task.direction}")
    with paged():
        print_top(answer, now_ms=here.now_ms())
    for line in explained(answer.programs):
        say(line)
    if answer.note and answer.programs:
        say(answer.note)
    if others := other_tasks(answer.other_tasks):
        say(others)
    say(
        "→ autoresearch show ID, autoresearch diff ID"
        if answer.programs
        else "→ nothing is measured yet: autoresearch up --work"
    )
