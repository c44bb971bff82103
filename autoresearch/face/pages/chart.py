"""What the scripts of charts draw, and the state of the progress page as the query of its address. Pure.

Axes have round ticks; training curves are those of a run and its parent; the progress chart has short ids and cleaned
labels. The whole state is in the address; what has its default is left out. An address that somebody typed or cut is
read as far as it can be.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, Final, get_args
from urllib.parse import urlencode

import msgspec

from autoresearch.ask.requests import MAXIMUM_ROWS, WHERE_CHARACTERS, Axis, GroupsOf, ProgressOf, RunsOf
from autoresearch.ask.runs.answers import ProgressAnswer, ProgressDots, ProgressMark, RunRow
from autoresearch.face.columns.column import Columns, Face
from autoresearch.face.columns.runs import RUN_COLUMNS, USUAL_COLUMNS, chosen_columns
from autoresearch.log.standing.answers import RunFields
from autoresearch.record.encoding import parse_id, short_id
from autoresearch.text import MAXIMIZE, brief, one_line, sign_of, written
from autoresearch.words import BUDGET_UNITS, DISCREDITED, RunMark

MOST_TICKS = 6
# The difference of two such numbers is one, too.
LIMIT = sys.float_info.max / 4
# A picture of one value alone is so much wider than that value.
ALONE = 0.01


def clipped(number: float) -> float:
    """The nearest number that can be drawn: strangers choose numbers, and differences may be infinite.

    >>> clipped(1e308 - -1e308) == LIMIT
    True
    """
    return min(max(number, -LIMIT), LIMIT)


def least_distance(noise: float) -> float:
    """How far from the floor a value is at least, on a logarithm: a tenth of the noise."""
    return max((noise or 1e-3) / 10, sys.float_info.min)


# Where all of an axis is smaller, its numbers have an exponent.
_TINY = 1e-3


@dataclass(frozen=True, slots=True)
class AxisTick:
    """A round number on an axis: where it is, in percent, and how it is written."""

    at: float
    text: str


@dataclass(frozen=True, slots=True)
class Scale:
    """The values from ``low`` to ``high``, drawn from 0 % to 100 %."""

    low: float
    high: float

    def __post_init__(self) -> None:
        """Whatever is computed from its ends is a number."""
        for name in ("low", "high"):
            object.__setattr__(self, name, clipped(getattr(self, name)))

    def at(self, value: float) -> float:
        """Where a value is, in percent; what lies outside is on the edge."""
        span = self.high - self.low
        share = (clipped(value) - self.low) / span if span > 0 else 0.5
        return round(100 * min(max(share, 0.0), 1.0), 2)

    def ticks(self, most: int = MOST_TICKS) -> list[AxisTick]:
        """The round numbers on it, at most so many."""
        step = self._step(most)
        if not step:
            return []
        digits = max(0, -math.floor(math.log10(step)))
        first = math.ceil(self.low / step)
        values = [(first + place) * step for place in range(most + 1)]
        is_tiny = max(-self.low, self.high) < _TINY
        texts = [(value, brief(value) if is_tiny else written(value, digits)) for value in values if value <= self.high]
        return [AxisTick(self.at(value), text) for value, text in texts][:most]

    def _step(self, most: int) -> float:
        span = self.high - self.low
        if span / most < sys.float_info.min:
            return 0.0
        power = 10.0 ** math.floor(math.log10(span / most))
        steps = (factor * power for factor in (1, 2, 5, 10))
        step = next((step for step in steps if span / step < most), 0.0)
        # Below the resolution of such numbers all ticks would be the same one.
        return step if step and self.low + step > self.low else 0.0


# Diverged is what is so many times as far from the middle value as half of the values are; of powers of ten, so many.
FAR, DECADES = 1000.0, 8.0


def usual(values: Iterable[float], far: float = FAR, least: float | None = None) -> list[float]:
    """The finite values in order without those that diverged, which rule no axis. ``scale.js`` has the same rule.

    >>> usual([1.0, 2.4e54, 0.5, math.nan])
    [0.5, 1.0]
    """
    finite = sorted(clipped(value) for value in values if math.isfinite(value))
    if not finite:
        return []
    centre = _middle(finite)
    deviations = sorted(abs(value - centre) for value in finite)
    reach = max(_middle(deviations), abs(centre) if least is None else least)
    reach = reach or min(1.0, _middle([*filter(None, deviations)] or [1.0]))
    return [value for value in finite if abs(value - centre) / far <= reach]


def _middle(ordered: Sequence[float]) -> float:
    """Of two in the middle the smaller one: half of the values may have diverged."""
    return min(ordered[(len(ordered) - 1) // 2], ordered[len(ordered) // 2], key=abs)


def axis_over(values: Iterable[float], *, beside: float = 0.0) -> Scale:
    """An axis over these values, with so much room on both sides; at least a little. Not empty.

    What diverged stands on its edge.
    """
    finite = usual(values) or [0.0]
    scale = Scale(finite[0], finite[-1])
    room = max(beside, (scale.high - scale.low) * 0.04)
    if scale.low - room == scale.high + room:
        room = abs(scale.low) * ALONE or 1.0
    return Scale(scale.low - room, scale.high + room)


MOST_POINTS = 512
# So many curves can be told apart by pointing at them.
MOST_CURVES = 50


class Curve(msgspec.Struct, frozen=True, kw_only=True):
    """Losses, or an agent's mean rewards, in equal parts of the training. ``look`` is the variable of its colour.

    ``label`` names it beside others. ``id`` is the short one of its run, ``budget`` what the run could use and
    ``seconds`` how long it took.
    """

    look: str
    values: list[float]
    label: str = ""
    id: str = ""
    budget: float = 0.0
    seconds: float = 0.0


class CurveData(msgspec.Struct, frozen=True, kw_only=True):
    """Training curves in one picture; what is drawn last lies on top. ``unit`` is that of their budgets."""

    curves: list[Curve]
    rewards: bool = False
    unit: str = "budget"


def curve_of(run: RunFields, look: str, *, label: str, run_id: str = "") -> Curve:
    """The curve of a run."""
    return Curve(
        look=look,
        values=_thinned(run.curve),
        label=label,
        id=run_id,
        budget=run.budget,
        seconds=run.duration_ms / 1000,
    )


def curve_data(curves: Iterable[Curve], *, rewards: bool = False, unit: str = "") -> CurveData | None:
    """The curves that have something to draw; None where none has."""
    drawn = [curve for curve in curves if len(curve.values) > 1]
    return CurveData(curves=drawn, rewards=rewards, unit=BUDGET_UNITS.get(unit, unit) or "budget") if drawn else None


def _thinned(values: Sequence[float]) -> list[float]:
    """So many of the values, the last one among them."""
    step = -(-len(values) // MOST_POINTS)
    return list(values[::-step])[::-1] if values else []


AXES: Final[tuple[str, ...]] = get_args(Axis)
UPS = ("", "value", "log", "symlog", "distance", "full")
SIZES = ("", "small", "large")
SORTS = ("number", "time", "value", "change", "cost")
LARGEST = 2**53
LAST_PAGE = 2**31
# As long as the operations take.
LONGEST = {"task": 128, "by": 64, "has": 64, "q": 200, "hardware": 128, "where": WHERE_CHARACTERS, "group": 64}
CHOICES = {
    "x": AXES,
    "y": UPS,
    "chart": SIZES,
    "sort": tuple(f"{minus}{name}" for name in SORTS for minus in ("", "-")),
}
BOUNDS = {
    "page": (1, LAST_PAGE),
    "size": (1, MAXIMUM_ROWS),
    "until": (0, LARGEST),
    "since": (0, LARGEST),
    "to": (0, LARGEST),
}
# What narrows the runs down; the rest says how they are shown.
FILTERS = ("state", "by", "has", "q", "hardware", "where")


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """What the progress page shows.

    ``state`` are marks; empty: all. ``group`` is the setting that runs are grouped by. ``x`` and ``y`` are the axes,
    ``y`` empty the one that tells the values apart;
    ``since`` and ``to`` bound ``x`` in its unit (zoom).
    ``chart`` is empty, ``small`` or ``large``. ``cols`` are columns of the table; empty: the usual. ``until`` keeps new
    runs off the pages after the first.
    """

    task: str = ""
    state: tuple[str, ...] = ()
    by: str = ""
    has: str = ""
    q: str = ""
    hardware: str = ""
    where: str = ""
    group: str = ""
    sort: str = "-time"
    page: int = 1
    size: int = 50
    until: int = 0
    x: str = "number"
    y: str = ""
    since: int = 0
    to: int = 0
    chart: str = ""
    cols: tuple[str, ...] = ()

    @classmethod
    def read(cls, pairs: Iterable[tuple[str, str]]) -> Query:
        """The query of an address. What is unknown, out of range or too long has its default; the last of two counts.

        ``state`` and ``cols`` may be given as a form does, once for each, or with commas.
        """
        values: dict[str, Any] = {}
        several: dict[str, set[str]] = {"state": set(), "cols": set()}
        for name, text in pairs:
            if name in several:
                several[name] |= set(text.split(","))
            elif (value := _read(name, text)) is not None:
                values[name] = value
        # The run itself is always there.
        columns = tuple(column.name for column in RUN_COLUMNS if column.name in several["cols"] - {"run"})
        return cls(
            state=tuple(mark.value for mark in RunMark if mark.value in several["state"]),
            cols=() if {*columns, "run"} == {*USUAL_COLUMNS} else columns,
            **values,
        )

    def with_(self, **changes: object) -> Query:
        """The same but for some fields. Another filter or order begins on its first page, with the newest runs."""
        if changes.keys() & {*FILTERS, "sort", "size"}:
            changes = {"page": 1, "until": 0, **changes}
        return replace(self, **changes)  # type: ignore[arg-type]  # each is checked by who calls

    def cleared(self) -> Query:
        """Without filters."""
        return self.with_(state=(), by="", has="", q="", hardware="", where="")

    @property
    def is_filtered(self) -> bool:
        """Whether it narrows the runs down."""
        return any(getattr(self, name) for name in FILTERS)

    def search(self) -> str:
        """The short form, without what has its default: ``state=confirmed&sort=value``."""
        usual = Query()
        pairs = [(field.name, getattr(self, field.name)) for field in fields(self)]
        query = {name: value for name, value in pairs if value != getattr(usual, name)}
        query |= {name: ",".join(query[name]) for name in ("state", "cols") if name in query}
        return urlencode(query, safe=",")

    def address(self, **changes: object) -> str:
        """The address of the progress page in this state, or with some changes."""
        search = self.with_(**changes).search()
        return f"/?{search}" if search else "/"

    def columns(self) -> Columns[RunRow]:
        """The columns of the table."""
        return chosen_columns(self.cols, Face.PAGE)

    def file(self, ending: str) -> str:
        """The address of the runs that it finds, as a file."""
        search = replace(self, page=1, size=Query().size, until=0).search()
        return f"/runs.{ending}?{search}" if search else f"/runs.{ending}"

    def curves(self) -> RunsOf:
        """The runs of the table whose curves are drawn."""
        return msgspec.structs.replace(self.runs(), size=min(self.size, MOST_CURVES))

    def picture(self) -> str:
        """The address of the chart as a picture."""
        search = self.search()
        return f"/chart.svg?{search}" if search else "/chart.svg"

    def runs(self) -> RunsOf:
        """The runs of the table."""
        return RunsOf(
            **self._filter(), **self._axis(), sort=self.sort, page=self.page, size=self.size, until=self.until
        )

    def groups(self) -> GroupsOf:
        """The same in groups."""
        return GroupsOf(**self._filter(), **self._axis(), setting=[self.group])

    def in_group(self, where: str) -> Query:
        """The runs of a group, which a condition finds."""
        return self.with_(where=",".join(filter(None, (self.where, where))), group="")

    def newest(self) -> RunsOf:
        """The last run of the task alone: its ``cost_ms`` is the processor time of all."""
        return RunsOf(task=self.task or None, sort="-number", size=1)

    def all_progress(self) -> ProgressOf:
        """All runs of the chart, or of the part that is zoomed to."""
        return ProgressOf(task=self.task or None, **self._axis())

    def found_progress(self) -> ProgressOf:
        """Those of them that the filter finds."""
        return ProgressOf(**self._filter(), **self._axis())

    def _axis(self) -> dict[str, Any]:
        return {"x": self.x, "since": self.since, "to": self.to}

    def _filter(self) -> dict[str, Any]:
        words = {name: getattr(self, name) for name in ("by", "has", "q", "hardware", "where")}
        return {"task": self.task or None, "state": ",".join(self.state), **words}


def _read(name: str, text: str) -> str | int | None:
    """A field's value, or None where the text says none."""
    if name in LONGEST:
        return text[: LONGEST[name]].strip()
    if name in CHOICES:
        return text if text in CHOICES[name] else None
    if name in BOUNDS and text.isascii() and text.isdigit() and len(text) < 20:
        low, high = BOUNDS[name]
        return int(text) if low <= int(text) <= high else None
    return None


