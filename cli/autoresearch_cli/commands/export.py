"""``export``: runs for other programs, the log as a bundle, a task as a git repository or as pages.

``import``: a bundle of another node, or past work from a results.tsv as notes.
"""

from __future__ import annotations

import csv
import os
import shlex
import sys
from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, TextIO

import typer

from autoresearch.ask import publishing
from autoresearch.ask.desk import Desk
from autoresearch.ask.requests import HistoryNote, HistoryRequest
from autoresearch.ask.show import show_answer
from autoresearch.beneath import text_beneath
from autoresearch.errors import NotFound, Refused, UsageError
from autoresearch.extensions import EXPORTS, extension_names
from autoresearch.face.columns.column import lines
from autoresearch.face.exports.tables import EXPORT_COLUMNS, ExportedRun, read_rows, text_cell, verdicts
from autoresearch.log.bundle import is_bundle
from autoresearch.log.bundle_format import BundledBlobs
from autoresearch.log.standing.context import trust_context, whose
from autoresearch.log.standing.verification import judgement
from autoresearch.paths import output_path, typed_path, write_refusals
from autoresearch.record.kinds import Note, Run
from autoresearch.record.record import plain_body
from autoresearch.task.loading import load_task
from autoresearch.text import counted, json_text, size, unreadable
from autoresearch.words import DISCREDITED
from autoresearch_cli import home, local_log
from autoresearch_cli.catalogue import CommandApp, Hidden, Json, Task
from autoresearch_cli.local_log import open_desk
from autoresearch_cli.models import BundleAnswer, BundleImportAnswer, ExportAnswer, ImportAnswer
from autoresearch_cli.rendering.output import print_json, say

TABLES = ("jsonl", "csv", "tsv")
EXAMPLES = {"sqlite": "runs.db", "mlflow": "mlruns"}
app = CommandApp()


@app.command(
    "run export",
    ("autoresearch run export > results.tsv", "as tab-separated lines, the columns of results.tsv first"),
    ("autoresearch run export --bundle log.car", "the log itself, which `node import` reads on another machine"),
    ("autoresearch run export --format sqlite -o runs.db", "tables and views with search, for SQL and Datasette"),
    see="task export, node import, run list",
)
def export(
    *,
    form: Annotated[
        str,
        typer.Option(
            "--format",
            metavar="FORMAT",
            help="tsv, csv, jsonl with whole records, or with -o: sqlite, mlflow, git or another extension's.",
        ),
    ] = "tsv",
    output: Annotated[
        str,
        typer.Option(
            "--output", "-o", metavar="FILE", help="Write to a file, replaced as a whole, instead of standard output."
        ),
    ] = "",
    bundle: Annotated[
        str,
        typer.Option(
            "--bundle", metavar="FILE", help="Write the log itself to a file: `node import` reads it elsewhere."
        ),
    ] = "",
    task: Annotated[
        str, typer.Option("--task", metavar="TASK", help="Only the runs of this task. Left out: of all tasks.")
    ] = "",
    blobs: Annotated[
        BundledBlobs, typer.Option("--blobs", help="With --bundle: also sources; all files that are here; or none.")
    ] = BundledBlobs.SOURCES,
    hidden: Hidden = False,
    follow: Annotated[
        bool, typer.Option("--follow", "-f", help="With --format git: go on as records come. Needs the daemon.")
    ] = False,
    json: Annotated[
        bool, typer.Option("--json", help="The same as --format jsonl; with a file, say what was written as JSON.")
    ] = False,
) -> None:
    """Write all runs of all tasks, oldest first, without those that you hide; or the log as a bundle, with them.

    A git repository has the runs of one task: that of --task, of this folder, or worked on last.
    """
    if bundle and (output or form not in TABLES):
        raise UsageError("--bundle names the file already", hint="leave out --output and --format")
    if form not in TABLES:
        others = extension_names(EXPORTS)
        if form not in others:
            raise UsageError(f"there is no format {form!r}", hint=f"there are: {', '.join((*TABLES, *others))}")
        if not output:
            hint = f"autoresearch run export --format {form} -o {EXAMPLES.get(form, 'PLACE')}"
            raise UsageError(f"--format {form} writes a file or a folder", hint=hint)
        from autoresearch_cli.acts.exports import export_with  # with templates, which help and completion need not

        export_with(form, output, task, hidden=hidden, follow=follow, json=json)
        return
    if follow:
        raise UsageError(f"--format {form} can't be followed", hint="autoresearch work --follow")
    if bundle:
        write_as_bundle(bundle, task, blobs, json=json)
        return
    if json and not output:
        form = "jsonl"
    with open_desk() as desk, desk.log.hidden.included() if hidden else nullcontext():
        only = desk.task(task).digest if task else None
        if not output:
            write_runs(desk, form, sys.stdout, only)
            return
        runs = write_file(desk, form, output_path(output), only)
    if json:
        print_json(ExportAnswer(file=output, format=form, runs=runs))
    else:
        say(f"{counted(runs, 'run')} written to {output}")


