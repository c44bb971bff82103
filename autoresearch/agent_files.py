"""The two files of a task folder that a coding agent reads: ``AGENTS.md``, the loop, and ``history.md``, what is known.

They are no part of the task. A file of the same name that somebody else wrote stays as it is.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from autoresearch.errors import UsageError
from autoresearch.prompts import AGENTS_MARK, HISTORY_MARK, Known, agents_text, history_text
from autoresearch.tasks import Task, replace_file

AGENTS, HISTORY = "AGENTS.md", "history.md"
# An agent reads the file in each round of its loop.
HISTORY_BYTES = 16 << 10


def write_agent_files(task: Task, known: Known) -> list[str]:
    """Write both files into a task's folder; returns the names of those that somebody else wrote and that stay.

    ``AGENTS.md`` is written once, ``history.md`` each time. Raises UsageError when one can't be written.
    """
    agents, history = task.folder / AGENTS, task.folder / HISTORY
    if not agents.exists():
        replace_file(agents, agents_text(task).encode())
    if not history.exists() or _begins(history, HISTORY_MARK):
        replace_file(history, _history(task, known))
    marks = ((agents, AGENTS_MARK), (history, HISTORY_MARK))
    return [file.name for file, mark in marks if not _begins(file, mark)]


def refresh_history(task: Task, known: Callable[[], Known]) -> None:
    """Write ``history.md`` anew where a folder has one of ours. Raises UsageError when it can't be written."""
    history = task.folder / HISTORY
    if _begins(history, HISTORY_MARK):
        replace_file(history, _history(task, known()))


def _history(task: Task, known: Known) -> bytes:
    return history_text(known, task, HISTORY_BYTES).encode()


def _begins(file: Path, mark: str) -> bool:
    if not file.is_file():
        return False
    try:
        with file.open("rb") as there:
            return there.read(len(mark)) == mark.encode()
    except OSError as error:
        raise UsageError(f"{file} can't be read: {error.strerror}", hint="check the folder") from error
