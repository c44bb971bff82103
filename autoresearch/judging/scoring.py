"""How runs of one program become one number to rank by. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from autoresearch.text import MAXIMIZE, MINIMIZE, sign_of

# A noise above this makes no sense, and its square is no number any more.
_MOST_NOISE = 1e100


class TaskRules(NamedTuple):
    """What ranking needs of a task's definition: the direction, the noise over seeds, and the full budget.

    ``clocked``: the budget is time, so that numbers from different hardware cannot be compared. ``any_budget``: what a
    run left is measured alone, however long it was trained, so that runs with less and more than the budget rank too.
    """

    direction: str
    noise: float
    budget: float
    clocked: bool = False
    any_budget: bool = False

    def ranks(self, budget: float) -> bool:
        """Whether runs with a budget are compared with others."""
        return self.any_budget or budget == self.budget

    @property
    def sign(self) -> float:
        """The factor that makes smaller values better."""
        return sign_of(self.direction)


class CountedRun(NamedTuple):
    """A run with a value; ``device`` is the hardware. Ordered by time and id."""

    time: int
    id: bytes
    value: float
    author: bytes
    replicate: int
    device: str


class Pooled(NamedTuple):
    """Runs of one program as one: the one that it stands by, how many count, and their mean."""

    first: CountedRun
    runs: int
    mean: float


def task_rules(definition: Mapping[str, object]) -> TaskRules | None:
    """The rules in a task's definition, or None when they are not there or make no sense."""
    metric, budget = definition.get("metric"), definition.get("budget")
    if not isinstance(metric, Mapping) or not isinstance(budget, Mapping):
        return None
    direction = metric.get("direction")
    noise, amount = _number(metric.get("noise", 0.0)), _number(budget.get("amount"))
    if (
        direction not in (MINIMIZE, MAXIMIZE)
        or noise is None
        or not 0 <= noise <= _MOST_NOISE
        or amount is None
        or amount <= 0
    ):
        return None
    evaluation = definition.get("evaluation")
    any_budget = budget.get("unit") == "episodes" or (
        isinstance(evaluation, Mapping) and bool(evaluation.get("answers"))
    )
    return TaskRules(str(direction), noise, amount, budget.get("unit") == "seconds", any_budget)


def pool(runs: Iterable[CountedRun], *, clocked: bool) -> Pooled | None:
    """Runs of one program as one, None of none. It stands by its first run.

    One run counts for each author and replicate, the oldest: doing the same again is no new evidence. On a wall-clock
    task only those on the hardware of the first: what runs in the same time elsewhere is another experiment.
    """
    counted: dict[tuple[bytes, int], CountedRun] = {}
    for run in runs:
        key = (run.author, run.replicate)
        counted[key] = min(run, counted.get(key, run))
    if not counted:
        return None
    first = min(counted.values())
    values = [run.value for run in counted.values() if not clocked or run.device == first.device]
    return Pooled(first, len(values), mean(values))


def mean(values: Sequence[float]) -> float:
    """The mean, the same for any order of the values, and finite when they are."""
    try:
        return math.fsum(values) / len(values)
    except OverflowError:
        return math.fsum(value / len(values) / 2 for value in values) * 2


def rank(mean_value: float, runs: int, rules: TaskRules) -> float | None:
    """What a program is ordered by, the smallest first: its mean made worse by the standard error.

    One lucky seed doesn't win: with standard deviation σ over seeds and n runs it is mean + σ/√n when less is better,
    and −(mean − σ/√n) when more is better. None when that is no finite number.
    """
    result = rules.sign * mean_value + rules.noise / math.sqrt(runs)
    return result if math.isfinite(result) else None


def _number(value: object) -> float | None:
    return float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else None
