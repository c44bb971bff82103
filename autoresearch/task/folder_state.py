"""What a task folder remembers beside its files, and how files are written there.

It remembers the baseline as the task began, the run whose program was edited, and edits put aside.
"""

from __future__ import annotations

import errno
from collections.abc import Iterator, Mapping
from pathlib import Path

from autoresearch.beneath import LeadsOut, open_beneath, read_beneath, write_beneath
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
# More than any program or hypothesis that a run may have.
_STATE_BYTES = 32 << 20


def kept_baselines(folder: Path) -> Iterator[bytes]:
    """The copies of the baseline in a task folder that are readable text: at most one for each form of a program."""
    for name in (_BASELINE, _BASELINE_OF_FILES):
        try:
            content = read_beneath(folder, f"{STATE_FOLDER}/{name}", _STATE_BYTES)
            content.decode()
        except (OSError, UnicodeDecodeError):
            continue
        yield content


def keep_baseline(folder: Path, baseline: bytes) -> None:
    """Keep a copy of the baseline, so that the program may change. Raises UsageError when it can't be written."""
    name = _BASELINE if is_lone(baseline.decode("utf-8", "replace")) else _BASELINE_OF_FILES
    replace_file(folder, f"{STATE_FOLDER}/{name}", baseline)


def started_from(folder: Path) -> str:
    """The id of the run that the program in a folder was edited from, or ``@baseline``; empty: nobody knows.

    A folder in which nothing was ever checked out or run began with the task's baseline.
    """
    try:
        with open_beneath(folder, f"{STATE_FOLDER}/{_PARENT}") as file:
            return file.read(_ID_CHARACTERS).decode("ascii").strip()
    except FileNotFoundError:
        return BASELINE
    except (OSError, UnicodeDecodeError):
        return ""


def remember_start(folder: Path, run: str) -> None:
    """Remember the run that the next edit starts from; ``@baseline``: that of the baseline; empty: nobody knows.

    Raises UsageError when it can't be written.
    """
    replace_file(folder, f"{STATE_FOLDER}/{_PARENT}", f"{run}\n".encode())


def remember_edit(folder: Path, program: str, hypothesis: str) -> None:
    """Remember the program that a script wrote into a folder, and why it should help. Raises UsageError."""
    replace_file(folder, f"{STATE_FOLDER}/{_EDIT}", f"{source_digest(program).hex()}\n{hypothesis}".encode())


def remembered_edit(folder: Path) -> tuple[str, str]:
    """The digest of the program that a script wrote there last, in hex, and its hypothesis; empty where none did."""
    try:
        text = read_beneath(folder, f"{STATE_FOLDER}/{_EDIT}", _STATE_BYTES).decode()
    except (OSError, UnicodeDecodeError):
        return "", ""
    digest, _, hypothesis = text.partition("\n")
    return digest, hypothesis


def keep_edit(folder: Path, name: str, program: bytes, stamp: str) -> Path:
    """Put a program aside under a name that begins with a time; returns the new file. Raises UsageError."""
    for number in range(_KEPT_AT_ONCE):
        file = f"{STATE_FOLDER}/{_KEPT}/{stamp}{f'-{number}' if number else ''}-{name.replace('/', '-')}"
        try:
            write_beneath(folder, file, program, new=True)
        except FileExistsError:
            continue
        except OSError as error:
            raise unwritable(folder / file, error) from error
        return folder / file
    raise UsageError(f"{folder / STATE_FOLDER / _KEPT} is full", hint="remove what you don't need there")


def replace_file(folder: Path, name: str, content: bytes) -> None:
    """Write one file of a folder whole: a crash leaves the old one. Raises UsageError when it can't be written."""
    try:
        write_beneath(folder, name, content)
    except OSError as error:
        raise unwritable(folder / name, error) from error


def write_files(folder: Path, files: Mapping[str, bytes]) -> None:
    """Write files into a folder, with the folders that they are in. Raises UsageError when one can't be written."""
    for name, content in files.items():
        replace_file(folder, name, content)


def unwritable(path: Path, error: OSError) -> UsageError:
    """The error for people where a file can't be written."""
    hint = "replace that link by a folder or a file" if isinstance(error, LeadsOut) else "check the folder"
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        hint = "make room on that disk"
    return UsageError(f"{path} can't be written: {error.strerror}", hint=hint)


def create_file(folder: Path, name: str, text: str) -> None:
    """Write a new file whole: a crash leaves none, and a file that appeared meanwhile stays."""
    try:
        write_beneath(folder, name, text.encode(), new=True)
    except FileExistsError as error:
        raise Refused(f"{folder / name} exists already", hint="edit it, or move it away first") from error
    except OSError as error:
        raise unwritable(folder / name, error) from error
