"""Any environment of Gymnasium, by its id: https://gymnasium.farama.org."""

from __future__ import annotations

from typing import Any

import gymnasium

from autoresearch.project.interfaces import Environment


class GymEnvironment(Environment):
    """``gymnasium.make(id)``. ``options`` are further arguments of it, as a JSON object."""

    def __init__(self, id: str, options: dict[str, Any] | None = None) -> None:  # noqa: A002 - Gymnasium's name
        self.inner: gymnasium.Env[Any, Any] = gymnasium.make(id, **(options or {}))
        self.action_space = self.inner.action_space
        self.observation_space = self.inner.observation_space
        self.solved_reward = self.inner.spec.reward_threshold if self.inner.spec else None

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        """Take an action."""
        return self.inner.step(action)

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        """Begin an episode."""
        if seed is not None:
            self.action_space.seed(seed)
        return self.inner.reset(seed=seed, options=options)
