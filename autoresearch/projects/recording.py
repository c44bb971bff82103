"""What stands between an environment and those who use it: counts episodes, steps and rewards, and ends a run.

Whatever order an environment returns its values in, callers see Gymnasium's five.
"""

from __future__ import annotations

import inspect
import itertools
import statistics
from collections.abc import Callable, Iterator
from typing import Any

# An episode is cut after so many steps: a policy may never find the end.
MOST_EPISODE_STEPS = 100_000
# Points of a reward curve, as a run record holds.
CURVE_POINTS = 64
_LOOK_STEPS = 256


class Stopped(BaseException):
    """The run is asked to end; raised between two steps."""


class Tally:
    """The rewards of the episodes so far, over all environments of a run. ``look`` is called every few steps."""

    def __init__(self, look: Callable[[], None] = lambda: None) -> None:
        self.rewards: list[float] = []
        self.recorders: list[Recorder] = []
        self.remember: Callable[..., object] | None = None
        self.look = look

    @property
    def steps(self) -> int:
        """The steps so far, in all environments."""
        return sum(each.taken for each in self.recorders)

    def metrics(self) -> dict[str, int | float]:
        """The standard metrics of the finished episodes."""
        found: dict[str, int | float] = {"episodes": len(self.rewards), "steps": self.steps}
        if self.rewards:
            found |= {
                "mean_reward": statistics.fmean(self.rewards),
                "median_reward": statistics.median(self.rewards),
                "max_reward": max(self.rewards),
                "min_reward": min(self.rewards),
            }
        return found

    def curve(self) -> list[float]:
        """Mean rewards over the run in at most ``CURVE_POINTS`` equal parts."""
        count = len(self.rewards)
        points = min(count, CURVE_POINTS)
        cuts = [count * point // points for point in range(points + 1)] if points else []
        return [statistics.fmean(self.rewards[a:b]) for a, b in itertools.pairwise(cuts)]


class Recorder:
    """An environment as its users see it: ``step`` returns Gymnasium's five values, all else is the environment's.

    ``taken`` is how many steps were taken in it. A step costs little more than the environment's own.
    """

    def __init__(self, environment: Any, tally: Tally, seeds: Iterator[int] = iter(())) -> None:  # noqa: ANN401
        self.inner = environment
        self.taken = 0
        self._tally = tally
        self._seeds = seeds
        self._takes_seed = _takes_seed(environment.reset)
        self._step = environment.step
        self._reward = 0.0
        self._began = 0
        self._check = _LOOK_STEPS
        self._observation: Any = None
        tally.recorders.append(self)

    def reset(self, **given: Any) -> tuple[Any, dict[str, Any]]:  # noqa: ANN401
        """Begin an episode. Returns observation and info. Older environments take no seed and return no info."""
        if "seed" not in given and (seed := next(self._seeds, None)) is not None:
            given["seed"] = seed
        found = self.inner.reset(**given) if self._takes_seed else self.inner.reset()
        self._reward, self._began, self._check = 0.0, self.taken, self.taken + _LOOK_STEPS
        observation, info = found if isinstance(found, tuple) and len(found) == 2 else (found, {})
        self._observation = observation
        return observation, info

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, Any]:  # noqa: ANN401
        """Take an action. Returns observation, reward, terminated, truncated and info."""
        found = self._step(action)
        if len(found) != 5:
            found = five(found)
        _, reward, terminated, truncated, _ = found
        self._reward += reward
        self.taken = taken = self.taken + 1
        if self._tally.remember is not None:
            self._remember(action, found)
        if terminated or truncated:
            self._tally.rewards.append(float(self._reward))
            self._tally.look()
        elif taken >= self._check:
            return self._checked(found)
        return found  # type: ignore[no-any-return]

    def _checked(self, found: tuple[Any, Any, bool, bool, Any]) -> tuple[Any, Any, bool, bool, Any]:
        """The step as it was, or as the last of an episode that is too long."""
        self._check += _LOOK_STEPS
        if self.taken - self._began >= MOST_EPISODE_STEPS:
            self._tally.rewards.append(float(self._reward))
            found = (*found[:3], True, found[4])
        self._tally.look()
        return found

    def _remember(self, action: Any, found: tuple[Any, Any, bool, bool, Any]) -> None:  # noqa: ANN401
        assert self._tally.remember is not None
        self._tally.remember(self._observation, action, found[1], found[0], done=bool(found[2]))
        self._observation = found[0]

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401
        return getattr(self.inner, name)


class AgentEnvironment:
    """An environment as an agent sees it: ``reset`` returns the observation, ``step`` four values."""

    def __init__(self, environment: Any) -> None:  # noqa: ANN401
        self.inner = environment

    def reset(self, **given: Any) -> Any:  # noqa: ANN401
        """Begin an episode. Returns the observation."""
        found = self.inner.reset(**given)
        return found[0] if isinstance(found, tuple) and len(found) == 2 else found

    def step(self, action: Any) -> tuple[Any, bool, Any, Any]:  # noqa: ANN401
        """Take an action. Returns observation, done, reward and info."""
        found = self.inner.step(action)
        observation, reward, terminated, truncated, info = found if len(found) == 5 else five(found)
        return observation, bool(terminated or truncated), reward, info

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401
        return getattr(self.inner, name)


def five(found: tuple[Any, ...]) -> tuple[Any, Any, bool, bool, Any]:
    """Gymnasium's five values of the four that older environments return: reward and done in either order.

    Raises:
        ValueError: there are not four.
    """
    if len(found) != 4:
        raise ValueError(f"step() must return 5 values as Gymnasium's does, or 4; not {len(found)}")
    observation, first, second, info = found
    reward, done = (second, first) if _is_flag(first) and not _is_flag(second) else (first, second)
    cut = bool(done) and isinstance(info, dict) and bool(info.get("TimeLimit.truncated"))
    return observation, reward, bool(done) and not cut, cut, info


def _takes_seed(reset: Callable[..., object]) -> bool:
    parameters = inspect.signature(reset).parameters
    return "seed" in parameters or any(each.kind is each.VAR_KEYWORD for each in parameters.values())


def _is_flag(value: object) -> bool:
    return isinstance(value, bool) or type(value).__name__ in ("bool_", "bool")
