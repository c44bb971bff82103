"""The task that ships runs in the sandbox, at both levels, and gives what it gives by hand."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from safetensors import safe_open

from autoresearch.running import Job, Level, Limits, Progress, execute, prepare_data
from autoresearch.tasks import ENTRY, shipped_task

BUDGET = 2e10


@pytest.mark.slow
def test_the_shipped_task_gives_the_same_value_as_by_hand(level: Level, tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    task = shipped_task()
    limits = Limits()
    hashes = {name: digest.hex() for name, digest in task.data.items()}
    data = prepare_data(task.harness, hashes, tmp_path / "cache", level=level, limits=limits)
    seen: list[Progress] = []
    files = {**task.harness, ENTRY: task.baseline}
    job = Job(files, data=data, limits=limits, seed=3, budget=BUDGET, checkpoint_to=tmp_path / "out")
    outcome = execute(job, level=level, on_progress=seen.append)
    assert outcome.status == "ok", (outcome.reason, outcome.log)
    assert outcome.metrics["work"] >= BUDGET
    assert seen
    assert outcome.checkpoint is not None
    with safe_open(outcome.checkpoint, framework="numpy") as weights:
        assert list(weights.keys())
    for name, content in files.items():
        (tmp_path / name).write_bytes(content)
    own = {"AUTORESEARCH_DATA": str(data), "AUTORESEARCH_SEED": "3", "AUTORESEARCH_BUDGET": repr(BUDGET)}
    by_hand = subprocess.run(
        [sys.executable, ENTRY], cwd=tmp_path, env={**os.environ, **own}, capture_output=True, text=True, check=True
    )
    printed = re.search(r"val_bpb:\s+([0-9.]+)", by_hand.stdout)
    assert printed is not None
    assert outcome.value == pytest.approx(float(printed.group(1)), abs=1e-5)
