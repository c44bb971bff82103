"""One searchable dimension: a declared constant, or a structural patch that is on or off.

Numbers live on [0, 1]: choices that are numbers are ordered, so their neighbours are near; other choices
(and patches) are only equal or different. Values from elsewhere may lie outside the declared range.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise

from autoresearch.proposers.draws import Draws
from autoresearch.proposers.ranges import Constant, Range, Value

# How far outside its range a value tried elsewhere may pull the search, in widths of the range.
OUTSIDE = 0.3


@dataclass(frozen=True, slots=True)
class Parameter:
    """A dimension of the search, with the value that its base source has."""

    name: str
    range: Range
    default: Value

    @property
    def ordered(self) -> bool:
        """Whether values have places on a line, rather than being only equal or different."""
        return self.range.kind != "one of" or all(
            isinstance(choice, int | float) and not isinstance(choice, bool) for choice in self.range.choices
        )

    def admit(self, value: object) -> Value | None:
        """The value as this gene would hold it, or None when it is none that the gene can hold."""
        if isinstance(self.default, bool) or isinstance(value, bool):
            return value if isinstance(value, bool) and isinstance(self.default, bool) else None
        if isinstance(self.default, str) or isinstance(value, str):
            return value if isinstance(value, str) and value in self.range.choices else None
        if not isinstance(value, int | float) or not -1e15 < value < 1e15:
            return None
        if self.range.kind == "log" and value <= 0:
            return None
        if isinstance(self.default, int):
            return int(value) if value == int(value) else None
        return float(value)

    def place(self, value: Value) -> float:
        """Where the value lies: 0 to 1 inside the range, a little beyond outside it; choices by their rank."""
        if not self.ordered:
            return float(self.range.choices.index(value)) if value in self.range.choices else -1.0
        number = float(value)
        if self.range.kind == "one of":
            unit = _rank([float(choice) for choice in self.range.choices], number)
        elif self.range.kind == "log":
            unit = math.log(number / self.range.low) / math.log(self.range.high / self.range.low)
        else:
            unit = (number - self.range.low) / (self.range.high - self.range.low)
        return min(1.0 + OUTSIDE, max(-OUTSIDE, unit))

    def at(self, unit: float) -> Value:
        """The value at a place, inside the range; numbers rounded to two digits, so that equal means equal."""
        unit = min(1.0, max(0.0, unit))
        low, high = self.range.low, self.range.high
        if self.range.kind == "one of":
            choices = self._choices()
            return choices[round(unit * (len(choices) - 1))]
        number = low * (high / low) ** unit if self.range.kind == "log" else low + unit * (high - low)
        if isinstance(self.default, int):
            # 157 and 160 trees are the same idea; within a narrow range each number counts
            coarse = self.range.kind == "log" and number >= 100 and high >= 4 * low
            return int(min(high, max(low, float(f"{number:.2g}") if coarse else round(number))))
        return min(high, max(low, float(f"{number:.2g}")))

    def anywhere(self, draws: Draws) -> Value:
        """A value from the whole range, each equally likely (on the logarithm where the range is one)."""
        if self.range.kind == "one of":
            return draws.choice(self._choices())
        if isinstance(self.default, int) and self.range.kind == "int":
            return int(self.range.low) + draws.below(int(self.range.high - self.range.low) + 1)
        return self.at(draws.uniform())

    def near(self, value: Value, spread: float, draws: Draws) -> Value:
        """A value near this one (normal with this spread on [0, 1]); for unordered choices, any other one."""
        if not self.ordered:
            others = [choice for choice in self.range.choices if choice != value]
            return draws.choice(others) if others else value
        here = self.place(value)
        for _ in range(20):
            unit = here + spread * draws.normal()
            if 0.0 <= unit <= 1.0 and self.at(unit) != value:
                return self.at(unit)
        return self._neighbour(value, draws)

    def _neighbour(self, value: Value, draws: Draws) -> Value:
        """The next choice or whole number, up or down: for steps that are wider than the spread."""
        steps = len(self.range.choices) - 1 if self.range.kind == "one of" else 20
        if self.range.kind == "int":
            steps = int(self.range.high - self.range.low)
        step = 1.0 / max(1, steps)
        here = min(1.0, max(0.0, self.place(value)))
        up = draws.chance(0.5)
        for sign in (1, -1) if up else (-1, 1):
            if -1e-9 <= here + sign * step <= 1 + 1e-9 and self.at(here + sign * step) != value:
                return self.at(here + sign * step)
        return value

    def _choices(self) -> list[Value]:
        if self.ordered:
            return sorted(self.range.choices, key=float)
        return list(self.range.choices)


def constant_parameter(constant: Constant) -> Parameter | None:
    """The gene of a constant that has a range."""
    allowed, value = constant.range, constant.value
    if allowed is None:
        return None
    choices = allowed.choices or (1 if allowed.whole else 1.0,)
    if type(value) is int and any(isinstance(choice, float) for choice in choices):
        value = float(value)
    return Parameter(constant.name, allowed, value)


def patch_parameter(name: str) -> Parameter:
    """The gene that says whether a patch of the catalogue is applied."""
    return Parameter(f"+{name}", Range("one of", choices=(False, True)), default=False)


def _rank(choices: list[float], number: float) -> float:
    """The place of a number among ordered choices, between two of them by proportion."""
    choices = sorted(choices)
    last = len(choices) - 1
    if number <= choices[0]:
        return 0.0 if number == choices[0] else -OUTSIDE
    for i, (below, above) in enumerate(pairwise(choices)):
        if number <= above:
            return (i + (number - below) / (above - below)) / last
    return 1.0 + OUTSIDE
