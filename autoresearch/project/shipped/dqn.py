"""A deep Q-network: a small neural network that estimates the value of each action."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from autoresearch.project.interfaces import Policy


class Boards(nn.Module):
    """A board for each action, all in a row, as units that are 0 or 1: one for each place and number."""

    def __init__(self, actions: int, numbers: int) -> None:
        super().__init__()
        self.actions, self.numbers = actions, numbers

    def forward(self, row: Tensor) -> Tensor:
        """The units of each action's board."""
        boards = row.long().reshape(*row.shape[:-1], self.actions, -1)
        return nn.functional.one_hot(boards, self.numbers).flatten(-2).float()


class DQN(Policy):
    """Takes the action of the highest value. Two layers of ``hidden`` units.

    Where an observation is a board for each action, one network values each action by its board.
    """

    def __init__(self, hidden: int = 64) -> None:
        space = self.environment.observation_space
        self.actions = int(self.environment.action_space.n)
        numbers, size = int(getattr(space, "n", 0)), int(np.prod(space.shape))
        is_boards = bool(numbers) and len(space.shape) > 1 and space.shape[0] == self.actions
        self.places = numbers if not space.shape else 0
        self.width = self.places or size
        inputs = size // self.actions * numbers if is_boards else self.width
        layers = (nn.Linear(inputs, hidden), nn.ReLU(), nn.Linear(hidden, hidden), nn.ReLU())
        first = (Boards(self.actions, numbers),) if is_boards else ()
        last = (nn.Linear(hidden, 1), nn.Flatten(-2)) if is_boards else (nn.Linear(hidden, self.actions),)
        self.network = nn.Sequential(*first, *layers, *last)

    def encode(self, observation: Any) -> Any:
        """An observation as numbers for the network, float32: one of ``places``, or all of it in a row."""
        if self.places:
            return np.eye(self.places, dtype=np.float32)[observation]
        return np.asarray(observation, dtype=np.float32).ravel()

    @torch.inference_mode()
    def decide(self, observation: Any) -> int:
        """The best action."""
        return int(self.network(torch.from_numpy(self.encode(observation))).argmax())

    def state_dict(self) -> Mapping[str, Tensor]:
        """The weights."""
        weights: Mapping[str, Tensor] = self.network.state_dict()
        return weights

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on from them."""
        self.network.load_state_dict(state)
