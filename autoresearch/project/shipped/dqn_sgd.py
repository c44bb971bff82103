"""Deep Q-learning: trains a network by gradient descent on remembered steps. https://arxiv.org/abs/1312.5602.

The best next action is chosen by the network itself and valued by a slow copy of it (double Q-learning). Copies of the
slow one play: it is steadier than the network that learns.
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
# The player stays the same for so many episodes.
EPISODES = 10
# What is kept of it: figures, and what has a state of its own.
FIGURES = ("steps", "best", "slack", "played", "is_policy", "is_solved")
PARTS = ("network", "target", "player", "optimizer")


class DqnSgd(Trainer):
    """One episode a call, then ``updates`` gradient steps on ``batch_size`` remembered steps each.

    It trains networks of its own, as such training unlearns now and then. A copy of the slow one plays ten episodes
    while the others learn, then the next copy plays. The policy gets a player with the highest mean reward so far, or
    less by chance alone. ``epsilon`` is the share of random actions; it falls from 1 to that over ``explore_steps``
    steps. ``target_rate`` is how far the slow network moves each time. A remembered step has the rewards of ``ahead``
    steps. They are divided by ``unit``: the mean of their sizes, times the steps that the discount looks ahead.
    """

    def __init__(
        self,
        learning_rate: float = 1.5e-3,
        discount: float = 0.99,
        epsilon: float = 0.02,
        explore_steps: int = 3_000,
        batch_size: int = 64,
        updates: int = 100,
        target_rate: float = 0.02,
        ahead: int = 3,
    ) -> None:
        self.epsilon, self.explore_steps, self.batch_size = epsilon, explore_steps, batch_size
        self.updates, self.target_rate = updates, target_rate
        self.powers = discount ** np.arange(ahead + 1)
        self.steps = self.remembered = 0
        self.unit = 1.0
        self.played: list[float] = []
        self.best, self.slack = float("-inf"), 0.0
        self.is_policy = self.is_solved = False
        self.network, self.target, self.player = (copy.deepcopy(self.policy.network) for _ in range(3))
        self.optimizer = torch.optim.Adam(self.network.parameters(), lr=learning_rate, fused=True)
        self.seen, self.following = np.zeros((2, CAPACITY, self.policy.width), np.float32)
        self.actions = np.zeros((CAPACITY, 1), np.int64)
        self.rewards, self.discounts = np.zeros((2, CAPACITY), np.float32)

    def train(self, policy: Any) -> None:
        """Learn from one episode."""
        environment, terminated, done = self.environment, False, False
        observations, actions, rewards = [policy.encode(environment.reset()[0])], list[int](), list[float]()
        while not done:
            explores = self.rng.random() < max(self.epsilon, 1 - self.steps / self.explore_steps)
            actions.append(int(self.rng.integers(policy.actions)) if explores else self.choose(observations[-1]))
            observation, reward, terminated, truncated, _ = environment.step(actions[-1])
            observations.append(policy.encode(observation))
            rewards.append(float(reward))
            done = terminated or truncated
            self.steps += 1
        self.remember(observations, actions, np.array(rewards), terminated=terminated)
        self.compare(policy, sum(rewards))
        if self.remembered >= 4 * self.batch_size and not self.is_solved:
            # Values are then about one: the loss is a square, and rare ends are no outliers that it leaves aside.
            ahead = 1 / max(1 - self.powers[-1], 0.01)
            self.unit = float(np.abs(self.rewards[: self.remembered]).mean() * ahead) or 1.0
            for _ in range(self.updates):
                self.learn()

    def remember(self, observations: list[Any], actions: list[int], rewards: Any, *, terminated: bool) -> None:
        """Keep the steps of an episode, each with its next rewards and the observation after them."""
        count, most = len(actions), len(self.powers) - 1
        for step in range(count):
            end = min(step + most, count)
            place = self.remembered % CAPACITY
            self.seen[place], self.following[place] = observations[step], observations[end]
            self.actions[place] = actions[step]
            self.rewards[place] = rewards[step:end] @ self.powers[: end - step]
            self.discounts[place] = 0 if terminated and end == count else self.powers[end - step]
            self.remembered += 1

    def compare(self, policy: Any, total: float) -> None:
        """Note what the player's episode brought. After ten of them the policy gets it, or not, and the next plays."""
        self.played.append(total)
        if len(self.played) % EPISODES:
            if self.best == float("-inf"):
                policy.network.load_state_dict(self.target.state_dict())
            return
        mean = sum(self.played) / len(self.played)
        if self.is_policy or mean >= self.best - self.slack:
            policy.network.load_state_dict(self.player.state_dict())
            if self.is_policy or mean >= self.best:
                self.best, self.slack = mean, float(np.std(self.played)) / len(self.played) ** 0.5
            self.is_policy = True
        goal = getattr(self.environment, "solved_reward", None)
        # One that solves the environment plays on: nothing learns meanwhile, nor unlearns.
        self.is_solved = goal is not None and mean >= goal
        if not self.is_solved:
            self.player.load_state_dict(self.target.state_dict())
            self.played, self.is_policy = [], False

    @torch.inference_mode()
    def choose(self, observation: Any) -> int:
        """The best action."""
        return int(self.player(torch.from_numpy(observation)).argmax())

    def learn(self) -> None:
        """Take a gradient step on remembered steps."""
        rows = self.rng.integers(min(self.remembered, CAPACITY), size=self.batch_size)
        following, rewards, discounts = (
            torch.from_numpy(each[rows]) for each in (self.following, self.rewards, self.discounts)
        )
        with torch.no_grad():
            chosen = self.network(following).argmax(1, keepdim=True)
            targets = rewards / self.unit + discounts * self.target(following).gather(1, chosen)[:, 0]
        value = self.network(torch.from_numpy(self.seen[rows])).gather(1, torch.from_numpy(self.actions[rows]))[:, 0]
        loss = nn.functional.smooth_l1_loss(value, targets)
        self.optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        self.optimizer.step()
        with torch.no_grad():
            for slow, fast in zip(self.target.parameters(), self.network.parameters(), strict=True):
                slow.lerp_(fast, self.target_rate)

    def state_dict(self) -> Mapping[str, object]:
        """How far it is, its networks and the optimizer's moments; remembered steps are not kept."""
        return {name: getattr(self, name) for name in FIGURES} | {
            name: getattr(self, name).state_dict() for name in PARTS
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on from there with an empty memory."""
        for name in FIGURES:
            setattr(self, name, state[name])
        for name in PARTS:
            getattr(self, name).load_state_dict(state[name])
