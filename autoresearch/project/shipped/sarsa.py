"""SARSA: improves a table of values by the action that is really taken next."""

from __future__ import annotations

from typing import Any

from autoresearch.project.interfaces import Trainer


class Sarsa(Trainer):
    """One episode a call. With the probability ``epsilon`` it tries any action instead of the best."""

    def __init__(self, learning_rate: float = 0.2, discount: float = 0.99, epsilon: float = 0.1) -> None:
        self.learning_rate, self.discount, self.epsilon = learning_rate, discount, epsilon

    def choose(self, policy: Any, observation: Any) -> int:
        """The action to take now."""
        if self.rng.random() < self.epsilon:
            return int(self.rng.integers(policy.actions))
        return int(policy.decide(observation))

    def train(self, policy: Any) -> None:
        """Learn from one episode."""
        environment, rate, discount = self.environment, self.learning_rate, self.discount
        observation, _ = environment.reset()
        action = self.choose(policy, observation)
        done = False
        while not done:
            following, reward, terminated, truncated, _ = environment.step(action)
            next_action = self.choose(policy, following)
            future = 0.0 if terminated else policy.values(following)[next_action]
            change = rate * (reward + discount * future - policy.values(observation)[action])
            policy.add(observation, action, change)
            observation, action, done = following, next_action, terminated or truncated
