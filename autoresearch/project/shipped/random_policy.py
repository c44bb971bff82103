"""A policy that takes any action."""

from __future__ import annotations

from typing import Any

from autoresearch.project.interfaces import Policy


class RandomPolicy(Policy):
    """Draws from the environment's actions, whatever it sees."""

    def decide(self, observation: Any) -> Any:
        """Any action."""
        del observation
        space = self.environment.action_space
        return int(self.rng.integers(space.n)) if hasattr(space, "n") else space.sample()
