"""Runs of a task told from the log: with what was compared before, with the ranges of the task's program."""

from __future__ import annotations

import hashlib

import pytest

from autoresearch.ask.lookup import find_task
from autoresearch.ask.runs.boards import best_answer, top_answer
from autoresearch.ask.runs.diffs import diff_answer, effects_answer, lineage_answer
from autoresearch.ask.runs.headlines import PROGRAMS_READ, described, teller_of, with_headlines
from autoresearch.ask.show import log_answer, show_answer
from autoresearch.log.blobs import BlobStore
from autoresearch.record.kinds import Proposer, Run
from autoresearch.task.loading import shipped_task
from tests.ask.notebook import Notebook, Story
from tests.nasty import NASTY

SEARCH = Proposer(name="search")
FULL = {"DEPTH": 4, "LR": 0.1}


def tell(notebook: Notebook, run: bytes, *, blobs: BlobStore | None = None):
    record = notebook.log.records.get(run)
    body = record.body
    assert isinstance(body, Run)
    above = notebook.log.records.get(body.parent).body if body.parent else None
    teller = teller_of(notebook.log, blobs or notebook.blobs, body.task, me=notebook.mine.public)
    return teller.tell(described(body, record.time), described(above) if above else None)


def test_a_run_is_told_by_its_change_with_the_task_s_ranges(story: Story, tmp_path):
    result = tell(story.notebook, story.deeper)
    assert (result.headline, result.jump) == ("DEPTH 4 → 6", False)
    (change,) = result.changes
    assert change.place_before is not None
    with BlobStore(tmp_path / "none") as empty:
        (change,) = tell(story.notebook, story.deeper, blobs=empty).changes
        assert (change.text, change.place_before) == ("DEPTH 4→6", None), "the program is not here, nor its ranges"


def test_a_run_without_a_known_genome_has_its_title_and_the_baseline_is_called_so(story: Story):
    result = tell(story.notebook, story.crashed)
    assert (result.headline, result.changes, result.because) == ("divide", [], "")
    assert tell(story.notebook, story.baseline).headline == "The baseline"


def test_a_change_of_the_baseline_is_told_where_that_was_published_without_its_genome(notebook: Notebook):
    task = notebook.task()
    first = notebook.run(task, 1.2, title="first")
    child = notebook.run(task, 1.1, source="2", parent=first, genome={"DEPTH": 8, "LR": 0.1}, title="x")
    assert tell(notebook, child).headline == "DEPTH 4 → 8"
    other = notebook.run(task, 1.1, source="3", parent=child, genome={"DEPTH": 9}, base=b"b" * 32, title="on another")
    assert tell(notebook, other).headline == "on another", "its genome changes another program"


EDITED = "DEPTH = 6\nLR = 0.1\nWIDTH = 9\n\n\ndef build_model():\n    return DEPTH + WIDTH\n"


@pytest.mark.parametrize("facts", [True, False], ids=["of its record", "of its program"])
def test_an_edit_of_more_than_settings_is_told_by_its_title_and_its_settings_stand_beside_it(
    notebook: Notebook, tmp_path, facts
):
    task = notebook.task()
    first = notebook.run(task, 1.2, genome=FULL | {"+muon": True})
    settings = {"genome": FULL | {"DEPTH": 6}, "base": hashlib.sha256(EDITED.encode()).digest()} if facts else {}
    edit = notebook.run(task, 1.1, source=EDITED, parent=first, title="a width", **settings)
    result = tell(notebook, edit)
    assert (result.headline, [change.text for change in result.changes]) == ("a width", ["DEPTH 4→6"])
    assert diff_answer(notebook.log, notebook.blobs, first, edit).change["DEPTH"] == [4, 6]
    assert "+muon" not in diff_answer(notebook.log, notebook.blobs, first, edit).change, "its text may have it"
    child = notebook.run(
        task, 1.0, source=EDITED.replace("6", "8"), parent=edit, genome=FULL | {"DEPTH": 8},
        base=hashlib.sha256(EDITED.encode()).digest(), title="x",
    )  # fmt: skip
    assert tell(notebook, child).headline == "DEPTH 6 → 8"
    with BlobStore(tmp_path / "none") as empty:
        assert bool(tell(notebook, edit, blobs=empty).changes) is facts


