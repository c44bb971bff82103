"""Which task a person means."""

import re

import pytest

from autoresearch.ask.lookup import find_task, task_of
from autoresearch.errors import AmbiguousId, NotFound
from tests.ask.notebook import BUDGET


def test_a_task_is_found_by_name_by_digest_and_by_nothing_when_it_is_the_only_one(story):
    log = story.notebook.log
    task = find_task(log)
    assert task.digest == story.task
    assert task[1:6] == ("grammar", "val_bpb", "minimize", BUDGET, 0.75)
    assert find_task(log, "grammar") == task
    for length in (4, 12, 64):
        assert find_task(log, story.task.hex()[:length].upper()) == task


def test_without_a_reference_the_task_worked_on_last_is_meant(notebook):
    first, second = notebook.task("first"), notebook.task("second")
    assert find_task(notebook.log).name == "second"
    notebook.run(second, 1.0)
    notebook.run(first, 1.0)
    assert find_task(notebook.log).name == "first"


@pytest.mark.slow
def test_what_others_run_does_not_change_what_one_works_on(notebook):
    mine, theirs = notebook.task("mine"), notebook.task("theirs")
    notebook.run(mine, 1.0)
    for value in range(60):
        notebook.run(theirs, float(value), by=notebook.other)
    assert find_task(notebook.log, author=notebook.mine.public).name == "mine"
    assert find_task(notebook.log).name == "theirs"


def test_runs_on_a_task_that_is_not_published_are_passed_over(notebook):
    notebook.task("known")
    notebook.run(b"\1" * 32, 1.0)
    assert find_task(notebook.log).name == "known"
    assert task_of(notebook.log, b"\1" * 32) is None


@pytest.mark.parametrize("reference", [None, "grammar", "abcd", "", "@", "x" * 1000])
def test_an_empty_log_has_no_task(notebook, reference):
    with pytest.raises(NotFound):
        find_task(notebook.log, reference)


def test_the_error_names_the_tasks_that_are_known(story):
    with pytest.raises(NotFound) as caught:
        find_task(story.notebook.log, "gramar")
    assert "grammar" in caught.value.hint


def test_two_tasks_of_one_name_are_told_apart_by_who_worked_on_them(notebook):
    mine, theirs = notebook.task(floor=0.75), notebook.task(floor=0.5, by=notebook.other)
    with pytest.raises(AmbiguousId) as caught:
        find_task(notebook.log, "grammar")
    assert set(caught.value.candidates) == {digest.hex()[:12] for digest in (mine, theirs)}
    assert re.search(rf"{mine.hex()[:12]} of 20\d\d-\S+Z, 0 runs", caught.value.hint)
    notebook.run(mine, 1.0)
    notebook.run(theirs, 1.0, by=notebook.other)
    assert find_task(notebook.log, "grammar", author=notebook.mine.public).digest == mine
    assert find_task(notebook.log, "grammar", author=notebook.other.public).digest == theirs


def test_nobody_renames_another_ones_task_by_publishing_it_again(notebook):
    digest = notebook.task("mine")
    notebook.task("mine", called="evil", by=notebook.other)
    assert find_task(notebook.log, "mine").digest == digest
    assert find_task(notebook.log).name == "mine"
    with pytest.raises(NotFound):
        find_task(notebook.log, "evil")


def test_a_definition_that_cannot_be_ranked_is_no_task(notebook):
    notebook.task("odd", direction="sideways")
    with pytest.raises(NotFound):
        find_task(notebook.log)


def test_a_floor_that_is_no_number_is_none(notebook):
    notebook.task(floor="low")
    assert find_task(notebook.log).floor is None
