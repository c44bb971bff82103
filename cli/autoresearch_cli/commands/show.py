"""``show``: one record, whole."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Annotated

import msgspec
import typer

from autoresearch.answers import open_checkpoint, run_checkpoint
from autoresearch.api import ShowAnswer
from autoresearch.errors import Refused, UsageError
from autoresearch.figures import size
from autoresearch.paths import typed_path
from autoresearch.sanitise import json_text
from autoresearch.words import RUN_MODES, RunState
from autoresearch_cli import here
from autoresearch_cli.models import FieldAnswer, TextAnswer
from autoresearch_cli.options import Json, Reference, Task, command_app, examples
from autoresearch_cli.reading import NotebookReader, open_notebook, with_blobs
from autoresearch_cli.rendering.evidence import how_to_check
from autoresearch_cli.rendering.ids import short
from autoresearch_cli.rendering.output import print_exactly, print_json, say
from autoresearch_cli.rendering.paging import paged
from autoresearch_cli.rendering.records import print_record

# What came of a checkpoint in this time is kept, and the next call goes on from there.
CHECKPOINT_SECONDS = 600.0

# Of the runs of agents that use a release.
USED_BY = 10

# States whose evidence everybody can check.
ACCUSED = (RunState.DISPUTED, RunState.REFUTED, RunState.FRAUD)

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
    code: Annotated[bool, typer.Option("--code", help="Print the run's program, and nothing else.")] = False,
    log: Annotated[bool, typer.Option("--log", help="Print what the run printed, and nothing else.")] = False,
    checkpoint: Annotated[
        str,
        typer.Option("--checkpoint", metavar="FILE", help="Write the run's checkpoint (safetensors) to a new file."),
    ] = "",
    field: Annotated[
        str, typer.Option("--field", metavar="NAME", help="Print one field, like value, title or metrics.steps.")
    ] = "",
    task: Task = "",
    json: Json = False,
) -> None:
    """One record, whole: for a run its numbers, where it ran, its source and what it printed."""
    if code + log + bool(field) + bool(checkpoint) > 1:
        raise UsageError("--code, --log, --checkpoint and --field can't be combined", hint="ask for one at a time")
    with open_notebook(task) as notebook:
        if checkpoint:
            _save_checkpoint(notebook, reference, typed_path(checkpoint), json=json)
            return
        if code or log:
            _show_text(notebook, reference, "code" if code else "log", json=json)
            return
        answer = notebook.show(reference)
        if answer.release:
            from autoresearch.project_records.by_component import runs_of_release  # most records are none

            release, me = notebook.resolve(reference), notebook.me
            used_by = runs_of_release(notebook.log, notebook.blobs, release, limit=USED_BY, me=me)
            answer = msgspec.structs.replace(answer, used_by=used_by)
    if field:
        _show_field(answer, field, json=json)
    elif json:
        print_json(answer)
    else:
        with paged():
            print_record(answer, now_ms=here.now_ms())
        say(f"→ {_next_step(answer, notebook.me)}")


def _next_step(answer: ShowAnswer, me: bytes | None) -> str:
    """What to type next: how to check what is held against a run or its author, else what else there is to see."""
    state, record = answer.verification.state if answer.verification else "", short(answer.record.id)
    if answer.forked and me is not None and me.hex() == answer.record.author:
        return "autoresearch id merge ends the fork of this device"
    if state in ACCUSED:
        return f"autoresearch evidence {record} checks why it is {state}"
    if answer.record.kind == "verification":
        return f"autoresearch evidence {record} measures the run again here"
    if answer.forked:
        return f"autoresearch evidence --kind fork --participant {answer.record.participant.short}"
    if answer.verification and (check := how_to_check(answer.verification.marks)):
        return check
    if answer.release:
        return f"autoresearch search {answer.release.type} lists others"
    if answer.run and answer.run.mode in RUN_MODES:
        return f"autoresearch get {record} DIR"
    if answer.run:
        return "autoresearch diff ID, autoresearch lineage ID, autoresearch show ID --code"
    return "autoresearch log"


def _show_text(notebook: NotebookReader, reference: str, what: str, *, json: bool) -> None:
    content = notebook.source(reference) if what == "code" else notebook.training_log(reference)
    if json:
        record = notebook.show(reference).record.id
        print_json(TextAnswer(id=record, what=what, text=content))
    else:
        with paged():
            print_exactly(content)


def _save_checkpoint(notebook: NotebookReader, reference: str, file: Path, *, json: bool) -> None:
    run = notebook.resolve(reference)
    blob = run_checkpoint(notebook.log, run)
    if file.exists():
        raise Refused(f"{file} exists already", hint="give a new file")
    if not notebook.blobs.has(blob.sha256):
        say(f"fetching {size(blob.size)} from other nodes …")
    opened = with_blobs(lambda: open_checkpoint(notebook.log, notebook.blobs, run), seconds=CHECKPOINT_SECONDS)
    with opened as content:
        try:
            with file.open("xb") as target:
                shutil.copyfileobj(content, target)
        except FileExistsError as error:
            raise Refused(f"{file} exists already", hint="give a new file") from error
        except OSError as error:
            raise UsageError(f"{file} can't be written: {error.strerror}", hint="check the folder") from error
    if json:
        print_json(FieldAnswer(id=notebook.show(reference).record.id, name="checkpoint", value=str(file)))
    else:
        say(f"{size(blob.size)} written to {file}")


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
    text = value if isinstance(value, str) else json_text(value)
    print_exactly(text if text.endswith("\n") else text + "\n")


def fields(answer: ShowAnswer) -> dict[str, object]:
    """All fields by name; where several have one name, the run's wins over the record's over the body's."""
    found = dict(answer.body)
    found |= msgspec.to_builtins(answer.record)
    if answer.run:
        found |= msgspec.to_builtins(answer.run)
    return found
