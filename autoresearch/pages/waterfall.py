"""The way from the baseline to a run: the steps with their shares, the small ones folded. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

from autoresearch.api import PathStep
from autoresearch.pages.axes import Axis, axis_over

LARGEST = 3
# So many small steps in a row are folded into one line.
FOLDED = 2
LEAST = 5e-5


class Fall(NamedTuple):
    """A step: its run, the value before it and its own, the change, and its share of the whole way.

    ``better`` is None where the change is smaller than the noise or unknown. ``onward`` is the id of the next run.
    """

    of: PathStep
    before: float | None
    value: float | None
    change: float | None
    share: float
    better: bool | None
    onward: str


class Fold(NamedTuple):
    """Small steps in a row, told as one. ``better`` as for a step: of all of them together."""

    steps: list[Fall]
    better: bool | None

    @property
    def before(self) -> float | None:
        """The value before the first."""
        return self.steps[0].before

    @property
    def value(self) -> float | None:
        """The value of the last."""
        return self.steps[-1].value

    @property
    def change(self) -> float | None:
        """The change by all."""
        return None if self.before is None or self.value is None else self.value - self.before


class Waterfall(NamedTuple):
    """The way: steps and folds in order, the ``largest`` steps, the axis, the first and the last value.

    ``share`` is what the largest brought of the whole.
    """

    lines: list[Fall | Fold]
    largest: list[Fall]
    share: float
    axis: Axis
    first: float | None
    last: float | None
    steps: int


@dataclass(frozen=True, slots=True)
class _Scale:
    """What a change is worth: the direction, the noise, and the whole way."""

    sign: int
    noise: float
    whole: float

    def better(self, change: float | None) -> bool | None:
        # What four decimals don't show is no change either.
        is_known = change is not None and abs(change) > max(self.noise, LEAST)
        return self.sign * change < 0 if change is not None and is_known else None

    def share(self, change: float | None) -> float:
        return -self.sign * change / self.whole if change is not None and self.whole > 0 else 0.0


def waterfall(
    path: Sequence[PathStep], *, noise: float = 0.0, floor: float | None = None, maximize: bool = False
) -> Waterfall:
    """The steps of a path. Those within the noise are folded where several follow each other, but never the ends."""
    known = [step.row.value for step in path if step.row.value is not None]
    first, last = (known[0], known[-1]) if known else (None, None)
    sign = -1 if maximize else 1
    scale = _Scale(sign, noise, sign * (first - last) if first is not None and last is not None else 0.0)
    falls: list[Fall] = []
    before: float | None = None
    for step, following in pairwise([*path, None]):
        assert step is not None
        falls.append(_fall(step, before, scale, following.row.id if following else ""))
        before = step.row.value if step.row.value is not None else before
    largest = sorted((fall for fall in falls if fall.better), key=lambda fall: -fall.share)[:LARGEST]
    axis = axis_over([*known, *([] if floor is None else [floor])])
    share = sum(fall.share for fall in largest)
    return Waterfall(_folded(falls, scale), largest, share, axis, first, last, max(len(path) - 1, 0))


def _fall(step: PathStep, before: float | None, scale: _Scale, onward: str) -> Fall:
    value = step.row.value
    if value is not None and step.step is not None:  # steps between this one and the one before may be left out
        before = value - step.step
    change = None if before is None or value is None else value - before
    return Fall(step, before, value, change, scale.share(change), scale.better(change), onward)


def _folded(falls: Sequence[Fall], scale: _Scale) -> list[Fall | Fold]:
    lines: list[Fall | Fold] = []
    small: list[Fall] = []
    for place, fall in enumerate(falls):
        if fall.change is not None and fall.better is None and place != len(falls) - 1:
            small.append(fall)
            continue
        lines += [*_gathered(small, scale), fall]
        small = []
    return [*lines, *_gathered(small, scale)]


def _gathered(small: list[Fall], scale: _Scale) -> list[Fall | Fold]:
    if len(small) < FOLDED:
        return list(small)
    together = Fold(small, None)
    return [together._replace(better=scale.better(together.change))]
