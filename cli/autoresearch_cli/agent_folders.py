"""A task folder in the hands of an agent: its program, and the files that say what is known."""

from __future__ import annotations

import hashlib
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

from autoresearch.agent_files import HISTORY, refresh_history, write_agent_files
from autoresearch.answers import run_source
from autoresearch.errors import Refused, UsageError
from autoresearch.ideas import run_on
from autoresearch.records import format_id, short_id
from autoresearch.research import fault_of_program
from autoresearch.tasks import (
    Task,
    join_files,
    keep_edit,
    kept_baselines,
    load_task,
    program_names,
    remember_start,
    replace_file,
    source_digest,
    split_program,
)
from autoresearch.views import next_base, run_body, trust_context
from autoresearch_cli import here
from autoresearch_cli.models import NextAnswer
from autoresearch_cli.reading import NotebookReader, open_notebook, with_blobs


def bring(folder: Path, reference: str = "") -> tuple[NextAnswer, list[str]]:
    """Bring a folder to the program of a run, the best one if none is named; returns also what is to be said of it.

    The program that is there is put aside where it is no run's.

    Raises:
        NotFound, AmbiguousId, UsageError: the run, its program or the folder is not what it has to be.
        Refused: the task pins no baseline, so that no run belongs to it once the program is edited.
    """
    task, there = _opened(folder)
    with open_notebook() as notebook:
        run = _start(notebook, task, reference)
        body = None if run is None else run_body(notebook.log, run)
        program = task.baseline if run is None else _program(notebook, task, run)
        after, kept = load_task(folder, program=program), None
        wanted = {name: content.encode() for name, content in split_program(program.decode()).items()}
        others = {name: content for name, content in there.items() if content != wanted.get(name)}
        if others and not _is_known(notebook, task, there):
            kept, *_ = [keep_edit(folder, name, content, _stamp()) for name, content in others.items()]
        for name, content in wanted.items():
            if there.get(name) != content:
                replace_file(folder / name, content)
        for name in there.keys() - wanted.keys():
            (folder / name).unlink()
        remember_start(folder, "" if run is None else format_id(run))
        left = written(notebook, after)
    answer = NextAnswer(
        folder=str(folder),
        run=None if run is None else format_id(run),
        title="" if body is None else body.title,
        value=None if body is None else body.value,
        edit=list(wanted),
        changed=there != wanted,
        kept=None if kept is None else str(kept),
        history=str(folder / HISTORY),
    )
    return answer, left


def written(notebook: NotebookReader, task: Task) -> list[str]:
    """Write the files for an agent into a task's folder; what to say of those that a person wrote, which stay."""
    left = write_agent_files(task, notebook.known(task))
    return [f"{task.folder / name} is not by autoresearch, so it stays as it is" for name in left]


def refreshed(notebook: NotebookReader, task: Task) -> list[str]:
    """Write ``history.md`` anew where the folder has one; what to say where it can't be: a run is no worse for it."""
    try:
        refresh_history(task, lambda: notebook.known(task))
    except UsageError as error:
        return [str(error)]
    return []


def _opened(folder: Path) -> tuple[Task, dict[str, bytes]]:
    """The task, and the files of the program that are there. A broken one is no obstacle."""
    try:
        task = load_task(folder)
    except UsageError:
        baseline = next(kept_baselines(folder), None)
        if baseline is None:
            raise
        task = load_task(folder, program=baseline)
    there = {}
    for name in program_names(folder, task.recipe, task.harness):
        with suppress(OSError):
            there[name] = (folder / name).read_bytes()
    if not task.is_pinned:
        raise Refused(
            "task.toml pins no baseline, so each edit is another task and no run leads back",
            hint=f"autoresearch task pin {folder}",
        )
    return task, there


def _start(notebook: NotebookReader, task: Task, reference: str) -> bytes | None:
    """The run to build on; None for the baseline that nobody has run."""
    if reference:
        return run_on(notebook.log, task, reference, notebook.me)
    found = next_base(notebook.log, task.digest, trust_context(notebook.log, notebook.me))
    return None if found is None else found.row.first


def _program(notebook: NotebookReader, task: Task, run: bytes) -> bytes:
    """The program of a run, which anybody may have written."""
    source = with_blobs(lambda: run_source(notebook.log, notebook.blobs, run))
    if (fault := fault_of_program(task, source)) is not None:
        raise Refused(f"the program of {short_id(run)} can't be used: {fault}", hint="choose another run")
    try:
        source_digest(source)
    except UsageError as error:
        raise Refused(f"the program of {short_id(run)} is no Python: {error}", hint="choose another run") from error
    return source.encode()


def _is_known(notebook: NotebookReader, task: Task, files: dict[str, bytes]) -> bool:
    """Whether a program is the baseline or that of a run, to the last byte: it can be had again."""
    try:
        program = join_files({name: content.decode() for name, content in files.items()}).encode()
    except (UnicodeDecodeError, UsageError):
        return False
    return program == task.baseline or notebook.blobs.has(hashlib.sha256(program).digest())


def _stamp() -> str:
    return datetime.fromtimestamp(here.now_ms() / 1000, UTC).strftime("%Y%m%d-%H%M%S")
