"""``withdraw``: withdraw a run or a note of this machine."""

from __future__ import annotations

import sys
from contextlib import suppress
from typing import Annotated

import typer

from autoresearch.answers import own_record, record_view, withdrawn_answer
from autoresearch.api import WithdrawnAnswer, WithdrawRecordRequest, operations
from autoresearch.errors import DaemonNotRunning
from autoresearch.notebook import Notebook
from autoresearch.records import Record, format_id
from autoresearch_cli import here
from autoresearch_cli.options import Json, Reference, command_app, examples
from autoresearch_cli.reading import open_notebook
from autoresearch_cli.rendering.ids import short
from autoresearch_cli.rendering.output import confirm, print_json, say

app = command_app()
apps = {"withdraw": app}


@app.command(
    epilog=examples(
        ("autoresearch withdraw g3xk", "asks first, on a terminal"),
        ("autoresearch withdraw @mine --reason 'wrong data'", "with a public reason"),
        ("autoresearch withdraw g3xk --yes --json", "without a question, for a program"),
        see="show, log, verify",
    )
)
def withdraw(
    reference: Reference,
    *,
    reason: Annotated[str, typer.Option("--reason", metavar="TEXT", help="The reason, public.")] = "",
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Don't ask.")] = False,
    json: Json = False,
) -> None:
    """Withdraw a run or a note of this machine. It stays in every log and does not rank; this can't be undone."""
    with open_notebook() as notebook:
        record = own_record(notebook.log, reference, notebook.me, archived=notebook.archived)
        view = record_view(notebook.log, record)
    if not yes and sys.stdin.isatty():
        confirm(f"Withdraw the {view.kind} {short(view.id)} “{view.summary}” for good?")
    answer = _withdraw(record, reason)
    if json:
        print_json(answer)
        return
    say(f"{short(answer.id)} is withdrawn: it stays in the log and does not rank")
    say(f"→ autoresearch show {short(answer.id)}")


def _withdraw(record: Record, reason: str) -> WithdrawnAnswer:
    """Through the daemon where one runs."""
    with suppress(DaemonNotRunning):
        return here.client().ask(operations.WITHDRAW, WithdrawRecordRequest(record=format_id(record.id), reason=reason))
    with Notebook(here.paths()) as notebook:
        return withdrawn_answer(record, notebook.withdraw(record, here.now_ms(), reason=reason))
