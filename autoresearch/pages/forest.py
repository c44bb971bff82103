"""Who measured what of a run, as a picture: a row for each participant, a point for each value, one axis. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import chain
from statistics import median
from typing import NamedTuple

from autoresearch.api import Measured, ParticipantView, RunView, VerificationStateView
from autoresearch.pages.axes import Axis, Tick, axis_over
from autoresearch.words import RunState

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


class Group(NamedTuple):
    """The rows of one stage."""

    stage: str
    rows: list[ForestRow]


class Forest(NamedTuple):
    """The picture: its axis with ticks, its groups of rows, and where verifiers came to a value, that with its ends.

    ``left_out``: so many measurements are only in the table.
    """

    axis: Axis
    ticks: list[Tick]
    groups: list[Group]
    low: Point | None
    middle: Point | None
    high: Point | None
    left_out: int


def forest(run: RunView, verification: VerificationStateView, *, noise: float = 0.0) -> Forest | None:
    """The picture of a run, or None where only its author measured it."""
    wrong = refuting(run, verification)
    chosen = sorted(verification.measured, key=lambda one: not one.counts)[:MOST_ROWS]
    values = [(one, list(_values(one, "other" if one.id in wrong else "run"))) for one in chosen]
    told = [(one, measured) for one, measured in values if measured]
    if not told:
        return None
    reported = [] if run.value is None else [("claim", run.value)]
    ends = _ends(verification)
    axis = axis_over((value for _, value in [*ends, *reported, *chain(*(of for _, of in told))]), beside=noise / 2)
    groups = [Group("", [ForestRow(None, _points(axis, reported))])]
    for stage in (EVALUATE, REPLICATE):
        rows = [
            ForestRow(one.participant, _points(axis, measured), one.counts)
            for one, measured in told
            if one.stage == stage
        ]
        groups += [Group(stage, rows)] if rows else []
    low, middle, high = _points(axis, ends) or (None, None, None)
    return Forest(axis, axis.ticks(), groups, low, middle, high, len(verification.measured) - len(told))


def refuting(run: RunView, verification: VerificationStateView) -> frozenset[str]:
    """The ids of the evaluations that lie further from the reported value than is allowed: by number, not verdict."""
    return frozenset(one.id for one in verification.measured if _refutes(one, run.value))


def refuting_value(run: RunView, verification: VerificationStateView) -> float | None:
    """The median of the evaluations that refute a run; None of a run that is not refuted."""
    wrong = refuting(run, verification)
    values = [one.value for one in verification.measured if one.id in wrong and one.counts and one.value is not None]
    return median(values) if values and verification.state == RunState.REFUTED else None


def _refutes(one: Measured, reported: float | None) -> bool:
    if one.stage != EVALUATE or one.value is None or reported is None or one.allowed is None:
        return one.verdict == "fail"
    return abs(one.value / 2 - reported / 2) > one.allowed / 2


def _ends(verification: VerificationStateView) -> list[tuple[str, float]]:
    """The value of the verifiers between the ends of its interval; nothing where they came to none."""
    if verification.value is None:
        return []
    margin = verification.margin or 0.0
    return [("run", verification.value + part) for part in (-margin, 0.0, margin)]


def _values(one: Measured, look: str) -> Iterator[tuple[str, float]]:
    """The values of a measurement, each with its look."""
    own = [value for value in (one.value, *one.values) if value is not None]
    for value in own[:MOST_POINTS]:
        yield look, value
    for value in one.parent_values[:MOST_POINTS]:
        yield "parent", value


def _points(axis: Axis, values: Iterable[tuple[str, float]]) -> list[Point]:
    return [Point(look, axis.at(value), value) for look, value in values]
