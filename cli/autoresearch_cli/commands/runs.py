"""``runs``: the runs of a task as a table."""

from __future__ import annotations

from typing import Annotated

import typer

from autoresearch.answers import runs_answer
from autoresearch.api import MAXIMUM_ROWS, RunsOf
from autoresearch.figures import counted
from autoresearch_cli import here
from autoresearch_cli.options import Json, Task, command_app, examples
from autoresearch_cli.reading import open_notebook
from autoresearch_cli.rendering.output import print_json, say
from autoresearch_cli.rendering.paging import paged
from autoresearch_cli.rendering.runs import print_runs, row_words

app = command_app(no_args_is_help=False)
apps = {"runs": app}


@app.command(
    epilog=examples(
        ("autoresearch runs", "the newest runs of the task worked on last"),
        ("autoresearch runs --state confirmed --sort value", "the confirmed ones, by value"),
        ("autoresearch runs --has muon --find warm-up", "by what they change, by their words"),
        see="top, log, show, effects",
    )
)
def runs(  # noqa: PLR0913 - one for each way to choose
    *,
    task: Task = "",
    state: Annotated[str, typer.Option("--state", metavar="STATES", help="Only in these states: a,b.")] = "",
    by: Annotated[str, typer.Option("--by", metavar="KEY", help="Only of this participant: a key, or me.")] = "",
    has: Annotated[str, typer.Option("--has", metavar="NAME", help="Only those that change this setting.")] = "",
    find: Annotated[str, typer.Option("--find", metavar="TEXT", help="Only with this in id or title.")] = "",
    hardware: Annotated[str, typer.Option("--hardware", metavar="NAME", help="Only on this hardware.")] = "",
    sort: Annotated[
        str, typer.Option("--sort", metavar="KEY", help="number, time, value, change, cost; -KEY: largest first.")
    ] = "-time",
    page: Annotated[int, typer.Option("--page", min=1, help="Which page.")] = 1,
    limit: Annotated[int, typer.Option("-n", "--limit", min=1, max=MAXIMUM_ROWS, help="Runs a page.")] = 20,
    json: Json = False,
) -> None:
    """The runs of a task as a table: value, change against the parent, state, what was changed."""
    asked = RunsOf(state=state, by=by, has=has, q=find, hardware=hardware, sort=sort, page=page, size=limit)
    with open_notebook(task) as notebook:
        found, starred = notebook.task(), notebook.starred
        answer = runs_answer(notebook.log, notebook.blobs, found, asked, me=notebook.me, starred=starred)
    if json:
        print_json(answer)
        return
    with paged():
        print_runs(answer, now_ms=here.now_ms())
    if not answer.runs:
        say(f"no run on {found.name} is like that" if answer.task.runs else f"no run on {found.name} yet")
        return
    for line in row_words(answer.runs):
        say(line)
    if answer.pages > 1:
        say(f"page {answer.page} of {answer.pages}, {counted(answer.total, 'run')} (--page N)")
    say("→ autoresearch show ID, autoresearch diff ID")
