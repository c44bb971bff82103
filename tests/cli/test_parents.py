"""The parent of an edit is what the edit started from, in whatever order runs and edits come."""

from __future__ import annotations

from pathlib import Path
from shutil import copytree

import pytest

from autoresearch.ask.node import ProposedAnswer, StatusAnswer
from autoresearch.ask.records import ShowAnswer
from autoresearch.task.folder_state import started_from
from tests.cli.conftest import Process
from tests.cli.test_ideas import BETTER, WORSE, daemon, ran, toy
from tests.cli.test_json import strictly
from tests.daemon.daemons import wait_for
from tests.daemon.toy import TRAIN

__all__ = ["daemon", "toy"]

NEARBY = TRAIN.replace("X = 0.9", "X = 0.6")  # nearer to BETTER in its value, and as near in its lines
SECOND = BETTER.replace("Y = 0.1", "Y = 0.3")


def parent_of(process: Process, folder: Path, program: str, *words: str) -> str | None:
    """The parent of the run of an edit."""
    (folder / "train.py").write_text(program)
    run = ran(process, folder, *words).run
    assert run
    return run.run.parent


@pytest.fixture
def other(toy: Path, tmp_path: Path) -> Path:
    """A second folder of the same task, where somebody else works."""
    return copytree(toy, tmp_path / "other")


def test_an_edit_of_the_baseline_is_its_child_while_others_find_better_ones(
    process: Process, toy: Path, other: Path
) -> None:
    baseline = ran(process, toy).record.id
    assert started_from(toy) == baseline
    assert parent_of(process, other, BETTER) == baseline
    assert parent_of(process, toy, NEARBY) == baseline


@pytest.mark.slow
def test_it_is_the_child_of_a_baseline_that_another_folder_ran(process: Process, toy: Path, other: Path) -> None:
    baseline = ran(process, other).record.id
    assert parent_of(process, other, BETTER) == baseline
    assert parent_of(process, toy, NEARBY) == baseline


def test_where_nobody_ran_the_baseline_an_edit_of_it_has_no_parent(process: Process, toy: Path, other: Path) -> None:
    assert parent_of(process, other, BETTER) is None
    assert parent_of(process, toy, NEARBY) is None


@pytest.mark.slow
def test_after_a_better_edit_comes_its_child_and_after_a_worse_one_another_of_the_same(
    process: Process, toy: Path
) -> None:
    baseline = ran(process, toy).record.id
    assert parent_of(process, toy, WORSE) == baseline
    assert parent_of(process, toy, BETTER) == baseline
    better = started_from(toy)
    assert parent_of(process, toy, SECOND) == better


@pytest.mark.slow
def test_after_a_checkout_an_edit_is_a_child_of_what_was_checked_out(process: Process, toy: Path, other: Path) -> None:
    baseline = ran(process, toy).record.id
    parent_of(process, other, BETTER)
    better = started_from(other)
    assert process("run", "checkout", str(toy)).returncode == 0
    assert started_from(toy) == better
    assert process("run", "checkout", str(toy), "--run", baseline).returncode == 0
    assert parent_of(process, toy, NEARBY) == baseline
    assert process("run", "checkout", str(toy), "--run", better).returncode == 0
    assert parent_of(process, toy, SECOND) == better


@pytest.mark.slow
def test_a_baseline_that_is_run_again_is_where_the_next_edit_starts(process: Process, toy: Path, other: Path) -> None:
    baseline = ran(process, toy).record.id
    parent_of(process, other, BETTER)
    process("run", "checkout", str(toy))
    (toy / "train.py").write_text(TRAIN)
    again = ran(process, toy, "--replicate", "1").record.id
    assert parent_of(process, toy, NEARBY) == again
    assert parent_of(process, toy, TRAIN.replace("X = 0.9", "X = 0.55"), "--parent", "@baseline") == baseline


@pytest.mark.slow
def test_who_waits_in_the_task_folder_goes_on_there(
    process: Process, toy: Path, daemon: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    ran(process, toy)
    process("run", "checkout", str(toy))
    monkeypatch.chdir(toy)
    (toy / "train.py").write_text(BETTER)
    proposed = process("run", "propose", ".", "--hypothesis", "half as far", "--json")
    waited = process("run", "wait", strictly(proposed.stdout, ProposedAnswer).proposed[0])
    assert f"then autoresearch run {toy}" in waited.stderr
    assert "half as far" in (toy / "history.md").read_text()
    repeated = process("run", "propose", ".")
    assert (repeated.returncode, "was run with this seed before" in repeated.stderr) == (6, True)
    assert "--again" in repeated.stderr
    assert "--replicate" not in repeated.stderr, "it has no such option"
    varied = process("run", "vary", ".", "--set", "X=0.35,0.4", "--hypothesis", "two steps", "--wait")
    assert varied.returncode == 0, varied.stderr
    assert "two steps" in (toy / "history.md").read_text()


@pytest.mark.slow
def test_a_run_of_another_program_is_nothing_that_the_folder_started_from(
    process: Process, toy: Path, daemon: None, tmp_path: Path
) -> None:
    baseline = ran(process, toy).record.id
    file = tmp_path / "idea.py"
    file.write_text(BETTER)
    proposed = process("run", "propose", str(file), "--task", str(toy), "--json")
    name = strictly(proposed.stdout, ProposedAnswer).proposed[0]
    assert "keep" in process("run", "wait", name).stderr
    assert started_from(toy) == baseline
    assert parent_of(process, toy, NEARBY) == baseline


@pytest.mark.slow
def test_it_holds_in_the_documented_order_beside_the_search(
    process: Process, toy: Path, daemon: None, other: Path
) -> None:
    done = process("work", str(other), "--runs", "4")
    assert done.returncode == 0, done.stderr
    wait_for(lambda: strictly(process("status", "--json").stdout, StatusAnswer).state == "idle")
    listed = process("run", "list", "--task", "toy", "--json")
    assert listed.returncode == 0, listed.stderr
    parent = parent_of(process, toy, NEARBY, "--hypothesis", "from the baseline")
    assert parent
    answer = strictly(process("show", parent, "--json").stdout, ShowAnswer)
    assert answer.run
    assert answer.run.run.title == "the baseline, unchanged"
