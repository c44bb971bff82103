"""Runs as a folder that MLflow opens: ``mlflow ui --backend-store-uri DIR``."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from shlex import quote

from autoresearch.answers import FoundTask, show_answer, task_of
from autoresearch.errors import AutoresearchError, Refused, UsageError
from autoresearch.figures import counted
from autoresearch.mlflow_files import experiment_files, run_files
from autoresearch.paths import typed_path
from autoresearch.records import Run
from autoresearch.tasks import is_taken, split_program
from autoresearch_cli.models import ExportAnswer
from autoresearch_cli.reading import NotebookReader, open_notebook
from autoresearch_cli.rendering.output import print_json, say

PROGRAM = "program"


def export(name: str, task: str, *, json: bool) -> None:
    """Write the runs of one task, or of all, into a new folder.

    Raises:
        NotFound: there is no such task.
        Refused: the folder exists and is not empty.
        UsageError: it can't be written.
    """
    folder = typed_path(name).absolute()
    if is_taken(folder):
        raise Refused(f"{folder} exists already", hint="give a new folder")
    temporary = folder.with_name(f".{folder.name}.{os.getpid()}")
    with open_notebook() as notebook:
        digests = dict.fromkeys(row.digest for row in notebook.log.tasks.all())
        known = (task_of(notebook.log, digest) for digest in digests)
        tasks = [notebook.task(task)] if task else [found for found in known if found]
        try:
            count = sum(_write_task(notebook, found, temporary, folder.as_uri()) for found in tasks)
            temporary.mkdir(exist_ok=True)
            temporary.replace(folder)
        except OSError as error:
            raise UsageError(f"{folder} can't be written: {error.strerror}", hint="check the folder") from error
        finally:
            shutil.rmtree(temporary, ignore_errors=True)
    if json:
        print_json(ExportAnswer(file=name, format="mlflow", runs=count))
        return
    say(f"{counted(count, 'run')} of {counted(len(tasks), 'task')} written to {folder}")
    say(f"→ MLFLOW_ALLOW_FILE_STORE=true mlflow ui --backend-store-uri {quote(str(folder))}")


def _write_task(notebook: NotebookReader, task: FoundTask, folder: Path, place: str) -> int:
    """Write a task with its runs; returns how many."""
    rows = notebook.log.runs.history(task.digest)
    times = [row.time for row in rows] or [0]
    _write(folder, experiment_files(task.digest, task.name, place, (min(times), max(times))))
    for row in rows:
        found = show_answer(notebook.log, row.id, marks=False).run
        assert found is not None, "these are runs"
        _write(folder, run_files(found, task.metric, place, _program(notebook, row.id)))
    return len(rows)


def _program(notebook: NotebookReader, run: bytes) -> dict[str, bytes]:
    """The files of a run's program, where it is on this machine."""
    body = notebook.log.records.get(run).body
    if not isinstance(body, Run) or not notebook.blobs.has(body.source.sha256):
        return {}
    try:
        files = split_program(notebook.blobs.get(body.source.sha256).decode())
    except (AutoresearchError, UnicodeDecodeError):
        return {}
    return {f"{PROGRAM}/{name}": text.encode() for name, text in files.items()}


def _write(folder: Path, files: dict[str, bytes]) -> None:
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
