"""How runs of one subject become one number to rank by. Pure."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

# A noise above this makes no sense, and its square is no number any more.
_MOST_NOISE = 1e100


class TaskRules(NamedTuple):
    """What ranking needs of a task's definition: the direction, the noise over seeds, and the full budget.

    ``clocked``: the budget is time, so that numbers from different hardware cannot be compared.
    """

    direction: str
    noise: float
    budget: float
    clocked: bool = False


def task_rules(definition: Mapping[str, object]) -> TaskRules | None:
    """The rules in a task's definition, or None when they are not there or make no sense."""
    metric, budget = definition.get("metric"), definition.get("budget")
    if not isinstance(metric, Mapping) or not isinstance(budget, Mapping):
        return None
    direction = metric.get("direction")
    noise, amount = _number(metric.get("noise", 0.0)), _number(budget.get("amount"))
    if (
        direction not in ("minimize", "maximize")
        or noise is None
        or not 0 <= noise <= _MOST_NOISE
        or amount is None
        or amount <= 0
    ):
        return None
    return TaskRules(str(direction), noise, amount, budget.get("unit") == "seconds")


def mean(values: Sequence[float]) -> float:
    """The mean, the same for any order of the values, and finite when they are."""
    try:
        return math.fsum(values) / len(values)
    except OverflowError:
        return math.fsum(value / len(values) / 2 for value in values) * 2


def rank(mean_value: float, runs: int, rules: TaskRules) -> float | None:
    """What a subject is ordered by, the smallest first: its mean made worse by the standard error.

    One lucky seed doesn't win: with standard deviation σ over seeds and n runs it is mean + σ/√n when less is better,
    and −(mean − σ/√n) when more is better. None when that is no finite number.
    """
    signed = mean_value if rules.direction == "minimize" else -mean_value
    result = signed + rules.noise / math.sqrt(runs)
    return result if math.isfinite(result) else None


def _number(value: object) -> float | None:
    return float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else None
