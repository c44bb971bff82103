"""One experiment, from what is to be run to the body of its record."""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import msgspec

from autoresearch import __version__
from autoresearch.records import BlobRef, Proposer, Run
from autoresearch.research.bench import Bench, device_name, environment, job_limits, task_data
from autoresearch.research.examining import Model, examine, examine_on_new_text
from autoresearch.running import Job, Outcome, Progress, execute, without
from autoresearch.tasks import ENTRY, Task, parse_summary, seed_for, source_digest
from autoresearch.words import RUN_STATUS_SENTENCES, RunStatus

# More of a reason than this does not fit the record's field and tells nobody more.
REASON_CHARACTERS = 1000
# How often the referee asks a model of one's own: a false share of 1 % shows with 99 %.
OWN_CHALLENGES = 512
# More digits than these differ between machines.
VALUE_DIGITS = 6


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


def measure(
    task: Task,
    plan: Plan,
    bench: Bench,
    *,
    fresh_seed: int | None = None,
    on_progress: Callable[[Progress], None] | None = None,
    cancelled: Callable[[], bool] | None = None,
) -> tuple[Measurement, Outcome]:
    """Run the plan in the sandbox and wait for its end. Whatever the program does, this returns how it ended.

    With ``fresh_seed``, where the task can write more text, the value is the one on new text from that seed, for which
    no program can have been made.
    """
    limits, data, evaluation = job_limits(task), task_data(task, bench), task.evaluation
    files = {**task.harness, ENTRY: plan.source.encode()}
    if evaluation is not None and data is not None:
        hidden = {evaluation.text, *evaluation.withheld}
        data, files = without(data, hidden), {name: text for name, text in files.items() if name not in hidden}
    job = Job(
        files=files,
        data=data,
        mounts=tuple(Path(mount).expanduser() for mount in task.mounts.values()),
        limits=limits,
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
    if evaluation is not None and outcome.status is RunStatus.OK:
        outcome = _refereed(task, plan.source, bench, outcome, fresh_seed, cancelled)
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


def _refereed(
    task: Task,
    source: str,
    bench: Bench,
    outcome: Outcome,
    fresh_seed: int | None,
    cancelled: Callable[[], bool] | None,
) -> Outcome:
    """The outcome with the referee's number, or with why there is none."""
    if outcome.checkpoint is None:
        reason = "it left no checkpoint for the referee"
        return replace(outcome, status=RunStatus.INVALID, reason=reason)
    model = Model(source, outcome.checkpoint)
    draw, asked = os.urandom(32), OWN_CHALLENGES
    if fresh_seed is not None and task.evaluation is not None and task.evaluation.fresh:
        found = examine_on_new_text(
            task, model, bench, draw=draw, challenges=asked, fresh_seed=fresh_seed, cancelled=cancelled
        )
    else:
        found = examine(task, model, bench, draw=draw, challenges=asked, cancelled=cancelled)
    return replace(
        outcome,
        status=found.status,
        reason=found.reason,
        value=None if found.value is None else round(found.value, VALUE_DIGITS),
        duration_ms=outcome.duration_ms + found.duration_ms,
        cpu_ms=outcome.cpu_ms + found.cpu_ms,
    )


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
