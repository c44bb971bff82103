"""The chart of a task: what led, what others measured, and a sample of everything else that a browser can draw.

Also all of its runs as columns, for pictures that draw each as a point.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import pairwise, repeat
from operator import attrgetter
from typing import Literal, NamedTuple

import msgspec

from autoresearch.ask.lookup import FoundTask
from autoresearch.ask.requests import ColumnsOf, ProgressOf
from autoresearch.ask.runs.answers import ColumnsAnswer, ProgressAnswer, ProgressDots, ProgressMark, RunRow
from autoresearch.ask.runs.boards import task_status
from autoresearch.ask.runs.filtering import counts_of, filter_of, within
from autoresearch.ask.runs.rows import Rows, mark_of, rows_of
from autoresearch.log.blobs import BlobStore
from autoresearch.log.log import Log
from autoresearch.log.standing.cache import cached_answer, in_snapshot
from autoresearch.log.standing.context import board_hardware
from autoresearch.log.tables.differences import Scalar
from autoresearch.log.tables.filters import Filter, ListedRun
from autoresearch.log.tables.places import Places, Sums
from autoresearch.record.encoding import format_id
from autoresearch.text import one_line
from autoresearch.words import PLAIN_MARKS, RunMark

# A browser draws so many points in some milliseconds: runs that are only reported or failed, and those that others
# measured. More are sampled; those that led are all there.
DOTS_MOST, MARKS_MOST = 1_500, 500
LABELS, LABEL_CHANGES, LABEL_CHARACTERS = 30, 2, 40
_SAMPLES: tuple[tuple[Literal["plain", "marked"], int], ...] = ("plain", DOTS_MOST), ("marked", MARKS_MOST)
Points = Sequence[tuple[ListedRun, Sums]]


@in_snapshot
def progress_answer(
    log: Log, blobs: BlobStore, task: FoundTask, request: ProgressOf, *, me: bytes | None = None
) -> ProgressAnswer:
    """The chart of a task, or of those of its runs that a filter finds. Raises UsageError where the filter is none.

    Which runs stand in it, and where, is kept until the log changes.
    """
    rows = rows_of(log, blobs, task.digest, me=me)
    criteria = filter_of(log, task.digest, request, me=me)
    counts = counts_of(log, criteria).marks if criteria else {}
    if criteria and criteria.marks:
        counts = {mark: runs for mark, runs in counts.items() if mark in criteria.marks}
    visible = within(criteria, rows.places, request) if counts else None
    drawn = cached_answer(log, "chart", visible, lambda: _drawn(log, visible, rows.places, counts)) if visible else None
    placed, gains, binned = drawn or _Drawn(points=[], gains={}, binned=False)
    valued = [(run, sums) for run, sums in placed if run.compared and run.reported is not None]
    is_mark = {run.n: run.mark != RunMark.REPORTED or run.leads or run.led_by_claim for run, _ in valued}
    return ProgressAnswer(
        task=task_status(log, task, author=me),
        marks=_marks(rows, [point for point in valued if is_mark[point[0].n]], gains),
        dots=_dots([point for point in valued if not is_mark[point[0].n]], with_value=True),
        failures=_dots([point for point in placed if point[0].mark == RunMark.FAILED]),
        binned=binned,
        matching=sum(counts.values()),
        total=sum(counts_of(log, Filter(task.digest)).marks.values()),
    )


class _Drawn(NamedTuple):
    """The runs in a chart in order of time; the improvement of each that led over the one before, None for the first.

    ``binned``: some are left out.
    """

    points: Points
    gains: Mapping[int, float | None]
    binned: bool


def _drawn(log: Log, visible: Filter, places: Places, counts: Mapping[str, int]) -> _Drawn:
    """``counts``: how many runs of each mark there are at any time."""
    gains = dict[int, float | None]()
    for sure in (0, 1):
        leaders = log.listing.leaders(visible, sure)
        gains |= dict.fromkeys((run.n for run in leaders[:1]), None)
        gains |= {run.n: before.value - run.value for before, run in pairwise(leaders)}
    share, binned, points = _share(visible, places), False, log.listing.facts(visible, gains)
    for kinds, most in _SAMPLES:
        expected = share * sum(runs for mark, runs in counts.items() if (mark in PLAIN_MARKS) == (kinds == "plain"))
        some, is_whole = _sample(log, visible, kinds, expected, most)
        points |= {run.n: run for run in some if run.n not in points}
        binned |= not is_whole
    ordered = sorted(points.values(), key=lambda run: run.place)
    return _Drawn(list(zip(ordered, places.of(run.place for run in ordered), strict=True)), gains, binned)


# The newest runs of a task that stand in columns.
COLUMNS_MOST = 200_000


@in_snapshot
def columns_answer(log: Log, task: FoundTask, request: ColumnsOf, *, me: bytes | None = None) -> ColumnsAnswer:
    """The runs of a task as columns, with some of their settings."""
    every = Filter(task.digest, board_hardware(log, task.digest) or "", hidden=not log.hidden)
    counts = counts_of(log, every).marks
    # Those that others measured are all there, unless they are as many themselves.
    marked = sum(runs for mark, runs in counts.items() if mark not in PLAIN_MARKS)
    drawn = sum(counts.values()) - (marked if marked < request.sample else 0)
    zeros = max(0, math.ceil(math.log2(max(drawn, 1) / request.sample))) if request.sample else 0
    runs = log.listing.columns(every, COLUMNS_MOST, zeros=zeros, marked=marked < request.sample)
    place: dict[bytes | None, int] = {run: at for at, run in enumerate(runs.id)}
    marks = list(runs.mark)
    for leader in log.listing.leaders(every, 0):
        at = place.get(leader.id)
        if at is not None and marks[at] == RunMark.REPORTED:
            marks[at] = RunMark.LEADING.value
    return ColumnsAnswer(
        task=task_status(log, task, author=me),
        id=list(map(format_id, runs.id)),
        mark=marks,
        value=list(runs.value),
        parent=list(map(place.get, runs.parent, repeat(-1))),
        settings=_settings_in(runs.genome, list(dict.fromkeys(request.setting))),
        left_out=sum(counts.values()) - len(runs.id),
        sampled=zeros > 0,
    )


def _settings_in(genomes: Sequence[bytes], names: Sequence[str]) -> dict[str, list[Scalar | None]]:
    """Some settings of runs as columns. Of a run that has settings, a part that it does not name is off."""
    if not names:
        return {}
    # A struct reads the fields that it has and skips the others.
    fields = [(f"setting_{at}", Scalar | None, False if name[0] == "+" else None) for at, name in enumerate(names)]
    renamed = {field: name for (field, _, _), name in zip(fields, names, strict=True)}
    kind = msgspec.defstruct("Settings", fields, rename=renamed, gc=False)
    read, nothing = msgspec.json.Decoder(kind).decode, kind(**dict.fromkeys(renamed))
    rows = [read(genome) if len(genome) > len("{}") else nothing for genome in genomes]
    return {name: list(map(attrgetter(field), rows)) for field, name in renamed.items()}


def _share(visible: Filter, places: Places) -> float:
    """Which share of the task's runs lies between the ends of the axis."""
    before, *after = places.of([visible.since] + ([visible.to] if visible.to else []))
    last = after[0].number if after else places.total
    return (last - before.number + 1) / max(places.total, 1)