LABEL_CHARACTERS = 40
DIGITS = 10
COLUMNS = {"number": "number", "time": "time_ms", "cost": "cost_ms"}


class ChartData(msgspec.Struct, frozen=True, kw_only=True):
    """The progress of a task for the chart.

    ``usual`` is the axis up that tells the values apart: ``value``, or ``distance`` to the floor on a logarithm.
    Where dots are ``binned`` they have a column for the axis ``x`` alone. ``floor`` is null where the task has none,
    ``noise`` is the standard deviation of the value over seeds; so many ``decimals`` tell values apart. ``x``,
    ``since`` and ``to`` are what was asked for: where dots are ``binned`` a zoom needs another answer.
    """

    metric: str
    usual: str
    maximize: bool
    floor: float | None
    noise: float
    baseline: float | None
    decimals: int | None
    marks: list[ProgressMark]
    dots: ProgressDots
    failures: ProgressDots
    binned: bool
    matching: int
    total: int
    x: str
    since: int
    to: int


def chart_data(answer: ProgressAnswer, query: Query) -> ChartData:
    """The chart of an answer to ``query.progress()``. Labels are strangers' words: a canvas shows them as they are."""
    task = answer.task
    return ChartData(
        metric=one_line(task.metric, LABEL_CHARACTERS),
        usual=_usual(answer),
        maximize=task.direction == MAXIMIZE,
        floor=task.floor,
        noise=task.noise,
        baseline=task.baseline,
        decimals=task.best.decimals if task.best else None,
        marks=[_mark(mark) for mark in answer.marks],
        dots=_dots(answer.dots, query.x if answer.binned else ""),
        failures=_dots(answer.failures, query.x if answer.binned else ""),
        binned=answer.binned,
        matching=answer.matching,
        total=answer.total,
        x=query.x,
        since=query.since,
        to=query.to,
    )


