"""``show``: one record, whole."""

from __future__ import annotations

from typing import Annotated

import msgspec
import typer

from autoresearch.answers import ShowAnswer
from autoresearch.errors import UsageError
from autoresearch_cli import here
from autoresearch_cli.models import FieldAnswer, TextAnswer
from autoresearch_cli.options import Json, Reference, command_app, examples
from autoresearch_cli.reading import NotebookReader, open_notebook
from autoresearch_cli.rendering.figures import safe
from autoresearch_cli.rendering.output import is_terminal, print_json, print_text, say
from autoresearch_cli.rendering.records import print_record
from autoresearch_cli.rendering.sources import print_source

app = command_app()
apps = {"show": app}


@app.command(
    epilog=examples(
        ("autoresearch show @", "the best run"),
        ("autoresearch show g3xk --code > train.py", "its source; any unique beginning of an id will do"),
        ("autoresearch show @mine --field metrics.steps", "one number, nothing else"),
        see="diff, lineage, log, top",
    )
)
def show(
    reference: Reference,
    *,
    code: Annotated[bool, typer.Option("--code", help="Print the run's train.py, and nothing else.")] = False,
    log: Annotated[bool, typer.Option("--log", help="Print what the run printed, and nothing else.")] = False,
    field: Annotated[
        str, typer.Option("--field", metavar="NAME", help="Print one field, like value, title or metrics.steps.")
    ] = "",
    json: Json = False,
) -> None:
    """One record, whole: for a run its numbers, where it ran, its source and what it printed."""
    if code + log + bool(field) > 1:
        raise UsageError("--code, --log and --field can't be combined", hint="ask for one at a time")
    with open_notebook() as notebook:
        if code or log:
            _show_text(notebook, reference, "code" if code else "log", json=json)
            return
        answer = notebook.show(reference)
    if field:
        _show_field(answer, field, json=json)
    elif json:
        print_json(answer)
    else:
        print_record(answer, now_ms=here.now_ms())
        say(
            "→ autoresearch diff ID, autoresearch lineage ID, autoresearch show ID --code"
            if answer.run
            else "→ autoresearch log"
        )


def _show_text(notebook: NotebookReader, reference: str, what: str, *, json: bool) -> None:
    content = notebook.source(reference) if what == "code" else notebook.training_log(reference)
    if json:
        record = notebook.show(reference).record.id
        print_json(TextAnswer(id=record, what=what, text=content))
    else:
        print_source(content)


def _show_field(answer: ShowAnswer, name: str, *, json: bool) -> None:
    found = fields(answer)
    value: object = found
    for part in name.split("."):
        if not isinstance(value, dict) or part not in value:
            raise UsageError(
                f"this {answer.record.kind} has no field {name}", hint=f"fields: {', '.join(sorted(found))}"
            )
        value = value[part]
    if json:
        print_json(FieldAnswer(id=answer.record.id, name=name, value=value))
        return
    text = value if isinstance(value, str) else msgspec.json.encode(value).decode()
    print_text(safe(text) if is_terminal() else text)


def fields(answer: ShowAnswer) -> dict[str, object]:
    """All fields by name; where several have one name, the run's wins over the record's over the body's."""
    found = dict(answer.body)
    found |= msgspec.to_builtins(answer.record)
    if answer.run:
        found |= msgspec.to_builtins(answer.run)
    return found
