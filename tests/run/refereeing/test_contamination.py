"""Who trains on the validation text is found out by text that was written or drawn after the model."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from autoresearch.judging.statistics import GAP_ERRORS, Findings, passes
from autoresearch.run.bench import Bench
from benchmarks.contamination import asked, train
from benchmarks.library_task import library_task
from tests.conftest import Once
from tests.walls import best_level


# Each of two trains for a quarter of a minute on a quiet machine.
@pytest.mark.slow
def test_validation_text_spread_over_the_training_is_caught(tmp_path: Path, once: Once) -> None:
    for parent in (tmp_path, *tmp_path.parents[:2]):
        parent.chmod(0o755)
    bench = Bench(best_level(), 1, "cpu", once("contamination-cache", lambda _: None), tmp_path)
    # Who spends a tenth of the training on its validation text sees each document some ten times. The budget of the
    # task that ships is too small for that: there so much is a third of a pass, and makes a model no better on it than
    # on new text.
    task = library_task(documents=32, budget=0.7e12, fresh=512)
    task = msgspec.structs.replace(task, baseline=task.baseline.replace(b"WIDTH = 64 ", b"WIDTH = 32 "))
    honest, leaky = train(task, bench), train(task, bench, where="spread", share=0.1)

    found = asked(task, leaky.model, bench, parent=honest.model)

    assert found.value is not None
    assert found.gap is not None
    assert found.gap < -GAP_ERRORS
    findings = Findings(found.value, found.challenges, found.mismatches, found.mean_difference, found.gap)
    assert not passes(leaky.value, findings, tolerance=0.0005, noise=0.02)