@app.command(
    "task export",
    ("autoresearch task export --git ~/moons-runs", "a git repository: a commit a run, the best on main"),
    ("autoresearch task export --git ~/moons-runs --follow", "go on as records come, until Ctrl-C"),
    ("autoresearch task export --html ~/moons-pages", "pages that a browser opens without a server"),
    see="run export, open, diff",
)
def export_task(
    *,
    git: Annotated[
        str,
        typer.Option(
            "--git", metavar="DIR", help="Write the runs of the task as a git repository, or add what is new to it."
        ),
    ] = "",
    html: Annotated[
        str,
        typer.Option(
            "--html", metavar="DIR", help="Write the pages of the task as files that a browser opens without a server."
        ),
    ] = "",
    task: Task = "",
    bare: Annotated[bool, typer.Option("--bare", help="With --git: a repository without checked-out files.")] = False,
    follow: Annotated[
        bool, typer.Option("--follow", "-f", help="With --git: go on as records come, until Ctrl-C. Needs the daemon.")
    ] = False,
    json: Json = False,
) -> None:
    """Write the runs of one task as a git repository, or its pages as files."""
    if bool(git) == bool(html):
        raise UsageError("give a folder for a repository or for pages", hint="autoresearch task export --git DIR")
    from autoresearch_cli.acts.exports import export_pages, export_with  # with templates, as above

    if git:
        export_with("git-bare" if bare else "git", git, task, hidden=False, follow=follow, json=json)
    elif bare or follow:
        raise UsageError("--bare and --follow go with --git", hint="autoresearch task export --git DIR")
    else:
        export_pages(html, home.task_meant(task) or "", json=json)


def write_as_bundle(name: str, task: str, blobs: BundledBlobs, *, json: bool) -> None:
    """Write a bundle and say what is in it."""
    path = output_path(name)
    written = local_log.write(path, task=task, carried=blobs)
    size_bytes = path.stat().st_size
    if json:
        print_json(BundleAnswer(file=name, size_bytes=size_bytes, **written._asdict()))
        return
    held = f"{counted(written.records, 'record')} and {counted(written.blobs, 'blob')}"
    say(f"{held}, {size(size_bytes)}, written to {name}")
    if written.missing:
        say(f"{counted(written.missing, 'blob')} that they refer to are not here")
    say(f"→ on the other machine: autoresearch node import {shlex.quote(path.name)}")


