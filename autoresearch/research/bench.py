"""Where runs are done, and what a task is allowed there."""

from __future__ import annotations

import platform
import shlex
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from autoresearch.errors import UsageError
from autoresearch.research.ceiling import MIB, Ceiling, limits_of
from autoresearch.running import PYTHON, SEARCHED, Interpreter, Level, Limits, prepare_data
from autoresearch.settings import Work
from autoresearch.tasks import USUAL, Task, split_program


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
    found = {"python": own, "system": f"{platform.system()} {platform.machine()}"}
    return found | {name: known for name, known in versions.items() if known is not None}


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
