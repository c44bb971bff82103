"""What pictures and tables of the pages are computed from: axes, places, forests, waterfalls, diffs, logs, curves."""

from __future__ import annotations

import math
from itertools import pairwise

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from autoresearch.ask.records import Measured, VerificationStateView
from autoresearch.ask.runs.answers import MarkCounts, PathStep, RunRow
from autoresearch.ask.runs.diffs import unified_diff
from autoresearch.face.pages.boards import confirmed_board
from autoresearch.face.pages.chart import Scale, axis_over, curve_data, curve_of, usual
from autoresearch.face.pages.pictures import forest, refuting, waterfall
from autoresearch.face.pages.run import changed_program, log_tail
from autoresearch.judging.places import Interval, places
from autoresearch.log.standing.answers import BlobView, ParticipantView, ProgramView, RunFields, RunStanding, RunView
from tests.nasty import NASTY, harms

NUMBER = st.floats(allow_nan=False, allow_infinity=False)
SMALL = st.floats(-1e6, 1e6)
INTERVAL = st.tuples(SMALL, st.floats(0, 10)).map(lambda pair: Interval(pair[0] - pair[1], pair[0] + pair[1]))
INTERVALS = st.lists(INTERVAL, max_size=12)
MEASUREMENT = st.tuples(st.sampled_from(["evaluate", "replicate", "unknown"]), NUMBER, st.lists(NUMBER, max_size=20))
TEXT = st.text(st.sampled_from("abc+-@ \n\\"), max_size=40)


@given(st.lists(NUMBER, max_size=20), st.floats(0, 1e3))
def test_every_value_has_a_place_on_its_axis(values, beside):
    axis = axis_over(values, beside=beside)
    assert axis.low < axis.high
    places_of = [axis.at(value) for value in sorted(values)]
    assert all(0 <= at <= 100 for at in places_of)
    assert places_of == sorted(places_of)
    ticks = axis.ticks()
    assert len(ticks) <= 6
    assert [tick.at for tick in ticks] == sorted(tick.at for tick in ticks)


@pytest.mark.parametrize(
    ("values", "inside"),
    [
        ([], []),
        ([math.nan, math.inf], []),
        ([7.0], [7.0]),
        ([1e300], [1e300]),
        ([0.5, 0.5, 0.5], [0.5, 0.5, 0.5]),
        ([1e-9, 1.0, 1e9, 1e300], [1e-9, 1.0]),
        ([1.0, 2.4e54], [1.0]),
        ([-1e300, 0.1, 0.2, 0.3], [0.1, 0.2, 0.3]),
        ([0.0, 0.0, 0.0, 0.4], [0.0, 0.0, 0.0, 0.4]),
        ([0.0, 0.0, 0.0, 1e300], [0.0, 0.0, 0.0]),
        ([2.0, 0.03, 0.02, 0.011, 55.0], [0.011, 0.02, 0.03, 2.0]),
        ([1e9 + 1, 1e9 + 2, 1e9 + 9], [1e9 + 1, 1e9 + 2, 1e9 + 9]),
    ],
)
def test_what_diverged_rules_no_axis(values, inside):
    assert usual(values) == inside
    assert all(0 <= axis_over(values).at(value) <= 100 for value in values if math.isfinite(value))
    assert usual(map(math.log10, [1e-9, 1.0, 1e9, 1e300]), 8.0, 1.0) == [-9, 0, 9]


def test_ticks_are_round_numbers():
    assert [tick.text for tick in Scale(0.806, 0.861).ticks()] == ["0.81", "0.82", "0.83", "0.84", "0.85", "0.86"]
    assert [tick.text for tick in Scale(-3, 12).ticks()] == ["0", "5", "10"]
    assert Scale(1.0, 1.0).ticks() == []


@given(INTERVALS, st.booleans())
def test_a_place_is_the_range_that_the_intervals_allow(intervals, maximize):
    ranges = places(intervals, maximize=maximize)
    for mine, place in zip(intervals, ranges, strict=True):
        worse, better = (mine.high, mine.low), (mine.low, mine.high)
        surely_better = sum(o.low > worse[0] if maximize else o.high < better[0] for o in intervals)
        surely_worse = sum(o.high < worse[1] if maximize else o.low > better[1] for o in intervals)
        assert (place.first, place.last) == (surely_better + 1, len(intervals) - surely_worse)
        assert 1 <= place.first <= place.last <= len(intervals)
        assert str(place) == (f"{place.first}–{place.last}" if place.last > place.first else f"{place.first}")


@given(INTERVALS)
def test_each_place_can_be_taken(intervals):
    """Programs in the order of their middles lie within their places."""
    ranked = sorted(zip(intervals, places(intervals), strict=True), key=lambda pair: pair[0].low + pair[0].high)
    if all(a[0].low + a[0].high < b[0].low + b[0].high for a, b in pairwise(ranked)):
        assert all(place.first <= rank <= place.last for rank, (_, place) in enumerate(ranked, start=1))


