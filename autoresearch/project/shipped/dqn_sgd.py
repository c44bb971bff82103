"""Deep Q-learning: trains a network by gradient descent on remembered steps. https://arxiv.org/abs/1312.5602.

The best next action is chosen by the network itself and valued by a slow copy of it (double Q-learning). The slow copy
plays: it is steadier than the network that learns.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from torch import nn

from autoresearch.project.interfaces import Trainer

# How many steps are remembered.
CAPACITY = 50_000
# The slow copy follows after so many gradient steps.
FOLLOWS = 8
# Over so many episodes networks are compared.
EPISODES = 10


class DqnSgd(Trainer):
    """One episode a call, then a gradient step on ``batch_size`` remembered steps for every ``every`` steps of it.

    It trains networks of its own, as such training unlearns now and then. The policy gets the one that plays whenever
    the last episodes brought the highest mean reward so far, or less by chance alone. ``epsilon`` is the share of
    random actions; it falls from 1 to that over ``explore_steps`` steps. ``target_rate`` is how far the slow copy moves
    each time. Rewards are divided by the mean of their sizes, ``unit``.
    """

    def __init__(
        self,
        learning_rate: float = 1e-3,
        discount: float = 0.98,
        epsilon: float = 0.02,
        explore_steps: int = 3_000,
        batch_size: int = 64,
        every: int = 1,
        target_rate: float = 0.08,
    ) -> None:
        self.discount, self.epsilon, self.explore_steps = discount, epsilon, explore_steps
        self.batch_size, self.every, self.target_rate = batch_size, every, target_rate
        self.steps = self.remembered = self.updates = 0
        self.unit = 1.0
        self.recent: list[float] = []
        self.best, self.slack = float("-inf"), 0.0
        self.network, self.target = (copy.deepcopy(self.policy.network) for _ in range(2))
        self.optimizer = torch.optim.Adam(self.network.parameters(), lr=learning_rate, fused=True)
        self.seen, self.following = np.zeros((2, CAPACITY, self.policy.width), np.float32)
        self.actions = np.zeros((CAPACITY, 1), np.int64)
        self.rewards, self.ended = np.zeros((2, CAPACITY), np.float32)

    def train(self, policy: Any) -> None:
        """Learn from one episode."""
        environment, total, began = self.environment, 0.0, self.remembered
        observation, done = policy.encode(environment.reset()[0]), False
        while not done:
            explores = self.rng.random() < max(self.epsilon, 1 - self.steps / self.explore_steps)
            action = int(self.rng.integers(policy.actions)) if explores else self.choose(observation)
            next_observation, reward, terminated, truncated, _ = environment.step(action)
            following, done = policy.encode(next_observation), terminated or truncated
            place = self.remembered % CAPACITY
            self.seen[place], self.following[place], self.actions[place] = observation, following, action
            self.rewards[place], self.ended[place] = reward, terminated
            observation, total = following, total + reward
            self.steps += 1
            self.remembered += 1
        self.keep_best(policy, total)
        self.unit = float(np.abs(self.rewards[: self.remembered]).mean()) or 1.0
        if self.remembered >= 4 * self.batch_size and not self.is_solved():
            for _ in range((self.remembered - began + self.every - 1) // self.every):
                self.learn()

    def keep_best(self, policy: Any, total: float) -> None:
        """Give the policy the network that plays, if it plays as well as the best before, or by ``slack`` less."""
        self.recent = [*self.recent, total][-EPISODES:]
        mean = sum(self.recent) / len(self.recent)
        if len(self.recent) == EPISODES and mean >= self.best - self.slack:
            if mean >= self.best:
                self.best, self.slack = mean, float(np.std(self.recent)) / EPISODES**0.5
            policy.network.load_state_dict(self.target.state_dict())

    def is_solved(self) -> bool:
        """Whether the last episodes reached what the environment calls solved: then it does not learn, nor unlearn."""
        goal = getattr(self.environment, "solved_reward", None)
        return goal is not None and len(self.recent) == EPISODES and sum(self.recent) / EPISODES >= goal

    @torch.inference_mode()
    def choose(self, observation: Any) -> int:
        """The best action."""
        return int(self.target(torch.from_numpy(observation)).argmax())

    def learn(self) -> None:
        """Take a gradient step on remembered steps."""
        rows = self.rng.integers(min(self.remembered, CAPACITY), size=self.batch_size)
        following, rewards, ended = (
            torch.from_numpy(each[rows]) for each in (self.following, self.rewards, self.ended)
        )
        rewards /= self.unit
        with torch.no_grad():
            chosen = self.network(following).argmax(1, keepdim=True)
            targets = rewards + self.discount * self.target(following).gather(1, chosen)[:, 0] * (1 - ended)
        value = self.network(torch.from_numpy(self.seen[rows])).gather(1, torch.from_numpy(self.actions[rows]))[:, 0]
        loss = nn.functional.smooth_l1_loss(value, targets)
        self.optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        self.optimizer.step()
        self.updates += 1
        if self.updates % FOLLOWS == 0:
            with torch.no_grad():
                for slow, fast in zip(self.target.parameters(), self.network.parameters(), strict=True):
                    slow.lerp_(fast, self.target_rate)

    def state_dict(self) -> Mapping[str, object]:
        """How far it is, its networks and the optimizer's moments; remembered steps are not kept."""
        networks = {"network": self.network.state_dict(), "target": self.target.state_dict()}
        return {
            "steps": self.steps,
            "best": self.best,
            "slack": self.slack,
            **networks,
            "optimizer": self.optimizer.state_dict(),
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on from there with an empty memory."""
        self.steps, self.best, self.slack = state["steps"], state["best"], state.get("slack", 0.0)
        self.network.load_state_dict(state["network"])
        self.target.load_state_dict(state["target"])
        self.optimizer.load_state_dict(state["optimizer"])
