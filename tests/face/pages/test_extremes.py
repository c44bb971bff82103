"""Pictures and axes of any numbers: of logs of other versions, of programs that diverge, of tasks without a noise."""

from __future__ import annotations

import itertools
import math
import re

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from autoresearch.ask.runs.answers import ProgressDots, ProgressMark
from autoresearch.face.pages.chart import MOST_TICKS, Query, Scale, axis_over, chart_data, distances
from autoresearch.face.pages.chart_picture import chart_picture
from autoresearch.face.pages.pictures import curve
from autoresearch.text import change, signed, value
from autoresearch.words import RunMark
from tests.face.pages.test_chart_data import progress

NUMBERS = (0.0, 5e-324, -5e-324, 2.3e-308, 1.0, -1.0, 1e15, 1e100, 1e308, -1e308, 1.7976931348623157e308, -1.7e308)
ANY = st.sampled_from(NUMBERS) | st.floats(allow_nan=False, allow_infinity=False)
TIMES = (0, 1, 1_800_000_000_000, 7_258_118_400_000, 2**43, 2**53, 2**63)


@given(st.lists(ANY, max_size=12), ANY.map(abs))
def test_an_axis_has_all_values_on_it_and_few_round_ticks(values, beside):
    axis = axis_over(values, beside=beside)
    assert axis.low < axis.high
    assert all(0 <= axis.at(number) <= 100 for number in (*values, math.inf, -math.inf))
    ticks = axis.ticks()
    assert len(ticks) <= MOST_TICKS
    assert all(0 <= tick.at <= 100 and len(tick.text) < 24 for tick in ticks)
    assert sorted(ticks, key=lambda tick: tick.at) == ticks


@pytest.mark.parametrize(("low", "high"), itertools.product(NUMBERS, repeat=2))
def test_a_scale_of_any_ends_answers(low, high):
    scale = Scale(low, high)
    assert all(0 <= scale.at(number) <= 100 for number in NUMBERS)
    assert len(scale.ticks()) <= MOST_TICKS
    assert all(len(text) < 400 for text in (value(low), signed(low), change(low, high)))


@given(st.lists(st.tuples(st.integers(0, 2**53), ANY), max_size=20))
def test_a_curve_of_any_losses_is_a_line(losses):
    drawn = curve(sorted(losses))
    assert drawn is None or not re.search("nan|inf", drawn.points)


RUNS = st.tuples(ANY, st.sampled_from(TIMES[:6]), st.sampled_from([mark.value for mark in RunMark]))


@given(
    st.lists(RUNS, max_size=8),
    st.lists(ANY, max_size=12),
    st.none() | ANY,
    ANY.map(abs),
    st.sampled_from(["minimize", "maximize"]),
    st.sampled_from(["", "value", "log", "symlog", "distance", "full"]),
    st.sampled_from(["number", "time", "cost"]),
)
@settings(max_examples=60, deadline=None)
def test_a_chart_of_any_values_at_any_time_is_a_picture(runs, dots, floor, noise, direction, up, across):
    marks = [
        ProgressMark(
            id="", number=at, time_ms=time, cost_ms=time, reported=reported, mark=mark, verified=-reported, leads=True
        )
        for at, (reported, time, mark) in enumerate(runs)
    ]
    places = [TIMES[at % len(TIMES)] for at in range(len(dots))]
    cells = ProgressDots(number=places, time_ms=places, cost_ms=places, reported=dots)
    given_answer = progress(marks=marks, dots=cells, failures=cells)
    task = msgspec.structs.replace(given_answer.task, floor=floor, noise=noise, direction=direction)
    given_answer = msgspec.structs.replace(given_answer, task=task)
    query = Query(x=across, y=up)
    picture = chart_picture(given_answer, query)
    assert not re.search(r"""[MHVy"= ](nan|inf)""", picture)
    assert len(picture) < 40_000
    assert all(map(math.isfinite, distances(given_answer)))
    assert msgspec.json.encode(chart_data(given_answer, query))
