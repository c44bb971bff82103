"""Deep Q-learning solves Gymnasium's CartPole. How long that takes is in the benchmark of projects."""

from __future__ import annotations

from pathlib import Path

import pytest

from autoresearch.project.components.finding import find_offer
from autoresearch.project.components.installing import install, make_project
from tests.project.making import bench, train

EPISODES = 300


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_dqn_balances_the_pole(tmp_path: Path) -> None:
    project = make_project(tmp_path)
    for kind, component in (("environment", "gym:CartPole-v1"), ("policy", "dqn"), ("trainer", "dqn_sgd")):
        project = install(project, find_offer(kind, component, tmp_path), default=True)
    train(tmp_path, EPISODES)
    assert bench(tmp_path, 50).data.metrics["mean_reward"] >= 450


@pytest.mark.slow
def test_dqn_goes_on_from_what_it_learned(tmp_path: Path) -> None:
    project = make_project(tmp_path)
    for kind, component in (("policy", "dqn"), ("trainer", "dqn_sgd")):
        project = install(project, find_offer(kind, component, tmp_path), default=True)
    first = train(tmp_path, 4)
    names = {path.name for path in (first.folder / "data").iterdir()}
    assert {"policy.dqn.safetensors", "trainer.dqn_sgd.safetensors"} <= names
    second = train(tmp_path, 1)
    assert second.data.totals.training_episodes == 5
    changed = {name for name in names if second.data.files[f"data/{name}"] != first.data.files[f"data/{name}"]}
    assert "trainer.dqn_sgd.json" in changed
