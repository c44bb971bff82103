"""``export``: runs for other programs, the log as a bundle, a task as a git repository or as pages."""

from __future__ import annotations

import csv
import io
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Literal, TextIO

import typer

from autoresearch.answers import show_answer
from autoresearch.bundles import Carried
from autoresearch.errors import UsageError
from autoresearch.figures import counted, moment, size
from autoresearch.log import Log
from autoresearch.paths import typed_path
from autoresearch.records import Run, format_id, short_id
from autoresearch.sanitise import json_text, one_line
from autoresearch.views import judged, trust_context, whose
from autoresearch_cli import bundles, git_exports
from autoresearch_cli.models import BundleAnswer, ExportAnswer
from autoresearch_cli.options import command_app, examples
from autoresearch_cli.reading import NotebookReader, open_notebook
from autoresearch_cli.rendering.output import print_json, say
from autoresearch_cli.results_tsv import COLUMNS, verdicts

Format = Literal["jsonl", "csv", "tsv", "mlflow"]
MORE_COLUMNS = (
    "id", "task", "run_status", "reason", "parent", "replicate", "seed", "budget", "duration_ms", "peak_memory_bytes",
    "sandbox", "device", "author", "time", "hypothesis", "state",
)  # fmt: skip
GIB = 1 << 30
app = command_app()
apps = {"export": app}


@app.command(
    epilog=examples(
        ("autoresearch export > results.tsv", "as tab-separated lines, the columns of results.tsv first"),
        ("autoresearch export --git ~/grammar-runs", "a git repository: a commit a run, the best on main"),
        ("autoresearch export --format mlflow -o mlruns", "as MLflow keeps runs: mlflow ui opens the folder"),
        see="import, open, log",
    )
)
def export(  # noqa: PLR0912, PLR0913 - one for each option
    *,
    form: Annotated[
        Format, typer.Option("--format", help="tsv, csv, jsonl with whole records, or mlflow: a folder, with -o DIR.")
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
            "--bundle", metavar="FILE", help="Write the log itself to a file that `import` reads on another machine."
        ),
    ] = "",
    task: Annotated[
        str,
        typer.Option(
            "--task",
            metavar="TASK",
            help="With --bundle and mlflow: leave other tasks out. With --git and --html: this task.",
        ),
    ] = "",
    blobs: Annotated[
        Carried, typer.Option("--blobs", help="With --bundle: also sources; all files that are here; or none.")
    ] = Carried.SOURCES,
    git: Annotated[
        str,
        typer.Option(
            "--git", metavar="DIR", help="Write the runs of one task as a git repository, or add what is new to it."
        ),
    ] = "",
    html: Annotated[
        str,
        typer.Option(
            "--html", metavar="DIR", help="Write the pages of one task as files that a browser opens without a server."
        ),
    ] = "",
    bare: Annotated[bool, typer.Option("--bare", help="With --git: a repository without checked-out files.")] = False,
    follow: Annotated[
        bool, typer.Option("--follow", "-f", help="With --git: go on as records come, until Ctrl-C. Needs the daemon.")
    ] = False,
    json: Annotated[
        bool, typer.Option("--json", help="The same as --format jsonl; with a file, say what was written as JSON.")
    ] = False,
) -> None:
    """Write all runs of all tasks, oldest first; or the log as a bundle; or a task as a git repository, or as pages."""
    if (git or html) and (bundle or output or (git and html)):
        raise UsageError("--git and --html name the folder already", hint="give one of --git, --html and --bundle")
    if git:
        git_exports.export(git, task, bare=bare, follow=follow, json=json)
        return
    if html and not (bare or follow):
        from autoresearch_cli import html_exports  # most exports need no templates

        html_exports.export(html, task, json=json)
        return
    if bare or follow:
        raise UsageError("--bare and --follow go with --git", hint="autoresearch export --git DIR")
    if form == "mlflow":
        if bundle or not output:
            raise UsageError("--format mlflow writes a folder", hint="autoresearch export --format mlflow -o mlruns")
        from autoresearch_cli import mlflow_exports  # most exports are none

        mlflow_exports.export(output, task, json=json)
        return
    if bundle:
        if output:
            raise UsageError("--bundle names the file already", hint="leave out --output")
        write_as_bundle(bundle, task, blobs, json=json)
        return
    if task:
        raise UsageError("--task goes with --bundle, --git or --html", hint="autoresearch export --git DIR --task TASK")
    if json and not output:
        form = "jsonl"
    with open_notebook() as notebook:
        if not output:
            write_runs(notebook, form, sys.stdout)
            return
        runs = write_file(notebook, form, typed_path(output))
    if json:
        print_json(ExportAnswer(file=output, format=form, runs=runs))
    else:
        say(f"{counted(runs, 'run')} written to {output}")


