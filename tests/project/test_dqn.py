"""Deep Q-learning solves Gymnasium's CartPole. How long that takes is in the benchmark of projects."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from autoresearch.project.child.members import Members, use
from autoresearch.project.components.finding import find_offer
from autoresearch.project.components.installing import install, make_project
from tests.project.making import bench, train

EPISODES = 200


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_dqn_balances_the_pole(tmp_path: Path) -> None:
    project = make_project(tmp_path)
    for kind, component in (("environment", "gym:CartPole-v1"), ("policy", "dqn"), ("trainer", "dqn_sgd")):
        project = install(project, find_offer(kind, component, tmp_path), default=True)
    train(tmp_path, EPISODES)
    assert bench(tmp_path, 50).data.metrics["mean_reward"] >= 475


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


@pytest.mark.slow
@pytest.mark.parametrize(("discount", "value"), [(0.99, 1.0), (1.0, 0.337)])
def test_rewards_are_divided_so_that_values_are_about_one(discount: float, value: float, tmp_path: Path) -> None:
    project = make_project(tmp_path)
    for kind, component in (("policy", "dqn"), ("trainer", "dqn_sgd")):
        project = install(project, find_offer(kind, component, tmp_path), default=True)
    members = Members(project)
    use(members)
    policy, trainer = members.default("policy"), members.default("trainer")
    trainer.updates, trainer.powers = 0, discount ** np.arange(4)
    while trainer.remembered < 4 * trainer.batch_size:
        trainer.train(policy)
    row = trainer.rewards[0]  # three steps of -1 each
    assert row / trainer.unit / (1 - 0.99**3) == pytest.approx(-value, rel=0.1)  # what such steps add up to


def test_the_policy_gets_the_player_that_was_measured_as_the_best(tmp_path: Path) -> None:
    project = make_project(tmp_path)
    for kind, component in (("policy", "dqn"), ("trainer", "dqn_sgd")):
        project = install(project, find_offer(kind, component, tmp_path), default=True)
    members = Members(project)
    use(members)
    policy, trainer = members.default("policy"), members.default("trainer")

    def weight(network: Any) -> float:
        first, *_ = network.state_dict().values()
        return float(first.flatten()[0])

    def after(number: float, total: float) -> tuple[float, float]:
        """A weight of the policy and of the player, once the slow network has this weight and ten episodes were so."""
        next(iter(trainer.target.state_dict().values())).fill_(number)
        for _ in range(10):
            trainer.compare(policy, total)
        return weight(policy.network), weight(trainer.player)

    next(iter(trainer.target.state_dict().values())).fill_(0.5)
    trainer.compare(policy, -50.0)
    assert weight(policy.network) == 0.5, "before ten episodes it has the slow network"
    trainer.played.clear()
    began = weight(trainer.player)
    assert after(1, -50) == (began, 1)
    assert after(2, -20) == (1, 2)
    assert after(3, -40) == (1, 3), "a worse one is not taken"
    assert (after(4, -9), trainer.is_solved) == ((3, 3), True)  # the corridor counts as solved: it plays on
    assert (after(4, -9), trainer.is_solved) == ((3, 3), True)
    assert (after(4, -30), trainer.is_solved, trainer.best) == ((3, 4), False, -16), "its mean over all it played"
    assert after(5, -20) == (3, 5)
