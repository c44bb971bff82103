"""The chart of a task: what led, what others measured, and everything else as dots that a browser can draw."""

from __future__ import annotations

import math

import numpy as np

from autoresearch.ask.lookup import FoundTask
from autoresearch.ask.requests import ProgressOf
from autoresearch.ask.runs.answers import ProgressAnswer, ProgressDots, ProgressMark, RunRow
from autoresearch.ask.runs.boards import task_status
from autoresearch.ask.runs.columns import MARKS, Flags, Floats, Ints, RunTable
from autoresearch.ask.runs.filtering import found_by, mark_of, with_marks
from autoresearch.ask.runs.rows import Rows, rows_of
from autoresearch.log.blobs import BlobStore
from autoresearch.log.log import Log
from autoresearch.log.standing.cache import kept_answer
from autoresearch.record.encoding import format_id
from autoresearch.text import one_line
from autoresearch.words import RunMark

# So many dots a browser draws in some milliseconds; more are counted in cells.
DOTS_MOST = 2_000
# Cells end where the bulk of the values ends: at this share, or higher so that confirmed steps show, up to the last.
BULK, BULK_MOST = 0.88, 0.955
LABELS, LABEL_CHANGES, LABEL_CHARACTERS = 30, 2, 40
_REPORTED, _FAILED = MARKS.index(RunMark.REPORTED), MARKS.index(RunMark.FAILED)


@kept_answer
def progress_answer(
    log: Log, blobs: BlobStore, task: FoundTask, asked: ProgressOf, *, me: bytes | None = None
) -> ProgressAnswer:
    """The chart of a task, or of those of its runs that a filter finds. Raises UsageError where the filter is none."""
    rows = rows_of(log, blobs, task.digest, me=me)
    table = rows.table
    kept = with_marks(table, found_by(log, table, rows.teller, asked, me=me), asked.state)
    shown = kept & _between(_axis(table, asked.x), asked.since, asked.to)
    has_value = shown & table.compared
    marked = has_value & ((table.mark != _REPORTED) | table.leads | table.led_by_claim)
    dotted = np.flatnonzero(has_value & ~marked)
    failed = np.flatnonzero(shown & (table.mark == _FAILED))
    places = np.flatnonzero(marked)
    binned = len(dotted) > DOTS_MOST or len(places) > DOTS_MOST or len(failed) > DOTS_MOST
    cells = _Cells(table, asked, np.flatnonzero(has_value)) if binned else None
    return ProgressAnswer(
        task=task_status(log, task, author=me),
        marks=_marks(rows, cells.thinned(places) if cells else places),
        dots=cells.counted(dotted) if cells else _each(table, dotted, with_value=True),
        failures=cells.columns(failed) if cells else _each(table, failed),
        binned=binned,
        found=int(kept.sum()),
        total=len(table),
    )


def _axis(table: RunTable, name: str) -> Ints:
    """The places of all runs on an axis."""
    return {"number": np.arange(1, len(table) + 1), "time": table.time, "cost": table.cost}[name]


def _between(places: Ints, since: int, to: int) -> Flags:
    return (places >= since) & (places <= to) if to else places >= since


def _each(table: RunTable, places: Ints, *, with_value: bool = False) -> ProgressDots:
    """Every run by itself."""
    return ProgressDots(
        number=(places + 1).tolist(),
        time_ms=table.time[places].tolist(),
        cost_ms=table.cost[places].tolist(),
        reported=np.round(table.reported[places], 6).tolist() if with_value else [],
        id=[format_id(table.ids[at]) for at in places.tolist()],
    )


