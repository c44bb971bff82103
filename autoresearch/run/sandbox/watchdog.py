"""What a run uses at the moment: memory, processor time, processes and disk of its whole process tree.

Reads ``/proc`` directly, since it does so ten times a second beside somebody's training: about 0.1 ms a look.
"""

from __future__ import annotations

import errno
import mmap
import os
import stat
import sys
from contextlib import suppress
from dataclasses import dataclass
from glob import glob
from pathlib import Path

_TICKS_PER_SECOND = 100  # USER_HZ, the same on every Linux


@dataclass(frozen=True, slots=True)
class Usage:
    """One look: resident bytes, processor milliseconds of the living and of those they reaped, how many live.

    ``files`` are their open descriptors, each as often as a process has it.
    """

    memory_bytes: int = 0
    cpu_ms: int = 0
    processes: int = 0
    files: int = 0


def children(pid: int) -> list[int]:
    """The direct children of a process, started by whichever of its threads."""
    pids: list[int] = []
    try:
        for thread in os.listdir(f"/proc/{pid}/task"):  # noqa: PTH208
            pids += map(int, _read(f"/proc/{pid}/task/{thread}/children").split())
    except OSError:
        pass  # it ended meanwhile
    return pids


def descendants(root: int) -> list[int]:
    """All processes below ``root``, which itself is not among them."""
    pids: list[int] = []
    frontier = [root]
    while frontier:
        below = children(frontier.pop())
        pids += below
        frontier += below
    return pids


