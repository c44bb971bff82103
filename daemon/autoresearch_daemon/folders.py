"""Task folders as people name them to the daemon, and the folders of runs in hand."""

from __future__ import annotations

from pathlib import Path

from autoresearch.errors import UsageError
from autoresearch.paths import typed_path


def run_folder(spool: Path, worker: str, assignment: str) -> Path:
    """Where a worker keeps the files of what it has in hand."""
    return spool / f"{worker}-{assignment}"


def existing_folder(text: str) -> Path:
    """The folder a person named.

    Raises:
        UsageError: it does not exist, can be no path, or is no task's.
    """
    folder = typed_path(text)
    if not (folder / "task.toml").is_file():
        raise UsageError(f"{folder} has no task.toml", hint=f"autoresearch task new {folder}")
    return folder.resolve()
