"""``top``: the leaderboard of a task."""

from __future__ import annotations

from typing import Annotated

import msgspec
import typer

from autoresearch.answers import FoundTask, top_answer, with_headlines
from autoresearch.api import TopAnswer
from autoresearch.figures import counted
from autoresearch_cli import here
from autoresearch_cli.options import Json, Task, command_app, examples
from autoresearch_cli.reading import NotebookReader, open_notebook
from autoresearch_cli.rendering.boards import explained, other_tasks, print_top
from autoresearch_cli.rendering.output import print_json, say
from autoresearch_cli.rendering.paging import paged

app = command_app()
apps = {"top": app}


@app.command(
    epilog=examples(
        ("autoresearch top", "the twenty best of the task here"),
        ("autoresearch top --task grammar -n 5", "the five best of one task"),
        (
            "autoresearch top --task corridor --component policy/q_table",
            "the agents with this policy",
        ),
        see="best, lineage, show",
    )
)
def top(
    *,
    task: Task = "",
    limit: Annotated[int, typer.Option("-n", "--limit", min=1, max=200, help="How many.")] = 20,
    component: Annotated[
        str, typer.Option("--component", metavar="TYPE/NAME", help="Only agents that use it; the places stay.")
    ] = "",
    json: Json = False,
) -> None:
    """The leaderboard: confirmed runs ranked by the values that verifiers measured, then reported ones.

    Marks stand beside participants, copy and re-test before a run's title. They are explained below the table.
    """
    with open_notebook(task) as notebook:
        found, archived = notebook.task(), notebook.archived
        if component:
            answer = _with_component(notebook, found, component, limit)
        else:
            answer = top_answer(notebook.log, found, limit=limit, author=notebook.me, archived=archived)
        answer = with_headlines(notebook.log, notebook.blobs, answer, me=notebook.me)
    if json:
        print_json(answer)
        return
    used = f", agents that use {component}" if component else ""
    say(f"the task {answer.task.name}: {answer.task.metric}, {answer.task.direction}{used}")
    with paged():
        print_top(answer, now_ms=here.now_ms())
    for line in explained(answer.programs):
        say(line)
    if answer.note and answer.programs:
        say(answer.note)
    if others := other_tasks(answer.other_tasks):
        say(others)
    if answer.programs:
        say("→ autoresearch show ID, autoresearch diff ID")
    else:
        say(f"→ no agent here uses {component}" if component else "→ nothing is measured yet: autoresearch up --work")


def _with_component(notebook: NotebookReader, task: FoundTask, component: str, limit: int) -> TopAnswer:
    """The leaderboard of the agents that use a component; each keeps its place."""
    from autoresearch.project_records.by_component import (  # few boards are asked so
        MOST_ROWS,
        component_key,
        rows_with_component,
        unknown_programs,
    )

    key = component_key(component)
    answer = top_answer(notebook.log, task, limit=MOST_ROWS, author=notebook.me, archived=notebook.archived)
    rows = rows_with_component(notebook.log, notebook.blobs, answer.programs, key)
    if unknown := unknown_programs(notebook.log, notebook.blobs, answer.programs):
        say(f"{counted(unknown, 'program')} of this leaderboard are not on this machine yet, and left out")
    return msgspec.structs.replace(answer, programs=rows[:limit])
