"""2048: its moves are legal, and what ships learns to play it better than chance."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from autoresearch.project.components.finding import find_offer
from autoresearch.project.components.installing import install, make_project
from autoresearch.project.shipped.game_2048 import ILLEGAL, Game2048
from autoresearch.services.spaces import Discrete, description_of, space_of
from tests.project.making import bench, train


def test_only_legal_moves_are_made_and_each_action_sees_its_board() -> None:
    game, numbers = Game2048(), np.random.default_rng(0)
    views, _ = game.reset(seed=0)
    ended = False
    while not ended:
        before, action = game.board.copy(), int(numbers.integers(4))
        legal = [each for each in range(4) if (views[each] != ILLEGAL).any()]
        assert all(np.array_equal(views[each], np.rot90(before, each)) for each in legal)
        views, reward, ended, _, info = game.step(action)
        assert info["action"] == next(each % 4 for each in range(action, action + 4) if each % 4 in legal)
        assert game.observation_space.contains(views)
        # Merging keeps the sum of the tiles, and one more tile, a 2 or a 4, was put on the board.
        more = int(np.where(game.board, 2**game.board, 0).sum() - np.where(before, 2**before, 0).sum())
        assert (more in (2, 4), reward >= 0) == (True, True)
    assert (views == ILLEGAL).all()


def test_an_agent_behind_a_wall_sees_the_space_of_the_boards() -> None:
    space = Game2048().observation_space
    assert space_of(description_of(space)) == space == Discrete(ILLEGAL + 1, (4, 4, 4))


@pytest.mark.slow
def test_training_ends_clearly_above_random_actions(tmp_path: Path) -> None:
    project = make_project(tmp_path)
    for kind, name in (("environment", "2048"), ("policy", "q_table"), ("trainer", "sarsa")):
        project = install(project, find_offer(kind, name, tmp_path), default=True)
    train(tmp_path, 150)
    metrics = bench(tmp_path, 20).data.metrics
    assert metrics["mean_reward"] >= 1.3 * metrics["random_reward"]
