"""What stands between an environment and those who use it: counts episodes, steps and rewards, and ends a run.

Whatever order an environment returns its values in, callers see Gymnasium's five.
"""

from __future__ import annotations

import inspect
import itertools
import math
import statistics
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from typing import Any

from autoresearch.errors import AutoresearchError
from autoresearch.judging.statistics import RANDOM, RANDOM_ERROR, SOLVED
from autoresearch.project.child.messages import RunFigures
from autoresearch.run.sandbox.capture import curve_of
from autoresearch.task.model import episode_seed
from autoresearch.text import one_line

# An episode is cut after so many steps: a policy may never find the end.
MOST_EPISODE_STEPS = 100_000
_OF_REWARDS: dict[str, Callable[[Sequence[float]], float]] = {
    "mean_reward": statistics.fmean,
    "median_reward": statistics.median,
    "max_reward": max,
    "min_reward": min,
    "std_reward": statistics.pstdev,
}
# How often a trainer was called that learned without a step in an environment, from a dataset.
OFFLINE_UPDATES = "offline_updates"
# The names of the standard metrics.
METRICS = frozenset(("episodes", "steps", OFFLINE_UPDATES, *_OF_REWARDS))
_LOOK_STEPS = 256
# Between two figures of a run.
FIGURE_SECONDS = 0.5
# Episodes whose mean reward tells how a run is doing.
RECENT = 100


class Stopped(BaseException):
    """The run is asked to end; raised between two steps."""


class Tally:
    """The rewards of the episodes so far, over all environments of a run. ``look`` is called every few steps.

    ``only_finite``: a reward that is no finite number is an error at once, before anything learns from it.
    """

    def __init__(self, look: Callable[[], None] = lambda: None, *, only_finite: bool = False) -> None:
        self.only_finite = only_finite
        self.rewards: list[float] = []
        self.recorders: list[Recorder] = []
        self.remember: Callable[..., object] | None = None
        self.look = look

    @property
    def steps(self) -> int:
        """The steps so far, in all environments."""
        return sum(each.taken for each in self.recorders)

    def ended(self, rewards: Sequence[Any]) -> None:
        """Take in an episode by the rewards of its steps."""
        self.rewards.append(float(sum(rewards)))
        self.look()

    def metrics(self) -> dict[str, int | float]:
        """The standard metrics of the finished episodes."""
        return metrics_of(self.rewards, self.steps)

    def curve(self) -> list[float]:
        """Mean rewards of equal parts of the run."""
        return curve_of(self.rewards)


def figures_of(rewards: Sequence[float], steps: int, seconds: float) -> RunFigures:
    """How far a run is, by the rewards of its finished episodes."""
    recent = rewards[-RECENT:]
    return RunFigures(len(rewards), steps, seconds, statistics.fmean(recent) if recent else None)


def metrics_of(rewards: Sequence[float], steps: int) -> dict[str, int | float]:
    """The standard metrics of finished episodes."""
    metrics: dict[str, int | float] = {"episodes": len(rewards), "steps": steps}
    if rewards:
        metrics |= {name: of(rewards) for name, of in _OF_REWARDS.items()}
    return metrics


# An environment gets a seed of as many bits as it takes: Gymnasium's take all, a message has 63, old ones 32.
_SEED_BITS = (128, 63, 32)


class Recorder:
    """An environment as its users see it: ``step`` returns Gymnasium's five values, all else is the environment's.

    A step costs little more than the environment's own: it keeps the reward, and the rest is done once an episode.
    """

    def __init__(self, environment: Any, tally: Tally, seeds: Iterator[int] = iter(())) -> None:  # noqa: ANN401
        self.inner = environment
        self._tally = tally
        self._seeds = seeds
        self._takes_seed = takes_seed(environment.reset)
        self._seed_bits: tuple[int, ...] = _SEED_BITS  # once it took a seed, these bits alone
        self._step = environment.step
        self._before = 0  # steps of earlier episodes
        self._rewards: list[Any] = []  # of the steps of this one
        self._observation: Any = None
        tally.recorders.append(self)

    @property
    def taken(self) -> int:
        """How many steps were taken in it."""
        return self._before + len(self._rewards)

    def reset(self, **options: Any) -> tuple[Any, dict[str, Any]]:  # noqa: ANN401
        """Begin an episode. Returns observation and info. Older environments take no seed and return no info."""
        if not self._takes_seed:
            result = self.inner.reset()
        elif "seed" in options or (seed := next(self._seeds, None)) is None:
            result = self.inner.reset(**options)
        else:
            result = self._reset_with(seed, options)
        self._before = self.taken
        self._rewards.clear()
        observation, info = result if isinstance(result, tuple) and len(result) == 2 else (result, {})
        self._observation = observation
        return observation, info

    def _reset_with(self, seed: int, options: dict[str, Any]) -> Any:  # noqa: ANN401
        *longer, shortest = self._seed_bits
        for bits in longer:
            with suppress(Exception):  # each environment has an error of its own for a number that is too large
                result = self.inner.reset(**options, seed=seed % 2**bits)
                self._seed_bits = (bits,)
                return result
        result = self.inner.reset(**options, seed=seed % 2**shortest)
        self._seed_bits = (shortest,)
        return result

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, Any]:  # noqa: ANN401
        """Take an action. Returns observation, reward, terminated, truncated and info."""
        result = self._step(action)
        if len(result) != 5:
            result = five(result)
        rewards = self._rewards
        if self._tally.only_finite:
            self._check(result[1])
        rewards.append(result[1])
        if self._tally.remember is not None:
            self._remember(action, result)
        if result[2] or result[3]:
            self._tally.ended(rewards)
        elif not len(rewards) % _LOOK_STEPS:
            return self._checked(result)
        return result  # type: ignore[no-any-return]

    def _check(self, reward: Any) -> None:  # noqa: ANN401
        """Raises AutoresearchError where a reward is no finite number."""
        try:
            if math.isfinite(reward):
                return
        except (TypeError, ValueError, OverflowError):
            pass
        sentence = f"a reward of the environment is no finite number: {one_line(repr(reward), 60)}"
        where = f"in step {len(self._rewards) + 1} of episode {len(self._tally.rewards) + 1}"
        raise AutoresearchError(f"{sentence}, {where}", hint="see its step()")

    def _checked(self, result: tuple[Any, Any, bool, bool, Any]) -> tuple[Any, Any, bool, bool, Any]:
        """The step as it was, or as the last of an episode that is too long."""
        if len(self._rewards) < MOST_EPISODE_STEPS:
            self._tally.look()
            return result
        self._tally.ended(self._rewards)
        return (*result[:3], True, result[4])

    def _remember(self, action: Any, result: tuple[Any, Any, bool, bool, Any]) -> None:  # noqa: ANN401
        assert self._tally.remember is not None
        self._tally.remember(self._observation, action, result[1], result[0], done=bool(result[2]))
        self._observation = result[0]

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401
        return getattr(self.inner, name)