def test_places_of_a_board():
    intervals = [Interval(1.0, 1.2), Interval(1.1, 1.3), Interval(1.25, 1.4), Interval(2.0, 2.1)]
    assert places(intervals) == [(1, 2), (1, 3), (2, 3), (4, 4)]
    programs = [
        program(f"p{at}", verified=(low + high) / 2, verified_margin=(high - low) / 2)
        for at, (low, high) in enumerate(intervals)
    ]
    board = confirmed_board(programs, {})
    assert all(row.low <= row.middle <= row.high and not row.beyond for row in board.rows)
    assert confirmed_board([], {}).rows == []


def program(name, **fields):
    defaults = {"position": 1, "source_digest": "", "reported": 1.0, "score": 1.0, "state": "confirmed"}
    return ProgramView(id=name, title=name, author="", parent=None, time_ms=0, **defaults, **fields)


def measured(name, value=None, *, stage="evaluate", values=(), parents=(), counts=True, verdict="pass"):
    who = ParticipantView(key=name, short=name)
    return Measured(
        id=name,
        author="",
        time_ms=0,
        stage=stage,
        round=0,
        verdict=verdict,
        value=value,
        values=list(values),
        parent_values=list(parents),
        metrics={},
        counts=counts,
        device="",
        participant=who,
        allowed=0.01 if stage == "evaluate" else None,
    )


def a_run(value=1.0, **numbers):
    source, standing = BlobView(sha256="", size=0), RunStanding(state="confirmed", **numbers)
    run = RunFields(status="ok", value=value, task="", source=source, source_digest="", seed=0, budget=1.0)
    return RunView(id="r", author="", seq=0, time_ms=0, run=run, standing=standing)


def verification(*measurements):
    return VerificationStateView(state="confirmed", reason="", tolerance=0.01, measured=list(measurements))


def test_a_forest_has_a_row_for_each_measurement_and_one_axis():
    pairs = measured("b", stage="replicate", values=[0.9, 0.92], parents=[1.1])
    plot = forest(a_run(verified=0.91, verified_margin=0.05), verification(measured("a", 1.0), pairs))
    assert [(group.stage, len(group.rows)) for group in plot.groups] == [("", 1), ("evaluate", 1), ("replicate", 1)]
    assert [point.look for point in plot.groups[2].rows[0].points] == ["run", "run", "parent"]
    assert plot.low.at < plot.middle.at < plot.high.at
    assert forest(a_run(), verification()) is None


def test_an_evaluation_refutes_by_its_number_and_not_by_its_verdict():
    liar, honest = measured("a", 2.0, verdict="pass"), measured("b", 1.005, verdict="fail")
    state = verification(liar, honest)
    assert refuting(a_run().run, state) == {"a"}
    assert [row.points[0].look for row in forest(a_run(), state).groups[1].rows] == ["other", "run"]


@given(st.lists(MEASUREMENT, max_size=40), NUMBER)
def test_a_forest_of_any_numbers_stays_within_its_frame(given_, reported):
    many = [measured(f"m{at}", value, stage=stage, values=more) for at, (stage, value, more) in enumerate(given_)]
    plot = forest(a_run(reported), verification(*many))
    points = [point for group in (plot.groups if plot else []) for row in group.rows for point in row.points]
    assert all(0 <= point.at <= 100 for point in points)


def path_of(values, *, noise=0.0, maximize=False):
    """Runs one upon the other, with these reported values."""
    steps, before = [], None
    for at, value in enumerate(values):
        gain = None if before is None or value is None else (value - before) * (1 if maximize else -1)
        better = None if gain is None or abs(gain) < noise else gain > 0
        row = RunRow(
            id="abcdefghijklmnopqrstuvwxyzABCDEF"[at],
            number=1,
            time_ms=0,
            cost_ms=0,
            cpu_ms=0,
            mark="confirmed",
            state="confirmed",
            status="ok",
            reported=value,
            gain_reported=gain,
            better=better,
        )
        steps.append(PathStep(row=row, branches=MarkCounts(total=0, counts={})))
        before = value
    return steps


def test_small_steps_are_folded_and_the_largest_named():
    path = path_of([2.0, 1.5, 1.49, 1.48, 1.47, 1.2, 1.19], noise=0.02)
    way = waterfall(path, noise=0.02, floor=1.0)
    assert [line.of.row.id if hasattr(line, "of") else len(line.steps) for line in way.lines] == ["a", "b", 3, "f", "g"]
    assert [fall.of.row.id for fall in way.largest] == ["b", "f"]
    assert way.share == pytest.approx(0.77 / 0.81)
    assert (way.first, way.last, way.steps) == (2.0, 1.19, 6)
    assert way.lines[0].onward == "b"
    assert way.lines[2].better, "three small steps are more than the noise together"
    paired = msgspec.structs.replace(path[1].row, verified=1.0, gain=0.4)
    gap = waterfall([path[0], msgspec.structs.replace(path[1], row=paired)])
    assert (gap.lines[1].value, gap.lines[1].before, gap.lines[1].gain) == (1.0, 1.4, 0.4)
    up = waterfall(path_of([1.0, 2.0, 1.9], maximize=True), maximize=True)
    assert [line.better for line in up.lines] == [None, True, False]


