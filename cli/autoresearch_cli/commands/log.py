"""``log``: the newest records."""

from __future__ import annotations

from typing import Annotated

import typer

from autoresearch.answers import log_answer, parse_conditions, with_headlines
from autoresearch.errors import NotFound, UsageError
from autoresearch.figures import parse_duration
from autoresearch.records import KINDS
from autoresearch_cli import here
from autoresearch_cli.completing import complete_task
from autoresearch_cli.options import Json, command_app, examples
from autoresearch_cli.reading import open_notebook
from autoresearch_cli.rendering.output import print_json, say
from autoresearch_cli.rendering.paging import paged
from autoresearch_cli.rendering.records import print_log

app = command_app()
apps = {"log": app}


def complete_kind(incomplete: str) -> list[str]:
    """Kinds that begin so."""
    return [kind for kind in KINDS if kind.startswith(incomplete)]


@app.command(
    epilog=examples(
        ("autoresearch log", "the twenty newest records"),
        ("autoresearch log --kind run --mine -n 50", "what this machine ran"),
        ("autoresearch log --where 'value<1.1' --since 2d", "good runs of the last two days"),
        see="show, top, events, export",
    )
)
def log(  # noqa: PLR0913 - one for each way to choose
    *,
    kind: Annotated[
        str, typer.Option("--kind", help="Only this kind: run, claim, note, task …", autocompletion=complete_kind)
    ] = "",
    limit: Annotated[int, typer.Option("-n", "--limit", min=1, max=100_000, help="How many.")] = 20,
    mine: Annotated[bool, typer.Option("--mine", help="Only those of this machine.")] = False,
    claims: Annotated[
        bool, typer.Option("--claims", help="Also the claims: intentions to try a change, one before each run.")
    ] = False,
    task: Annotated[
        str, typer.Option("--task", metavar="NAME", help="Only of this task.", autocompletion=complete_task)
    ] = "",
    since: Annotated[str, typer.Option("--since", metavar="TIME", help="Only of the last 90s, 30m, 2h, 3d.")] = "",
    starred: Annotated[bool, typer.Option("--starred", help="Only those that you starred here.")] = False,
    where: Annotated[
        list[str] | None,
        typer.Option("--where", metavar="CONDITION", help="Only runs with value<1.1, status=crashed, title~warm-up."),
    ] = None,
    json: Json = False,
) -> None:
    """The newest records of the log, from all nodes."""
    if kind and kind not in KINDS:
        raise UsageError(f"there is no kind of record {kind!r}", hint=f"kinds: {', '.join(KINDS)}")
    with open_notebook() as notebook:
        if mine and notebook.me is None:
            raise NotFound("this machine has no key yet, so nothing is its own", hint="autoresearch id new")
        author = notebook.me if mine else None
        answer = log_answer(
            notebook.log,
            kind=kind or None,
            author=author,
            task=notebook.task(task) if task else None,
            limit=limit,
            claims=claims,
            since_ms=here.now_ms() - parse_duration(since) if since else 0,
            where=parse_conditions(where or []),
            starred=notebook.starred,
            only_starred=starred,
        )
        answer = with_headlines(notebook.log, notebook.blobs, answer, me=notebook.me)
    if json:
        print_json(answer)
        return
    with paged():
        print_log(answer, now_ms=here.now_ms())
    if answer.records:
        say("→ autoresearch show ID")
    elif starred:
        say("→ nothing is starred: autoresearch star ID")
    elif kind or mine or task or since or where:
        say("nothing in the log is like that")
    else:
        say("→ the log is empty: autoresearch up --work")
