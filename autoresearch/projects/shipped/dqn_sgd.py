"""Deep Q-learning: trains a network by gradient descent on remembered steps. https://arxiv.org/abs/1312.5602.

The best next action is chosen by the network itself and valued by an older copy of it (double Q-learning).
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

import torch
from torch import nn

from autoresearch import Trainer


class DqnSgd(Trainer):
    """One episode a call. Every ``every`` steps it takes ``updates`` gradient steps.

    ``epsilon`` is the share of random actions; it falls from 1 to that over ``explore_steps`` steps.
    """

    def __init__(
        self,
        learning_rate: float = 2.3e-3,
        discount: float = 0.99,
        epsilon: float = 0.04,
        explore_steps: int = 8_000,
        batch_size: int = 64,
        capacity: int = 50_000,
        every: int = 256,
        updates: int = 128,
    ) -> None:
        self.discount, self.epsilon, self.explore_steps = discount, epsilon, explore_steps
        self.batch_size, self.every, self.updates = batch_size, every, updates
        self.capacity, self.steps, self.remembered = capacity, 0, 0
        network = self.policy.network
        self.target = copy.deepcopy(network)
        self.optimizer = torch.optim.Adam(network.parameters(), lr=learning_rate)
        width = network[0].in_features
        self.seen = torch.zeros((capacity, width))
        self.following = torch.zeros((capacity, width))
        self.actions = torch.zeros((capacity, 1), dtype=torch.int64)
        self.rewards = torch.zeros(capacity)
        self.ended = torch.zeros(capacity)

    def train(self, policy: Any) -> None:
        """Learn from one episode."""
        environment = self.environment
        observation, done = policy.encode(environment.reset()[0]), False
        while not done:
            share = max(self.epsilon, 1 - self.steps / self.explore_steps)
            action = (
                int(self.rng.integers(policy.actions)) if self.rng.random() < share else self.best(policy, observation)
            )
            found, reward, terminated, truncated, _ = environment.step(action)
            following, done = policy.encode(found), terminated or truncated
            place = self.remembered % self.capacity
            self.seen[place], self.following[place] = torch.from_numpy(observation), torch.from_numpy(following)
            self.actions[place, 0], self.rewards[place], self.ended[place] = action, float(reward), float(terminated)
            observation = following
            self.steps += 1
            self.remembered += 1
            if self.remembered % self.every == 0:
                self.learn(policy.network)

    @torch.inference_mode()
    def best(self, policy: Any, observation: Any) -> int:
        """The action of the highest value."""
        return int(policy.network(torch.from_numpy(observation)).argmax())

    def learn(self, network: nn.Module) -> None:
        """Take gradient steps on remembered steps."""
        self.target.load_state_dict(network.state_dict())
        for _ in range(self.updates):
            rows = torch.from_numpy(self.rng.integers(min(self.remembered, self.capacity), size=self.batch_size))
            with torch.no_grad():
                following = self.following[rows]
                chosen = network(following).argmax(1, keepdim=True)
                future = self.target(following).gather(1, chosen)[:, 0]
                wanted = self.rewards[rows] + self.discount * future * (1 - self.ended[rows])
            value = network(self.seen[rows]).gather(1, self.actions[rows])[:, 0]
            loss = nn.functional.smooth_l1_loss(value, wanted)
            self.optimizer.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            nn.utils.clip_grad_norm_(network.parameters(), 10)
            self.optimizer.step()

    def state_dict(self) -> Mapping[str, object]:
        """How far it is, and the optimizer's moments; what it remembers of the environment is not kept."""
        return {"steps": self.steps, "optimizer": self.optimizer.state_dict()}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on from there with an empty memory."""
        self.steps = state["steps"]
        self.optimizer.load_state_dict(state["optimizer"])
        self.target.load_state_dict(self.policy.network.state_dict())