# What acting at random is worth is played so often where an environment says nothing, and for so many steps at most.
RANDOM_EPISODES, _RANDOM_STEPS = 20, 20_000


def compared_rewards(environment: Any, seed: int) -> dict[str, float]:  # noqa: ANN401 - a stranger's class
    """What a reward is compared with: what random actions earn, and ``solved_reward`` where the environment has one.

    What random actions earn comes with its standard error over episodes.
    """
    import numpy as np  # the daemon starts without it

    tally = Tally()
    episodes = int(getattr(environment, "random_episodes", RANDOM_EPISODES))
    space: Any = getattr(environment, "action_space", None)
    recorder = Recorder(environment, tally, map(partial(episode_seed, seed), itertools.count()))
    numbers = np.random.default_rng(seed)
    if hasattr(space, "seed"):
        space.seed(seed % 2**32)
    while space is not None and len(tally.rewards) < episodes and tally.steps < _RANDOM_STEPS:
        recorder.reset()
        ended = False
        while not ended and tally.steps < _RANDOM_STEPS:
            action = int(numbers.integers(space.n)) if hasattr(space, "n") else space.sample()
            _, _, terminated, truncated, _ = recorder.step(action)
            ended = bool(terminated or truncated)
    lines = {}
    if played := len(tally.rewards):
        lines[RANDOM] = statistics.fmean(tally.rewards)
        lines[RANDOM_ERROR] = statistics.pstdev(tally.rewards) / math.sqrt(played)
    solved = getattr(environment, SOLVED, None)
    return lines | {SOLVED: float(solved)} if isinstance(solved, int | float) else lines


class AgentEnvironment:
    """An environment as an agent sees it: ``reset`` returns the observation, ``step`` four values."""

    def __init__(self, environment: Any) -> None:  # noqa: ANN401
        self.inner = environment

    def reset(self, **options: Any) -> Any:  # noqa: ANN401
        """Begin an episode. Returns the observation."""
        result = self.inner.reset(**options)
        return result[0] if isinstance(result, tuple) and len(result) == 2 else result

    def step(self, action: Any) -> tuple[Any, bool, Any, Any]:  # noqa: ANN401
        """Take an action. Returns observation, done, reward and info."""
        result = self.inner.step(action)
        observation, reward, terminated, truncated, info = result if len(result) == 5 else five(result)
        return observation, bool(terminated or truncated), reward, info

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401
        return getattr(self.inner, name)


def five(result: tuple[Any, ...]) -> tuple[Any, Any, bool, bool, Any]:
    """Gymnasium's five values of the four that older environments return: reward and done in either order.

    Raises:
        ValueError: there are not four.
    """
    if len(result) != 4:
        raise ValueError(f"step() must return 5 values as Gymnasium's does, or 4; not {len(result)}")
    observation, first, second, info = result
    reward, done = (second, first) if _is_flag(first) and not _is_flag(second) else (first, second)
    cut = bool(done) and isinstance(info, dict) and bool(info.get("TimeLimit.truncated"))
    return observation, reward, bool(done) and not cut, cut, info


def takes_seed(reset: Callable[..., object]) -> bool:
    """Whether an environment's ``reset`` takes a seed."""
    parameters = inspect.signature(reset).parameters
    return "seed" in parameters or any(each.kind is each.VAR_KEYWORD for each in parameters.values())


def _is_flag(value: object) -> bool:
    return isinstance(value, bool) or type(value).__name__ in ("bool_", "bool")
