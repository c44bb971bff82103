"""Temporary folders that the next one takes away when whoever made them was killed.

A folder is locked (flock(2)) for as long as a process that uses it lives; the kernel lets go of the lock however that
process ends. So whatever isn't locked is nobody's.
"""

from __future__ import annotations

import fcntl
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from autoresearch.running.removal import remove_tree

_PREFIX = "autoresearch-scratch-"


@dataclass(frozen=True, slots=True)
class Scratch:
    """A folder, and the descriptor that locks it: who inherits that keeps the folder too."""

    folder: Path
    lock: int


@contextmanager
def scratch_folder(parent: Path | None = None) -> Iterator[Scratch]:
    """A new folder for this user alone, in the system's temporary folder or in ``parent``; gone at the end."""
    scratch = _made(Path(tempfile.gettempdir()) if parent is None else parent)
    try:
        yield scratch
    finally:
        remove_tree(scratch.folder)
        os.close(scratch.lock)


def sweep(parent: Path | None = None) -> int:
    """Removes what killed processes of this user left in a folder; says how many there were. Raises nothing."""
    removed = 0
    for folder in (Path(tempfile.gettempdir()) if parent is None else parent).glob(f"{_PREFIX}*"):
        with suppress(OSError):  # somebody else's, or gone meanwhile
            descriptor = _opened(folder)
            try:
                if os.fstat(descriptor).st_uid == os.geteuid():
                    fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    remove_tree(folder)
                    removed += 1
            finally:
                os.close(descriptor)
    return removed


def _made(parent: Path) -> Scratch:
    while True:
        folder = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=parent))
        with suppress(FileNotFoundError):  # a sweep took it before it was locked
            lock = _opened(folder)
            with suppress(OSError):  # a file system without locks has no sweep either
                fcntl.flock(lock, fcntl.LOCK_SH)
            if folder.is_dir():
                return Scratch(folder, lock)
            os.close(lock)


def _opened(folder: Path) -> int:
    return os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
