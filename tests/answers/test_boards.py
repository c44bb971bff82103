"""Best, leaderboard and how far a task has come."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from autoresearch.answers import best_answer, find_task, resolve_reference, task_status, top_answer
from autoresearch.answers.boards import closed
from autoresearch.records import format_id
from tests.views.village import ANN, BEN, CEM

numbers = st.floats(-1e6, 1e6)


def test_the_status_says_how_far_the_task_has_come(story):
    status = task_status(story.notebook.log, find_task(story.notebook.log))
    assert (status.name, status.digest, status.metric) == ("grammar", story.task.hex(), "val_bpb")
    assert (status.baseline, status.floor, status.best.mean) == (1.25, 0.75, 1.0)
    assert (status.runs, status.failed) == (4, 1)
    assert status.closed == pytest.approx(0.5)


def test_the_baseline_is_the_tasks_own_source_and_no_other_one_without_parent(notebook):
    task = notebook.task()
    notebook.run(task, 0.9, source="x = 1\n")
    assert task_status(notebook.log, find_task(notebook.log)).baseline is None
    notebook.run(task, 1.25)
    notebook.run(task, 1.35, replicate=1)
    assert task_status(notebook.log, find_task(notebook.log)).baseline == pytest.approx(1.30)


def test_for_a_metric_to_maximize_the_way_goes_up(notebook):
    task = notebook.task(direction="maximize", floor=1.0)
    baseline = notebook.run(task, 0.5)
    notebook.run(task, 0.75, source="x = 1\n", parent=baseline)
    notebook.run(task, 0.25, source="x = 2\n", parent=baseline)
    status = task_status(notebook.log, find_task(notebook.log))
    assert status.best.mean == 0.75
    assert status.closed == pytest.approx(0.5)


def test_without_a_floor_there_is_no_way_to_close(notebook):
    notebook.run(notebook.task(floor=None), 1.0)
    assert task_status(notebook.log, find_task(notebook.log)).closed is None


@given(numbers, numbers, numbers)
def test_the_share_is_between_nothing_and_all(baseline, best, floor):
    share = closed(baseline, best, floor)
    assert share is None or 0 <= share <= 1


@given(numbers, numbers)
def test_the_baseline_is_at_nothing_and_the_floor_at_all(baseline, floor):
    if baseline == floor:
        assert closed(baseline, floor, floor) is None
    else:
        assert closed(baseline, baseline, floor) == 0
        assert closed(baseline, floor, floor) == 1


def test_what_is_only_reported_is_never_shown_as_confirmed(story):
    answer = best_answer(story.notebook.log, find_task(story.notebook.log))
    assert answer.confirmed is None
    assert answer.reported.id == format_id(story.faster)
    assert answer.run.id == format_id(story.faster)
    assert "nothing is confirmed with fewer than 4 attested participants (there are none)" in answer.note
    assert "." not in answer.note, "one sentence, which ends with what to type"


def test_a_confirmed_subject_ranks_before_a_better_reported_one(village):
    deeper, faster = village.run(1.5, "deeper"), village.run(1.0, "faster")
    checked = village.run(1.2, "checked")
    village.evaluate(checked, 1.2, ANN, BEN, CEM)
    village.confirm(deeper, 2.0, 1.4)
    task = find_task(village.log)
    answer = best_answer(village.log, task)
    assert answer.confirmed.id == answer.run.id == answer.task.best.id == format_id(deeper.id)
    assert resolve_reference(village.log, "@") == deeper.id
    assert answer.provisional.id == format_id(checked.id)
    assert answer.reported.id == format_id(faster.id)
    assert answer.note == ""
    assert answer.confirmed.value == pytest.approx(1.405)
    assert (answer.confirmed.others, answer.confirmed.voices) == (4, 3)


def test_a_task_without_a_value_says_so(notebook):
    task = notebook.task()
    notebook.run(task, status="diverged")
    answer = best_answer(notebook.log, find_task(notebook.log))
    assert (answer.confirmed, answer.reported, answer.run) == (None, None, None)
    assert answer.note == "No run of grammar has a value yet."
    assert answer.task.failed == 1


def test_the_leaderboard_is_in_order_and_as_long_as_asked(story):
    task = find_task(story.notebook.log)
    subjects = top_answer(story.notebook.log, task).subjects
    assert [row.mean for row in subjects] == [1.0, 1.05, 1.25]
    assert [row.position for row in subjects] == [1, 2, 3]
    assert top_answer(story.notebook.log, task, limit=1).subjects == subjects[:1]