def test_of_many_old_programs_some_are_read(notebook: Notebook):
    task = notebook.task()
    first = notebook.run(task, 1.2, genome=FULL)
    edits = [
        notebook.run(task, 1.1, source=EDITED.replace("9", str(number)), parent=first)
        for number in range(PROGRAMS_READ + 2)
    ]
    teller = teller_of(notebook.log, notebook.blobs, task)
    bodies = [notebook.log.records.get(run).body for run in (first, *edits)]
    parent = described(bodies[0])
    for _ in range(2):
        rows = [bool(teller.tell(described(body), parent).changes) for body in bodies[1:]]
        assert rows == [True] * PROGRAMS_READ + [False] * 2


def test_what_an_added_part_is_stands_beside_the_task_that_ships(notebook: Notebook):
    harness = shipped_task().definition()["harness"]
    for task, label, why in (
        (notebook.task(harness=harness), "Muon optimizer", "Muon for the matrices of the blocks"),
        (notebook.task(name="tea"), "", "Nothing like it was compared before."),
    ):
        parent = notebook.run(task, 1.2, genome=FULL | {"+muon": False})
        run = notebook.run(task, 1.1, source="x", parent=parent, genome=FULL | {"+muon": True}, proposer=SEARCH)
        result = tell(notebook, run)
        assert (result.headline, result.changes[0].label) == ("Add muon", label)
        assert result.because.startswith(why)


def test_earlier_comparisons_order_changes_and_say_why(notebook: Notebook):
    task = notebook.task()
    parent = notebook.run(task, 1.2, genome=FULL)
    for number, value in enumerate((1.1, 1.0, 1.3)):
        rate = {"DEPTH": 4, "LR": 0.11 + number / 100}
        notebook.run(task, value, source=f"rate {number}", parent=parent, genome=rate)
    both = {"DEPTH": 8, "LR": 0.12}
    last = notebook.run(task, 1.0, source="both", parent=parent, genome=both, proposer=SEARCH, title="t")
    result = tell(notebook, last)
    assert [change.name for change in result.changes] == ["LR", "DEPTH"]
    assert result.because == "Raising LR, one of the 2 changes, helped in 2 of 3 earlier comparisons."
    (first,) = [effect for effect in effects_answer(notebook.log, find_task(notebook.log)).effects if effect.pairs == 1]
    assert (first.name, first.low, first.high) == ("DEPTH", None, None)
    again = notebook.run(task, 1.0, source="both", parent=last, genome=both, replicate=1, proposer=SEARCH)
    assert tell(notebook, again).headline == "Again, with another seed"


@pytest.mark.parametrize("by", [SEARCH, None])
def test_answers_have_headlines_and_a_list_tells_runs_of_the_search_by_them(notebook: Notebook, by):
    task = notebook.task()
    parent = notebook.run(task, 1.2, genome=FULL, title="the baseline")
    genome = {"DEPTH": 6, "LR": 0.1, NASTY[:60]: 3}
    run = notebook.run(task, 1.0, source="x", parent=parent, genome=genome, title="my words", proposer=by)
    log, blobs, result = notebook.log, notebook.blobs, find_task(notebook.log)

    def filled(answer):
        return with_headlines(log, blobs, answer, me=notebook.mine.public)

    output = filled(show_answer(log, run))
    assert (output.run.run.title, output.run.standing.headline) == ("my words", "DEPTH 4 → 6")
    assert [change.text for change in output.changes] == ["DEPTH 4→6"]
    best = filled(best_answer(log, result))
    assert {best.run.standing.headline, best.reported.headline, best.task.best.headline} == {"DEPTH 4 → 6"}
    assert filled(top_answer(log, result)).programs[0].proposer == (by.name if by else "")
    assert filled(lineage_answer(log, run)).steps[-1].run.standing.headline == "DEPTH 4 → 6"
    line = filled(log_answer(log)).records[0].summary
    assert line == ("DEPTH 4 → 6: 1" if by else "my words: 1")
    assert filled(show_answer(log, find_task_record(notebook))).because == ""


def find_task_record(notebook: Notebook) -> bytes:
    return notebook.log.tasks.all()[0].id
