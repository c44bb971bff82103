"""What the script of the progress chart draws: an answer of the API, with short ids and cleaned labels. Pure."""

from __future__ import annotations

import msgspec

from autoresearch.api import ProgressAnswer, ProgressDots, ProgressMark
from autoresearch.direction import MAXIMIZE
from autoresearch.pages.query import Query
from autoresearch.records import parse_id, short_id
from autoresearch.sanitise import one_line

LABEL_CHARACTERS = 40


class ChartData(msgspec.Struct, frozen=True, kw_only=True):
    """The progress of a task for the chart.

    ``floor`` is null where the task has none, ``noise`` the standard deviation of the value over seeds. ``x``,
    ``since`` and ``to`` are what was asked for: where dots are ``binned`` a zoom needs another answer.
    """

    metric: str
    maximize: bool
    floor: float | None
    noise: float
    baseline: float | None
    marks: list[ProgressMark]
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
        dots=_dots(answer.dots),
        failures=_dots(answer.failures),
        binned=answer.binned,
        found=answer.found,
        total=answer.total,
        x=query.x,
        since=query.since,
        to=query.to,
    )


def _mark(mark: ProgressMark) -> ProgressMark:
    return msgspec.structs.replace(mark, id=_short(mark.id), label=one_line(mark.label, LABEL_CHARACTERS))


def _dots(dots: ProgressDots) -> ProgressDots:
    return msgspec.structs.replace(dots, id=[_short(run) for run in dots.id])


def _short(run: str) -> str:
    return short_id(parse_id(run)) if run else ""
