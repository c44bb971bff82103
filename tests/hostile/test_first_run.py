"""The first run of a machine, and a short one, are bounded by the baseline like every other."""

from __future__ import annotations

from pathlib import Path

import pytest

from autoresearch.run.bench import Bench, known_cost
from autoresearch.run.experiment import Experiment, plan_as_it_stands
from autoresearch.run.sandbox.probes import detect_level
from autoresearch.task.loading import load_task
from autoresearch.words import RunStatus
from tests.cli.programs import FIT, evaluated_task

# Two seconds were free before: many times what such a baseline costs.
TRAINS_ON = "import time\nwhile time.process_time() < 1.9:\n    pass\n" + FIT


@pytest.mark.slow
@pytest.mark.parametrize("own", [True, False])
def test_a_first_run_that_trains_on_is_over_budget(tmp_path: Path, own: bool) -> None:
    task = load_task(evaluated_task(tmp_path / "fit"))
    bench = Bench(detect_level()[0], 1, "cpu", tmp_path / "data", tmp_path / "scratch")
    plan = plan_as_it_stands(task, TRAINS_ON)
    assert known_cost(task, bench, plan.budget) is None

    measurement = Experiment(task, plan, bench).measure(own=own)

    assert (measurement.status, measurement.value) == (RunStatus.OVER_BUDGET, None), measurement.reason
    assert "the baseline takes" in measurement.reason
    assert known_cost(task, bench, plan.budget) is not None
    honest = plan_as_it_stands(task, FIT.replace("THRESHOLD = 0.5", "THRESHOLD = 0.6"))
    assert Experiment(task, honest, bench).measure(own=own).status is RunStatus.OK
