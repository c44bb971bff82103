"""Pictures: who measured what of a run, the way from the baseline to a run, the curve of one in hand. Pure.

The first has a row for each participant and one axis. In the second the small steps are folded.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import NamedTuple

from autoresearch.ask.records import Measured, VerificationStateView
from autoresearch.ask.runs.answers import PathStep
from autoresearch.face.pages.chart import AxisTick, Scale, axis_over
from autoresearch.log.standing.answers import ParticipantView, RunFields, RunNumbers, RunView, leading, leading_gain

# The picture has so many rows; all measurements are in the table below it.
MOST_ROWS = 24
MOST_POINTS = 16
EVALUATE, REPLICATE = "evaluate", "replicate"


class Point(NamedTuple):
    """A value on the axis. ``look``: claim, run, parent, or other, where it refutes the reported value."""

    look: str
    at: float
    value: float


@dataclass(slots=True)
class ForestRow:
    """What one participant measured in one stage; its own author's value where ``participant`` is None."""

    participant: ParticipantView | None
    points: list[Point] = field(default_factory=list)
    counts: bool = True


class ForestGroup(NamedTuple):
    """The rows of one stage."""

    stage: str
    rows: list[ForestRow]


class Forest(NamedTuple):
    """The picture: its axis with ticks, its groups of rows, and where verifiers came to a value, that with its ends.

    ``left_out``: so many measurements are only in the table.
    """

    axis: Scale
    ticks: list[AxisTick]
    groups: list[ForestGroup]
    low: Point | None
    middle: Point | None
    high: Point | None
    left_out: int


def forest(view: RunView, verification: VerificationStateView, *, noise: float = 0.0) -> Forest | None:
    """The picture of a run, or None where only its author measured it."""
    run, wrong = view.run, refuting(view.run, verification)
    chosen = sorted(verification.measured, key=lambda measurement: not measurement.counts)[:MOST_ROWS]
    values = ((each, list(_values(each, "other" if each.id in wrong else "run"))) for each in chosen)
    drawn = [(measurement, points) for measurement, points in values if points]
    if not drawn:
        return None
    reported = [] if run.value is None else [("claim", run.value)]
    ends = _ends(view.standing)
    axis = axis_over((value for _, value in [*ends, *reported, *chain(*(of for _, of in drawn))]), beside=noise / 2)
    groups = [ForestGroup("", [ForestRow(None, _points(axis, reported))])]
    for stage in (EVALUATE, REPLICATE):
        rows = [
            ForestRow(measurement.participant, _points(axis, points), measurement.counts)
            for measurement, points in drawn
            if measurement.stage == stage
        ]
        groups += [ForestGroup(stage, rows)] if rows else []
    low, middle, high = _points(axis, ends) or (None, None, None)
    return Forest(axis, axis.ticks(), groups, low, middle, high, len(verification.measured) - len(drawn))


def refuting(run: RunFields, verification: VerificationStateView) -> frozenset[str]:
    """The ids of the evaluations that lie further from the reported value than is allowed: by number, not verdict."""
    return frozenset(measurement.id for measurement in verification.measured if _refutes(measurement, run.value))


def _refutes(measurement: Measured, reported: float | None) -> bool:
    if measurement.stage != EVALUATE or measurement.value is None or reported is None or measurement.allowed is None:
        return measurement.verdict == "fail"
    return abs(measurement.value / 2 - reported / 2) > measurement.allowed / 2


def _ends(numbers: RunNumbers) -> list[tuple[str, float]]:
    """The value of the verifiers between the ends of its interval; nothing where they came to none."""
    if numbers.verified is None:
        return []
    margin = numbers.verified_margin or 0.0
    return [("run", numbers.verified + part) for part in (-margin, 0.0, margin)]


def _values(measurement: Measured, look: str) -> Iterator[tuple[str, float]]:
    """The values of a measurement, each with its look."""
    own = [value for value in (measurement.value, *measurement.values) if value is not None]
    for value in own[:MOST_POINTS]:
        yield look, value
    for value in measurement.parent_values[:MOST_POINTS]:
        yield "parent", value


def _points(axis: Scale, values: Iterable[tuple[str, float]]) -> list[Point]:
    return [Point(look, axis.at(value), value) for look, value in values]


LARGEST = 3
# So many small steps in a row are folded into one line.
FOLDED = 2
LEAST = 5e-5


