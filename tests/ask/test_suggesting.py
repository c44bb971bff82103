"""What the search would try next, and what it expects of given settings."""

import pytest

from autoresearch.ask.acts.suggesting import suggest
from autoresearch.errors import UsageError
from autoresearch.record.kinds import Task
from autoresearch.task.folders import pin_baseline
from autoresearch.task.loading import load_task
from autoresearch.task.program import source_digest
from tests.ask.notebook import Notebook
from tests.daemon.toy import TRAIN, write_toy_task


@pytest.fixture
def suggest_with(tmp_path):
    """A task with runs at some X, all with a value of (X - 0.3)²; what asks about it."""
    folder = write_toy_task(tmp_path / "toy")
    pin_baseline(folder)
    task = load_task(folder)
    with Notebook.at(tmp_path) as notebook:
        put = notebook.blobs.put
        harness = {name: put(content) for name, content in task.harness.items()}
        body = Task(
            digest=task.digest, name=task.name, definition=task.definition(), baseline=put(task.baseline),
            harness=harness,
        )  # fmt: skip
        notebook.append("task", body)

        def ran(*values):
            for x in values:
                source = TRAIN.replace("X = 0.9", f"X = {x}")
                notebook.run(
                    task.digest, (x - 0.3) ** 2, source=source, source_digest=source_digest(source),
                    genome={} if x == 0.9 else {"X": x}, budget=float(task.budget.amount),
                )  # fmt: skip

        def ask(count=3, settings=None):
            me = notebook.mine.public
            return suggest(
                notebook.log, notebook.blobs, task, count, settings or {}, me=me, now_ms=notebook.now_ms
            ).suggestions

        def rewritten(value):
            source = TRAIN.replace("X = 0.9", "RATE = 0.5  # float [0.0, 1.0]\nX = 0.9") + "\n# rewritten\n"
            digest = source_digest(source)
            notebook.run(task.digest, value, source=source, source_digest=digest, budget=float(task.budget.amount))

        ask.ran, ask.rewritten = ran, rewritten
        yield ask


def test_before_any_run_the_baseline_is_what_comes_first(suggest_with):
    first, *others = suggest_with()
    assert (first.change, first.expected) == ({}, None)
    assert all(other.change for other in others)


@pytest.mark.slow
def test_suggestions_differ_and_say_what_is_expected_of_them(suggest_with):
    suggest_with.ran(0.9, 0.8, 0.7, 0.55, 0.45, 0.1)
    made = suggest_with(count=4)
    assert len({str(each.change) for each in made}) == 4
    assert all(each.low <= each.expected <= each.high and each.parent for each in made if each.change)
    assert suggest_with(count=4) == made, "nothing was claimed or run"


def test_settings_near_the_good_ones_are_expected_to_be_better(suggest_with):
    suggest_with.ran(0.9, 0.8, 0.7, 0.55, 0.45, 0.1)
    (near,), (far,) = suggest_with(settings={"X": "0.35"}), suggest_with(settings={"X": 0.95})
    assert near.change == {"X": [0.45, 0.35]}
    assert near.expected < far.expected
    assert near.low < (0.35 - 0.3) ** 2 < near.high


@pytest.mark.slow
def test_a_suggestion_may_start_from_a_program_with_other_settings(suggest_with):
    suggest_with.ran(0.9, 0.8, 0.7, 0.55, 0.45, 0.35)
    suggest_with.rewritten(0.002)
    made = suggest_with(count=12)
    settings = [each.change.keys() for each in made]
    assert any("RATE" in names for names in settings)
    assert any("RATE" not in names for names in settings)


@pytest.mark.parametrize(
    ("settings", "message"),
    [({"Z": 1}, "turns no setting Z"), ({"X": "high"}, "can't be high"), ({"X": True}, "can't be")],
)
def test_settings_that_can_not_be_are_refused_by_name(suggest_with, settings, message):
    with pytest.raises(UsageError, match=message):
        suggest_with(settings=settings)
