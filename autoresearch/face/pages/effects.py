"""The effects page and the data of pictures of all runs, from the answers of the API. Pure.

Settings are ranked by how much they surely move the metric, whichever way: those that the intervals cannot tell apart
share a rank. Columns are packed as arrays that a script reads without parsing them.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Sequence
from typing import NamedTuple, cast

import msgspec

from autoresearch.ask.runs.answers import ColumnsAnswer, EffectsAnswer, EffectView
from autoresearch.face.columns.column import FIGURES, Column
from autoresearch.face.columns.runs import effect_columns
from autoresearch.face.pages.boards import plain
from autoresearch.face.pages.chart import AxisTick, Scale
from autoresearch.judging.places import BoardPlace, Interval, places
from autoresearch.record.encoding import COMMON, SHORT
from autoresearch.text import MAXIMIZE, one_line
from autoresearch.words import RunMark

# The axis ends at so many times the largest median: the interval of a setting with few pairs may have no end.
REACH = 3.0
# So many settings stand beside each other in the picture of all.
MOST_AXES = 10
# Of more runs the pictures have a sample.
SAMPLE = 30_000
TEXT_CHARACTERS = 40


class Importance(NamedTuple):
    """A setting: its place in the ranking, None from too few pairs, and its effect in percent of the axis.

    ``better``: raising it improves the metric; None where the interval has zero in it.
    """

    effect: EffectView
    place: BoardPlace | None
    low: float | None
    middle: float | None
    high: float | None
    better: bool | None


class Ranking(NamedTuple):
    """The settings, the most important first, and the axis of their effects, in the metric's unit."""

    rows: list[Importance]
    axis: Scale
    zero: float
    ticks: list[AxisTick]


def ranking(effects: Sequence[EffectView], *, maximize: bool = False) -> Ranking:
    """The settings by what is sure of their effect, then by their medians; those from too few pairs after them."""
    ordered = sorted(effects, key=lambda each: (each.low is None, -_size(each).low, -abs(each.median or 0), each.name))
    sure = [effect for effect in ordered if effect.low is not None]
    ranks = dict(zip((each.name for each in sure), places([*map(_size, sure)], maximize=True), strict=True))
    most = max((abs(effect.median or 0.0) for effect in effects), default=0.0)
    wide = max((_size(effect).high for effect in effects), default=0.0)
    reach = 1.05 * min(wide, REACH * most) or wide or 1.0
    axis = Scale(-reach, reach)
    sign = 1 if maximize else -1
    rows = [
        Importance(
            effect=effect,
            place=ranks.get(effect.name),
            low=None if effect.low is None else axis.at(effect.low),
            middle=None if effect.median is None else axis.at(effect.median),
            high=None if effect.high is None else axis.at(effect.high),
            better=sign * (effect.median or 0.0) > 0 if _size(effect).low > 0 else None,
        )
        for effect in ordered
    ]
    return Ranking(rows, axis, axis.at(0.0), axis.ticks())


def _size(effect: EffectView) -> Interval:
    """How much a setting moves the metric, whichever way: the ends of the interval without their signs."""
    if effect.low is None or effect.high is None:
        return Interval(0.0, abs(effect.median or 0.0))
    low, high = sorted((abs(effect.low), abs(effect.high)))
    return Interval(low if effect.low * effect.high > 0 else 0.0, high)


def effects_content(
    answer: EffectsAnswer, *, maximize: bool, chosen: str, second: str = "", others: Sequence[str] = ()
) -> dict[str, object]:
    """What the template takes. ``chosen`` is the setting that is shown against the value; empty: the first.

    ``second`` is the one that it is shown with; empty: the most important other one. ``others`` are settings whose
    values may be words.
    """
    ranked = ranking(answer.effects, maximize=maximize)
    names = [row.effect.name for row in ranked.rows]
    setting = chosen or (names[0] if names else "")
    lines = {row.effect.name: row for row in ranked.rows}
    rank: Column[EffectView] = Column("rank", lambda row: str(lines[row.name].place or "–"), FIGURES)
    return {
        "ranking": ranked,
        "lines": lines,
        "columns": (rank, *effect_columns(answer.metric)),
        "names": list(dict.fromkeys([*names, *plain(others), *([setting] if setting else [])])),
        "chosen": setting,
        "second": second or next((name for name in names if name != setting), ""),
        "axes": list(dict.fromkeys([*names[:MOST_AXES], setting])),
        "metric": answer.metric,
        "sample": SAMPLE,
        "dead_ends": answer.dead_ends,
        "notes": answer.notes,
    }


class SettingColumn(msgspec.Struct, frozen=True, kw_only=True):
    """A setting of packed columns. ``texts`` are what its numbers stand for where its values are words."""

    name: str
    texts: list[str] = []


class ColumnsHead(msgspec.Struct, frozen=True, kw_only=True):
    """What packed columns are of: so many runs, their marks by number, the settings in order, the task's figures."""

    runs: int
    marks: list[str]
    settings: list[SettingColumn]
    metric: str
    maximize: bool
    floor: float | None
    noise: float
    best: str
    decimals: int | None
    left_out: int
    sampled: bool


_ALIGNED = 4


def packed(answer: ColumnsAnswer) -> bytes:
    """Columns as arrays, one after the other in the order of the machine's bytes, after the length of a head in JSON.

    Values and settings are 32-bit floats, NaN where there is none; parents are 32-bit whole numbers. Then follow a byte
    for each mark and the eight characters of each short id.
    """
    task, marks = answer.task, [mark.value for mark in RunMark]
    columns = {name: _packed_column(column) for name, column in answer.settings.items()}
    head = msgspec.json.encode(
        ColumnsHead(
            runs=len(answer.id),
            marks=marks,
            settings=[
                SettingColumn(name=name, texts=[one_line(text, TEXT_CHARACTERS) for text in texts])
                for name, (_, texts) in columns.items()
            ],
            metric=one_line(task.metric, TEXT_CHARACTERS),
            maximize=task.direction == MAXIMIZE,
            floor=task.floor,
            noise=task.noise,
            best=task.best.id[len(COMMON) :][:SHORT] if task.best else "",
            decimals=task.best.decimals if task.best else None,
            left_out=answer.left_out,
            sampled=answer.sampled,
        )
    )
    head += b" " * (-len(head) % _ALIGNED)
    number = {mark: at for at, mark in enumerate(marks)}
    return b"".join(
        [
            array("I", [len(head)]).tobytes(),
            head,
            _floats(answer.value),
            array("i", answer.parent).tobytes(),
            *(numbers for numbers, _ in columns.values()),
            bytes(map(number.__getitem__, answer.mark)),
            "".join(run[len(COMMON) :][:SHORT] for run in answer.id).encode(),
        ]
    )


def _floats(column: Sequence[float | None]) -> bytes:
    return array("f", [math.nan if number is None else number for number in column]).tobytes()


def _packed_column(column: Sequence[float | str | None]) -> tuple[bytes, list[str]]:
    """A setting as numbers; and, where some of its values are words, what the numbers stand for, in order."""
    if str not in (kinds := set(map(type, column))):
        numbers = cast("Sequence[float | None]", column)
        return _floats(numbers) if type(None) in kinds else array("f", cast("Sequence[float]", numbers)).tobytes(), []
    texts = sorted({str(value) for value in column if value is not None})
    place = {text: float(at) for at, text in enumerate(texts)}
    return _floats([None if value is None else place[str(value)] for value in column]), texts
