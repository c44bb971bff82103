"""What the chart's script gets, and what stands on top of the page."""

import json

import msgspec
import pytest

from autoresearch.ask.node import TaskStatus
from autoresearch.ask.runs.answers import BestAnswer, ProgressAnswer, ProgressDots, ProgressMark
from autoresearch.face.pages.boards import standing
from autoresearch.face.pages.chart import Query, chart_data
from autoresearch.face.pages.rendering import asset, asset_names
from autoresearch.log.standing.answers import ProgramView
from autoresearch.record.encoding import format_id
from tests.nasty import NASTY, harms

RUN, OTHER = format_id(bytes(32)), format_id(b"\x01" * 32)
ASSETS_MOST = 240_000
CROWDED = [0.1, *(0.28 + 0.006 * step for step in range(20)), *([2.3] * 6)]


def task(**fields):
    return TaskStatus(**{"name": "t", "digest": "00", "metric": "loss", "direction": "minimize", "noise": 0.1} | fields)


def progress(**fields):
    mark = ProgressMark(
        id=RUN, number=1, time_ms=5, cost_ms=0, verified=1.0, reported=1.1, mark="leading", label=NASTY * 9
    )
    dots = {"number": [2, 3], "time_ms": [6, 7], "cost_ms": [8, 9], "reported": [1.5, 1.6]}
    none = ProgressDots(number=[], time_ms=[], cost_ms=[])
    answer_fields = {"task": task(), "marks": [mark], "dots": ProgressDots(**dots, id=[RUN, OTHER]), "failures": none}
    return ProgressAnswer(**answer_fields | {"binned": False, "matching": 3, "total": 3} | fields)


def program(run, reported, state, **fields):
    text = {"source_digest": "", "title": "", "author": "", "parent": None}
    return ProgramView(position=0, id=run, reported=reported, score=reported, state=state, time_ms=0, **text, **fields)


@pytest.mark.parametrize(
    ("values", "floor", "usual"),
    [
        ([2.0, 2.1, 2.2, 2.3, 2.4, 2.5, 2.6, 2.7, 2.8, 2.9], 0.0, "value"),
        (CROWDED, 0.0, "distance"),
        (CROWDED, None, "value"),
        ([0.1, 2.3], 0.0, "value"),
        ([1.0] * 20, 0.0, "value"),
    ],
)
def test_the_usual_axis_tells_the_values_apart(values, floor, usual):
    count = list(range(len(values)))
    dots = ProgressDots(number=count, time_ms=count, cost_ms=count, reported=values, id=[RUN] * len(values))
    answer = progress(task=task(floor=floor, noise=0.001), dots=dots, marks=[])
    assert chart_data(answer, Query()).usual == usual


def test_ids_are_short_and_labels_are_text():
    data = chart_data(progress(), Query())
    assert data.dots.id == [RUN[7:15], OTHER[7:15]]
    assert data.marks[0].id == RUN[7:15]
    assert len(data.marks[0].label) <= 40
    assert not harms(data.marks[0].label)


def test_of_a_mark_what_has_its_default_is_left_out():
    encoded_mark = json.loads(msgspec.json.encode(chart_data(progress(), Query())))["marks"][0]
    assert encoded_mark.keys() == {"id", "number", "time_ms", "cost_ms", "verified", "reported", "mark", "label"}


@pytest.mark.parametrize(("x", "column"), [("number", [2, 3]), ("time", [6, 7]), ("cost", [8, 9])])
def test_cells_have_the_axis_that_they_were_counted_for(x, column):
    cells = ProgressDots(number=[2, 3], time_ms=[6, 7], cost_ms=[8, 9], reported=[1.5, 1.6], count=[4, 1])
    dots = chart_data(progress(dots=cells, binned=True), Query(x=x)).dots
    assert column in (dots.number, dots.time_ms, dots.cost_ms)
    assert sorted(map(len, (dots.number, dots.time_ms, dots.cost_ms))) == [0, 0, 2]
    assert dots.count == [4, 1]


@pytest.mark.parametrize(("direction", "better", "worse"), [("minimize", 0.5, 1.5), ("maximize", 1.5, 0.5)])
def test_a_reported_program_is_told_where_it_is_better_than_the_best_confirmed(direction, better, worse):
    best = program(RUN, 2.0, "confirmed", verified=1.0, verified_margin=0.1)
    for value, ahead in ((better, better - 1.0), (worse, 0.0)):
        summary = standing(
            BestAnswer(task=task(direction=direction, best=best), reported=program(OTHER, value, "reported"))
        )
        assert (summary.best.id, summary.number, summary.is_confirmed) == (RUN, (1.0, 0.1, "verified"), True)
        assert summary.ahead == ahead
        assert bool(summary.rival) == bool(ahead)
        assert not summary.is_noise


def test_a_lead_below_two_deviations_is_noise():
    answer = BestAnswer(task=task(best=program(RUN, 1.0, "confirmed")), reported=program(OTHER, 0.85, "reported"))
    assert standing(answer).is_noise
    assert standing(BestAnswer(task=task())) is None


def test_all_that_a_browser_loads_is_small():
    assert sum(len(asset(name).content) for name in asset_names()) < ASSETS_MOST
