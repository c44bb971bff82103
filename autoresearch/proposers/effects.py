"""What each setting did, from pairs of a run and its parent: a table that everybody computes alike.

A pair counts for a gene when it differs in that gene and in few others, so what the others did is noise here
and averages out. Differences are taken in one direction: a patch added, a constant raised.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

from autoresearch.direction import sign_of
from autoresearch.proposers.evidence import PastRun
from autoresearch.proposers.ranges import Value
from autoresearch.tasks import possible_value
from autoresearch.verification import student

Direction = Literal["minimize", "maximize"]
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


class Seen(NamedTuple):
    """What raising a gene did in so many pairs: how many it improved and worsened, the mean change of the metric."""

    pairs: int
    better: int
    worse: int
    mean: float


def effects(runs: Collection[PastRun], *, direction: Direction) -> list[Effect]:
    """The effect of each gene that some pair shows, the surest help first. The order of the runs is no matter."""
    by_id = {run.id: run for run in sorted(runs, key=lambda run: (run.id, run.source_digest), reverse=True)}
    found: dict[str, list[float]] = {}
    for _, run in sorted(by_id.items()):
        parent = None if run.parent is None else by_id.get(run.parent)
        for parameter, difference in differences(parent, run) if parent else ():
            found.setdefault(parameter, []).append(difference)
    return ranked(found, direction=direction)


def differences(parent: PastRun, run: PastRun) -> list[tuple[str, float]]:
    """What a pair says of each gene that differs: the change of the metric when it is raised; of many genes nothing."""
    if parent.base != run.base:
        return []
    after, before = possible_value(run.value), possible_value(parent.value)
    changed = _raised(parent, run)
    if after is None or before is None or not 1 <= len(changed) <= MOST_CHANGES:
        return []
    return [(parameter, (after - before) * (1.0 if up else -1.0)) for parameter, up in changed.items()]


def ranked(found: Mapping[str, Sequence[float]], *, direction: Direction) -> list[Effect]:
    """The effects that differences make, by gene, the surest help first."""
    sign = sign_of(direction)
    made = [_effect(parameter, values, sign) for parameter, values in found.items()]
    return sorted(made, key=lambda effect: (sign * (effect.high if sign > 0 else effect.low), effect.parameter))


def _raised(parent: PastRun, run: PastRun) -> dict[str, bool]:
    """The genes that differ, and whether the child has more of each; names that only one has do not count."""
    changed: dict[str, bool] = {}
    for name, new in run.genome.items():
        if new == (old := parent.genome.get(name)):
            continue
        here, there = _number(new), _number(old)
        if here is not None and there is not None and here != there:
            changed[name] = here > there
    return changed


def _number(value: Value | None) -> float | None:
    return float(value) if isinstance(value, int | float) and -1e15 < value < 1e15 else None


def _effect(parameter: str, values: Sequence[float], sign: float) -> Effect:
    count = len(values)
    mean = math.fsum(values) / count
    half = math.inf
    if count > 1:
        variance = math.fsum((value - mean) ** 2 for value in values) / (count - 1)
        half = student(count - 1) * math.sqrt(variance / count)
    better = sum(sign * value < 0 for value in values)
    return Effect(parameter, count, better, mean, mean - half, mean + half)