def write_file(desk: Desk, form: str, path: Path, only: bytes | None = None) -> int:
    """Write beside the file and rename: it is whole, or as it was."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with write_refusals(path, "name a file elsewhere"):
            with temporary.open("w", encoding="utf-8", newline="") as file:
                runs = write_runs(desk, form, file, only)
            temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)
    return runs


def write_runs(desk: Desk, form: str, file: TextIO, only: bytes | None = None) -> int:
    """Write all runs, or those of one task, to an open file. Returns how many."""
    count = 0
    if form == "jsonl":
        for record_id, _ in run_verdicts(desk, only):
            file.write(json_text(show_answer(desk.log, record_id, marks=False)) + "\n")
            count += 1
        return count
    # RFC 4180 for CSV; no cell of a line holds a tab.
    if form == "csv":
        write = csv.writer(file, lineterminator="\r\n").writerow
    else:
        write = csv.writer(file, delimiter="\t", lineterminator="\n", quoting=csv.QUOTE_NONE, quotechar=None).writerow
    write(column.name for column in EXPORT_COLUMNS)
    tasks = desk.log.tasks
    names = {row.digest: (row.name, str(tasks.stated(row.digest, "metric", "name") or "")) for row in tasks.all()}
    for record_id, verdict in run_verdicts(desk, only):
        record = desk.log.records.get(record_id)
        assert isinstance(record.body, Run)
        exported = ExportedRun(
            record,
            record.body,
            plain_body(record.body),
            verdict,
            judgement(desk.log, record.id).state,
            *names.get(record.body.task, ("", "")),
        )
        write([text_cell(cell) for row in lines(EXPORT_COLUMNS, [exported]) for cell in row])
        count += 1
    return count


def run_verdicts(desk: Desk, only: bytes | None = None) -> Iterator[tuple[bytes, str]]:
    """All runs, or those of one task, task by task, oldest first, each with its verdict at that time.

    A stranger's run, and one with a false value, beats nobody's. Those that are hidden here are left out.
    """
    log = desk.log
    trust = trust_context(log, desk.me)
    for digest in dict.fromkeys(row.digest for row in log.tasks.all()) if only is None else (only,):
        task, rules = log.tasks.find(digest), log.tasks.rules(digest)
        if task is not None:
            history = log.runs.history(digest)
            hidden = log.hidden.of([run.id for run in history])
            judged = verdicts(
                history,
                direction=task.direction or "minimize",
                budget=None if rules is None or rules.any_budget else rules.budget,
                is_believed=lambda run: (
                    any(whose(run.author, run.time, trust)) and judgement(log, run.id).state not in DISCREDITED
                ),
            )
            yield from ((run, verdict) for run, verdict in judged if run not in hidden)


MAXIMUM_BYTES = 16 << 20
# Of one request: some hundred kilobytes at most.
NOTES_AT_ONCE = 200


@app.command(
    "node import",
    ("autoresearch node import /media/stick/log.car", "what export --bundle wrote on another machine"),
    ("autoresearch node import results.tsv --task ~/my-task", "past work on this task, as notes of topic history"),
    ("autoresearch node import results.tsv --json", "the same for a program"),
    see="run export, node records --kind note, task show",
)
def import_rows(
    file: Annotated[str, typer.Argument(metavar="FILE", help="A bundle, or a results.tsv of karpathy/autoresearch.")],
    *,
    task: Annotated[
        str,
        typer.Option(
            "--task",
            metavar="DIR",
            help="The task folder that a results.tsv belongs to. Left out: as the file or its folder says.",
        ),
    ] = "",
    json: Json = False,
) -> None:
    """Import a bundle, whose records are checked like those of a peer; or past work as notes, which never rank.

    The exit status is 1 where records of a bundle were refused; the others are here.
    """
    path = typed_path(file).absolute()
    if _is_bundle(path):
        if task:
            raise UsageError("a bundle names the tasks of its records itself", hint="leave out --task")
        _import_bundle(file, path, json=json)
        return
    rows = read_rows(_text(path))
    digests = {row.task for row in rows} - {""}
    if len(digests) > 1:
        one_each = (
            "autoresearch run export --task NAME -o FILE writes those of one; --bundle FILE moves the runs themselves"
        )
        raise UsageError(f"{path} has runs on {len(digests)} tasks, and notes are about one", hint=one_each)
    # A results.tsv usually lies in its task's folder.
    beside = str(path.parent) if (path.parent / "task.toml").is_file() else ""
    stated = bytes.fromhex(digests.pop()) if digests and not task else None
    digest = stated or load_task(home.task_folder(task or beside)).digest
    added = _append([row.note(digest) for row in rows])
    if json:
        print_json(ImportAnswer(file=file, added=added, present=len(rows) - added))
        return
    say(f"{counted(added, 'note')} added, {len(rows) - added} were there already")
    say("→ autoresearch node records --kind note")


def _is_bundle(path: Path) -> bool:
    """Whether it begins as one, or is called as one."""
    try:
        return path.is_file() and (path.suffix == ".car" or is_bundle(path))
    except OSError as error:
        raise Refused(f"{path} can't be read: {error.strerror}", hint="check its permissions") from error


def _import_bundle(name: str, path: Path, *, json: bool) -> None:
    imported = local_log.take_in(path)
    if json:
        print_json(BundleImportAnswer(file=name, **asdict(imported)))
    else:
        say(local_log.summary(imported))
        if imported.early:
            say("→ import it again later: some records are ahead of this clock")
    if imported.refused:
        raise typer.Exit(1)


def _text(path: Path) -> str:
    try:
        return text_beneath(path.parent, path.name, MAXIMUM_BYTES, links=False)
    except FileNotFoundError:
        raise NotFound(f"there is no file {path}", hint="check its name and folder") from None
    except OSError as error:
        raise UsageError(f"{path} can't be read: {error.strerror}", hint="give a file") from error
    except UnicodeDecodeError as error:
        raise UsageError(f"{path}: {unreadable(error)}", hint="save it as UTF-8 text") from error


def _append(notes: list[Note]) -> int:
    """Publish the notes that are not there yet, by the daemon where one runs. Returns how many were added."""
    parts = [notes[start : start + NOTES_AT_ONCE] for start in range(0, len(notes), NOTES_AT_ONCE)]
    return sum(home.ask(publishing.import_history, _request(part)).added for part in parts)


def _request(notes: list[Note]) -> HistoryRequest:
    history = [
        HistoryNote(
            task=note.task.hex() if note.task else "",
            origin=note.origin,
            text=note.text,
            metrics={name: float(number) for name, number in note.metrics.items()},
            status=note.status,
        )
        for note in notes
    ]
    return HistoryRequest(notes=history)
