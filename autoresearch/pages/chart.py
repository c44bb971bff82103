"""What the script of the progress chart draws: an answer of the API, with short ids and cleaned labels. Pure."""

from __future__ import annotations

import msgspec

from autoresearch.api import ProgressAnswer, ProgressDots, ProgressMark
from autoresearch.direction import MAXIMIZE
from autoresearch.pages.query import Query
from autoresearch.records import parse_id, short_id
from autoresearch.sanitise import one_line

LABEL_CHARACTERS = 40
DIGITS = 8
COLUMNS = {"number": "number", "time": "time_ms", "cost": "cost_ms"}


class ChartMark(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A mark, with the fields of `ProgressMark`; what has its default is left out: thousands of marks are sent."""

    id: str
    number: int
    time_ms: int
    cost_ms: int
    value: float
    reported: float
    mark: str
    margin: float | None = None
    leads: bool = False
    led_by_claim: bool = False
    label: str = ""


class ChartData(msgspec.Struct, frozen=True, kw_only=True):
    """The progress of a task for the chart.

    Where dots are ``binned`` they have a column for the axis ``x`` alone. ``floor`` is null where the task has none,
    ``noise`` is the standard deviation of the value over seeds. ``x``, ``since`` and ``to`` are what was asked for:
    where dots are ``binned`` a zoom needs another answer.
    """

    metric: str
    maximize: bool
    floor: float | None
    noise: float
    baseline: float | None
    marks: list[ChartMark]
    dots: ProgressDots
    failures: ProgressDots
    binned: bool
    found: int
    total: int
    x: str
    since: int
    to: int


def chart_data(answer: ProgressAnswer, query: Query) -> ChartData:
    """The chart of an answer to ``query.progress()``. Labels are strangers' words: a canvas shows them as they are."""
    task = answer.task
    return ChartData(
        metric=one_line(task.metric, LABEL_CHARACTERS),
        maximize=task.direction == MAXIMIZE,
        floor=task.floor,
        noise=task.noise,
        baseline=task.baseline,
        marks=[_mark(mark) for mark in answer.marks],
        dots=_dots(answer.dots, query.x if answer.binned else ""),
        failures=_dots(answer.failures, query.x if answer.binned else ""),
        binned=answer.binned,
        found=answer.found,
        total=answer.total,
        x=query.x,
        since=query.since,
        to=query.to,
    )


def _mark(mark: ProgressMark) -> ChartMark:
    return ChartMark(
        id=_short(mark.id),
        number=mark.number,
        time_ms=mark.time_ms,
        cost_ms=mark.cost_ms,
        value=round(mark.value, DIGITS),
        reported=round(mark.reported, DIGITS),
        mark=mark.mark,
        margin=round(mark.margin, DIGITS) if mark.margin else None,
        leads=mark.leads,
        led_by_claim=mark.led_by_claim,
        label=one_line(mark.label, LABEL_CHARACTERS),
    )


def _dots(dots: ProgressDots, axis: str) -> ProgressDots:
    """Cells are counted for one axis; their places on the others say nothing."""
    if axis:
        unused: dict[str, list[int]] = {column: [] for name, column in COLUMNS.items() if name != axis}
        return msgspec.structs.replace(dots, id=[], **unused)
    return msgspec.structs.replace(dots, id=[_short(run) for run in dots.id])


def _short(run: str) -> str:
    return short_id(parse_id(run)) if run else ""
