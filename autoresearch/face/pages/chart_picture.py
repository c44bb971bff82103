"""The progress chart as a picture, for browsers without scripts: as the canvas, without names and hover. Pure."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from autoresearch.ask.runs.answers import ProgressAnswer, ProgressDots, ProgressMark
from autoresearch.face.pages.chart import (
    COLUMNS,
    DECADES,
    MOST_TICKS,
    AxisTick,
    Query,
    Scale,
    chart_data,
    clipped,
    is_fair,
    least_distance,
    usual,
)
from autoresearch.face.pages.rendering import date, number, template
from autoresearch.text import MAXIMIZE, brief, largest_unit, sign_of

WIDTH, HEIGHT = 1200, 430
LEFT, RIGHT, TOP, BOTTOM = 64, 1190, 12, 396
ACROSS_TICKS = 6
# So many runs at most are cut at another share of them: one absurd value is not to press the others together.
FEW, FEW_SHOWN, MANY_SHOWN = 60, 0.85, 0.955
# Of the marks of a kind in a square of so many pixels one is drawn.
CROWDED = 10


class Shape(NamedTuple):
    """A mark: its kind, and where it is."""

    kind: str
    x: float
    y: float


def chart_picture(answer: ProgressAnswer, query: Query) -> str:
    """The picture as SVG, with the filters and axes of the page."""
    data = chart_data(answer, query)
    up = query.y or data.usual
    is_distance = up == "distance" and data.floor is not None
    floor, sign = data.floor or 0.0, sign_of(answer.task.direction)
    least = least_distance(data.noise)

    threshold = _threshold(answer) if up == "symlog" else 1.0

    def height(value: float) -> float:
        if up == "symlog":
            return math.asinh(value / threshold) / math.log(10)
        if up == "log":
            return math.log10(max(clipped(value), sys.float_info.min))
        return math.log10(max(clipped(sign * (value - floor)), least)) if is_distance else clipped(value)

    column = COLUMNS[query.x]
    places = [getattr(mark, column) for mark in data.marks]
    places += [*getattr(data.dots, column), *getattr(data.failures, column)]
    across = Scale(min(places, default=0), max(places, default=1))
    up = "distance" if is_distance else "value" if up == "distance" else up
    axis = _axis(answer, height, up)

    def at(place: float, value: float) -> tuple[float, float]:
        return _x(across, place), _y(axis.at(height(value)))

    def step_line(steps: Sequence[ProgressMark], value: Callable[[ProgressMark], float]) -> str:
        points = [at(getattr(mark, column), value(mark)) for mark in steps]
        begin, end = (f"M{points[0][0]} {points[0][1]}", f"H{RIGHT}") if points else ("", "")
        return begin + "".join(f"H{x}V{y}" for x, y in points) + end

    shapes = {}
    for mark in data.marks:
        x, y = at(getattr(mark, column), _value(mark))
        shapes[mark.mark, round(x / CROWDED), round(y / CROWDED)] = Shape(mark.mark, x, y)
    return template("chart.svg").render(
        width=WIDTH,
        height=HEIGHT,
        left=LEFT,
        right=RIGHT,
        bottom=BOTTOM,
        floor=None if is_distance or data.floor is None else at(across.low, data.floor)[1],
        up=[(_y(tick.at), tick.text) for tick in _up_ticks(axis, up, threshold)],
        across=[(_x_at(tick.at), tick.text) for tick in _ticks(across, query.x)],
        dots=_dots(data.dots, column, at),
        failures="".join(f"M{_x(across, place)} {BOTTOM}v-7" for place in getattr(data.failures, column)),
        confirmed=step_line([mark for mark in data.marks if mark.leads], _value),
        reported=step_line([mark for mark in data.marks if mark.led_by_claim], lambda mark: mark.reported),
        shapes=list(shapes.values()),
        metric=f"{data.metric}: distance to the floor" if is_distance else data.metric,
    )


def _value(mark: ProgressMark) -> float:
    return mark.reported if mark.verified is None else mark.verified


def _x_at(percent: float) -> float:
    return round(LEFT + percent / 100 * (RIGHT - LEFT), 1)


def _x(across: Scale, place: float) -> float:
    return _x_at(across.at(place))


def _y(percent: float) -> float:
    return round(BOTTOM - percent / 100 * (BOTTOM - TOP), 1)


def _axis(answer: ProgressAnswer, height: Callable[[float], float], up: str) -> Scale:
    """The values that are shown; what diverged, or is worse than most, stands on the edge."""
    marks = [mark for mark in answer.marks if up not in ("value", "distance") or is_fair(mark)]
    values = [*map(_value, marks), *answer.dots.reported]
    is_decades = up in ("log", "symlog")
    heights = usual(
        (height(value) for value in values if up != "log" or value > 0), *((DECADES, 1.0) if is_decades else ())
    )
    if not heights:
        return Scale(0.0, 1.0)
    share = 1.0 if up != "value" else FEW_SHOWN if len(heights) < FEW else MANY_SHOWN
    cut = int(share * (len(heights) - 1))
    low, high = heights[0], heights[cut]
    if answer.task.direction == MAXIMIZE and up == "value":
        low, high = heights[len(heights) - 1 - cut], heights[-1]
    room = 0.06 * (high - low) or (0.3 if is_decades else answer.task.noise or 1e-6 * abs(high) or 1.0)
    return Scale(low - room, high + room)


def _threshold(answer: ProgressAnswer) -> float:
    """Below it a symmetric logarithm goes on in equal steps: the power of ten of the smallest values."""
    sizes = [abs(value) for value in (*map(_value, answer.marks), *answer.dots.reported) if value]
    powers = usual(map(math.log10, sizes), DECADES, 1.0)
    return 10.0 ** max(math.floor(powers[len(powers) // 10]) if powers else 0, -300)


def _up_ticks(axis: Scale, up: str, threshold: float) -> Iterable[AxisTick]:
    if up in ("value", "full"):
        return axis.ticks()
    is_symmetric, low, high = up == "symlog", axis.low, axis.high
    if is_symmetric:
        low = math.log10(threshold)
        high = low + max(abs(axis.low), abs(axis.high))
    powers = range(max(math.floor(low), -307), min(math.ceil(high), 307) + 1)
    digits = (1, 2, 5) if len(powers) <= MOST_TICKS else (1,)
    values = [digit * 10.0**power for power in powers[:: len(powers) // MOST_TICKS + 1] for digit in digits]
    if is_symmetric:
        places = {value: math.asinh(value / threshold) / math.log(10) for size in values for value in (size, -size)}
        places[0.0] = 0.0
    else:
        places = {value: math.log10(value) for value in values}
    return [AxisTick(axis.at(at), brief(value)) for value, at in places.items() if axis.low <= at <= axis.high]


def _ticks(across: Scale, axis: str) -> list[AxisTick]:
    if axis == "number":
        ticks = ((tick, float(tick.text)) for tick in across.ticks(ACROSS_TICKS))
        return [AxisTick(tick.at, number(count)) for tick, count in ticks if count % 1 == 0]
    write = date if axis == "time" else largest_unit
    steps = [across.low + share / ACROSS_TICKS * (across.high - across.low) for share in range(1, ACROSS_TICKS)]
    return [AxisTick(across.at(step), write(int(step))) for step in steps]


def _dots(dots: ProgressDots, column: str, at: Callable[[float, float], tuple[float, float]]) -> str:
    """All dots as one line of points."""
    points = zip(getattr(dots, column), dots.reported, strict=True)
    return "".join(f"M{x} {y}h0" for x, y in (at(place, value) for place, value in points))
