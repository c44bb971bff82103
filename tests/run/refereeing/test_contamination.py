"""Who trains on the validation text is found out by text that was written or drawn after the model."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import msgspec
import pytest

from autoresearch.judging.statistics import GAP_ERRORS, Findings, passes
from autoresearch.run.bench import Bench
from autoresearch.run.evaluating import Model
from autoresearch.task.model import Task
from benchmarks.contamination import Trained, asked, train
from benchmarks.library_task import library_task
from tests.conftest import Once
from tests.walls import best_level

# Each trains for a quarter of a minute on a quiet machine.
pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]


@pytest.fixture(scope="module")
def task() -> Task:
    """Who spends a tenth of the training on its validation text sees each document some ten times.

    The budget of the task that ships is too small for that: there so much is a third of a pass, and makes a model no
    better on it than on new text.
    """
    task = library_task(documents=32, budget=0.7e12, fresh=512)
    return msgspec.structs.replace(task, baseline=task.baseline.replace(b"WIDTH = 64 ", b"WIDTH = 32 "))


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory, once: Once) -> Bench:
    folder = tmp_path_factory.mktemp("contamination")
    for parent in (folder, *folder.parents[:2]):
        parent.chmod(0o755)
    cache = once("contamination-cache", lambda _: None)
    return Bench(best_level(), 1, "cpu", cache, folder)


@pytest.fixture(scope="module")
def honest(task: Task, bench: Bench, once: Once) -> Trained:
    def make(folder: Path) -> None:
        found = train(task, replace(bench, scratch=folder))
        found.model.checkpoint.rename(folder / "honest.safetensors")
        (folder / "value").write_text(repr(found.value))

    folder = once("contamination", make)
    model = Model(task.baseline.decode(), folder / "honest.safetensors")
    return Trained(model, float((folder / "value").read_text()), seconds=0.0)


def gap(task: Task, bench: Bench, trained: Trained, parent: Trained | None) -> float:
    found = asked(task, trained.model, bench, parent=parent.model if parent else None)
    assert found.value is not None
    assert found.gap is not None
    findings = Findings(found.value, found.challenges, found.mismatches, found.mean_difference, found.gap)
    assert passes(trained.value, findings, tolerance=0.0005, noise=0.02) == (found.gap > -GAP_ERRORS)
    return found.gap


def test_an_honest_model_has_no_gap(task: Task, bench: Bench, honest: Trained) -> None:
    assert abs(gap(task, bench, honest, None)) < GAP_ERRORS


def test_validation_text_spread_over_the_training_is_caught(task: Task, bench: Bench, honest: Trained) -> None:
    assert gap(task, bench, train(task, bench, where="spread", share=0.1), honest) < -GAP_ERRORS
