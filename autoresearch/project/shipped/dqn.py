"""A deep Q-network: a small neural network that estimates the value of each action."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from autoresearch.project.interfaces import Policy


class DQN(Policy):
    """Takes the action of the highest value. Two layers of ``hidden`` units."""

    def __init__(self, hidden: int = 128) -> None:
        space = self.environment.observation_space
        self.places = int(space.n) if hasattr(space, "n") else 0
        inputs = self.places or int(np.prod(space.shape))
        self.actions = int(self.environment.action_space.n)
        layers = (nn.Linear(inputs, hidden), nn.ReLU(), nn.Linear(hidden, hidden), nn.ReLU())
        self.network = nn.Sequential(*layers, nn.Linear(hidden, self.actions))

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
        found: Mapping[str, Tensor] = self.network.state_dict()
        return found

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on from them."""
        self.network.load_state_dict(state)
