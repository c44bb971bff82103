"""What the launcher is told: program, limits, user, landlock rules and filter, marshalled as text."""

from __future__ import annotations

import marshal
import os
import platform
import stat
import sys
import threading
from collections.abc import Iterable, Sequence
from pathlib import Path

from autoresearch.running import landlock, layout, seccomp
from autoresearch.running.interpreter import shown_folders
from autoresearch.running.job import Job, Limits
from autoresearch.running.level import Level

GIB = 1 << 30
_FIRST_UID = 1_900_000_000
PYTHON = frozenset({"python", "python3"})
"""The names of Python in a command."""
_OPEN_FILES = 1024
_LARGEST_LIMIT = 1 << 60
_NULL_DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom")
_PROCESSOR_FILES = ("/proc/cpuinfo", "/proc/meminfo", "/sys/devices/system/cpu")


def run_user() -> int | None:
    """The user id that a run changes to when root starts it: unused, and another one for each running thread."""
    return _FIRST_UID + threading.get_native_id() if os.geteuid() == 0 else None


def tasks_allowed(limits: Limits, threads: int) -> int:
    """The kernel's own bound on processes and threads together; the watchdog counts processes before it."""
    return limits.processes + 4 * threads + 32


def rlimits(job: Job, *, tasks_of_others: int) -> dict[str, int]:
    """The kernel's limits. Data segments are bounded as a backstop against allocations between two looks."""
    limits = {
        "RLIMIT_CORE": 0,
        "RLIMIT_FSIZE": job.limits.disk_bytes,
        "RLIMIT_NOFILE": _OPEN_FILES,
        "RLIMIT_NPROC": tasks_allowed(job.limits, job.threads) + tasks_of_others,
        "RLIMIT_MSGQUEUE": 0,
    }
    if job.device == "cpu":  # CUDA reserves far more than it uses
        limits["RLIMIT_DATA"] = 2 * job.limits.memory_bytes + GIB
    return {name: min(value, _LARGEST_LIMIT) for name, value in limits.items()}


def environment(job: Job, *, home: str, data: str, result_fd: int, checkpoint_fd: int | None) -> dict[str, str]:
    """The environment of the program: nothing of ours, and what the harness reads."""
    variables = layout.environment(home=home, threads=job.threads, device=job.device)
    if job.python is not None:
        variables["PATH"] = f"{job.python.executable.parent}:{variables['PATH']}"
    variables |= {
        "AUTORESEARCH_RESULT_FD": str(result_fd),
        "AUTORESEARCH_SEED": str(job.seed),
        "AUTORESEARCH_BUDGET": repr(float(job.budget)),
        "AUTORESEARCH_STOP_AT": repr(float(job.stop_at)),
        "AUTORESEARCH_THREADS": str(job.threads),
        "AUTORESEARCH_DEVICE": layout.visible_device(job.device),
    }
    if checkpoint_fd is not None and not job.artifact:
        variables["AUTORESEARCH_CHECKPOINT_FD"] = str(checkpoint_fd)
    if job.data is not None:
        variables["AUTORESEARCH_DATA"] = data
    if job.talk is not None:
        read, write = job.talk.descriptors
        variables |= {"AUTORESEARCH_TALK_READ": str(read), "AUTORESEARCH_TALK_WRITE": str(write)}
    if job.library:
        variables["PYTHONSAFEPATH"] = "1"
    return variables


def landlock_rules(job: Job, inputs: Iterable[Path], scratch: Path) -> list[tuple[str, int]]:
    """What a run may touch below bubblewrap: system, interpreter, inputs to read, its scratch folder to write."""
    system = (*layout.SYSTEM_FOLDERS, *layout.SYSTEM_LINKS, *layout.SYSTEM_FILES)
    read = [*system, *shown_folders(job.python), *map(Path, _PROCESSOR_FILES), *inputs]
    read += [*layout.device_information(job.device), *(mount.expanduser() for mount in job.shown)]
    write = [scratch]
    if job.data is not None:
        (write if job.writable_data else read).append(job.data)
    return landlock.rules(read, write, [*map(Path, _NULL_DEVICES), *layout.device_nodes(job.device)])


def specification(  # noqa: PLR0913 - a job, and all that its place gives it
    job: Job,
    level: Level,
    *,
    folder: str,
    cwd: str,
    ready_fd: int,
    keeper_fds: Sequence[int],
    checkpoint_fd: int | None = None,
    rules: Sequence[tuple[str, int]] = (),
    tasks_of_others: int = 0,
) -> str:
    """The launcher's argument. The last two are for the levels below bubblewrap. ``folder`` holds the files inside.

    ``keeper_fds``: what its keeper holds and the program does not get: the leash first, a text last.
    """
    seen = [Path(path) for path, _ in rules]
    walled = level is not Level.NONE
    program = seccomp.deny_filter(platform.machine(), sockets=level is Level.BUBBLEWRAP) if walled else b""
    asking = walled and job.text is not None and job.device == "cpu"  # a card's driver opens files at any time
    return marshal.dumps(
        {
            "argv": _words(job, job.command or ("python", f"{folder}/{job.entry}", *job.arguments)),
            "build": _words(job, job.build),
            "cwd": cwd,
            "copied": [f"{folder}/{name}" for name in job.copied],
            "linked": [f"{folder}/{name}" for name in job.linked],
            "artifact": (f"{cwd}/{job.artifact}", checkpoint_fd) if job.artifact else None,
            "ready": ready_fd,
            "kept": list(keeper_fds),
            "namespace": level is Level.BUBBLEWRAP,
            "uid": run_user(),
            "keep_read": os.geteuid() == 0 and level is not Level.BUBBLEWRAP and not all(map(open_to_all, seen)),
            "limits": rlimits(job, tasks_of_others=tasks_of_others),
            "landlock": (landlock.HANDLED, list(rules)) if level is Level.LANDLOCK else None,
            "seccomp": program,
            "text": None if job.text is None else keeper_fds[-1],
            "asking": seccomp.asking_filter(platform.machine()) if asking else b"",
        }
    ).hex()


def _words(job: Job, command: Sequence[str]) -> list[str]:
    """What is executed: of Python that of the job, of all else what a shell finds by its name."""
    if command and command[0] in PYTHON:
        return [str(job.python.executable) if job.python else sys.executable, *command[1:]]
    return ["/bin/sh", "-c", 'exec "$@"', "sh", *command] if command else []


def open_to_all(path: Path) -> bool:
    """Whether every user may walk to ``path`` and read it, going by the permission bits."""
    walk = all(folder.stat().st_mode & stat.S_IXOTH for folder in path.resolve().parents)
    return walk and bool(path.stat().st_mode & stat.S_IROTH)


def tasks_of(uid: int, stat_folders: Iterable[Path]) -> int:
    """How many tasks (threads count each) a user runs already: the kernel's limit counts them all."""
    total = 0
    for folder in stat_folders:
        try:
            if folder.stat().st_uid == uid:
                total += len(list((folder / "task").iterdir()))
        except OSError:
            continue
    return total
