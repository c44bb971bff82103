"""What a task folder remembers beside its files, and how files are written there.

It remembers the baseline as the task began, the run whose program was edited, and edits put aside.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path

from autoresearch.errors import Refused, UsageError
from autoresearch.task.program import is_lone, source_digest

STATE_FOLDER = ".autoresearch"
_BASELINE, _BASELINE_OF_FILES = "baseline.py", "baseline.txt"
_PARENT = "parent"
BASELINE = "@baseline"
"""The run of a task's baseline, whoever ran it, as the parent of an edit."""
_EDIT = "edit"
_KEPT = "kept"
# So many edits that were put aside in one second.
_KEPT_AT_ONCE = 1000
# Longer than any record's id.
_ID_CHARACTERS = 128


def kept_baselines(folder: Path) -> Iterator[bytes]:
    """The copies of the baseline in a task folder that are readable text: at most one for each form of a program."""
    for name in (_BASELINE, _BASELINE_OF_FILES):
        try:
            content = (folder / STATE_FOLDER / name).read_bytes()
            content.decode()
        except (OSError, UnicodeDecodeError):
            continue
        yield content


def keep_baseline(folder: Path, baseline: bytes) -> None:
    """Keep a copy of the baseline, so that the program may change. Raises UsageError when it can't be written."""
    _write(folder, _BASELINE if is_lone(baseline.decode("utf-8", "replace")) else _BASELINE_OF_FILES, baseline)


def started_from(folder: Path) -> str:
    """The id of the run that the program in a folder was edited from, or ``@baseline``; empty: nobody knows.

    A folder in which nothing was ever checked out or run began with the task's baseline.
    """
    try:
        with (folder / STATE_FOLDER / _PARENT).open(encoding="ascii") as file:
            return file.read(_ID_CHARACTERS).strip()
    except FileNotFoundError:
        return BASELINE
    except (OSError, UnicodeDecodeError):
        return ""


def remember_start(folder: Path, run: str) -> None:
    """Remember the run that the next edit starts from; ``@baseline``: that of the baseline; empty: nobody knows.

    Raises UsageError when it can't be written.
    """
    _write(folder, _PARENT, f"{run}\n".encode())


def remember_edit(folder: Path, program: str, hypothesis: str) -> None:
    """Remember the program that a script wrote into a folder, and why it should help. Raises UsageError."""
    _write(folder, _EDIT, f"{source_digest(program).hex()}\n{hypothesis}".encode())


def remembered_edit(folder: Path) -> tuple[str, str]:
    """The digest of the program that a script wrote there last, in hex, and its hypothesis; empty where none did."""
    try:
        digest, _, hypothesis = (folder / STATE_FOLDER / _EDIT).read_text("utf-8").partition("\n")
    except (OSError, UnicodeDecodeError):
        return "", ""
    return digest, hypothesis


def keep_edit(folder: Path, name: str, program: bytes, stamp: str) -> Path:
    """Put a program aside under a name that begins with a time; returns the new file. Raises UsageError."""
    place = folder / STATE_FOLDER / _KEPT
    try:
        place.mkdir(parents=True, exist_ok=True)
        for number in range(_KEPT_AT_ONCE):
            file = place / f"{stamp}{f'-{number}' if number else ''}-{name.replace('/', '-')}"
            try:
                with file.open("xb") as new:
                    new.write(program)
            except FileExistsError:
                continue
            return file
    except OSError as error:
        raise _unwritable(place, error) from error
    raise UsageError(f"{place} is full", hint="remove what you don't need there")


def replace_file(path: Path, content: bytes) -> None:
    """Write one file whole: a crash leaves the old one. Raises UsageError when it can't be written."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary.write_bytes(content)
        temporary.replace(path)
    except OSError as error:
        with suppress(OSError):
            temporary.unlink()
        raise _unwritable(path, error) from error


def _write(folder: Path, name: str, content: bytes) -> None:
    place = folder / STATE_FOLDER
    try:
        place.mkdir(exist_ok=True)
    except OSError as error:
        raise _unwritable(place / name, error) from error
    replace_file(place / name, content)


def write_files(folder: Path, files: Mapping[str, bytes]) -> None:
    """Write files into a folder, by names that were checked, with the folders that they are in."""
    for name, content in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)


def _unwritable(path: Path, error: OSError) -> UsageError:
    return UsageError(f"{path} can't be written: {error.strerror}", hint="check the folder")


def create_file(path: Path, text: str) -> None:
    """Write a new file whole: a crash leaves none, and a file that appeared meanwhile stays."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        temporary.write_text(text, encoding="utf-8")
        os.link(temporary, path)
    except FileExistsError as error:
        raise Refused(f"{path} exists already", hint="edit it, or move it away first") from error
    except OSError as error:
        raise UsageError(f"{path} can't be written: {error.strerror}", hint="check the folder") from error
    finally:
        temporary.unlink(missing_ok=True)
