"""The interfaces of components: base classes to derive from. None is required; ``list --check`` tells what is honoured.

Every component reaches the others by ``self.environment``, ``self.policy``, ``self.trainer`` and ``self.dataset``:
the project's defaults. ``self.rng`` is its own random generator, the same for the same run.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any

from autoresearch.project.child.members import current, generator_of
from autoresearch.project.child.recording import AgentEnvironment

if TYPE_CHECKING:
    import numpy as np


class _Component:
    """What all components share."""

    @property
    def environment(self) -> Any:  # noqa: ANN401 - a stranger's class
        """The default environment."""
        return _default("environment")

    @property
    def policy(self) -> Any:  # noqa: ANN401
        """The default policy."""
        return _default("policy")

    @property
    def trainer(self) -> Any:  # noqa: ANN401
        """The default trainer."""
        return _default("trainer")

    @property
    def dataset(self) -> Any:  # noqa: ANN401
        """The default dataset."""
        return _default("dataset")

    @cached_property
    def rng(self) -> np.random.Generator:
        """This component's random generator; its seed follows from the run's."""
        return generator_of(self)

    def state_dict(self) -> Mapping[str, object]:
        """What this component has learned: arrays, tensors, numbers, text, lists and mappings of them."""
        return {}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on from what ``state_dict`` gave."""


class Agent(_Component):
    """Puts the components together. ``obs`` is the last observation; a new episode sets it.

    An agent's ``environment.step(action)`` returns four values: observation, done, reward, info.
    """

    obs: Any = None

    @property
    def environment(self) -> Any:  # noqa: ANN401
        """The default environment, whose ``step`` returns observation, done, reward and info."""
        environment = self.__dict__.get("_environment")
        if environment is None:
            environment = self.__dict__["_environment"] = AgentEnvironment(_default("environment"))
        return environment

    def train(self) -> None:
        """Learn a little: usually one episode."""
        self.trainer.train(self.policy)

    def advance(self) -> Any:  # noqa: ANN401
        """Take one step in the environment. What it returns is not read."""
        action = self.policy.decide(self.obs)
        self.obs, done, _reward, _info = self.environment.step(action)
        return done


class Environment(_Component):
    """What the agent acts in: Gymnasium's interface. ``action_space`` and ``observation_space`` are Gymnasium's too.

    ``solved_reward`` is the mean reward at which it counts as solved, where one is known. Runs and boards show it.
    A benchmark run plays ``random_episodes`` more with random actions, to compare with; 0 where a step moves a machine.
    """

    action_space: Any = None
    observation_space: Any = None
    solved_reward: float | None = None
    random_episodes: int = 20

    def reset(self, *, seed: int | None = None, options: Mapping[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Begin an episode. Returns observation and info."""
        raise NotImplementedError

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:  # noqa: ANN401
        """Take an action. Returns observation, reward, terminated, truncated and info."""
        raise NotImplementedError


class Policy(_Component):
    """Chooses actions."""

    def decide(self, observation: Any) -> Any:  # noqa: ANN401
        """The action for an observation. It neither learns nor explores."""
        raise NotImplementedError


class Trainer(_Component):
    """Improves a policy."""

    def train(self, policy: Any) -> None:  # noqa: ANN401
        """Improve the policy a little: usually by one episode in ``self.environment``."""
        raise NotImplementedError


class Dataset(_Component):
    """Keeps experience. In training every step of the environment is added; in a benchmark run none is."""

    def add(self, observation: Any, action: Any, reward: float, following: Any, *, done: bool) -> None:  # noqa: ANN401
        """Keep one transition."""
        raise NotImplementedError

    def sample(self, count: int) -> Any:  # noqa: ANN401
        """Transitions, drawn at random."""
        raise NotImplementedError


def _default(kind: str) -> Any:  # noqa: ANN401
    return current().default(kind)
