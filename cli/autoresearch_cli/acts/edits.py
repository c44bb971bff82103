"""The program of a task folder and its files for a coding agent: brought there, put aside, written anew."""

from __future__ import annotations

import hashlib
import shlex
from codecs import BOM_UTF8
from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from autoresearch.ask.acts.edited_program import run_on
from autoresearch.ask.desk import Desk
from autoresearch.ask.runs.diffs import run_source
from autoresearch.beneath import read_beneath, remove_beneath
from autoresearch.errors import Refused, UsageError
from autoresearch.log.standing.bases import next_base
from autoresearch.log.standing.context import trust_context
from autoresearch.log.standing.queries import run_body
from autoresearch.propose.mind.writing import HISTORY, refresh_history, write_agent_files
from autoresearch.record.encoding import format_id, short_id
from autoresearch.run.bench import fault_of_program
from autoresearch.task.folder_state import (
    BASELINE,
    keep_baseline,
    keep_edit,
    kept_baselines,
    remember_edit,
    remember_start,
    remembered_edit,
    replace_file,
)
from autoresearch.task.loading import load_task, program_names
from autoresearch.task.model import Task
from autoresearch.task.program import join_files, source_digest, split_program
from autoresearch_cli import home
from autoresearch_cli.local_log import open_desk, with_blobs
from autoresearch_cli.models import NextAnswer

if TYPE_CHECKING:
    from autoresearch.propose.mind.history import History


# A file that is put aside, however wrong: more than any program has.
_MOST_BYTES = 256 << 20


def bring(folder: Path, reference: str = "") -> tuple[NextAnswer, list[str]]:
    """Bring a folder to the program of a run, the best one if none is named; returns also what is to be said of it.

    The program that is there is put aside where it is no run's.

    Raises:
        NotFound, AmbiguousId, UsageError: the run, its program or the folder is not what it has to be.
        Refused: the task pins no baseline, so that no run belongs to it once the program is edited.
    """
    task, files = _opened(folder)
    with open_desk() as desk:
        run = _start(desk, task, reference)
        body = None if run is None else run_body(desk.log, run)
        program = task.baseline if run is None else _program(desk, task, run)
        after, backup = load_task(folder, program=program), None
        target_files = _encoded(program.decode())
        others = {name: content for name, content in files.items() if content != target_files.get(name)}
        if others and not _is_known(desk, task, files):
            backup, *_ = [keep_edit(folder, name, content, _stamp()) for name, content in others.items()]
        _replace(folder, files, target_files)
        remember_start(folder, BASELINE if run is None else format_id(run))
        left = written(desk, after)
    answer = NextAnswer(
        folder=str(folder),
        run=None if run is None else format_id(run),
        title="" if body is None else body.title,
        value=None if body is None else body.value,
        edit=list(target_files),
        changed=files != target_files,
        backup=None if backup is None else str(backup),
        history=str(folder / HISTORY),
    )
    return answer, left


def place_edit(folder: Path, program: str, hypothesis: str) -> str:
    """Have a task folder hold a program that is run from elsewhere, as if it had been edited there.

    An edit there that was never run stays, and so does a task that pins no baseline; a sentence says so.
    """
    task, target_files = load_task(folder), _encoded(program)
    if not task.is_pinned:
        return "task.toml pins no baseline, so the folder keeps its program: autoresearch task pin fixes this one"
    _, files = _opened(folder)
    if files == target_files:
        return ""
    with open_desk() as desk:
        is_known = (
            _is_known(desk, task, files) or source_digest(task.program.decode()).hex() == remembered_edit(folder)[0]
        )
    if not is_known:
        return f"{' and '.join(files)} in {folder} has an edit that was never run, so it stays as it is"
    keep_baseline(folder, task.baseline)
    _replace(folder, files, target_files)
    remember_edit(folder, program, hypothesis)
    return ""


def _encoded(program: str) -> dict[str, bytes]:
    return {name: content.encode() for name, content in split_program(program).items()}


def _replace(folder: Path, files: Mapping[str, bytes], target_files: Mapping[str, bytes]) -> None:
    """Write the files of another program in place of those of one."""
    for name, content in target_files.items():
        if files.get(name) != content:
            replace_file(folder, name, content)
    for name in files.keys() - target_files.keys():
        remove_beneath(folder, name)


def _history_of(desk: Desk, task: Task) -> History:
    """What the log knows of a task, for who invents the next change."""
    from autoresearch.propose.mind.history import gather  # most commands start without it

    return gather(desk.log, desk.blobs, task, now_ms=home.now_ms(), me=desk.me)


def written(desk: Desk, task: Task) -> list[str]:
    """Write the files for an agent into a task's folder; what to say of those that a person wrote, which stay."""
    left = write_agent_files(task, _history_of(desk, task))
    return [f"{task.folder / name} is not by autoresearch, so it stays as it is" for name in left]


def refreshed(desk: Desk, task: Task) -> list[str]:
    """Write ``history.md`` anew where the folder has one; what to say where it can't be: a run is no worse for it."""
    try:
        refresh_history(task, lambda: _history_of(desk, task))
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
    files = {}
    for name in program_names(folder, task.recipe, task.harness):
        with suppress(OSError):
            files[name] = read_beneath(folder, name, _MOST_BYTES).removeprefix(BOM_UTF8)
    if not task.is_pinned:
        raise Refused(
            "task.toml pins no baseline, so each edit is another task and no run leads back",
            hint=f"autoresearch task pin {shlex.quote(str(folder))}",
        )
    return task, files


def _start(desk: Desk, task: Task, reference: str) -> bytes | None:
    """The run to build on; None for the baseline that nobody has run."""
    if reference:
        return run_on(desk.log, task, reference, desk.me)
    base = next_base(desk.log, task.digest, trust_context(desk.log, desk.me))
    return None if base is None else base.row.first


def _program(desk: Desk, task: Task, run: bytes) -> bytes:
    """The program of a run, which anybody may have written."""
    source = with_blobs(lambda: run_source(desk.log, desk.blobs, run))
    if (fault := fault_of_program(task, source)) is not None:
        raise Refused(f"the program of {short_id(run)} can't be used: {fault}", hint="choose another run")
    try:
        source_digest(source)
    except UsageError as error:
        raise Refused(f"the program of {short_id(run)} is no Python: {error}", hint="choose another run") from error
    return source.encode()


def _is_known(desk: Desk, task: Task, files: dict[str, bytes]) -> bool:
    """Whether a program is the baseline or that of a run, to the last byte: it can be had again."""
    try:
        program = join_files({name: content.decode() for name, content in files.items()}).encode()
    except (UnicodeDecodeError, UsageError):
        return False
    # With other comments it is the baseline to the task, and yet what somebody wrote.
    baselines = list(kept_baselines(task.folder)) or [task.baseline]
    return program in baselines or desk.blobs.has(hashlib.sha256(program).digest())


def _stamp() -> str:
    return datetime.fromtimestamp(home.now_ms() / 1000, UTC).strftime("%Y%m%d-%H%M%S")
