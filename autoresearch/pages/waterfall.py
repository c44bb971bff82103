"""The way from the baseline to a run: the steps with their shares, the small ones folded. Pure."""

from __future__ import annotations

from collections.abc import Sequence
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
    """Small steps in a row, told as one."""

    steps: list[Fall]

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


def waterfall(
    path: Sequence[PathStep], *, noise: float = 0.0, floor: float | None = None, maximize: bool = False
) -> Waterfall:
    """The steps of a path. Those within the noise are folded where several follow each other, but never the ends."""
    known = [step.row.value for step in path if step.row.value is not None]
    first, last = (known[0], known[-1]) if known else (None, None)
    sign = -1 if maximize else 1
    whole = sign * (first - last) if first is not None and last is not None else 0.0
    falls: list[Fall] = []
    before: float | None = None
    for step, following in pairwise([*path, None]):
        assert step is not None
        falls.append(_fall(step, before, sign, whole, noise, following.row.id if following else ""))
        before = step.row.value if step.row.value is not None else before
    largest = sorted((fall for fall in falls if fall.better), key=lambda fall: -fall.share)[:LARGEST]
    axis = axis_over([*known, *([] if floor is None else [floor])])
    share = sum(fall.share for fall in largest)
    return Waterfall(_folded(falls), largest, share, axis, first, last, max(len(path) - 1, 0))


def _fall(step: PathStep, before: float | None, sign: int, whole: float, noise: float, onward: str) -> Fall:
    value = step.row.value
    change = None if before is None or value is None else value - before
    share = -sign * change / whole if change is not None and whole > 0 else 0.0
    # What four decimals don't show is no change either.
    better = None if change is None or abs(change) <= max(noise, LEAST) else sign * change < 0
    return Fall(step, before, value, change, share, better, onward)


def _folded(falls: Sequence[Fall]) -> list[Fall | Fold]:
    lines: list[Fall | Fold] = []
    small: list[Fall] = []
    for place, fall in enumerate(falls):
        is_small = fall.change is not None and fall.better is None and place != len(falls) - 1
        if not is_small:
            lines += _gathered(small)
            small = []
            lines.append(fall)
        else:
            small.append(fall)
    return [*lines, *_gathered(small)]


def _gathered(small: list[Fall]) -> list[Fall | Fold]:
    return [Fold(small)] if len(small) >= FOLDED else list(small)
