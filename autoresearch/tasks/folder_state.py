"""What a task folder remembers: the baseline as the task began, and the run whose program was edited."""

from __future__ import annotations

import os
from pathlib import Path

from autoresearch.errors import UsageError

STATE_FOLDER = ".autoresearch"
_BASELINE = "baseline.py"
_PARENT = "parent"
# Longer than any record's id.
_ID_CHARACTERS = 128


def kept_baseline(folder: Path) -> bytes | None:
    """The copy of the baseline in a task folder, if it is readable text."""
    try:
        content = (folder / STATE_FOLDER / _BASELINE).read_bytes()
        content.decode()
    except (OSError, UnicodeDecodeError):
        return None
    return content


def keep_baseline(folder: Path, baseline: bytes) -> None:
    """Keep a copy of the baseline, so that ``train.py`` may change. Raises UsageError when it can't be written."""
    _write(folder, _BASELINE, baseline)


def started_from(folder: Path) -> str:
    """The id of the run that the ``train.py`` in a folder was edited from; empty: the baseline, or nobody knows."""
    try:
        with (folder / STATE_FOLDER / _PARENT).open(encoding="ascii") as file:
            return file.read(_ID_CHARACTERS).strip()
    except (OSError, UnicodeDecodeError):
        return ""


def remember_start(folder: Path, run: str) -> None:
    """Remember the run that the next edit starts from. Raises UsageError when it can't be written."""
    _write(folder, _PARENT, f"{run}\n".encode())


def _write(folder: Path, name: str, content: bytes) -> None:
    """Write one file whole: a crash leaves the old one."""
    place = folder / STATE_FOLDER
    temporary = place / f".{name}.{os.getpid()}"
    try:
        place.mkdir(exist_ok=True)
        temporary.write_bytes(content)
        temporary.replace(place / name)
    except OSError as error:
        raise UsageError(f"{place / name} can't be written: {error.strerror}", hint="check the folder") from error
