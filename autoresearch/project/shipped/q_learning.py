"""Q-learning: improves a table of values from remembered transitions, whoever played them."""

from __future__ import annotations

from typing import Any

from autoresearch.project.interfaces import Trainer


class QLearning(Trainer):
    """Learns from the dataset. With the probability ``epsilon`` it tries any action instead of the best."""

    def __init__(
        self, learning_rate: float = 0.2, discount: float = 0.99, epsilon: float = 0.2, batch: int = 200
    ) -> None:
        self.learning_rate, self.discount, self.epsilon, self.batch = learning_rate, discount, epsilon, batch

    def explore(self, policy: Any, observation: Any) -> int:
        """The action to take while it learns."""
        if self.rng.random() < self.epsilon:
            return int(self.rng.integers(policy.actions))
        return int(policy.decide(observation))

    def train(self, policy: Any) -> None:
        """Play an episode, which the dataset remembers, and learn."""
        observation, _ = self.environment.reset()
        done = False
        while not done:
            observation, _, terminated, truncated, _ = self.environment.step(self.explore(policy, observation))
            done = terminated or truncated
        self.learn(policy)

    def learn(self, policy: Any) -> None:
        """Learn from remembered transitions alone."""
        batch = self.dataset.sample(self.batch)
        if batch is None:
            return
        columns = (batch[name].tolist() for name in ("observation", "action", "reward", "following", "done"))
        for seen, action, reward, following, done in zip(*columns, strict=True):
            future = 0.0 if done else max(policy.values(following))
            policy.add(
                seen, action, self.learning_rate * (reward + self.discount * future - policy.values(seen)[action])
            )
