"""Places in a ranking that measured intervals allow: what the noise cannot tell apart shares them. Pure."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from typing import NamedTuple


class Interval(NamedTuple):
    """What verifiers measured, with its 95 % interval."""

    low: float
    high: float


class Place(NamedTuple):
    """The places that one may have, from 1: the ``first`` if all whose intervals touch its own are worse."""

    first: int
    last: int

    @property
    def is_shared(self) -> bool:
        """Whether another one may have the same."""
        return self.last > self.first


def places(intervals: Sequence[Interval], *, maximize: bool = False) -> list[Place]:
    """The places of each, in the given order. One is surely better than another where their intervals do not touch."""
    ends = [Interval(-high, -low) for low, high in intervals] if maximize else list(intervals)
    lows, highs = sorted(low for low, _ in ends), sorted(high for _, high in ends)
    # Surely better are those whose upper end is below this lower end. Not surely worse are those whose lower end is not
    # above this upper end, itself among them.
    return [Place(first=bisect_left(highs, low) + 1, last=bisect_right(lows, high)) for low, high in ends]
