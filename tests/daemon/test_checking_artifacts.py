"""A verifier's worker before somebody's artifact: the task's evaluator measures it again, and pairs draw a new test."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import msgspec
import pytest

from autoresearch.judging import ecvrf
from autoresearch.judging.committee import seeds
from autoresearch.run.bench import Bench
from autoresearch.run.checking import Verified
from autoresearch.run.experiment import Experiment, plan_as_it_stands
from autoresearch.task.loading import load_task
from autoresearch.task.model import Task
from tests.cli.programs import FIT, FORESEEING, TOSSES, evaluated_task
from tests.run.checks import PROOF, carried_out, check_of
from tests.walls import best_level

CHILD = FIT.replace("THRESHOLD = 0.5", "THRESHOLD = 0.6")


@pytest.fixture
def task(tmp_path: Path) -> Task:
    return load_task(evaluated_task(tmp_path / "fit"))


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(best_level(), 1, "cpu", tmp_path / "data", tmp_path / "scratch")


def checked(task: Task, bench: Bench, source: str, artifact: Path | None, **more: object) -> Verified:
    """What a check of a run of this program reports."""
    return carried_out(check_of(task, source, **more), task, bench, artifact)


@pytest.mark.slow
def test_the_evaluator_gives_the_author_s_number_again(task: Task, bench: Bench) -> None:
    value = Experiment(task, plan_as_it_stands(task, FIT), bench).measure(own=True)
    verified = checked(task, bench, FIT, value.checkpoint)

    assert (verified.verdict, verified.value, verified.metrics) == ("pass", value.value, {"evaluated": 1.0})


@pytest.mark.slow
def test_with_fresh_a_verifier_s_seed_follows_from_its_proof_and_not_from_the_run(tmp_path: Path, bench: Bench) -> None:
    value_of: dict[tuple[bool, int], float | None] = {}
    for fresh in (False, True):
        task = load_task(evaluated_task(tmp_path / str(int(fresh)), FORESEEING, evaluator=TOSSES, fresh=fresh))
        outcome = Experiment(task, plan_as_it_stands(task, FORESEEING), bench).measure(own=True)
        for seed in (99, 100):
            done = checked(task, bench, FORESEEING, outcome.checkpoint, seeds=[seed])
            assert (done.verdict, done.metrics) == ("pass", {"evaluated": 1.0, "standard_error": 0.05})
            value_of[fresh, seed] = done.value

    assert value_of[False, 99] == value_of[False, 100] == 1.0
    values = [value_of[True, 99], value_of[True, 100]]
    assert all(value is not None and value < 0.8 for value in values)
    assert values[0] != values[1]


@pytest.mark.slow
def test_an_artifact_that_is_none_fails(task: Task, bench: Bench, tmp_path: Path) -> None:
    bad, large = tmp_path / "bad", tmp_path / "large"
    bad.write_bytes(b"{")
    large.write_bytes(bytes(2 << 20))

    assert "the task's evaluator did not end well" in checked(task, bench, FIT, bad).reason
    assert checked(task, bench, FIT, large).reason == "its artifact is larger than 1 MiB"
    assert {checked(task, bench, FIT, each).verdict for each in (bad, large)} == {"fail"}


def test_a_program_of_other_files_fails(task: Task, bench: Bench, tmp_path: Path) -> None:
    other = "==== autoresearch file: evaluate.py ====\nprint('accuracy: 1.0')\n"
    artifact = tmp_path / "model.json"
    artifact.write_text('{"threshold": 0.7}')

    verified = checked(task, bench, other, artifact)

    assert (verified.verdict, verified.reason) == ("fail", "the program is evaluate.py; the task's is train.py")


@pytest.mark.slow
def test_a_pair_is_measured_with_a_seed_that_no_program_knows(task: Task, bench: Bench) -> None:
    drawn = seeds(ecvrf.output(PROOF), 2)
    pairs = checked(task, bench, CHILD, None, stage="replicate", parent_source=FIT, seeds=drawn)

    assert pairs.verdict == "pass", pairs.reason
    assert len(set(pairs.values)) == 2
    assert all(child > parent for parent, child in zip(pairs.parent_values, pairs.values, strict=True))
    scratch_bench = replace(bench, scratch=bench.scratch / "known")
    plans = [msgspec.structs.replace(plan_as_it_stands(task, CHILD), seed=seed) for seed in drawn]
    assert [Experiment(task, plan, scratch_bench).measure(own=True).value for plan in plans] != pairs.values
