"""A memory of the newest transitions."""

from __future__ import annotations

from typing import Any

from autoresearch.project.interfaces import Dataset
from autoresearch.services.data.replay_buffer import ReplayBuffer


class Replay(Dataset):
    """Keeps ``capacity`` transitions and draws from them uniformly."""

    def __init__(self, capacity: int = 100_000) -> None:
        self.buffer = ReplayBuffer(capacity)

    def add(self, observation: Any, action: Any, reward: float, following: Any, *, done: bool) -> None:
        """Keep one transition."""
        row = {"observation": observation, "action": action, "reward": reward, "following": following, "done": done}
        self.buffer.insert(row)

    def sample(self, count: int) -> Any:
        """Transitions as columns: observation, action, reward, following, done; none where nothing is kept."""
        return self.buffer.sample(count) if len(self.buffer) else None
