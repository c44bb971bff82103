"""One experiment, from what is to be run to the body of its record. Knows no daemon, no keys, no log.

The same path for a proposal, for a hand-written file and for a verification.
"""

from __future__ import annotations

import math
import platform
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import msgspec

from autoresearch import __version__
from autoresearch.records import BlobRef, Proposer, Run
from autoresearch.running import Job, Level, Outcome, Progress, execute, prepare_data
from autoresearch.running import Limits as JobLimits
from autoresearch.tasks import ENTRY, Task, parse_summary, seed_for, source_digest
from autoresearch.words import RUN_STATUS_SENTENCES, RunStatus

MIB = 1 << 20
# A wall-clock task may take this many times its budget, for start-up and evaluation, before the watchdog ends it.
TIMES_BUDGET = 2.0
# More of a reason than this does not fit the record's field and tells nobody more.
REASON_CHARACTERS = 1000


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """What is to be run: a source on a task with a replicate number, and why. Everything of the record known before."""

    task: bytes
    source: str
    source_digest: bytes
    replicate: int
    seed: int
    budget: float
    parent: bytes | None = None
    base: bytes | None = None
    genome: dict[str, int | float | str | bool] = {}
    title: str = ""
    hypothesis: str = ""
    expected: float | None = None
    proposer: str = "by hand"
    kind: str = "given"


class Measurement(msgspec.Struct, frozen=True, kw_only=True):
    """How the run went: everything of the record known after, but its blobs."""

    status: RunStatus
    reason: str
    value: float | None
    metrics: dict[str, float]
    curve: list[float]
    duration_ms: int
    cpu_ms: int
    peak_memory_bytes: int
    sandbox: int
    device: str
    environment: dict[str, str]


@dataclass(frozen=True, slots=True)
class Bench:
    """Where runs are done: sandbox level, threads and device of one run, cache of task data, scratch folder."""

    level: Level
    threads: int
    device: str
    data_cache: Path
    scratch: Path


def plan_as_it_stands(task: Task, source: str, *, replicate: int = 0, title: str = "", **known: object) -> Plan:
    """The plan for a source with the task's own seed and full budget; ``known`` are further fields of the plan.

    Raises:
        UsageError: the source is not valid Python.
    """
    digest = source_digest(source)
    plan = Plan(
        task=task.digest,
        source=source,
        source_digest=digest,
        replicate=replicate,
        seed=seed_for(task.digest, digest, replicate),
        budget=float(task.budget.amount),
        title=title,
    )
    return msgspec.structs.replace(plan, **known)


def task_data(task: Task, bench: Bench) -> Path | None:
    """The task's prepared data, made in the sandbox if it is not in the cache; ``None`` when the task has none.

    Raises:
        AutoresearchError: the harness could not make it, or made something else than is pinned.
    """
    if not task.data:
        return None
    expected = {name: digest.hex() for name, digest in task.data.items()}
    return prepare_data(task.harness, expected, bench.data_cache, level=bench.level, limits=job_limits(task))


def measure(
    task: Task,
    plan: Plan,
    bench: Bench,
    *,
    on_progress: Callable[[Progress], None] | None = None,
    cancelled: Callable[[], bool] | None = None,
) -> tuple[Measurement, Outcome]:
    """Run the plan in the sandbox and wait for its end. Whatever the program does, this returns how it ended."""
    job = Job(
        files={**task.harness, ENTRY: plan.source.encode()},
        data=task_data(task, bench),
        mounts=tuple(Path(mount).expanduser() for mount in task.mounts.values()),
        limits=job_limits(task),
        seed=plan.seed,
        budget=plan.budget,
        threads=bench.threads,
        device=bench.device,
        metric_source=task.metric.source,
        metric_name=task.metric.name,
        parse=lambda text: parse_summary(text, task.metric.name),
        checkpoint_to=bench.scratch,
    )
    outcome = execute(job, level=bench.level, on_progress=on_progress, cancelled=cancelled)
    return Measurement(
        status=outcome.status,
        reason=outcome.reason[:REASON_CHARACTERS],
        value=outcome.value,
        metrics={name: number for name, number in outcome.metrics.items() if math.isfinite(number)},
        curve=list(outcome.curve),
        duration_ms=outcome.duration_ms,
        cpu_ms=outcome.cpu_ms,
        peak_memory_bytes=outcome.peak_memory_bytes,
        sandbox=int(outcome.level),
        device=device_name(bench.device),
        environment=environment(),
    ), outcome


def abandoned(reason: str) -> Measurement:
    """The measurement of a run of which nobody saw the end."""
    return Measurement(
        status=RunStatus.ABANDONED,
        reason=reason,
        value=None,
        metrics={},
        curve=[],
        duration_ms=0,
        cpu_ms=0,
        peak_memory_bytes=0,
        sandbox=0,
        device="",
        environment={},
    )


def run_body(
    plan: Plan,
    measurement: Measurement,
    *,
    source: BlobRef,
    log: BlobRef | None = None,
    checkpoint: BlobRef | None = None,
) -> Run:
    """The body of the run's record."""
    return Run(
        task=plan.task,
        status=measurement.status.value,
        reason=measurement.reason or RUN_STATUS_SENTENCES[measurement.status],
        value=measurement.value,
        metrics=dict(measurement.metrics),
        curve=measurement.curve,
        source=source,
        source_digest=plan.source_digest,
        parent=plan.parent,
        base=plan.base,
        replicate=plan.replicate,
        seed=plan.seed,
        budget=plan.budget,
        genome=plan.genome,
        title=plan.title[:120],
        hypothesis=plan.hypothesis[:2048],
        expected=plan.expected,
        proposer=Proposer(name=plan.proposer, version=__version__),
        log=log,
        checkpoint=checkpoint,
        duration_ms=measurement.duration_ms,
        cpu_ms=measurement.cpu_ms,
        peak_memory_bytes=measurement.peak_memory_bytes,
        sandbox=measurement.sandbox,
        device=measurement.device[:120],
        environment=measurement.environment,
    )


def job_limits(task: Task) -> JobLimits:
    """The task's limits in the sandbox's units. A wall-clock budget always fits under the watchdog."""
    limits = task.limits
    seconds = float(limits.seconds)
    if task.budget.unit == "seconds":
        seconds = max(seconds, task.budget.amount * TIMES_BUDGET)
    return JobLimits(
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
    """The hardware's own name: the processor's model for "cpu", else the device as asked for."""
    if device != "cpu":
        return device
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = []
    models = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(models, platform.processor() or platform.machine())
