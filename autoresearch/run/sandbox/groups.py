"""A control group for one run, where this process may make one: there the kernel itself counts, bounds and ends.

Of version 2 alone (Linux ``Documentation/admin-guide/cgroup-v2.rst``). It is made in the nearest folder above our own
group that is ours to write to and hands its controllers down, as a service or a session of systemd's user manager has
it, and root everywhere. A group that bounds memory or processor time is not left: what the owner of the machine set
holds for runs too. Without controllers a group still counts processor time and ends all that is in it.
"""

from __future__ import annotations

import functools
import itertools
import os
import select
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from autoresearch.run.sandbox import queues, watchdog

_MOUNTS = (Path("/sys/fs/cgroup"), Path("/sys/fs/cgroup/unified"))
_CONTROLLERS = {"memory", "pids"}
_BOUNDS = ("memory.max", "memory.high", "cpu.max")
_WAIT_MS = 1000
_MOST_TASKS = 1 << 22
_PREFIX = "autoresearch-"
_numbers = itertools.count()


@dataclass(frozen=True, slots=True)
class ControlGroup:
    """The control group of one run."""

    folder: Path

    def take(self, pid: int) -> None:
        """Moves a process and its children into it, and so all that they start. The kernel may take 10 ms for it."""
        self._move(pid)
        for child in watchdog.children(pid):  # what it starts from now on is in the group by itself
            self._move(child)

    def _move(self, pid: int) -> None:
        with suppress(OSError):  # it ended; or the group is nobody's any more, and the run goes on as without one
            (self.folder / "cgroup.procs").write_text(str(pid))

    def cpu_ms(self) -> int:
        """Processor milliseconds of all that is and was in it."""
        return self._number("cpu.stat", "usage_usec") // 1000

    def killed_for_memory(self) -> bool:
        """Whether the kernel ended a process because the group had no memory left."""
        return self._number("memory.events", "oom_kill") > 0

    def end(self) -> None:
        """Kills all that is in it, and waits until nothing is."""
        with suppress(OSError), (self.folder / "cgroup.events").open() as events:
            (self.folder / "cgroup.kill").write_text("1")
            poller = select.poll()
            poller.register(events, select.POLLPRI)
            while "populated 1" in events.read():
                poller.poll(_WAIT_MS)
                events.seek(0)

    def _number(self, file: str, name: str) -> int:
        with suppress(OSError):
            for line in (self.folder / file).read_text().splitlines():
                if line.startswith(f"{name} "):
                    return int(line.split()[1])
        return 0


def sentence() -> str:
    """What the control groups of this machine do for runs, for people."""
    parent = parent_of_groups()
    looked = "memory is looked at ten times a second"
    if parent is None:
        text = f"no control group: {looked}"
    elif _hands_down(parent):
        text = "a control group bounds memory, queues too, and tasks, and counts processor time"
    else:
        text = f"a control group counts processor time; {looked}"
    return f"{text}; {queues.sentence()}"


@contextmanager
def control_group(*, memory_bytes: int | None, tasks: int) -> Iterator[ControlGroup | None]:
    """A group with these bounds, where its controllers are to be had; None where there is no group to be had."""
    parent = parent_of_groups()
    group = None if parent is None else _made(parent)
    if group is None:
        yield None
        return
    bounds = {"pids.max": min(tasks, _MOST_TASKS)}
    if memory_bytes is not None:
        bounds |= {"memory.max": memory_bytes, "memory.swap.max": 0}
    for file, value in bounds.items():
        with suppress(OSError):  # without this controller
            (group.folder / file).write_text(str(value))
    try:
        yield group
    finally:
        with suppress(OSError):
            group.folder.rmdir()


def _made(parent: Path) -> ControlGroup | None:
    folder = parent / f"{_PREFIX}{os.getpid()}-{next(_numbers)}"
    try:
        folder.mkdir()
    except OSError:
        return None
    return ControlGroup(folder)


@functools.cache
def parent_of_groups() -> Path | None:
    """Where groups of runs can be made: tried once, with a process that moves into one."""
    for parent in candidates(_text(Path("/proc/self/cgroup")), _MOUNTS):
        if (group := _made(parent)) is not None:
            _sweep(parent)
            words = ["/bin/sh", "-c", "echo 0 >$0/cgroup.procs", str(group.folder)]
            moved = subprocess.run(words, stderr=subprocess.DEVNULL, check=False)
            with suppress(OSError):
                group.folder.rmdir()
            if moved.returncode == 0:
                return parent
    return None


def _sweep(parent: Path) -> None:
    """Removes the groups of supervisors that were killed; one that holds a process can't be removed."""
    for folder in parent.glob(f"{_PREFIX}*"):
        if not Path("/proc", folder.name.split("-")[1]).exists():
            with suppress(OSError):
                folder.rmdir()


def candidates(membership: str, mounts: tuple[Path, ...]) -> list[Path]:
    """The folders to try, best first: those that hand controllers down, then the others, each the nearest first.

    ``membership`` is the content of ``/proc/self/cgroup``; of ``mounts`` the first of version 2 counts.
    """
    root = next((mount for mount in mounts if (mount / "cgroup.controllers").exists()), None)
    own = next((line[3:] for line in membership.splitlines() if line.startswith("0::")), None)
    if root is None or own is None:
        return []
    folder, folders = root / own.lstrip("/"), []
    while True:
        folders.append(folder)
        if folder == root or any(_bound(folder / name) for name in _BOUNDS):
            break
        folder = folder.parent
    return sorted(folders, key=lambda folder: not _hands_down(folder))


def _hands_down(folder: Path) -> bool:
    return set(_text(folder / "cgroup.subtree_control").split()) >= _CONTROLLERS


def _bound(file: Path) -> bool:
    return _text(file).split()[:1] not in ([], ["max"])


def _text(file: Path) -> str:
    try:
        return file.read_text()
    except OSError:
        return ""