# So many times more of the axis has the middle half of the values on a logarithm, where it is usual.
TELLS_APART = 1.5
FEW = 8


def _usual(answer: ProgressAnswer) -> str:
    """On which axis the middle half of the values takes more room. That of values is cut, and begins at the floor."""
    far = sorted(distances(answer))
    if answer.task.floor is None or len(far) < FEW:
        return "value"
    best, low, high, worst = (far[int(share * (len(far) - 1))] for share in (0, 0.25, 0.75, 0.85))
    if not 0 < best < worst:
        return "value"
    is_floor_shown = best < 1.5 * (worst - best)
    linear = (high - low) / (worst if is_floor_shown else worst - best)
    return "distance" if math.log(high / low) / math.log(far[-1] / best) > TELLS_APART * linear else "value"


def distances(answer: ProgressAnswer) -> list[float]:
    """How far from the floor the values are that count, at least a tenth of the noise."""
    task, floor = answer.task, answer.task.floor or 0.0
    values = [mark.reported if mark.verified is None else mark.verified for mark in answer.marks if is_fair(mark)]
    least = least_distance(task.noise)
    return [
        max(clipped(sign_of(task.direction) * (value - floor)), least) for value in (*values, *answer.dots.reported)
    ]


def is_fair(mark: ProgressMark) -> bool:
    """Whether its value counts."""
    return mark.mark not in DISCREDITED


def _mark(mark: ProgressMark) -> ProgressMark:
    """A mark as a canvas needs it."""
    return msgspec.structs.replace(
        mark,
        id=_short(mark.id),
        reported=_rounded(mark.reported),
        verified=_rounded(mark.verified) if mark.verified is not None else None,
        verified_margin=_rounded(mark.verified_margin) if mark.verified_margin else None,
        step=None,
        label=one_line(mark.label, LABEL_CHARACTERS),
    )


def _rounded(number: float) -> float:
    return float(f"{number:.{DIGITS}g}")


def _dots(dots: ProgressDots, axis: str) -> ProgressDots:
    """Cells are counted for one axis; their places on the others say nothing."""
    if axis:
        unused: dict[str, list[int]] = {column: [] for name, column in COLUMNS.items() if name != axis}
        return msgspec.structs.replace(dots, id=[], **unused)
    return msgspec.structs.replace(dots, id=[_short(run) for run in dots.id])


def _short(run: str) -> str:
    return short_id(parse_id(run)) if run else ""
