"""Plausibility: how much of the compute that a run states is credited to its author."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from autoresearch.log import Log, TaskRules
from autoresearch.records import Record, Run, Task, Verification

# The last step of a run may end above its budget; the excess is not counted.
_OVERSHOOT = 1.1
# No machine that runs one program has more processors than this.
_PROCESSORS = 1024
# A run, and the questions to its model, take no longer together than so many times the task's limit.
_LIMITS = 4


class Spent(NamedTuple):
    """The compute of a run that counts: processor milliseconds, work in the task's units, FLOPs."""

    cpu_ms: int
    work: float
    flops: float


def spent(log: Log, run: Run) -> Spent | None:
    """What a run spent; None where it cannot have spent what it states. Nothing of it counts then.

    Work is at most the budget, FLOPs at most the work, processor time at most that of 1,024 processors in the run's
    time. The work of a wall-clock task, or of an unknown task, has no bound: neither work nor FLOPs count there.
    """
    rules, limit_ms = log.tasks.rules(run.task), _limit_ms(log, run.task)
    if run.cpu_ms > _PROCESSORS * run.duration_ms or (limit_ms is not None and run.duration_ms > limit_ms):
        return None
    if rules is None or rules.clocked:
        return Spent(run.cpu_ms, 0.0, 0.0)
    return _counted(run, rules)


def _counted(run: Run, rules: TaskRules) -> Spent | None:
    budget = min(run.budget, rules.budget)
    flops = float(run.metrics.get("flops", 0))
    work = float(run.metrics.get("work", flops))
    if not 0 <= flops <= work <= _OVERSHOOT * budget:
        return None
    return Spent(run.cpu_ms, min(work, budget), min(flops, budget))


def verifying_ms(log: Log, run: Record, check: Record) -> int:
    """How long a verification took; 0 where, by its statement, it began before the run was published."""
    assert isinstance(check.body, Verification)
    most = check.time - run.time + log.network.ahead_ms
    return check.body.duration_ms if check.body.duration_ms <= most else 0


def _limit_ms(log: Log, task: bytes) -> float | None:
    row = log.tasks.find(task)
    body = log.records.get(row.id).body if row else None
    limits = body.definition.get("limits") if isinstance(body, Task) else None
    seconds = limits.get("seconds") if isinstance(limits, Mapping) else None
    return _LIMITS * 1000 * float(seconds) if isinstance(seconds, int | float) else None
