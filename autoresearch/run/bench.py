"""Where runs are done: what this machine allows any task, what a task may ask of it, and what a run of it may cost.

What a program reports of its own work is never the bound: it can train where nobody counts. On the CPU the cost is the
processor time of all processes and threads of the run, beside what the baseline costs on the same machine. Where the
budget is wall-clock time, and on a graphics card, whose time no supervisor sees, it is the time from start to end.
"""

from __future__ import annotations

import hashlib
import math
import os
import platform
import shlex
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import msgspec

from autoresearch.errors import Refused, UsageError
from autoresearch.run.data import prepare_data
from autoresearch.run.sandbox.command import PYTHON
from autoresearch.run.sandbox.job import Level, Limits, Outcome
from autoresearch.run.sandbox.layout import SEARCHED, Interpreter
from autoresearch.settings import Work
from autoresearch.task.model import USUAL, Task
from autoresearch.task.program import split_program
from autoresearch.words import RunStatus

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
            sets = (f"autoresearch node config set work.max_{name} {amount}" for name, amount in above.items())
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


@dataclass(frozen=True, slots=True)
class Bench:
    """Where runs are done: sandbox level, threads and device of one run, cache of task data, scratch folder.

    ``ceiling`` is the most that a task may ask for here. ``foreign`` is False only where others wrote nothing of what
    is run: neither task nor program. ``python`` runs the task's programs; None: the node's own Python.
    """

    level: Level
    threads: int
    device: str
    data_cache: Path
    scratch: Path
    ceiling: Ceiling = field(default_factory=lambda: Ceiling.of(Work()))
    foreign: bool = True
    python: Interpreter | None = None

    def beside(self, name: str) -> Bench:
        """The same bench with a folder of its own in the scratch folder."""
        return replace(self, scratch=self.scratch / name)


def task_data(task: Task, bench: Bench) -> Path | None:
    """The task's prepared data, made in the sandbox if it is not in the cache; ``None`` when the task has none.

    Raises:
        Refused: others wrote the harness, and there is no sandbox.
        Refused: the task asks for more than this machine allows.
        AutoresearchError: the harness could not make it, or made something else than is pinned.
    """
    limits = job_limits(task, bench.ceiling)
    if not task.data:
        return None
    expected = {name: digest.hex() for name, digest in task.data.items()}
    return prepare_data(
        task.harness,
        expected,
        bench.data_cache,
        level=bench.level,
        limits=limits,
        foreign=bench.foreign,
        python=bench.python,
    )


def job_limits(task: Task, ceiling: Ceiling) -> Limits:
    """The task's limits in the sandbox's units: whatever runs anything of a task asks here. Raises Refused."""
    ceiling.check(task)
    limits = task.limits
    return Limits(
        seconds=limits_of(task)["seconds"],
        memory_bytes=limits.memory_mib * MIB,
        disk_bytes=limits.disk_mib * MIB,
        processes=limits.processes,
        output_bytes=limits.output_kib * 1024,
    )


def program_files(source: str) -> dict[str, bytes]:
    """The files of a program that has no fault."""
    return {name: content.encode() for name, content in split_program(source).items()}


def command_words(line: str) -> tuple[str, ...]:
    """The words of a command of a task; none where there is none, or the usual one, which runs the pinned files."""
    return () if line in ("", USUAL.command) else tuple(shlex.split(line))


def runs_library(words: Sequence[str]) -> bool:
    """Whether a command runs a module of this package, which its sandbox then shows."""
    return len(words) > 2 and words[0] in PYTHON and words[1] == "-m" and words[2].startswith("autoresearch.")


def missing_command(*lines: str) -> str | None:
    """The name of a command of the task that is not on this machine, or None."""
    for line in lines:
        for name in command_words(line)[:1]:
            if "/" not in name and name not in PYTHON and shutil.which(name, path=SEARCHED) is None:
                return name
    return None


def fault_of_program(task: Task, source: str) -> str | None:
    """Why a program may not run on a task, as a sentence, or None: it has other files, or is too large."""
    try:
        names = tuple(split_program(source))
    except UsageError as error:
        return str(error)
    if (fault := task.recipe.fault(names, task.harness)) is not None:
        return fault
    size, most = len(source.encode()), task.limits.program_kib << 10
    if size <= most:
        return None
    return f"the program has {size / 1024:.0f} KiB; the task allows {task.limits.program_kib} KiB"


