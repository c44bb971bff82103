"""How far a value that a program prints itself may go beyond all that its task has seen, and still be believed. Pure.

Such a value can be anything: an edit of the line that prints it is enough. So a jump is not believed that no training
makes. Smaller scores are better here, whatever the metric's direction: a score is the value, or minus it.

The numbers were chosen on one half of 30 tables of real trainings (``benchmarks/recorded.jsonl``; accuracy, error, loss
and r2 of models of scikit-learn on bundled data), run in random orders. On the other half 1 run in 300 is a jump,
nearly all where a linear model meets linear data. No number tells an exact fit of data without noise from a typed one.
"""

from __future__ import annotations

import math

from autoresearch.task.bounds import Bound

# Towards a bound: no run comes so many times closer to it than the best before.
TIMES_CLOSER = 100.0
# Onto the bound of a metric that counts: from so much of its whole range. A perfect score on a small test set is usual.
PERFECT_FROM = 0.3
# Where there is no bound: no run gains so many times the size of the values that were seen.
TIMES_LARGER = 1000.0


def least_believed(best: float, first: float, bound: Bound | None, *, sign: float) -> float:
    """The best score that is believed where ``best`` is the best so far, and ``first`` the one that a task began with.

    Minus infinity where nothing can be said. ``sign`` makes values of the metric scores.

    >>> least_believed(1.0, 2.25, Bound(0.0, counted=False), sign=1.0)
    0.01
    """
    if bound is None:
        return best - TIMES_LARGER * max(abs(best), abs(first)) if best or first else -math.inf
    end = sign * bound.value
    distance = best - end
    whole = 100.0 if max(abs(bound.value), abs(best)) > 1 else 1.0
    if distance <= 0 or (bound.counted and distance <= PERFECT_FROM * whole):
        return -math.inf
    return end + distance / TIMES_CLOSER
