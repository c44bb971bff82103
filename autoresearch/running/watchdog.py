"""What a run uses at the moment: memory, processor time, processes and disk of its whole process tree.

Reads ``/proc`` directly, since it does so ten times a second beside somebody's training: about 0.1 ms a look.
"""

from __future__ import annotations

import errno
import mmap
import os
import sys
from dataclasses import dataclass
from pathlib import Path

_TICKS_PER_SECOND = 100  # USER_HZ, the same on every Linux


@dataclass(frozen=True, slots=True)
class Usage:
    """One look: resident bytes, processor milliseconds of the living, and how many processes live."""

    memory_bytes: int = 0
    cpu_ms: int = 0
    processes: int = 0


def children(pid: int) -> list[int]:
    """The direct children of a process, started by whichever of its threads."""
    found: list[int] = []
    try:
        for thread in os.listdir(f"/proc/{pid}/task"):  # noqa: PTH208
            found += map(int, _read(f"/proc/{pid}/task/{thread}/children").split())
    except OSError:
        pass  # it ended meanwhile
    return found


def descendants(root: int) -> list[int]:
    """All processes below ``root``, which itself is not among them."""
    found: list[int] = []
    frontier = [root]
    while frontier:
        below = children(frontier.pop())
        found += below
        frontier += below
    return found


def usage(root: int, *, besides: frozenset[int] = frozenset()) -> Usage:
    """What the processes below ``root`` use, not counting those in ``besides``.

    Pages that several processes share count once where the simple sum looks too large only; see ``fair_memory``.
    """
    memory = ticks = count = 0
    for pid in descendants(root):
        if pid in besides:
            continue
        try:
            fields = _read(f"/proc/{pid}/stat").rpartition(b")")[2].split()
        except OSError:
            continue
        if fields[0] in b"ZX":
            continue  # ended: it uses nothing but its number
        count += 1
        ticks += int(fields[11]) + int(fields[12]) + int(fields[13]) + int(fields[14])
        memory += int(fields[21]) * mmap.PAGESIZE
    return Usage(memory, ticks * 1000 // _TICKS_PER_SECOND, count)


def fair_memory(root: int) -> int:
    """Resident bytes with shared pages divided among their users. Exact and slow (milliseconds)."""
    total = 0
    for pid in descendants(root):
        try:
            lines = _read(f"/proc/{pid}/smaps_rollup").splitlines()
        except OSError:
            continue
        total += sum(int(line.split()[1]) * 1024 for line in lines if line.startswith(b"Pss:"))
    return total


def folder_bytes(folder: Path) -> int:
    """Bytes on disk below a folder; links are not followed, what vanishes meanwhile counts nothing.

    Folders nested too deeply for a path can't be measured and count as more than any limit.
    """
    total = 0
    pending = [str(folder)]
    while pending:
        try:
            entries = list(os.scandir(pending.pop()))
        except OSError as error:
            if error.errno == errno.ENAMETOOLONG:
                return sys.maxsize
            continue
        for entry in entries:
            try:
                total += entry.stat(follow_symlinks=False).st_blocks * 512
                if entry.is_dir(follow_symlinks=False):
                    pending.append(entry.path)
            except OSError:
                continue
    return total


def unlinked_bytes(root: int) -> int:
    """Bytes of deleted files that processes below ``root`` still hold open."""
    seen: dict[tuple[int, int], int] = {}
    for pid in descendants(root):
        folder = f"/proc/{pid}/fd"
        try:
            for name in os.listdir(folder):  # noqa: PTH208
                status = os.stat(f"{folder}/{name}")  # noqa: PTH116
                if status.st_nlink == 0:
                    seen[status.st_dev, status.st_ino] = status.st_blocks * 512
        except OSError:
            continue
    return sum(seen.values())


def _read(path: str) -> bytes:
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        return os.read(descriptor, 1 << 16)
    finally:
        os.close(descriptor)