def usage(root: int, *, ours: frozenset[int] = frozenset()) -> Usage:
    """What ``root`` and the processes below it use. Of ``root`` and of ``ours``, processor time alone counts.

    They reap the run's orphans, whose time shows with theirs from then on. Pages that several processes share count
    once where the simple sum looks too large only; see ``fair_memory``.
    """
    memory = ticks = count = files = 0
    for pid in (root, *descendants(root)):
        try:
            fields = _fields(f"/proc/{pid}")
            ticks += int(fields[11]) + int(fields[12]) + int(fields[13]) + int(fields[14])
            if pid == root or pid in ours:
                continue
            if fields[0] in _ENDED:
                fields = _fields(f"/proc/{pid}/task/{_living_thread(pid)}")
        except OSError:
            continue  # one that has ended uses nothing but its number
        count += 1
        memory += int(fields[21]) * mmap.PAGESIZE
        files += _open_files(pid)
    return Usage(memory, ticks * 1000 // _TICKS_PER_SECOND, count, files)


_ENDED = b"ZX"


def _fields(folder: str) -> list[bytes]:
    """Of a process or a thread: its state first, then numbers as in proc_pid_stat(5) from the fourth on."""
    return _read(f"{folder}/stat").rpartition(b")")[2].split()


def _living_thread(pid: int) -> int:
    """A thread of the process that runs: where its first one has ended, ``/proc`` shows nothing under its own id.

    Raises ProcessLookupError where none runs.
    """
    for thread in os.listdir(f"/proc/{pid}/task"):  # noqa: PTH208
        with suppress(OSError):
            if _fields(f"/proc/{pid}/task/{thread}")[0] not in _ENDED:
                return int(thread)
    raise ProcessLookupError(pid)


def _open_files(pid: int) -> int:
    with suppress(OSError):  # before Linux 6.2 the size is 0
        return os.stat(f"/proc/{pid}/fd").st_size or len(os.listdir(f"/proc/{pid}/fd"))  # noqa: PTH116, PTH208
    return 0


FULL_PIPE = 1 << 16
"""Bytes in a pipe at most: the filter refuses a program larger ones, and so is a user's sum bounded by the kernel."""
_FULL_TERMINAL, _WATCHED_FILE, _MAPPING, _OPEN_FILE = 1 << 17, 256, 256, 1 << 10
_TERMINALS = frozenset({5, *range(136, 144)})  # the numbers of /dev/ptmx and of /dev/pts
_NAMELESS = (b"/dev/zero (deleted)", b"/memfd:")


def fair_memory(root: int, *, in_files: int = 0, in_others: int = 0, per_socket: int = 0) -> int:
    """Resident bytes with shared pages divided among their users, and the kernel's memory for these processes.

    That is page tables, mappings and open files with what waits in them, each socket with ``per_socket`` bytes.
    ``in_files`` are the bytes of its files in memory. ``in_others`` is by how much the machine's shared memory grew:
    it is theirs where they map files without a name, since such memory shows in no process once it is let go of.
    Exact and slow (milliseconds).
    """
    private = shared = 0
    pipes: dict[tuple[int, int], int] = {}
    is_hidden = False
    for pid in descendants(root):
        private += page_tables(pid) + _waiting(pid, pipes, per_socket)
        with suppress(OSError):
            place = f"/proc/{pid}/task/{_living_thread(pid)}"
            resident = _amounts(f"{place}/smaps_rollup")
            of_shared = resident.get(b"Pss_Shmem:", 0)
            shared += of_shared
            private += resident.get(b"Pss:", 0) - of_shared
            with open(f"{place}/maps", "rb") as maps:  # noqa: PTH123
                for line in maps:
                    private += _MAPPING
                    is_hidden = is_hidden or any(name in line for name in _NAMELESS)
    return private + max(shared, in_files, in_others if is_hidden else 0) + sum(pipes.values())


def page_tables(pid: int) -> int:
    """Bytes of a process's page tables, which can be many where it has touched much and keeps little."""
    with suppress(OSError):
        return _amounts(f"/proc/{pid}/task/{_living_thread(pid)}/status").get(b"VmPTE:", 0)
    return 0


def _amounts(path: str) -> dict[bytes, int]:
    """The lines of a file in ``/proc`` that end in kB, in bytes."""
    rows = (line.split() for line in _read(path).splitlines())
    return {row[0]: int(row[1]) * 1024 for row in rows if len(row) == 3 and row[2] == b"kB"}


def _waiting(pid: int, pipes: dict[tuple[int, int], int], per_socket: int) -> int:
    """The kernel's memory for the open files of a process; what several can have open goes into ``pipes``."""
    total = 0
    try:
        for name in os.listdir(f"/proc/{pid}/fd"):  # noqa: PTH208
            with suppress(OSError):
                status = os.stat(f"/proc/{pid}/fd/{name}")  # noqa: PTH116
                total += _OPEN_FILE
                if stat.S_ISFIFO(status.st_mode):
                    pipes[status.st_dev, status.st_ino] = FULL_PIPE
                elif stat.S_ISSOCK(status.st_mode):
                    pipes[status.st_dev, status.st_ino] = per_socket
                elif stat.S_ISCHR(status.st_mode) and os.major(status.st_rdev) in _TERMINALS:
                    total += _FULL_TERMINAL
                elif not stat.S_IFMT(status.st_mode):
                    with open(f"/proc/{pid}/fdinfo/{name}", "rb") as lines:  # noqa: PTH123
                        total += _WATCHED_FILE * sum(line.startswith(b"tfd:") for line in lines)
    except PermissionError:  # a program that nobody may read
        total += _open_files(pid) * max(per_socket, FULL_PIPE)
    except OSError:
        pass
    return total


def machine_memory() -> tuple[int, int]:
    """Bytes that the machine can still give, and bytes of its shared memory."""
    with suppress(OSError):
        amounts = _amounts("/proc/meminfo")
        return amounts.get(b"MemAvailable:", 0), amounts.get(b"Shmem:", 0)
    return 0, 0


def folder_usage(folder: Path, *, most_files: int) -> tuple[int, int]:
    """Bytes on disk and files below a folder; links are not followed, what vanishes meanwhile counts nothing.

    It looks no further than ``most_files``. Folders nested too deeply for a path can't be measured and count as more
    bytes than any limit.
    """
    total = files = 0
    pending = [str(folder)]
    while pending and files <= most_files:
        try:
            with os.scandir(pending.pop()) as entries:
                for entry in entries:
                    files += 1
                    if files > most_files:
                        break
                    with suppress(OSError):
                        total += entry.stat(follow_symlinks=False).st_blocks * 512
                        if entry.is_dir(follow_symlinks=False):
                            pending.append(entry.path)
        except OSError as error:
            if error.errno == errno.ENAMETOOLONG:
                return sys.maxsize, files
    return total, files


def unlinked_bytes(root: int) -> int:
    """Bytes of deleted files that processes below ``root`` still hold open; each thread can have files of its own."""
    seen: dict[tuple[int, int], int] = {}
    for pid in descendants(root):
        for folder in glob(f"/proc/{pid}/task/*/fd"):  # noqa: PTH207
            with suppress(OSError):
                for name in os.listdir(folder):  # noqa: PTH208
                    status = os.stat(f"{folder}/{name}")  # noqa: PTH116
                    if status.st_nlink == 0:
                        seen[status.st_dev, status.st_ino] = status.st_blocks * 512
    return sum(seen.values())


def has_open(root: int, file: Path) -> bool:
    """Whether a process below ``root`` has a file open, by whatever name."""
    status = file.stat()
    for pid in descendants(root):
        with suppress(OSError):
            for name in os.listdir(f"/proc/{pid}/fd"):  # noqa: PTH208
                with suppress(OSError):
                    if os.path.samestat(os.stat(f"/proc/{pid}/fd/{name}"), status):  # noqa: PTH116
                        return True
    return False


def _read(path: str) -> bytes:
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        return os.read(descriptor, 1 << 16)
    finally:
        os.close(descriptor)
