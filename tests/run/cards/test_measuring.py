"""The benchmark of cards: what it says of a stand-in, and its runs on a processor."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path

import pytest

from autoresearch.run.sandbox.job import Level
from autoresearch.task.loading import load_task
from benchmarks.cards import Lab, beside_processor, changes, needs, repeated
from tests.daemon.toy import write_toy_task
from tests.run.cards.conftest import UUID
from tests.run.refereeing.small_task import small_task
from tests.walls import best_level


@pytest.fixture
def lab(tmp_path: Path) -> Lab:
    for place in (tmp_path, *tmp_path.parents[:2]):
        place.chmod(0o755)
    return Lab("cpu", best_level(), tmp_path)


@pytest.mark.slow
def test_what_the_driver_does_not_do_without_is_found(set_state: Callable[[str], None]) -> None:
    figures = needs(UUID, Level.BUBBLEWRAP)
    assert [name for name, needed in figures.items() if name.startswith("needed_") and needed] == [
        "needed_memory_files"
    ]
    assert figures["proof_s"] > 0


@pytest.mark.slow
def test_the_card_and_the_processor_are_compared_by_real_runs(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("benchmarks.cards._CHALLENGES", 0)  # whether a model says the same again is another test
    figures = beside_processor(lab, small_task(), share=0.01)
    assert (figures["small_again_apart"], figures["small_processor_apart"]) == (0, 0)
    assert figures["small_referee_apart"] < 1e-6
    assert figures["small_over_processor"] > 0


TRAIN = """
import os, prepare

X = 0.9
noise = int(os.environ["AUTORESEARCH_SEED"]) / 100
prepare.report(X + noise * X, tokens=1000, flops=2e6)
"""
HALVED = """
[[patch]]
name = "halved"
label = "halved"
title = "half of it"
rationale = "It is half as far."
[[patch.edit]]
search = "prepare.report(X "
replace = "prepare.report(X / 2 "
"""


@pytest.mark.slow
def test_noise_and_gains_are_of_runs_with_the_same_seeds(lab: Lab, tmp_path: Path) -> None:
    folder = write_toy_task(tmp_path / "toy", TRAIN)
    (folder / "changes.toml").write_text(HALVED)
    task = load_task(folder)

    figures = repeated(lab, task, runs=2)
    assert figures["toy_mean"] == pytest.approx(0.9045)
    assert figures["toy_noise"] == pytest.approx(0.009 / math.sqrt(2))
    assert figures["toy_tokens_a_second"] > 0
    assert figures["toy_tflops_a_second"] == pytest.approx(figures["toy_tokens_a_second"] * 2e-9)
    gains = changes(lab, task, ["halved"], pairs=2)
    assert gains["gain_halved"] == pytest.approx(0.45)
    assert gains["gain_halved_error"] == pytest.approx(0, abs=1e-12)
