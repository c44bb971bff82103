"""``import``: a bundle of another node, or past work from a results.tsv as notes."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from autoresearch.bundles import is_bundle
from autoresearch.errors import NotFound, Refused, UsageError
from autoresearch.notebook import Notebook
from autoresearch.paths import typed_path
from autoresearch.tasks import load_task
from autoresearch_cli import bundles, here, starting
from autoresearch_cli.models import BundleImportAnswer, ImportAnswer
from autoresearch_cli.options import Json, command_app, examples
from autoresearch_cli.rendering.figures import counted
from autoresearch_cli.rendering.output import print_json, say
from autoresearch_cli.results_tsv import Row, read_rows

MAXIMUM_BYTES = 16 << 20
ALL_NOTES = 1_000_000
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
    if starting.daemon_status() is not None:
        raise Refused("notes can't be imported while the daemon runs", hint="stop it first: autoresearch down")
    added = _append(rows, digest)
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


def _append(rows: list[Row], task: bytes) -> int:
    """Sign and store the rows that are not there yet. Returns how many were added."""
    with Notebook(here.paths()) as notebook:
        notebook.publish_identity(here.now_ms())
        mine = notebook.log.records(kind="note", author=notebook.author, limit=ALL_NOTES)
        known = {getattr(record.body, "origin", "") for record in mine}
        added = 0
        for note in (row.note(task) for row in rows):
            if note.origin not in known:
                notebook.publish_note(note, here.now_ms())
                known.add(note.origin)
                added += 1
    return added