def _sample(
    log: Log, visible: Filter, kinds: Literal["plain", "marked"], expected: float, most: int
) -> tuple[list[ListedRun], bool]:
    """Some of about so many ``expected`` runs, or all where they are few enough; and whether it is all."""
    zeros = max(0, math.ceil(math.log2(max(expected, 1.0) / most)))
    while True:
        some = log.listing.sample(visible, kinds, zeros)
        # The runs between two places may be others than those of the whole: too few of them are shown, ask for more.
        if zeros == 0 or len(some) > most // 4:
            break
        zeros = max(0, zeros - 2)
    while len(some) > most:
        zeros += 1
        some = [run for run in some if run.zeros >= zeros]
    return some, zeros == 0


def _dots(points: Points, *, with_value: bool = False) -> ProgressDots:
    """Every run by itself."""
    return ProgressDots(
        number=[sums.number for _, sums in points],
        time_ms=[run.time for run, _ in points],
        cost_ms=[sums.cost_ms for _, sums in points],
        reported=[float(f"{run.reported or 0.0:.7g}") for run, _ in points] if with_value else [],
        id=[format_id(run.id) for run, _ in points],
    )


def _marks(rows: Rows, points: Points, gains: Mapping[int, float | None]) -> list[ProgressMark]:
    steps = {run.n: gain for run, _ in points if (gain := gains.get(run.n)) and gain > 0}
    # Those with the largest steps are told in words; a chart has room for a few.
    numbers = sorted((run.n for run, _ in points if run.n in steps), key=lambda n: -steps[n])[:LABELS]
    labels = {n: _label(row) for n, row in zip(numbers, rows.at(numbers), strict=True)}
    return [
        ProgressMark(
            id=format_id(run.id),
            number=sums.number,
            time_ms=run.time,
            cost_ms=sums.cost_ms,
            reported=run.reported if run.reported is not None else math.nan,
            mark=mark_of(run),
            verified=run.value if run.verified else None,
            verified_margin=run.margin,
            leads=run.leads,
            led_by_claim=run.led_by_claim,
            step=steps.get(run.n),
            label=labels.get(run.n, ""),
        )
        for run, sums in points
    ]


def _label(row: RunRow) -> str:
    """A step in a few words."""
    if row.jump:
        return f"jump, {len(row.change)} changes"
    if not row.change:
        return one_line(row.headline, LABEL_CHARACTERS)
    more = len(row.change) - LABEL_CHANGES
    text = " ".join(change.text for change in row.change[:LABEL_CHANGES])
    return one_line(f"{text} +{more}" if more > 0 else text, LABEL_CHARACTERS)
