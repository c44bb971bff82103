"""Temporary folders and descriptors with one owner. Whatever was opened here is closed exactly once.

Also what a stranger's program left on disk is removed, however it is nested or protected. A folder is locked (flock(2))
for as long as a process that uses it lives; the kernel lets go of the lock however that process ends. So whatever isn't
locked is nobody's, and the next run takes it away.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self


class Descriptors:
    """A set of open descriptors that closes with its ``with`` block."""

    def __init__(self) -> None:
        self._open: set[int] = set()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close(*self._open)

    def own(self, descriptor: int) -> int:
        """Takes over one descriptor."""
        self._open.add(descriptor)
        return descriptor

    def pipe(self) -> tuple[int, int]:
        """A new pipe: read end, write end."""
        read, write = os.pipe()
        return self.own(read), self.own(write)

    def memory_file(self, content: bytes) -> int:
        """A nameless file with this content, at its start."""
        descriptor = self.own(os.memfd_create("input"))
        with os.fdopen(os.dup(descriptor), "wb") as file:
            file.write(content)
        os.lseek(descriptor, 0, os.SEEK_SET)
        return descriptor

    def close(self, *descriptors: int) -> None:
        """Closes these now; those already closed are left alone."""
        for descriptor in descriptors:
            if descriptor in self._open:
                self._open.remove(descriptor)
                os.close(descriptor)


def remove_tree(folder: Path) -> None:
    """Removes a folder with all in it. Links are not followed; what can't be removed stays, without an error."""
    try:
        shutil.rmtree(folder)
    except FileNotFoundError:
        return
    except (OSError, RecursionError):  # closed folders, or thousands of them inside each other
        for command in (["chmod", "-R", "u+rwX"], ["rm", "-rf"]):
            subprocess.run([*command, "--", str(folder)], stderr=subprocess.DEVNULL, check=False)


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


def is_scratch(folder: Path) -> bool:
    """Whether a folder is one of those, by its name."""
    return folder.name.startswith(_PREFIX)


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
