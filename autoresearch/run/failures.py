"""Why a walled-in program failed, by what it printed, and what helps. Reads the end of a text alone; starts nothing.

A run sees less of the machine than its author does. Each wall has words of its own in what a program prints when it
meets it: ``PermissionError: [Errno 13] Permission denied: '/data/set.csv'``, ``sh: 1: ./solver: Permission denied``.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from autoresearch.run.sandbox.job import Level
from autoresearch.task.needs import END_CHARACTERS

# Landlock lets a run execute what its build made, and nothing that it made itself.
COMPILED_HINT = (
    "have it compiled before the run: --build 'g++ -O2 -o NAME FILE'; or get bubblewrap: autoresearch node doctor"
)
SEMAPHORES_HINT = "semaphores need bubblewrap: autoresearch node doctor says how to get it"
SOCKETS_HINT = (
    "processes that exchange data (DataLoader with workers, a Manager) need bubblewrap: autoresearch node doctor says "
    "how to get it; or set the number of workers to 0"
)
NETWORK_HINT = "a run has no network: get its data before, and show their folder to it: --mount DIR"
TEMPORARY_HINT = "a run has a folder of its own for temporary files: write to tempfile.gettempdir(), or $TMPDIR"
SYSTEM_HINT = (
    "runs do not see {path}: have the program do without it; or get bubblewrap, where it is not there: "
    "autoresearch node doctor"
)
WRITE_HINT = "a run writes in the folder that it starts in, and in $TMPDIR: give {path} a place there"

CARD_HINT = (
    "this node gives its runs no card: have the program take the processor then, by an argument such as "
    "--command 'python train.py --device=cpu', or: autoresearch node doctor"
)

_LINE = 1000
_REFUSED = re.compile(r"Permission denied|Read-only file system")
_QUOTED = re.compile(r"""['"`‘“](?P<path>[^'"`’”\n]{1,500})['"’”]""")
_UNQUOTED = re.compile(r"(?:^|: )(?P<path>[^:\n]{1,500}): (?:Permission denied|Read-only file system)")
# Who starts programs, and says so where one can't be started: a shell, a script by its line, make, Python.
_STARTS = re.compile(r"(?:\S{0,200}/)?(?:(?:ba|da|z|k|a)?sh|make(?:\[\d+\])?|env|timeout|nohup|xargs|nice|time): ")
_NO_CARD = re.compile(
    r"not compiled with CUDA|No CUDA GPUs are available|Found no NVIDIA driver|CUDA driver version is insufficient"
    r"|torch\.cuda\.is_available\(\) is False|no CUDA-capable device"
)
_SCRIPT = re.compile(r"[^:\s]{1,200}: (?:line )?\d{1,6}: ")
_STARTED_BY_PYTHON = re.compile(r"_execute_child|os\.exec|posix_spawn|os\.spawn")
_SEMAPHORES = re.compile(r"SemLock|sem_open|_posixshmem|shm_open|/dev/shm")
_SOCKETS = re.compile(r"resource_sharer|multiprocessing/(?:managers|forkserver|connection)|AF_UNIX|shm_manager")
_NO_NETWORK = re.compile(
    r"Name or service not known|Temporary failure in name resolution|Network is unreachable|getaddrinfo failed"
    r"|urlopen error|Max retries exceeded|Could not resolve host|No route to host|NewConnectionError"
)
SCRATCH_FOLDER = re.compile(r"/[^\s'\"]{0,200}/autoresearch-scratch-\w{1,32}/scratch(?=/|$)")
_SYSTEM = ("/sys/", "/proc/", "/etc/", "/dev/", "/run/")
_TEMPORARY = ("/tmp/", "/var/tmp/")  # noqa: S108


class BlockedFile(NamedTuple):
    """A file that a wall kept from a run: its path, relative where it is the run's own; whether it was to start it."""

    path: str
    starts: bool


def refusal_in(text: str) -> BlockedFile | None:
    """The last file that a program said it may not start, read or write; None where it named none."""
    end = text[-END_CHARACTERS:]
    for line in reversed(end.splitlines()):
        if len(line) > _LINE or not _REFUSED.search(line):
            continue
        if match := _QUOTED.search(line) or _UNQUOTED.search(line):
            is_pythons = "Errno" in line
            starts = _STARTED_BY_PYTHON.search(end) if is_pythons else _STARTS.match(line) or _SCRIPT.match(line)
            is_file = "cannot create" not in line and "Read-only" not in line
            return BlockedFile(SCRATCH_FOLDER.sub(".", match["path"].strip()), bool(starts) and is_file)
    return None


def way_out(text: str, level: Level) -> str:
    """What helps a program that failed at a wall of this level; empty where the cause is another one.

    ``/tmp/x`` that it may not write under landlock, for example, has its place in the folder of ``$TMPDIR``.
    """
    end = text[-END_CHARACTERS:]
    if _NO_CARD.search(end):
        return CARD_HINT
    if level is Level.LANDLOCK and "Operation not permitted" in end and _SOCKETS.search(end):
        return SOCKETS_HINT
    if _NO_NETWORK.search(end) or ("Operation not permitted" in end and "in create_connection" in end):
        return NETWORK_HINT
    if level is Level.LANDLOCK and "Permission denied" in end and _SEMAPHORES.search(end):
        return SEMAPHORES_HINT
    refusal = refusal_in(text)
    if refusal is None:
        return ""
    if refusal.starts and not refusal.path.startswith("/"):
        return COMPILED_HINT if level is Level.LANDLOCK else ""
    if refusal.path.startswith(_TEMPORARY):
        return TEMPORARY_HINT
    if refusal.path.startswith(_SYSTEM):
        return SYSTEM_HINT.format(path=refusal.path) if level is Level.LANDLOCK else ""
    return "" if refusal.starts else WRITE_HINT.format(path=refusal.path)
