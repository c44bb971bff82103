"""Where runs are done, and what a task is allowed there."""

from __future__ import annotations

import platform
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from autoresearch.running import Level, Limits, prepare_data
from autoresearch.tasks import Task

MIB = 1 << 20
# A wall-clock task may take this many times its budget, for start-up and evaluation, before the watchdog ends it.
TIMES_BUDGET = 2.0


@dataclass(frozen=True, slots=True)
class Bench:
    """Where runs are done: sandbox level, threads and device of one run, cache of task data, scratch folder."""

    level: Level
    threads: int
    device: str
    data_cache: Path
    scratch: Path


def task_data(task: Task, bench: Bench) -> Path | None:
    """The task's prepared data, made in the sandbox if it is not in the cache; ``None`` when the task has none.

    Raises:
        AutoresearchError: the harness could not make it, or made something else than is pinned.
    """
    if not task.data:
        return None
    expected = {name: digest.hex() for name, digest in task.data.items()}
    return prepare_data(task.harness, expected, bench.data_cache, level=bench.level, limits=job_limits(task))


def job_limits(task: Task) -> Limits:
    """The task's limits in the sandbox's units. A wall-clock budget always fits under the watchdog."""
    limits = task.limits
    seconds = float(limits.seconds)
    if task.budget.unit == "seconds":
        seconds = max(seconds, task.budget.amount * TIMES_BUDGET)
    return Limits(
        seconds=seconds,
        memory_bytes=limits.memory_mib * MIB,
        disk_bytes=limits.disk_mib * MIB,
        processes=limits.processes,
        output_bytes=limits.output_kib * 1024,
    )


def environment() -> dict[str, str]:
    """What the number may depend on besides source, seed and budget."""
    found = {"python": platform.python_version(), "system": f"{platform.system()} {platform.machine()}"}
    for package in ("torch", "numpy"):
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found


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
