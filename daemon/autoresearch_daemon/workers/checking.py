"""Measuring somebody else's run in a worker: once more as it was, or beside its parent with seeds of our own."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

import msgspec

from autoresearch.research import Bench, Measurement, measure, plan_as_it_stands
from autoresearch.running import Progress
from autoresearch.tasks import Task
from autoresearch.words import RunStatus
from autoresearch_daemon.workers import protocol


def carry_out_check(
    assignment: str,
    check: protocol.Check,
    task: Task,
    bench: Bench,
    *,
    on_progress: Callable[[float, Progress], None],
    cancelled: Callable[[], bool],
) -> protocol.Verified:
    """Measure; ``on_progress`` gets how far the whole is, 0 to 1, and how far the run in hand."""
    began = time.monotonic()
    sources = [check.source] if check.parent_source is None else [check.parent_source, check.source]
    seeds: Sequence[int | None] = check.seeds or [None]
    jobs = [(source, seed) for seed in seeds for source in sources]
    done: list[Measurement] = []
    for number, (source, seed) in enumerate(jobs):
        plan = plan_as_it_stands(task, source, replicate=check.replicate)
        if seed is not None:
            plan = msgspec.structs.replace(plan, seed=seed)

        def tell(progress: Progress, number: int = number) -> None:
            on_progress((number + progress.fraction) / len(jobs), progress)

        measurement, _ = measure(task, plan, bench, on_progress=tell, cancelled=cancelled)
        done.append(measurement)
        if measurement.status is not RunStatus.OK or measurement.value is None:
            break
    return _verified(assignment, check, done, len(jobs), int(1000 * (time.monotonic() - began)))


def _verified(
    assignment: str, check: protocol.Check, done: list[Measurement], wanted: int, duration_ms: int
) -> protocol.Verified:
    last = done[-1]
    values = [measurement.value for measurement in done if measurement.value is not None]
    found = protocol.Verified(
        assignment=assignment, verdict="pass", device=last.device, sandbox=last.sandbox, duration_ms=duration_ms
    )
    if len(values) < wanted:
        # What a person stopped says nothing of the run; a run that does not end here as it is said to have ended does.
        stopped = last.status in (RunStatus.CANCELLED, RunStatus.ABANDONED) or bool(check.seeds)
        reason = f"{last.status}: {last.reason}"
        return msgspec.structs.replace(found, verdict="error" if stopped else "fail", reason=reason)
    if not check.seeds:
        return msgspec.structs.replace(found, value=values[0])
    return msgspec.structs.replace(found, parent_values=values[0::2], values=values[1::2])
