"""An axis of a picture: values become percentages of its width, round numbers become its ticks. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

MOST_TICKS = 6
# A picture of one value alone is so much wider than that value.
ALONE = 0.01


@dataclass(frozen=True, slots=True)
class Tick:
    """A round number on an axis: where it is, in percent, and how it is written."""

    at: float
    text: str


@dataclass(frozen=True, slots=True)
class Axis:
    """The values from ``low`` to ``high``, drawn from 0 % to 100 %."""

    low: float
    high: float

    def at(self, value: float) -> float:
        """Where a value is, in percent; what lies outside is on the edge."""
        # Halves: the difference of two numbers that strangers chose may be larger than any number.
        span = self.high / 2 - self.low / 2
        share = (value / 2 - self.low / 2) / span if span > 0 else 0.5
        return round(100 * min(max(share, 0.0), 1.0), 2)

    def ticks(self, most: int = MOST_TICKS) -> list[Tick]:
        """The round numbers on it, at most so many."""
        step = self._step(most)
        if not step:
            return []
        digits = max(0, -math.floor(math.log10(step)))
        first = math.ceil(self.low / step)
        values = [(first + place) * step for place in range(most + 1)]
        return [Tick(self.at(value), _written(value, digits)) for value in values if value <= self.high][:most]

    def _step(self, most: int) -> float:
        span = self.high - self.low
        if not 0 < span < math.inf:
            return 0.0
        power = 10.0 ** math.floor(math.log10(span / most))
        steps = (factor * power for factor in (1, 2, 5, 10))
        found = next((step for step in steps if span / step < most), 0.0)
        # Below the resolution of such numbers all ticks would be the same one.
        return found if found and self.low + found > self.low else 0.0


def axis_over(values: Iterable[float], *, beside: float = 0.0) -> Axis:
    """An axis that has all these values on it, with so much room on both sides; at least a little. Not empty."""
    known = [value for value in values if math.isfinite(value)] or [0.0]
    low, high = min(known), max(known)
    room = max(beside, (high / 2 - low / 2) * 0.08)
    if low - room == high + room:
        room = abs(low) * ALONE or 1.0
    limit = 1.7e308
    return Axis(max(low - room, -limit), min(high + room, limit))


def _written(value: float, digits: int) -> str:
    return f"{value:.{digits}f}" if abs(value) < 1e6 and digits <= 8 else f"{value:.3g}"
