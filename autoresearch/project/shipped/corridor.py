"""A corridor: walk to its right end. The simplest environment that something can be learned in."""

from __future__ import annotations

from typing import Any

from autoresearch.project.interfaces import Environment
from autoresearch.services.spaces import Discrete


class Corridor(Environment):
    """Action 0 steps left, 1 steps right. Every step costs 1; the last place ends the episode."""

    def __init__(self, length: int = 10, max_steps: int = 200) -> None:
        self.length, self.max_steps = length, max_steps
        self.action_space = Discrete(2)
        self.observation_space = Discrete(length)
        self.solved_reward = 1 - length
        self.place = self.steps = 0

    def reset(self, **_: Any) -> tuple[int, dict[str, Any]]:
        """Begin at the left end."""
        self.place = self.steps = 0
        return self.place, {}

    def step(self, action: int) -> tuple[int, float, bool, bool, dict[str, Any]]:
        """Take a step."""
        self.place = min(max(self.place + (1 if action == 1 else -1), 0), self.length - 1)
        self.steps += 1
        return self.place, -1.0, self.place == self.length - 1, self.steps >= self.max_steps, {}
