"""What this machine allows a run of any task, whoever wrote the task."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

from autoresearch.errors import Refused
from autoresearch.settings import Work
from autoresearch.tasks import Task

MIB = 1 << 20
# A wall-clock task may take this many times its budget, for start-up and evaluation, before the watchdog ends it.
TIMES_BUDGET = 2.0
# Of the machine's memory, what its owner keeps: one part in so many.
KEPT = 8
# The memory that a container or a service may use, where it is bounded (control groups, version 2).
_BOUND = Path("/sys/fs/cgroup/memory.max")


@dataclass(frozen=True, slots=True)
class Ceiling:
    """The most that one run may ask for on this machine; the names are those of a task's ``[limits]``."""

    seconds: float
    memory_mib: int
    disk_mib: int
    processes: int
    output_kib: int

    @classmethod
    def of(cls, work: Work) -> Ceiling:
        """The ceiling that the settings ``work.max_*`` describe."""
        return cls(
            seconds=work.max_seconds,
            memory_mib=work.max_memory_mib or usable_memory_mib(),
            disk_mib=work.max_disk_mib,
            processes=work.max_processes,
            output_kib=work.max_output_kib,
        )

    def check(self, task: Task) -> None:
        """Refuse a task that asks for more than this.

        Raises:
            Refused: it does. The sentence says what is asked and what is allowed, the hint which command allows it.
        """
        most = asdict(self)
        above = {name: math.ceil(asked) for name, asked in limits_of(task).items() if asked > most[name]}
        if above:
            asked = ", ".join(f"{name} {amount}, allowed are {most[name]:.10g}" for name, amount in above.items())
            sets = (f"autoresearch config set work.max_{name} {amount}" for name, amount in above.items())
            raise Refused(
                f"The task {task.name} asks for more than this machine allows a run: {asked}.",
                hint=f"to allow it: {' && '.join(sets)}",
            )


def limits_of(task: Task) -> Mapping[str, float]:
    """What one run of a task may use, by the names of ``[limits]``. A wall-clock budget fits under the watchdog."""
    limits = task.limits
    budget = task.budget.amount * TIMES_BUDGET if task.budget.unit == "seconds" else 0.0
    return {
        "seconds": max(limits.seconds, budget),
        "memory_mib": limits.memory_mib,
        "disk_mib": limits.disk_mib,
        "processes": limits.processes,
        "output_kib": limits.output_kib,
    }


def usable_memory_mib() -> int:
    """The memory of this machine, or of the container around this process, in MiB, less what its owner keeps."""
    total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    with suppress(OSError, ValueError):  # no bound: no such file, or it says "max"
        total = min(total, int(_BOUND.read_text()))
    return total // MIB * (KEPT - 1) // KEPT