def write_as_bundle(name: str, task: str, blobs: Carried, *, json: bool) -> None:
    """Write a bundle and say what is in it."""
    path = typed_path(name)
    written = bundles.write(path, task=task, carried=blobs)
    size_bytes = path.stat().st_size
    if json:
        print_json(BundleAnswer(file=name, size_bytes=size_bytes, **written._asdict()))
        return
    held = f"{counted(written.records, 'record')} and {counted(written.blobs, 'blob')}"
    say(f"{held}, {size(size_bytes)}, written to {name}")
    if written.missing:
        say(f"{counted(written.missing, 'blob')} that they refer to are not here")
    say(f"→ on the other machine: autoresearch import {path.name}")


def write_file(notebook: NotebookReader, form: Format, path: Path) -> int:
    """Write beside the file and rename: it is whole, or as it was."""
    if path.is_dir():
        raise UsageError(f"{path} is a folder", hint="name a file")
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with temporary.open("w", encoding="utf-8", newline="") as file:
            runs = write_runs(notebook, form, file)
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)
    return runs


def write_runs(notebook: NotebookReader, form: Format, file: TextIO) -> int:
    """Write all runs to an open file. Returns how many."""
    count = 0
    if form == "jsonl":
        for record_id, _ in run_verdicts(notebook):
            file.write(json_text(show_answer(notebook.log, record_id, marks=False)) + "\n")
            count += 1
        return count
    line = csv_line if form == "csv" else tsv_line
    file.write(line([*COLUMNS, *MORE_COLUMNS]))
    for record_id, status in run_verdicts(notebook):
        file.write(line(cells(notebook.log, record_id, status)))
        count += 1
    return count


def run_verdicts(notebook: NotebookReader) -> Iterator[tuple[bytes, str]]:
    """All runs, task by task, oldest first, each with its verdict at that time; a stranger's beats nobody's."""
    log = notebook.log
    known = trust_context(log, notebook.me)
    for digest in dict.fromkeys(row.digest for row in log.tasks.all()):
        task, rules = log.tasks.find(digest), log.tasks.rules(digest)
        if task is not None:
            yield from verdicts(
                log.runs.history(digest),
                direction=task.direction or "minimize",
                budget=None if rules is None or rules.any_budget else rules.budget,
                is_believed=lambda run: any(whose(run.author, run.time, known)),
            )


def cells(log: Log, record_id: bytes, status: str) -> list[str]:
    """One run as a row; a crash has zeros, as results.tsv has them."""
    record = log.records.get(record_id)
    body = record.body
    assert isinstance(body, Run)
    memory = 0.0 if body.value is None else body.peak_memory_bytes / GIB
    more = (
        format_id(record.id), body.task.hex(), body.status, body.reason, format_id(body.parent) if body.parent else "",
        body.replicate, body.seed, body.budget, body.duration_ms, body.peak_memory_bytes, body.sandbox, body.device,
        record.author.hex(), moment(record.time), body.hypothesis, judged(log, record).state,
    )  # fmt: skip
    first = (short_id(record.id), f"{body.value or 0.0:.6f}", f"{memory:.1f}", status, body.title)
    return [one_line(str(cell)) for cell in (*first, *more)]


def tsv_line(row: list[str]) -> str:
    """Cells, which hold no tab, separated by tabs."""
    return "\t".join(row) + "\n"


def csv_line(row: list[str]) -> str:
    """Cells as RFC 4180 has them."""
    buffer = io.StringIO()
    csv.writer(buffer, lineterminator="\r\n").writerow(row)
    return buffer.getvalue()
