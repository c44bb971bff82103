"""``credit``: what participants have done."""

from __future__ import annotations

from typing import Annotated

import typer

from autoresearch.answers import credit_answer
from autoresearch_cli.completing import complete_task
from autoresearch_cli.options import Json, command_app, examples
from autoresearch_cli.reading import open_notebook
from autoresearch_cli.rendering.credit import print_credit, print_participant
from autoresearch_cli.rendering.evidence import how_to_check
from autoresearch_cli.rendering.output import print_json, say

app = command_app()
apps = {"credit": app}


@app.command(
    epilog=examples(
        ("autoresearch credit", "all participants, the most verified compute first"),
        ("autoresearch credit me", "this participant, each fact with its records"),
        ("autoresearch credit 3fa9 --json", "one participant for a program, with all record ids"),
        see="top, show, evidence, id",
    )
)
def credit(
    participant: Annotated[
        str | None,
        typer.Argument(
            metavar="[PARTICIPANT]", help="me, the beginning of a key, or a name. Left out: all participants."
        ),
    ] = None,
    *,
    task: Annotated[
        str,
        typer.Option("--task", metavar="NAME", help="Only what was done on this task.", autocompletion=complete_task),
    ] = "",
    json: Json = False,
) -> None:
    """What participants have done: each fact with the records that show it. There are no points."""
    with open_notebook() as notebook:
        found = notebook.task(task) if task else None
        answer = credit_answer(notebook.log, participant, author=notebook.me, task=found)
    if json:
        print_json(answer)
        return
    if participant is not None:
        print_participant(answer)
        check = how_to_check(mark for row in answer.participants for mark in row.marks)
        say(f"→ {check or 'autoresearch show ID shows each record'}")
    else:
        print_credit(answer)
        say(
            "→ autoresearch credit PARTICIPANT lists the records"
            if answer.participants
            else "→ nobody has published a run yet: autoresearch up --work"
        )
