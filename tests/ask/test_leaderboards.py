"""Best, leaderboard and how far a task has come."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from autoresearch.ask.lookup import find_task
from autoresearch.ask.runs.boards import best_answer, closed, resolve_reference, task_status, top_answer
from autoresearch.ask.show import show_answer
from autoresearch.record.encoding import format_id
from autoresearch.words import Mark
from tests.log.standing.test_evidence import fork
from tests.log.standing.village import ANN, BEN, CEM, DOT, EVE
from tests.record.making import NETWORK, pairs, run_body, sealed

numbers = st.floats(-1e6, 1e6)


def test_the_status_says_how_far_the_task_has_come(story):
    status = task_status(story.notebook.log, find_task(story.notebook.log))
    assert (status.name, status.digest, status.metric) == ("grammar", story.task.hex(), "val_bpb")
    assert (status.baseline, status.floor, status.best.reported) == (1.25, 0.75, 1.0)
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
    assert status.best.reported == 0.75
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
    assert "4 more participants and runs can be confirmed" in answer.note
    assert "." not in answer.note, "one sentence, which ends with what to type"


def test_a_confirmed_program_ranks_before_a_better_reported_one(village):
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
    assert answer.confirmed.verified == pytest.approx(1.405)
    assert (answer.confirmed.verified_runs, answer.confirmed.verifiers) == (4, 3)


def test_a_task_without_a_value_says_so(notebook):
    task = notebook.task()
    notebook.run(task, status="diverged")
    answer = best_answer(notebook.log, find_task(notebook.log))
    assert (answer.confirmed, answer.reported, answer.run) == (None, None, None)
    assert answer.note == "No run of grammar has a value yet."
    assert answer.task.failed == 1


def test_the_leaderboard_is_in_order_and_as_long_as_asked(story):
    task = find_task(story.notebook.log)
    programs = top_answer(story.notebook.log, task).programs
    assert [row.reported for row in programs] == [1.0, 1.05, 1.25]
    assert [row.position for row in programs] == [1, 2, 3]
    assert top_answer(story.notebook.log, task, limit=1).programs == programs[:1]


def test_board_and_best_name_what_authors_did_wrong_and_what_is_a_copy(village):
    idea = village.run(1.3, "idea", by=ANN)
    copy = village.run(1.1, "idea", by=BEN)
    fork(village, of=idea)  # so that the copy stands on the board
    false = village.run(0.9, "false", by=DOT)
    village.refute(false, 1.9)
    later = village.run(1.4, "later", by=DOT)
    village.run(1.25, "child", by=CEM, parent=false)
    cheat = village.run(0.5, "lucky", by=EVE, seed=7)
    banned = village.run(1.35, "banned", by=EVE)
    task = find_task(village.log)
    answer = top_answer(village.log, task)
    rows = {row.id: row for row in answer.programs}
    marks = {row.title: [mark.mark for mark in row.marks] for row in answer.programs}
    assert marks["idea"] == [Mark.COPIER]
    assert marks["false"] == marks["later"] == [Mark.FABRICATOR], "a mark stays beside the name"
    assert marks["child"] == marks["baseline"] == []
    assert rows[format_id(copy.id)].copy_of == format_id(idea.id)
    assert [row.title for row in answer.programs if row.copy_of] == ["idea"]
    assert [row.title for row in answer.programs if row.retest] == ["child"]
    assert marks["lucky"] == marks["banned"] == [Mark.FRAUD]
    assert rows[format_id(banned.id)].banned_until_ms == cheat.time + NETWORK.verify_ban_ms
    assert rows[format_id(later.id)].banned_until_ms is None
    best = best_answer(village.log, task)
    assert best.reported.id == best.task.best.id == answer.task.best.id == format_id(copy.id)
    for each in (best.reported, best.task.best, answer.task.best):
        assert (each.copy_of, each.marks) == (format_id(idea.id), rows[format_id(copy.id)].marks)
    assert task_status(village.log, task).best.marks is None, "nobody looked"


def test_a_board_of_nothing_has_no_marks(notebook):
    notebook.task()
    answer = top_answer(notebook.log, find_task(notebook.log))
    assert (answer.programs, answer.task.best) == ([], None)


@pytest.mark.slow
def test_a_proven_cheat_hides_no_reported_run_however_much_it_writes(village):
    honest = village.run(1.5, "honest", by=ANN)
    village.run(0.4, "cheated", by=CEM, seed=7)
    head = village.log.devices.head(CEM.public)
    fakes = [
        sealed(
            CEM,
            run_body(0.5 + number / 1000, source=b"%d" % number),
            seq=head.seq + 1 + number,
            time_ms=village.now_ms + 1 + number,
        )
        for number in range(310)
    ]
    village.log.writer.ingest(pairs(fakes), now_ms=village.now_ms + 1000)
    answer = best_answer(village.log, find_task(village.log))
    assert answer.reported.id == answer.task.best.id == answer.run.id == format_id(honest.id)


def test_who_works_alone_is_not_told_about_attested_participants(notebook):
    task = notebook.task()
    baseline = notebook.run(task, 1.25)
    answers = [best_answer(notebook.log, find_task(notebook.log)), top_answer(notebook.log, find_task(notebook.log))]
    assert [answer.note for answer in answers] == ["", ""]
    assert "participants" not in show_answer(notebook.log, baseline).verification.reason
    notebook.run(task, 1.2, source="x = 1\n", parent=baseline, by=notebook.other)
    assert "more participants" in best_answer(notebook.log, find_task(notebook.log)).note
    assert "more participants" in show_answer(notebook.log, baseline).verification.reason


def test_the_best_says_what_it_is_worth_in_the_other_sizes_of_its_task(notebook):
    small, large, other = (
        notebook.task(),
        notebook.task("grammar-l", budget=1e10),
        notebook.task("other", unit="seconds"),
    )
    better = "DEPTH = 9\n"
    first = notebook.run(small, 1.5)
    notebook.run(small, 1.2, source=better, parent=first)
    assert other not in {row.digest for row in notebook.log.tasks.sizes(small)}

    def sizes():
        return best_answer(notebook.log, find_task(notebook.log, "grammar")).sizes

    assert [(size.name, size.budget, size.value, size.best) for size in sizes()] == [("grammar-l", 1e10, None, None)]
    start = notebook.run(large, 1.4, budget=1e10)
    assert [(size.value, size.best) for size in sizes()] == [(None, 1.4)]
    notebook.run(large, 1.3, source=better, parent=start, budget=1e10)
    notebook.run(large, 1.2, source=better, parent=start, budget=1e10, replicate=1)
    (result,) = sizes()
    assert (result.runs, result.value, result.best) == (2, pytest.approx(1.25), pytest.approx(1.25))
    assert result.gain == pytest.approx(0.15)
