"""A program that somebody wrote becomes a plan: a change of the run that it was edited from."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from autoresearch.ask.acts.edited_program import Idea, plan_of_idea
from autoresearch.ask.acts.notebook import Notebook
from autoresearch.errors import NotFound, UsageError
from autoresearch.paths import Paths
from autoresearch.record.encoding import format_id
from autoresearch.record.kinds import RunOutcome
from autoresearch.run.experiment import Plan, plan_as_it_stands
from autoresearch.task.loading import load_task
from autoresearch.task.model import Task
from autoresearch.task.program import source_digest
from autoresearch.words import RunStatus
from tests.daemon.toy import TRAIN, write_toy_task

NOW_MS = 1_790_000_000_000
DEEPER = TRAIN.replace("X = 0.9", "X = 0.5")
OTHER = TRAIN.replace("Y = 0.1", "Y = 0.4").replace("steps=1", "steps=2")


class Desk:
    """A notebook with a task, on which runs are published."""

    def __init__(self, folder: Path) -> None:
        self.notebook = Notebook(Paths.from_environment({"AUTORESEARCH_HOME": str(folder / "home")}))
        self.task: Task = load_task(write_toy_task(folder / "toy"))
        self.notebook.publish_task(self.task, NOW_MS)
        self.now_ms = NOW_MS

    def published(self, program: str, value: float, *, task: Task | None = None, **plan_fields: object) -> bytes:
        self.now_ms += 1000
        plan = plan_as_it_stands(task or self.task, program, **plan_fields)
        return self.notebook.publish_run(plan, RunOutcome(status=RunStatus.OK, value=value), self.now_ms).record.id

    def plan(self, program: str, **idea_fields: object) -> Plan:
        notebook = self.notebook
        return plan_of_idea(
            notebook.log, notebook.blobs, Idea(self.task, program, **idea_fields), author=notebook.author
        )


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    made = Desk(tmp_path)
    yield made
    made.notebook.close()


def test_the_baseline_has_no_parent(desk: Desk) -> None:
    desk.published(DEEPER, 0.3)
    plan = desk.plan("# a comment\n" + TRAIN)
    assert (plan.parent, plan.title) == (None, "the baseline, unchanged")


def test_in_an_empty_log_an_edit_has_no_parent_and_is_named_by_what_changed(desk: Desk) -> None:
    plan = desk.plan(DEEPER)
    assert (plan.parent, plan.title) == (None, "X = 0.5")


def test_an_edit_is_a_change_of_the_run_that_it_differs_least_from(desk: Desk) -> None:
    baseline, other = desk.published(TRAIN, 0.6), desk.published(OTHER, 0.9)
    assert desk.plan(DEEPER).parent == baseline
    assert desk.plan(OTHER.replace("X = 0.9", "X = 0.8")).parent == other


def test_of_equally_near_runs_the_better_one_is_the_parent(desk: Desk) -> None:
    desk.published(TRAIN, 0.6)
    better = desk.published(DEEPER, 0.3)
    assert desk.plan(TRAIN.replace("X = 0.9", "X = 0.7")).parent == better


def test_an_edit_of_the_baseline_is_its_change_however_near_another_run_is(desk: Desk) -> None:
    assert desk.plan(DEEPER, parent="@baseline").parent is None
    desk.published(DEEPER, 0.3)
    edit = TRAIN.replace("X = 0.9", "X = 0.7")
    assert desk.plan(edit, parent="@baseline").parent is None, "nobody ran the baseline"
    baseline = desk.published(TRAIN, 0.6)
    assert desk.plan(edit, parent="@baseline").parent == baseline
    assert desk.plan(f"{DEEPER}# more\nZ = 1\n", parent="@baseline").parent == baseline


def test_a_person_names_the_parent(desk: Desk) -> None:
    baseline, best = desk.published(TRAIN, 0.6), desk.published(OTHER, 0.2)
    assert desk.plan(DEEPER, parent=format_id(baseline)[:16]).parent == baseline
    assert desk.plan(DEEPER, parent="@").parent == best
    with pytest.raises(NotFound):
        desk.plan(DEEPER, parent="bafyreiaaaaaaaaaaaaaaaaa")


def test_a_parent_on_another_task_is_refused(desk: Desk) -> None:
    elsewhere = msgspec.structs.replace(desk.task, name="elsewhere")
    desk.notebook.publish_task(elsewhere, NOW_MS)
    run = desk.published(DEEPER, 0.1, task=elsewhere)
    with pytest.raises(UsageError, match="is no run on the task toy"):
        desk.plan(OTHER, parent=format_id(run))


def test_a_program_that_was_run_before_is_run_as_it_was_then(desk: Desk) -> None:
    baseline, other = desk.published(TRAIN, 0.6), desk.published(OTHER, 0.9)
    desk.published(DEEPER, 0.3, title="deeper", parent=baseline, genome={"X": 0.5}, hypothesis="depth helps")
    plan = desk.plan(f"{DEEPER}# again\n", parent=format_id(other), replicate=2)
    assert (plan.parent, plan.title, plan.genome, plan.hypothesis) == (baseline, "deeper", {"X": 0.5}, "depth helps")
    assert plan.replicate == 2


@pytest.mark.parametrize(
    ("hypothesis", "title"),
    [
        ("", "2 lines changed by hand"),
        ("More depth\n  helps.", "More depth helps."),
        ("x" * 61, "x" * 59 + "…"),
    ],
)
def test_the_title_is_the_hypothesis_or_the_extent_of_the_change(desk: Desk, hypothesis: str, title: str) -> None:
    assert desk.plan(OTHER, hypothesis=hypothesis).title == title


def test_what_is_no_python_is_refused(desk: Desk) -> None:
    with pytest.raises(UsageError, match="line 1"):
        desk.plan("x = (")


def test_a_program_that_changes_settings_alone_is_a_change_of_the_baseline_and_another_is_its_own_base(
    desk: Desk,
) -> None:
    first = desk.published(TRAIN, 1.0)
    assert desk.plan("# a comment\n" + TRAIN).genome == {"X": 0.9, "Y": 0.1}
    deeper = desk.plan(DEEPER, parent=format_id(first))
    assert (deeper.genome, deeper.base) == ({"X": 0.5, "Y": 0.1}, None)
    other = desk.plan(OTHER, parent=format_id(first))
    assert (other.genome, other.base) == ({"X": 0.9, "Y": 0.4}, source_digest(OTHER))


def test_the_genome_of_an_edit_is_on_the_base_of_its_parent(desk: Desk) -> None:
    base = desk.published(OTHER, 0.9, parent=desk.published(TRAIN, 1.0))
    changed = OTHER.replace("X = 0.9", "X = 0.7")
    child = desk.published(changed, 0.8, parent=base, base=source_digest(OTHER), genome={"X": 0.7, "Y": 0.4})
    plan = desk.plan(changed.replace("Y = 0.4", "Y = 0.3"), parent=format_id(child))
    assert (plan.genome, plan.base) == ({"X": 0.7, "Y": 0.3}, source_digest(OTHER))
    more = desk.plan(changed + "Z = 1\n", parent=format_id(child))
    assert (more.genome, more.base) == ({"X": 0.7, "Y": 0.4}, source_digest(changed + "Z = 1\n"))


@pytest.mark.parametrize("has_settings", [True, False], ids=["with its settings", "of an older version"])
def test_an_edit_of_settings_of_a_program_that_is_its_own_base_changes_that(desk: Desk, has_settings: bool) -> None:
    first = desk.published(TRAIN, 1.0)
    plan = desk.plan(OTHER, parent=format_id(first))
    settings = {"genome": plan.genome, "base": plan.base} if has_settings else {}
    own = desk.published(OTHER, 0.9, parent=first, **settings)
    changed = desk.plan(OTHER.replace("X = 0.9", "X = 0.7"), parent=format_id(own))
    assert (changed.genome, changed.base) == ({"X": 0.7, "Y": 0.4}, source_digest(OTHER))


def test_a_claim_of_a_program_that_is_its_own_base_names_no_settings(desk: Desk) -> None:
    first = desk.published(TRAIN, 1.0)
    for program, named in ((OTHER, {}), (DEEPER, {"X": 0.5, "Y": 0.1})):
        plan = desk.plan(program, parent=format_id(first))
        claim = desk.notebook.publish_claim(plan, desk.now_ms, seconds=10)
        assert claim.body.genome == named
