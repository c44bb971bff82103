"""``import``: a bundle of another node, or past work from a results.tsv as notes."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from autoresearch.api import HistoryNote, HistoryRequest, operations
from autoresearch.bundles import is_bundle
from autoresearch.errors import DaemonNotRunning, NotFound, Refused, UsageError
from autoresearch.figures import counted
from autoresearch.notebook import Notebook
from autoresearch.paths import typed_path
from autoresearch.records import Note
from autoresearch.tasks import load_task
from autoresearch_cli import bundles, here
from autoresearch_cli.models import BundleImportAnswer, ImportAnswer
from autoresearch_cli.options import Json, command_app, examples
from autoresearch_cli.rendering.output import print_json, say
from autoresearch_cli.results_tsv import read_rows

MAXIMUM_BYTES = 16 << 20
# Of one request: some hundred kilobytes at most.
NOTES_AT_ONCE = 200
app = command_app()
apps = {"import": app}


@app.command(
    epilog=examples(
        ("autoresearch import /media/stick/log.car", "what export --bundle wrote on another machine"),
        ("autoresearch import results.tsv --task ~/my-task", "past work on this task, as notes of topic history"),
        ("autoresearch import results.tsv --json", "the same for a program"),
        see="export, log --kind note, task show",
    )
)
def import_rows(
    file: Annotated[str, typer.Argument(metavar="FILE", help="A bundle, or a results.tsv of karpathy/autoresearch.")],
    *,
    task: Annotated[
        str,
        typer.Option(
            "--task",
            metavar="DIR",
            help="The task folder that a results.tsv belongs to. Left out: the file's own, else the configured one.",
        ),
    ] = "",
    json: Json = False,
) -> None:
    """Import a bundle, whose records are checked like those of a peer; or past work as notes, which never rank."""
    path = typed_path(file).absolute()
    if _is_bundle(path):
        if task:
            raise UsageError("a bundle names the tasks of its records itself", hint="leave out --task")
        _import_bundle(file, path, json=json)
        return
    rows = read_rows(_text(path))
    # A results.tsv usually lies in its task's folder.
    beside = str(path.parent) if (path.parent / "task.toml").is_file() else ""
    digest = load_task(here.task_folder(task or beside)).digest
    added = _append([row.note(digest) for row in rows])
    if json:
        print_json(ImportAnswer(file=file, added=added, known=len(rows) - added))
    else:
        say(f"{counted(added, 'note')} added, {len(rows) - added} were there already")
        say("→ autoresearch log --kind note")


def _is_bundle(path: Path) -> bool:
    """Whether it begins as one, or is called as one."""
    try:
        return path.is_file() and (path.suffix == ".car" or is_bundle(path))
    except OSError as error:
        raise Refused(f"{path} can't be read: {error.strerror}") from error


def _import_bundle(name: str, path: Path, *, json: bool) -> None:
    imported = bundles.take_in(path)
    if json:
        print_json(BundleImportAnswer(file=name, **asdict(imported)))
        return
    say(bundles.summary(imported))
    if imported.early:
        say("→ import it again later: some records are ahead of this clock")


def _text(path: Path) -> str:
    if not path.exists():
        raise NotFound(f"there is no file {path}")
    if not path.is_file():
        raise UsageError(f"{path} is not a file")
    if path.stat().st_size > MAXIMUM_BYTES:
        raise UsageError(f"{path} is larger than {MAXIMUM_BYTES >> 20} MiB")
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise UsageError(f"{path} is not UTF-8 text: {error.reason}", hint="save it as UTF-8") from error


def _append(notes: list[Note]) -> int:
    """Publish the notes that are not there yet, by the daemon where one runs. Returns how many were added."""
    parts = [notes[start : start + NOTES_AT_ONCE] for start in range(0, len(notes), NOTES_AT_ONCE)]
    try:
        return sum(_ask(part) for part in parts)
    except DaemonNotRunning:
        with Notebook(here.paths()) as notebook:
            return sum(notebook.publish_history(part, here.now_ms()) for part in parts)


def _ask(notes: list[Note]) -> int:
    given = [
        HistoryNote(
            task=note.task.hex() if note.task else "",
            origin=note.origin,
            text=note.text,
            metrics={name: float(number) for name, number in note.metrics.items()},
            status=note.status,
        )
        for note in notes
    ]
    return here.client().ask(operations.IMPORT_HISTORY, HistoryRequest(notes=given)).added
