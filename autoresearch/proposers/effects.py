"""What each setting did, from pairs of a run and its parent: a table that everybody computes alike.

A pair counts for a gene when it differs in that gene and in few others, so what the others did is noise here
and averages out. Differences are taken in one direction: a patch added, a constant raised.
"""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import dataclass
from typing import Literal

from autoresearch.direction import sign_of
from autoresearch.proposers.evidence import PastRun
from autoresearch.proposers.ranges import Value
from autoresearch.tasks import possible_value
from autoresearch.verification import student

# A pair that differs in more genes says too little about each.
MOST_CHANGES = 3


@dataclass(frozen=True, slots=True)
class Effect:
    """What adding a patch (``+name``) or raising a constant did to the metric, over pairs."""

    parameter: str
    pairs: int
    better: int
    """Pairs in which it helped."""
    mean: float
    """Mean change of the metric, in its own unit and sign."""
    low: float
    high: float
    """95 % confidence interval of the mean; infinite from one pair alone."""


def effects(runs: Collection[PastRun], *, direction: Literal["minimize", "maximize"]) -> list[Effect]:
    """The effect of each gene that some pair shows, the surest help first. The order of the runs is no matter."""
    sign = sign_of(direction)
    by_id = {run.id: run for run in sorted(runs, key=lambda run: (run.id, run.source_digest), reverse=True)}
    differences: dict[str, list[float]] = {}
    for _, run in sorted(by_id.items()):
        parent = None if run.parent is None else by_id.get(run.parent)
        if parent is None or parent.base != run.base:
            continue
        after, before = possible_value(run.value), possible_value(parent.value)
        changed = _raised(parent, run)
        if after is None or before is None or not 1 <= len(changed) <= MOST_CHANGES:
            continue
        for parameter, up in changed.items():
            differences.setdefault(parameter, []).append((after - before) * (1.0 if up else -1.0))
    found = [_effect(parameter, values, sign) for parameter, values in differences.items()]
    return sorted(found, key=lambda effect: (sign * (effect.high if sign > 0 else effect.low), effect.parameter))


def _raised(parent: PastRun, run: PastRun) -> dict[str, bool]:
    """The genes that differ, and whether the child has more of each; names that only one has do not count."""
    changed: dict[str, bool] = {}
    for name, new in run.genome.items():
        old = parent.genome.get(name)
        here, there = _number(new), _number(old)
        if here is not None and there is not None and here != there:
            changed[name] = here > there
    return changed


def _number(value: Value | None) -> float | None:
    return float(value) if isinstance(value, int | float) and -1e15 < value < 1e15 else None


def _effect(parameter: str, values: list[float], sign: float) -> Effect:
    count = len(values)
    mean = math.fsum(values) / count
    half = math.inf
    if count > 1:
        variance = math.fsum((value - mean) ** 2 for value in values) / (count - 1)
        half = student(count - 1) * math.sqrt(variance / count)
    better = sum(sign * value < 0 for value in values)
    return Effect(parameter, count, better, mean, mean - half, mean + half)
