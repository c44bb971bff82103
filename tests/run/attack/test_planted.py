"""A planted hole is found by the attack of its kind, and a sound task holds against all."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from autoresearch.errors import UsageError
from autoresearch.run.attack import campaign, looting, spending, stating
from autoresearch.run.attack.campaign import Orders, attack_task
from autoresearch.run.attack.report import AttackReport, read_report, write_report
from autoresearch.run.bench import Bench
from autoresearch.task.loading import load_task
from tests.run.attack.planted import PLANTED, SOUND, Planted, build
from tests.walls import best_level

BY: dict[str, str] = {
    "answers readable": "copies-answers",
    "answers in a table by id": "copies-answers",
    "missing answers": "few-answers",
    "doubled answers": "repeats-answers",
    "nan counts": "all-nan",
    "failure is zero": "leaves-half-a-file",
    "recall alone": "one-constant",
    "believes a time": "claims",
    "believes a score": "adds-claims",
    "unpickles": "leaves-a-pickle",
    "evaluates text": "leaves-an-expression",
    "prints a name": "injects-a-line",
    "answers in the evaluator": "runs-the-evaluator",
    "prepare writes the answers": "makes-the-answers",
    "nan is no overlap": "hides-behind-nan",
    "a city twice": "one-constant",
    "asks the same": "remembers-its-answers",
    "asks what it always asks": "answers-from-before",
    "the clock runs late": "works-ahead",
    "a loop that counts": "loops-again",
    "any answer is right": "all-answers-at-once",
    "its own count": "claims",
    "plays the same": "rehearses-the-dialogue",
    "seed in a setting": "draws-the-test",
    "prints its number": "says-a-number",
}


@pytest.fixture(autouse=True)
def _quick_climber(monkeypatch: pytest.MonkeyPatch) -> None:
    """A program that can try the evaluator does so for a third of the seconds that it gets, to no use here."""
    loot_of = looting.loot_of
    monkeypatch.setattr(
        looting, "loot_of", lambda target, train, *, seconds: loot_of(target, train, seconds=seconds / 3)
    )


def attacked(tmp_path: Path, planted: Planted, **orders: object) -> AttackReport:
    """The report of a task that is written for it."""
    task = load_task(build(tmp_path / "task", planted))
    bench = Bench(best_level(), 1, "cpu", tmp_path / "data", tmp_path / "scratch")
    return attack_task(task, bench, Orders(folder=tmp_path / "programs", **orders))  # type: ignore[arg-type]


@pytest.mark.slow
@pytest.mark.parametrize("name", BY)
def test_the_attack_of_its_kind_gets_through(tmp_path: Path, name: str) -> None:
    report = attacked(tmp_path, PLANTED[name], only=BY[name])

    assert (report.tried, report.through) == (1, 1), report.rows
    assert report.holes[0].mend
    assert report.holes[0].folder
    program = load_task(Path(report.holes[0].folder))
    assert program.digest.hex() == report.digest, "a run of the same task"
    assert program.program != program.baseline


@pytest.mark.slow
def test_a_number_that_a_program_states_is_one_hole_with_its_program(tmp_path: Path) -> None:
    report = attacked(tmp_path, PLANTED["prints its number"], only="says-a-number")

    assert [hole.hole for hole in report.holes] == ["own_number"]
    assert "move the evaluator outside" in report.holes[0].mend
    assert "+print('accuracy: " in report.holes[0].diff
    assert report.sentence == "attacked: 0 of 1 held"
    write_report(tmp_path / "task", report)
    assert load_task(tmp_path / "task").digest.hex() == report.digest, "the report is no part of the task"
    assert read_report(tmp_path / "task", report.digest) == report
    assert read_report(tmp_path / "task", "00") is None


# What a program says and spends comes to no evaluator, so one task stands for all; one attack changes what is left.
# A file of another kind is refused by what reads it: by JSON, and by one that reads no text.
BESIDE = {attack.name for attack in (*stating.ATTACKS, *spending.ATTACKS)} - {"rewrites-its-files"}
OTHER_FILES = {"leaves-another-type", "leaves-a-pickle", "leaves-an-expression", "leaves-a-link"}
LEFT_OUT = dict.fromkeys(SOUND, BESIDE | OTHER_FILES) | {"strict": set(), "packed": BESIDE}


@pytest.mark.slow
@pytest.mark.parametrize("name", SOUND)
def test_a_sound_task_holds(tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    attacks = [attack for attack in campaign.ATTACKS if attack.name not in LEFT_OUT[name]]
    monkeypatch.setattr(campaign, "ATTACKS", attacks)

    report = attacked(tmp_path, SOUND[name])

    assert not report.holes, report.holes
    assert report.tried >= (6 if LEFT_OUT[name] else 50)


def test_an_attack_that_is_none_is_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no attack foo") as caught:
        attacked(tmp_path, PLANTED["prints its number"], only="foo")
    assert "says-a-number" in caught.value.hint


@pytest.mark.slow
def test_a_baseline_that_met_a_hard_test_makes_no_hole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each test is drawn anew: whatever is as good as the baseline looks better beside such a value."""
    attacks = [attack for attack in campaign.ATTACKS if attack.name.startswith("some-")]
    monkeypatch.setattr(campaign, "ATTACKS", attacks)
    measured = campaign._Campaign.target
    monkeypatch.setattr(campaign._Campaign, "target", lambda self: replace(measured(self), value=0.3))

    report = attacked(tmp_path, SOUND["seed of the run"])

    assert max(row.gain or 0.0 for row in report.rows) > report.margin, "some looked better"
    assert not report.holes, report.holes