@given(st.lists(st.none() | SMALL, max_size=30), st.floats(0, 100), st.booleans())
def test_no_step_of_a_waterfall_is_lost(values, noise, maximize):
    path = path_of(values, noise=noise, maximize=maximize)
    way = waterfall(path, noise=noise, maximize=maximize)
    falls = [fall for line in way.lines for fall in (line.steps if hasattr(line, "steps") else [line])]
    assert [fall.of.row.id for fall in falls] == [step.row.id for step in path]
    assert len(way.largest) <= 3
    assert all(math.isfinite(way.axis.at(value)) for value in values if value is not None)


@given(TEXT, TEXT)
def test_the_lines_of_a_diff_are_those_of_both_texts(old, new):
    program_diff = changed_program(unified_diff(old, new, old_name="a/train.py", new_name="b/train.py"))
    lines = [line for file in program_diff.files for line in file.lines if line.kind != "gap"]
    before = [line.before + line.changed + line.after for line in lines if line.kind in ("same", "del")]
    after = [line.before + line.changed + line.after for line in lines if line.kind in ("same", "add")]
    assert all(text in old.split("\n") for text in before)
    assert all(text in new.split("\n") for text in after)
    assert program_diff.added == sum(line.kind == "add" for line in lines)
    assert program_diff.removed == sum(line.kind == "del" for line in lines)
    for line in lines:
        if line.kind != "add" and line.old:
            assert old.split("\n")[line.old - 1] == line.before + line.changed + line.after
        if line.kind != "del" and line.new:
            assert new.split("\n")[line.new - 1] == line.before + line.changed + line.after


def test_a_diff_of_several_files_marks_what_differs_in_a_line():
    diff = "".join(
        unified_diff(old, new, old_name=f"a/{name}", new_name=f"b/{name}")
        for name, old, new in (("train.py", "LR = 0.1\nx\n", "LR = 0.25\nx\n"), ("model.py", "", "WIDTH = 2\n"))
    )
    program_diff = changed_program(diff)
    assert [(file.name, file.added, file.removed) for file in program_diff.files] == [
        ("train.py", 1, 1),
        ("model.py", 1, 0),
    ]
    assert [line.changed for line in program_diff.files[0].lines] == ["1", "25", ""]
    assert program_diff.left_out == 0


def test_a_line_that_looks_like_the_head_of_a_file_is_a_line():
    program_diff = changed_program(unified_diff("-- a\n-- b\n", "++ b\n", old_name="a/t.py", new_name="b/t.py"))
    assert [file.name for file in program_diff.files] == ["t.py"]
    assert (program_diff.added, program_diff.removed) == (1, 2)


def test_a_hostile_program_is_cleaned_and_clipped():
    diff = unified_diff(
        "", NASTY.replace("\n", "") + "x" * 1_000_000 + "\n" + "y\n" * 5_000, old_name="a/t", new_name="b/t"
    )
    program_diff = changed_program(diff)
    texts = [line.before for line in program_diff.files[0].lines]
    assert not harms("".join(texts))
    assert max(map(len, texts)) <= 401
    assert len(texts) + program_diff.left_out == 5_001
    assert changed_program("").files == []


@given(st.lists(st.text(st.sampled_from("ab\r\x1b"), max_size=5), max_size=400))
def test_the_tail_of_a_log(lines):
    text = "\n".join(lines)
    tail = log_tail(text)
    assert len(tail.lines) <= 200
    assert (
        tail.left_out + len(tail.lines)
        == tail.total
        == (text.removesuffix("\n").count("\n") + 1 if text.removesuffix("\n") else 0)
    )
    assert not harms("".join(tail.lines))


def test_a_progress_bar_in_a_log_is_its_last_state():
    assert log_tail("1 %\r2 %\r3 %\ndone\r\n").lines == ["3 %", "done"]
    assert log_tail("").lines == []
    assert log_tail("a\n[... 1234 bytes left out ...]\nb\n").bytes_left_out == 1234
    assert log_tail("whole\n").bytes_left_out == 0
    assert len(log_tail("z" * 1_000_000).lines[0]) <= 401


def test_a_curve_ends_with_its_last_point():
    long = [float(at) for at in range(2_001)]
    data = curve_data([drawn_of([1.0], "grey"), drawn_of(long, "blue")], unit="work")
    [drawn] = data.curves
    assert (drawn.look, drawn.values[-1]) == ("blue", 2_000.0)
    assert len(drawn.values) <= 512
    assert (drawn.budget, drawn.seconds, data.unit) == (1.0, 2.5, "work units")
    assert curve_data([drawn_of([1.0], "blue")]) is None
    assert (data.rewards, curve_data([drawn_of(long, "blue")], rewards=True).rewards) == (False, True)


def drawn_of(values, look):
    run = msgspec.structs.replace(a_run().run, curve=values, duration_ms=2_500)
    return curve_of(run, look, label="")