class Fall(NamedTuple):
    """A step: its run, the value ``before`` and of that, its gain, and what share that has of the gains of all steps.

    Value and gain are the verified ones where there are any, else the reported ones. ``better`` is None where the gain
    is smaller than the noise or unknown. ``onward`` is the id of the next run.
    """

    of: PathStep
    before: float | None
    value: float | None
    gain: float | None
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
    def gain(self) -> float:
        """The gain by all."""
        return sum(step.gain or 0.0 for step in self.steps)


class Waterfall(NamedTuple):
    """The way: steps and folds in order, the ``largest`` steps, the axis, the first and the last value.

    ``share`` is what the largest brought of the whole.
    """

    lines: list[Fall | Fold]
    largest: list[Fall]
    share: float
    axis: Scale
    first: float | None
    last: float | None
    steps: int


@dataclass(frozen=True, slots=True)
class _GainScale:
    """What a gain is worth: the noise, and the gains of all steps together."""

    noise: float
    whole: float

    def shows(self, gain: float | None) -> bool:
        """Whether four decimals show it: what they don't show is no gain."""
        return gain is not None and abs(gain) > LEAST

    def better(self, gain: float) -> bool | None:
        return gain > 0 if self.shows(gain) and abs(gain) > self.noise else None

    def share(self, gain: float | None) -> float:
        return gain / self.whole if gain is not None and self.whole > 0 else 0.0


def waterfall(
    path: Sequence[PathStep], *, noise: float = 0.0, floor: float | None = None, maximize: bool = False
) -> Waterfall:
    """The steps of a path. Those within the noise are folded where several follow each other, but never the ends."""
    values, gains = ([of(step.row).value for step in path] for of in (leading, leading_gain))
    present = [value for value in values if value is not None]
    first, last = (present[0], present[-1]) if present else (None, None)
    sign = -1 if maximize else 1
    scale = _GainScale(noise, sum(gain for gain in gains if gain is not None))
    starts = [
        None if value is None or gain is None else value + sign * gain
        for value, gain in zip(values, gains, strict=True)
    ]
    onward = [*(step.row.id for step in path[1:]), ""]
    falls = [
        Fall(step, start, value, gain, scale.share(gain), step.row.better if scale.shows(gain) else None, following)
        for step, start, value, gain, following in zip(path, starts, values, gains, onward, strict=False)
    ]
    largest = sorted((fall for fall in falls if fall.better), key=lambda fall: -fall.share)[:LARGEST]
    axis = axis_over([*present, *([] if floor is None else [floor])])
    share = sum(fall.share for fall in largest)
    return Waterfall(_folded(falls, scale), largest, share, axis, first, last, max(len(path) - 1, 0))


def _folded(falls: Sequence[Fall], scale: _GainScale) -> list[Fall | Fold]:
    lines: list[Fall | Fold] = []
    small: list[Fall] = []
    for place, fall in enumerate(falls):
        if fall.gain is not None and fall.better is None and place != len(falls) - 1:
            small.append(fall)
            continue
        lines += [*_gathered(small, scale), fall]
        small = []
    return [*lines, *_gathered(small, scale)]


def _gathered(small: list[Fall], scale: _GainScale) -> list[Fall | Fold]:
    if len(small) < FOLDED:
        return list(small)
    together = Fold(small, None)
    return [together._replace(better=scale.better(together.gain))]


class Sparkline(NamedTuple):
    """A loss over time as the points of a line, in a box of 100 by 100; its ``first`` and ``last`` value, its length.

    The box ends where nine tenths of the values are below it: the first ones are far above the rest.
    """

    points: str
    first: float
    last: float
    length_ms: float


def curve(losses: Sequence[Sequence[float]]) -> Sparkline | None:
    """The picture of a curve, or None where there are no two points."""
    if len(losses) < 2:
        return None
    values = sorted(value for _, value in losses)
    low, high = values[0], max(values[9 * (len(values) - 1) // 10], losses[-1][1])
    begin, end, axis = losses[0][0], losses[-1][0], Scale(low, high)

    def across(time_ms: float) -> float:
        return 100 * (time_ms - begin) / max(end - begin, 1)

    points = " ".join(f"{across(at):.1f},{100 - axis.at(value):.1f}" for at, value in losses)
    return Sparkline(points, losses[0][1], losses[-1][1], end - begin)