def environment(python: Interpreter | None = None) -> dict[str, str]:
    """What the number may depend on besides source, seed and budget. ``python``: what ran it, None: the node's own."""
    own = platform.python_version() if python is None else python.version
    versions = {name: _version(name, python) for name in ("torch", "numpy")}
    environment = {"python": own, "system": f"{platform.system()} {platform.machine()}"}
    return environment | {name: version for name, version in versions.items() if version is not None}


def _version(package: str, python: Interpreter | None) -> str | None:
    if python is not None:
        return python.version_of(package)
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def device_name(device: str) -> str:
    """The hardware's own name: the processor's model, the graphics card's; else what was asked for."""
    if device != "cpu":
        cards = Path("/proc/driver/nvidia/gpus").glob("*/information")
        models = {model for card in cards for model in _values(card, "Model")}
        return models.pop() if len(models) == 1 and device.startswith("cuda") else device
    return next(_values(Path("/proc/cpuinfo"), "model name"), platform.processor() or platform.machine())


def _values(path: Path, name: str) -> Iterator[str]:
    """What a file of lines ``name : value`` says of a name; nothing when it cannot be read."""
    try:
        lines = path.read_text().splitlines()
    except OSError:
        return
    yield from (line.partition(":")[2].strip() for line in lines if line.startswith(name))


# A run may cost so much more than the baseline for the same budget on the same machine, as a share of the baseline:
# honest programs differ in speed by less (benchmarks allowance).
ALLOWANCE = 0.6
# And at least so much more: an import, and the noise of a busy machine. It is little beside any training: a program
# must not get through that much work unmetered at a small budget.
LEAST_ALLOWANCE_MS = 500
# At so many times the allowance a run is stopped. Below, the baseline is measured once more before a run is judged:
# a busy machine makes all programs slower.
STOPPED_AT = 2.0


def cost_ms(task: Task, bench: Bench, outcome: Outcome) -> int:
    """What a run cost, in milliseconds of processor time or of wall-clock time."""
    return outcome.duration_ms if _is_by_clock(task, bench) else outcome.cpu_ms


def known_cost_ms(task: Task, bench: Bench, budget: float) -> int | None:
    """What the baseline cost here when it was last measured with this budget, or None."""
    try:
        return max(int(_file(task, bench, budget).read_text()), 1)
    except (OSError, ValueError):
        return None


def remember_cost(task: Task, bench: Bench, budget: float, outcome: Outcome) -> int:
    """Note what the baseline cost here, and return it."""
    file, cost = _file(task, bench, budget), max(cost_ms(task, bench, outcome), 1)
    file.parent.mkdir(parents=True, exist_ok=True)
    temporary = file.with_name(f"{file.name}.{os.getpid()}")
    temporary.write_text(str(cost))
    temporary.replace(file)
    return cost


def bounded(limits: Limits, task: Task, bench: Bench, baseline_ms: int) -> Limits:
    """The limits of a run, with the cost at which it is stopped."""
    seconds = STOPPED_AT * _most_ms(baseline_ms) / 1000
    if _is_by_clock(task, bench):
        return replace(limits, seconds=min(limits.seconds, seconds))
    return replace(limits, processor_seconds=seconds)


def is_over(task: Task, bench: Bench, outcome: Outcome, baseline_ms: int) -> bool:
    """Whether a run cost more than it may."""
    return cost_ms(task, bench, outcome) > _most_ms(baseline_ms)


def over_budget(task: Task, bench: Bench, outcome: Outcome, baseline_ms: int) -> Outcome:
    """The outcome of a run that cost too much."""
    cost = cost_ms(task, bench, outcome)
    kind = "wall-clock" if _is_by_clock(task, bench) else "processor"
    reason = (
        f"it took {cost / 1000:.1f} s of {kind} time; the baseline takes {baseline_ms / 1000:.1f} s here for the same "
        f"budget, and {_most_ms(baseline_ms) / 1000:.1f} s are allowed"
    )
    return msgspec.structs.replace(outcome, status=RunStatus.OVER_BUDGET, reason=reason, value=None)


def _most_ms(baseline_ms: int) -> float:
    return baseline_ms + max(ALLOWANCE * baseline_ms, LEAST_ALLOWANCE_MS)


def _is_by_clock(task: Task, bench: Bench) -> bool:
    return task.budget.unit == "seconds" or bench.device != "cpu"


def _file(task: Task, bench: Bench, budget: float) -> Path:
    where = (device_name(bench.device), bench.device, bench.threads, int(bench.level), math.frexp(budget))
    return bench.data_cache / "costs" / f"{task.digest.hex()}-{hashlib.sha256(repr(where).encode()).hexdigest()[:16]}"
