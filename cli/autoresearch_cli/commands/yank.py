"""``yank``: advise against a release of one's own."""

from __future__ import annotations

import sys
from contextlib import suppress
from typing import Annotated

import typer

from autoresearch.answers import own_release, yanked_answer
from autoresearch.api import YankedAnswer, YankRequest, operations
from autoresearch.errors import DaemonNotRunning
from autoresearch.notebook import Notebook
from autoresearch.records import Record, Release, format_id
from autoresearch_cli import here
from autoresearch_cli.completing import complete_reference
from autoresearch_cli.options import Json, command_app, examples
from autoresearch_cli.reading import open_notebook
from autoresearch_cli.rendering.ids import short
from autoresearch_cli.rendering.output import confirm, print_json, say

app = command_app()
apps = {"yank": app}


@app.command(
    epilog=examples(
        ("autoresearch yank g3xk", "asks first, on a terminal"),
        ("autoresearch yank g3xk --reason 'wrong reward, use 1.0.1'", "with a public reason"),
        ("autoresearch yank g3xk --yes --json", "without a question, for a program"),
        see="search, show, publish component, withdraw",
    )
)
def yank(
    release: Annotated[
        str, typer.Argument(metavar="RELEASE", help="Its id or the beginning.", autocompletion=complete_reference)
    ],
    *,
    reason: Annotated[str, typer.Option("--reason", metavar="TEXT", help="The reason, public.")] = "",
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Don't ask.")] = False,
    json: Json = False,
) -> None:
    """Advise against a release of yours. It stays, who pinned it is warned, and no name means it any more."""
    with open_notebook() as notebook:
        record = own_release(notebook.log, release, notebook.me)
    assert isinstance(record.body, Release)
    if not yes and sys.stdin.isatty():
        confirm(f"Yank {record.body.name} {record.body.version} ({short(format_id(record.id))}) for good?")
    answer = _yank(record, reason)
    if json:
        print_json(answer)
        return
    say(f"{answer.name} {answer.version} is yanked: its name alone does not install it any more")
    say(f"→ autoresearch show {short(answer.id)}")


def _yank(record: Record, reason: str) -> YankedAnswer:
    """Through the daemon where one runs."""
    with suppress(DaemonNotRunning):
        return here.client().ask(operations.YANK, YankRequest(release=format_id(record.id), reason=reason))
    with Notebook(here.paths()) as notebook:
        return yanked_answer(record, notebook.yank(record, here.now_ms(), reason=reason))
