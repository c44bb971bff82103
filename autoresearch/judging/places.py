"""Places on a board by intervals: those that the intervals cannot tell apart share them. Pure."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from typing import NamedTuple


class Interval(NamedTuple):
    """What was measured, with its 95 % interval."""

    low: float
    high: float

    @classmethod
    def around(cls, value: float, margin: float | None) -> Interval:
        """The interval of a value with half of its width; of no width where that is not known."""
        return cls(value - (margin or 0.0), value + (margin or 0.0))


class BoardPlace(NamedTuple):
    """The places that one may have, from 1: the ``first`` if all whose intervals touch its own are worse."""

    first: int
    last: int

    def __str__(self) -> str:
        """``1``, or ``1–3`` where it is shared."""
        return f"{self.first}–{self.last}" if self.last > self.first else str(self.first)


def places(intervals: Sequence[Interval], *, maximize: bool = False) -> list[BoardPlace]:
    """The places of each, in the given order. One is surely better than another where their intervals do not touch."""
    ends = [Interval(-high, -low) for low, high in intervals] if maximize else list(intervals)
    lows, highs = sorted(low for low, _ in ends), sorted(high for _, high in ends)
    # Surely better are those whose upper end is below this lower end. Not surely worse are those whose lower end is not
    # above this upper end, itself among them.
    return [BoardPlace(first=bisect_left(highs, low) + 1, last=bisect_right(lows, high)) for low, high in ends]
