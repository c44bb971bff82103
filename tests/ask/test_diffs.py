"""A run's texts, what it changed, and the way to it."""

import pytest

from autoresearch.ask.runs import diffs
from autoresearch.ask.runs.diffs import diff_answer, lineage_answer, run_log, run_source
from autoresearch.errors import NotFound, Refused, UsageError
from autoresearch.log.blobs import BlobStore
from autoresearch.record.encoding import format_id
from tests.ask.notebook import BASELINE


def test_the_difference_shows_lines_constants_and_values(story):
    answer = diff_answer(story.notebook.log, story.notebook.blobs, story.baseline, story.deeper)
    assert (answer.old, answer.new) == (format_id(story.baseline), format_id(story.deeper))
    assert (answer.old_numbers.reported, answer.new_numbers.reported) == (1.25, 1.05)
    assert answer.change == {"DEPTH": [4, 6]}
    assert "-DEPTH = 4\n+DEPTH = 6\n LR = 0.1\n" in answer.diff


def test_a_run_does_not_differ_from_itself(story):
    answer = diff_answer(story.notebook.log, story.notebook.blobs, story.deeper, story.deeper)
    assert (answer.diff, answer.change) == ("", {})


def test_a_source_that_is_not_here_is_not_found(story, tmp_path):
    empty = BlobStore(tmp_path / "empty")
    with pytest.raises(NotFound, match=r"source of .* is not on this machine"):
        diff_answer(story.notebook.log, empty, story.baseline, story.deeper)


def test_what_is_no_run_has_no_source(story):
    for ask in (run_source, run_log):
        with pytest.raises(UsageError, match="is a note"):
            ask(story.notebook.log, story.notebook.blobs, story.note)
    with pytest.raises(NotFound):
        run_source(story.notebook.log, story.notebook.blobs, b"\1" * 32)


def test_source_and_log_are_as_they_were_written(story):
    log, blobs = story.notebook.log, story.notebook.blobs
    assert run_source(log, blobs, story.baseline) == BASELINE
    assert run_log(log, blobs, story.deeper) == "step 1\n"
    with pytest.raises(NotFound, match="printed nothing"):
        run_log(log, blobs, story.baseline)


def test_a_log_that_is_no_text_is_shown_as_far_as_it_can_be(story):
    run = story.notebook.run(story.task, 1.0, log=b"ok \xff\xfe\x00 end")
    assert run_log(story.notebook.log, story.notebook.blobs, run) == "ok \ufffd\ufffd\x00 end"


def test_what_is_too_large_to_show_is_refused(story, monkeypatch):
    monkeypatch.setattr(diffs, "MAXIMUM_TEXT_BYTES", 3)
    with pytest.raises(Refused, match="larger"):
        run_log(story.notebook.log, story.notebook.blobs, story.deeper)


def test_the_lineage_goes_from_the_baseline_to_the_run(story):
    answer = lineage_answer(story.notebook.log, story.faster)
    assert [step.run.id for step in answer.steps] == [
        format_id(run) for run in (story.baseline, story.deeper, story.faster)
    ]
    assert [step.run.standing.gain_reported for step in answer.steps] == [
        None,
        pytest.approx(0.2),
        pytest.approx(0.05),
    ]
    assert answer.task.name == "grammar"


def test_the_lineage_of_a_run_on_an_unknown_task_has_no_task(notebook):
    run = notebook.run(b"\1" * 32, 1.0)
    answer = lineage_answer(notebook.log, run)
    assert answer.task is None
    assert len(answer.steps) == 1