def _marks(rows: Rows, places: Ints) -> list[ProgressMark]:
    table = rows.table
    steps = np.where(table.leads | table.led_by_claim, np.abs(table.before - table.value), 0.0)
    gains = np.nan_to_num(steps)
    # Those with the largest steps are told in words; a chart has room for a few.
    told = sorted((at for at in places.tolist() if gains[at] > 0), key=lambda at: (-gains[at], at))[:LABELS]
    labels = {at: _label(row) for at, row in zip(told, rows.at(told), strict=True)}
    return [
        ProgressMark(
            id=format_id(table.ids[at]),
            number=at + 1,
            time_ms=int(table.time[at]),
            cost_ms=int(table.cost[at]),
            reported=float(table.reported[at]),
            mark=mark_of(table, at).value,
            verified=_number(table.verified[at]),
            verified_margin=_number(table.margin[at]),
            leads=bool(table.leads[at]),
            led_by_claim=bool(table.led_by_claim[at]),
            step=float(gains[at]) or None,
            label=labels.get(at, ""),
        )
        for at in places.tolist()
    ]


def _number(value: float) -> float | None:
    return None if math.isnan(value) else float(value)


def _label(row: RunRow) -> str:
    """A step in a few words."""
    if row.jump:
        return f"jump, {len(row.change)} changes"
    if not row.change:
        return one_line(row.headline, LABEL_CHARACTERS)
    more = len(row.change) - LABEL_CHANGES
    told = " ".join(change.text for change in row.change[:LABEL_CHANGES])
    return one_line(f"{told} +{more}" if more > 0 else told, LABEL_CHARACTERS)


class _Cells:
    """The visible part of the chart as a grid."""

    def __init__(self, table: RunTable, asked: ProgressOf, visible: Ints) -> None:
        self._table, self._columns, self._rows = table, asked.columns, asked.rows
        self._axis = _axis(table, asked.x)
        here = self._axis[visible]
        self._left = float(here[0]) if len(here) else 0.0
        self._width = max(float(here[-1]) - self._left, 1.0) if len(here) else 1.0
        self._best, self._height = self._bounds(visible)

    def _bounds(self, visible: Ints) -> tuple[float, float]:
        """The best value, and how far below it the grid goes."""
        values = np.sort(self._table.sign * self._table.reported[visible])
        if not len(values):
            return 0.0, 1.0
        at = [values[int(share * (len(values) - 1))] for share in (BULK, BULK_MOST)]
        leading = self._table.sign * self._table.value[visible][self._table.leads[visible]]
        worst = min(at[1], max([at[0], *leading.tolist()]))
        return float(values[0]), max(float(worst - values[0]), 1e-12)

    def _column(self, places: Ints, columns: int) -> Ints:
        across = columns * (self._axis[places] - self._left) / self._width
        return np.minimum(columns - 1, across.astype(np.int64))

    def _row(self, values: Floats, rows: int) -> Ints:
        down: Floats = rows * (self._table.sign * values - self._best) / self._height
        return np.clip(down, 0, rows - 1).astype(np.int64)

    def counted(self, places: Ints) -> ProgressDots:
        """Runs in cells: one of each cell stands for it, with the count."""
        column = self._column(places, self._columns)
        cell = column * self._rows + self._row(self._table.reported[places], self._rows)
        _, first, count = np.unique(cell, return_index=True, return_counts=True)
        return self._those(places[first], count, with_value=True)

    def columns(self, places: Ints) -> ProgressDots:
        """Failures, counted by column."""
        _, first, count = np.unique(self._column(places, self._columns), return_index=True, return_counts=True)
        return self._those(places[first], count)

    def thinned(self, places: Ints) -> Ints:
        """All steps, and of other marks one of each kind in a cell of two by two."""
        table = self._table
        steps = table.leads[places] | table.led_by_claim[places]
        others = places[~steps]
        columns, rows = max(1, self._columns // 2), max(1, self._rows // 2)
        cell = (self._column(others, columns) * rows + self._row(table.value[others], rows)) * len(MARKS)
        _, first = np.unique(cell + table.mark[others], return_index=True)
        return np.sort(np.concatenate([places[steps], others[first]]))

    def _those(self, places: Ints, count: Ints, *, with_value: bool = False) -> ProgressDots:
        table = self._table
        return ProgressDots(
            number=(places + 1).tolist(),
            time_ms=table.time[places].tolist(),
            cost_ms=table.cost[places].tolist(),
            reported=np.round(table.reported[places], 6).tolist() if with_value else [],
            count=count.tolist(),
        )
