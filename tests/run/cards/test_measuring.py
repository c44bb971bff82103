"""The benchmark of cards: what it says of a stand-in, and its runs on a processor."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from autoresearch.run.sandbox.job import Level
from benchmarks.cards import Lab, beside_processor, changes, needs, repeated
from tests.run.cards.conftest import UUID
from tests.run.refereeing.small_task import small_task
from tests.walls import best_level


def test_what_the_driver_does_not_do_without_is_found(set_state: Callable[[str], None]) -> None:
    figures = needs(UUID, Level.BUBBLEWRAP)
    assert [name for name, needed in figures.items() if name.startswith("needed_") and needed] == [
        "needed_memory_files"
    ]
    assert figures["proof_s"] > 0


@pytest.mark.slow
def test_the_runs_that_it_measures_are_real(tmp_path: Path) -> None:
    for place in (tmp_path, *tmp_path.parents[:2]):
        place.chmod(0o755)
    lab, task = Lab("cpu", best_level(), tmp_path), small_task()
    figures = beside_processor(lab, task, share=0.01) | repeated(lab, task, runs=2, share=0.01)
    assert (figures["small_again_apart"], figures["small_processor_apart"]) == (0, 0)
    assert figures["small_referee_apart"] < 1e-6
    assert figures["small_noise"] > 0
    assert figures["small_tokens_a_second"] > 0
    gains = changes(lab, task, ["relu2"], pairs=2, share=0.01)
    assert gains["gain_relu2"] != 0
    assert gains["gain_relu2_error"] > 0
