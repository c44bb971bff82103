"""The tasks that ship run in the sandbox as they do by hand, each at one of its levels."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest
from safetensors import safe_open

from autoresearch.run.bench import Bench, job_limits, task_data
from autoresearch.run.experiment import Experiment, plan_as_it_stands
from autoresearch.run.sandbox.capture import RunProgress
from autoresearch.run.sandbox.job import Level
from autoresearch.task.loading import shipped_by_name
from autoresearch.task.program import ENTRY
from tests.conftest import Once
from tests.run.refereeing.small_task import SHIPPED, small_task

BUDGET = 2e10


@pytest.mark.slow
@pytest.mark.parametrize("level", [Level.LANDLOCK], indirect=True)
def test_the_shipped_task_gives_the_same_value_as_by_hand(level: Level, once: Once, tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    task = small_task(SHIPPED, compiler=True)  # with less text
    seen: list[RunProgress] = []
    bench = Bench(level, 1, "cpu", once("shipped-cache", lambda _: None), tmp_path / "out")
    (tmp_path / "out").mkdir()
    plan = msgspec.structs.replace(plan_as_it_stands(task, task.baseline.decode()), seed=3, budget=BUDGET)
    outcome = Experiment(task, plan, bench, on_progress=seen.append).measure()
    data = task_data(task, bench)
    assert outcome.status == "ok", (outcome.reason, outcome.log)
    assert outcome.metrics["work"] >= BUDGET
    assert seen
    assert outcome.checkpoint is not None
    with safe_open(outcome.checkpoint, framework="numpy") as weights:
        assert list(weights.keys())
    for name, content in {**task.harness, ENTRY: task.baseline}.items():
        (tmp_path / name).write_bytes(content)
    own = {"AUTORESEARCH_DATA": str(data), "AUTORESEARCH_SEED": "3", "AUTORESEARCH_BUDGET": repr(BUDGET)}
    by_hand = subprocess.run(
        [sys.executable, ENTRY], cwd=tmp_path, env={**os.environ, **own}, capture_output=True, text=True, check=True
    )
    printed = re.search(r"val_bpb:\s+([0-9.]+)", by_hand.stdout)
    assert printed is not None
    assert outcome.value == pytest.approx(float(printed.group(1)), abs=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("level", [Level.BUBBLEWRAP], indirect=True)
def test_the_smallest_size_for_cards_runs_the_same_program_on_a_processor(
    level: Level, once: Once, tmp_path: Path
) -> None:
    """What the referee says of it is seen where it is attacked."""
    tmp_path.chmod(0o755)
    task, large = shipped_by_name("gpt-small-smoke"), shipped_by_name("gpt-small")
    assert task is not None
    assert large is not None
    assert (task.program, task.harness["prepare.py"]) == (large.program, large.harness["prepare.py"])
    bench = Bench(level, 1, "cpu", once("shipped-cache", lambda _: None), tmp_path / "out")
    (tmp_path / "out").mkdir()
    small = task.baseline.replace(b"DEPTH = 6 ", b"DEPTH = 2 ").replace(b"WIDTH = 384 ", b"WIDTH = 192 ")
    plan = msgspec.structs.replace(plan_as_it_stands(task, small.decode()), seed=3, budget=1e10)
    outcome = Experiment(task, plan, bench).train(job_limits(task, bench.ceiling))
    assert outcome.status == "ok", (outcome.reason, outcome.log)
    assert outcome.metrics["work"] == outcome.metrics["flops"] >= 1e10
    assert outcome.metrics["tokens"] == outcome.metrics["steps"] * 1024
