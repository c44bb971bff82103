"""Where runs are done: what this machine allows any task, what a task may ask of it, and what a run of it may cost.

What a program reports of its own work is never the bound: it can train where nobody counts. On the CPU the cost is the
processor time of all processes and threads of the run and of every question to what it left, beside what the same costs
the baseline on the same machine. Where the budget is wall-clock time, and on a graphics card, whose time no supervisor
sees, it is the time from start to end.
"""

from __future__ import annotations

import hashlib
import math
import os
import platform
import shlex
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import msgspec

from autoresearch.errors import CannotRunHere, Refused, UsageError
from autoresearch.run.data import Preparer, prepare_data
from autoresearch.run.sandbox.cards import card_of, driver_version
from autoresearch.run.sandbox.command import PYTHON
from autoresearch.run.sandbox.job import JobLimits, JobOutcome, Level
from autoresearch.run.sandbox.layout import SEARCHED, Interpreter
from autoresearch.settings import Work
from autoresearch.task.model import USUAL, Task
from autoresearch.task.needs import program_packages
from autoresearch.task.program import split_program

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
        above = {name: math.ceil(limit) for name, limit in limits_of(task).items() if limit > most[name]}
        if above:
            excess = ", ".join(f"{name} {amount}, allowed are {most[name]:.10g}" for name, amount in above.items())
            sets = (f"autoresearch node config set work.max_{name} {amount}" for name, amount in above.items())
            raise Refused(
                f"The task {task.name} asks for more than this machine allows a run: {excess}.",
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
    is run: neither task nor program. ``python`` runs the task's programs; None: the node's own Python. Programs with
    packages of their own have theirs in ``environments``; ``may_install``: the bytes of all, 0: none may be installed.
    ``cancelled`` says whether nobody waits for its runs any more.
    """

    level: Level
    threads: int
    device: str
    data_cache: Path
    scratch: Path
    ceiling: Ceiling = field(default_factory=lambda: Ceiling.of(Work()))
    foreign: bool = True
    python: Interpreter | None = None
    environments: Path | None = None
    may_install: int = 0
    cancelled: Callable[[], bool] = lambda: False

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
    program = preparer(task, bench)
    if not task.data:
        return None
    return prepare_data(program, {name: digest.hex() for name, digest in task.data.items()}, bench.data_cache)


def preparer(task: Task, bench: Bench) -> Preparer:
    """The task's ``prepare.py`` on a bench. Raises Refused where the task asks for more than this machine allows."""
    return Preparer(task.harness, bench.level, job_limits(task, bench.ceiling), bench.foreign, bench.python)


def job_limits(task: Task, ceiling: Ceiling) -> JobLimits:
    """The task's limits in the sandbox's units: whatever runs anything of a task asks here. Raises Refused."""
    ceiling.check(task)
    limits = task.limits
    return JobLimits(
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
    """Why a program may not run on a task, as a sentence, or None: it has other files, or is too large.

    A list of packages that it brings has to be locked.
    """
    try:
        names = tuple(split_program(source))
        program_packages(source)
    except UsageError as error:
        return str(error)
    if (fault := task.recipe.fault(names, task.harness)) is not None:
        return fault
    size, most = len(source.encode()), task.limits.program_kib << 10
    if size <= most:
        return None
    return f"the program has {size / 1024:.0f} KiB; the task allows {task.limits.program_kib} KiB"


def environment(python: Interpreter | None = None, device: str = "cpu") -> dict[str, str]:
    """What the number may depend on besides source, seed and budget. ``python``: what ran it, None: the node's own."""
    card = card_of(device)
    own = platform.python_version() if python is None else python.version
    versions = {name: _version(name, python) for name in ("torch", "numpy")}
    environment = {"python": own, "system": f"{platform.system()} {platform.machine()}"}
    if card is not None:
        environment |= {"card": card.uuid, "driver": driver_version()}
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
    try:
        card = card_of(device)
    except CannotRunHere:
        return device
    if card is not None:
        return card.model
    return next(_values(Path("/proc/cpuinfo"), "model name"), platform.processor() or platform.machine())


def _values(path: Path, name: str) -> Iterator[str]:
    """What a file of lines ``name : value`` says of a name; nothing when it cannot be read."""
    try:
        lines = path.read_text().splitlines()
    except OSError:
        return
    yield from (line.partition(":")[2].strip() for line in lines if line.startswith(name))


# A run may cost so much more than the baseline for the same budget on the same machine, as a share of the baseline:
# honest programs differ in speed by less.
ALLOWANCE = 0.6
# And at least so much more, for the training and for the questions: an import, and the noise of a busy machine. It is
# little beside any training: a program must not get through that much work unmetered at a small budget.
LEAST_ALLOWANCE_MS = 500
# At so many times the allowance a run is stopped. Below, the baseline is measured once more before a run is judged:
# a busy machine makes all programs slower.
STOPPED_AT = 2.0
# What the referee's model uses from its first answer on counts by this: it is held to that answer, so it can't learn
# any more, and a larger model with fewer steps answers slower than the baseline.
ANSWERING = 0.5


class Cost(msgspec.Struct, frozen=True):
    """What a run cost, in milliseconds of processor time or of wall-clock time: its training, and all questions to it.

    Of the questions, ``building_ms`` passed until the first answer of each and ``answering_ms`` from there on, of which
    the referee's count half. The second grows with the ``workload``, the first does not. The workload counts
    documents, as often as one is read. An evaluator counts as 1; one that plays with the program counts by its own
    processor time in ms, since a better player may play longer. Without a question it is 0.
    """

    training_ms: int = 0
    building_ms: int = 0
    answering_ms: int = 0
    workload: float = msgspec.field(default=0.0, name="asked")  # as it stands in files of earlier versions

    def total_ms(self, workload: float) -> float:
        """What it costs where so much is asked; with 0 the training alone."""
        if not workload:
            return self.training_ms
        return (
            self.training_ms
            + self.building_ms
            + self.answering_ms * (workload / self.workload if self.workload else 1.0)
        )

    @property
    def most_ms(self) -> float:
        """What another run may cost where this is the baseline's cost, with as much asked."""
        total = self.total_ms(self.workload)
        return total + max(ALLOWANCE * total, LEAST_ALLOWANCE_MS * (2 if self.workload else 1))


@dataclass(slots=True)
class Purse:
    """What one run may cost, and what it cost so far: building, training and every question, metered from outside.

    ``baseline`` is what the baseline costs here; None: nothing but the task's limits bounds the run. ``by_clock``: the
    cost is wall-clock time. ``asked_alone``: its training is not seen here and counts as the baseline's.
    """

    by_clock: bool = False
    baseline: Cost | None = None
    asked_alone: bool = False
    cost: Cost = field(default_factory=Cost)

    def training_limits(self, limits: JobLimits) -> JobLimits:
        """The limits of the training, with the cost at which it is stopped."""
        return limits if self.baseline is None else self._bounded(limits, STOPPED_AT * self.baseline.most_ms)

    def question_limits(self, limits: JobLimits, *, workload: float, weight: float = 1.0) -> JobLimits:
        """The limits of a question, with what is left.

        ``workload`` is how much it asks, infinite where that is known afterwards; ``weight`` by what answering counts.
        """
        baseline = self.baseline
        if baseline is None or not baseline.workload or math.isinf(workload):
            return limits
        scale, cost = max((self.cost.workload + workload) / baseline.workload, 1.0), self._cost(baseline)
        spent = cost.training_ms + cost.building_ms + cost.answering_ms
        return self._bounded(limits, (STOPPED_AT * scale * baseline.most_ms - spent) / weight)

    def _bounded(self, limits: JobLimits, most_ms: float) -> JobLimits:
        seconds = max(most_ms, 1.0) / 1000
        if self.by_clock:
            return replace(limits, seconds=min(limits.seconds, seconds))
        return replace(limits, processor_seconds=seconds)

    def pay_training(self, outcome: JobOutcome) -> None:
        """Take what the training cost."""
        self.cost = msgspec.structs.replace(self.cost, training_ms=self._ms(outcome))

    def pay_question(self, outcome: JobOutcome, *, workload: float, weight: float = 1.0) -> None:
        """Take what a question cost; see :meth:`question_limits`."""
        building_ms = outcome.answered_ms if self.by_clock else outcome.answered_cpu_ms
        self.cost = Cost(
            self.cost.training_ms,
            self.cost.building_ms + building_ms,
            self.cost.answering_ms + round(weight * (self._ms(outcome) - building_ms)),
            self.cost.workload + workload,
        )

    def is_over(self, baseline: Cost) -> bool:
        """Whether the run would have cost more than it may, had as much been asked as of the baseline."""
        return self._cost(baseline).total_ms(baseline.workload) > baseline.most_ms

    def sentence(self, baseline: Cost) -> str:
        """What it cost, what the baseline costs, and what is allowed."""
        kind, unseen = "wall-clock" if self.by_clock else "processor", baseline.training_ms if self.asked_alone else 0
        work = baseline.workload
        sums = (self._cost(baseline).total_ms(work), baseline.total_ms(work), baseline.most_ms)
        spent, usual, most = ((ms - unseen) / 1000 for ms in sums)
        took = "its answers took" if self.asked_alone else "it took"
        for_what = "the same answers" if self.asked_alone else "the same budget"
        included = ", its answers included" if baseline.workload and not self.asked_alone else ""
        times = f", {most / usual:.1f} times that" if usual > 0 else ""
        return (
            f"{took} {spent:.1f} s of {kind} time{included}; the baseline takes {usual:.1f} s here for {for_what}, "
            f"and {most:.1f} s are allowed{times}: a program that takes longer is not compared with it"
        )

    def _cost(self, baseline: Cost) -> Cost:
        if not self.asked_alone:
            return self.cost
        return msgspec.structs.replace(self.cost, training_ms=baseline.training_ms)

    def _ms(self, outcome: JobOutcome) -> int:
        return outcome.duration_ms if self.by_clock else outcome.cpu_ms


def is_metered(task: Task) -> bool:
    """Whether a run may cost what the baseline costs and little more; see :class:`autoresearch.task.model.Budget`."""
    return task.budget.unit != "episodes"


def purse_of(task: Task, bench: Bench, baseline: Cost | None = None, *, asked_alone: bool = False) -> Purse:
    """The purse of a run that is held against what the baseline costs; see :class:`Purse`."""
    return Purse(task.budget.unit == "seconds" or bench.device != "cpu", baseline, asked_alone)


def known_cost(task: Task, bench: Bench, budget: float) -> Cost | None:
    """What the baseline cost here when it was last measured with this budget, or None."""
    try:
        return msgspec.json.decode(_file(task, bench, budget).read_bytes(), type=Cost)
    except (OSError, msgspec.DecodeError):
        return None


def remember_cost(task: Task, bench: Bench, budget: float, cost: Cost) -> None:
    """Note what the baseline cost here."""
    file = _file(task, bench, budget)
    file.parent.mkdir(parents=True, exist_ok=True)
    temporary = file.with_name(f"{file.name}.{os.getpid()}")
    temporary.write_bytes(msgspec.json.encode(cost))
    temporary.replace(file)


def _file(task: Task, bench: Bench, budget: float) -> Path:
    where = (device_name(bench.device), bench.device, bench.threads, int(bench.level), math.frexp(budget))
    return bench.data_cache / "costs" / f"{task.digest.hex()}-{hashlib.sha256(repr(where).encode()).hexdigest()[:16]}"
