"""The two sides of an evaluation, each in a sandbox of its own.

``examine`` plays episodes of the task's environment and prints what the agent earned; ``answer`` is the agent with what
it learned.

The environment of ``environment.ini`` lives in the first alone. The agent sees observations and rewards and gives
actions; it can neither reach the environment nor begin an episode anew, and what it says of its rewards is not asked.
"""

from __future__ import annotations

import itertools
import math
import os
import statistics
import sys
import tempfile
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from autoresearch.errors import AutoresearchError, BadMessage, UsageError
from autoresearch.link import LinkEnded
from autoresearch.project.child.child import Session
from autoresearch.project.child.members import Members
from autoresearch.project.child.messages import Conversation, Order
from autoresearch.project.child.recording import Recorder, Tally
from autoresearch.project.exchange.flat_files import BENCHMARK, ENVIRONMENT_INI
from autoresearch.project.inside.training import environment_project, flat_project
from autoresearch.project.learned import LEARNED, unpack_learned
from autoresearch.project.model import load_ini
from autoresearch.services.spaces import description_of, space_of
from autoresearch.task.model import episode_seed
from autoresearch.text import one_line


class RemoteEnvironment:
    """The environment as the agent's side has it: every step is taken by the other side."""

    def __init__(self, talk: Conversation, action_space: object, observation_space: object) -> None:
        self.action_space, self.observation_space = action_space, observation_space
        self._talk = talk
        self._is_over = True

    def reset(self, **_: object) -> tuple[Any, dict[str, Any]]:
        """Begin the next episode. Raises AutoresearchError in the middle of one."""
        if not self._is_over:
            raise AutoresearchError(
                "an episode of a benchmark can't be begun anew", hint="play it to its end, then call reset()"
            )
        self._is_over = False
        observation, info = self._told(2)
        return observation, info

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:  # noqa: ANN401
        """Take an action. Raises AutoresearchError where no episode has begun."""
        if self._is_over:
            raise AutoresearchError("the episode is over", hint="call reset() before the next step")
        self._talk.send(action)
        observation, reward, terminated, truncated, info = self._told(5)
        self._is_over = terminated or truncated
        return observation, reward, terminated, truncated, info

    def _told(self, count: int) -> Any:  # noqa: ANN401
        message = self._talk.receive()
        if not isinstance(message, list | tuple) or len(message) != count:
            raise BadMessage("the environment's side told something else than a step")
        return tuple(message)


def answer() -> None:
    """Play until the other side has seen enough.

    Raises:
        AutoresearchError: the project, or what it learned, can't be loaded, or a component fails.
    """
    folder, talk = Path.cwd(), Conversation.given()
    question = talk.receive()
    project = flat_project(folder)
    components = {kind: members for kind, members in project.components.items() if kind != "environment"}
    defaults = {kind: name for kind, name in project.defaults.items() if kind != "environment"}
    with tempfile.TemporaryDirectory(dir=folder) as scratch:
        if (folder / LEARNED).exists():
            unpack_learned(folder / LEARNED, Path(scratch))
        order = Order(
            project=msgspec.structs.replace(project, components=components, defaults=defaults),
            mode="bench",
            episodes=int(question["episodes"]),
            seed=int(os.environ.get("AUTORESEARCH_SEED", "0")),
            learned=scratch,
            out=scratch,
        )
        session = Session(order, lambda _figures: None, lambda: False)
        spaces = (space_of(question["action_space"]), space_of(question["observation_space"]))
        session.members.register("environment", str(question["name"]), lambda: RemoteEnvironment(talk, *spaces))
        try:
            session.run()
        except LinkEnded:
            raise AutoresearchError("the environment's side ended before the last episode") from None


_PLAIN = (bool, int, float, str, np.ndarray, np.generic)


def examine() -> None:
    """Play the episodes and print the mean reward, its standard error and the other metrics.

    Raises:
        UsageError: a number of the task is none.
        AutoresearchError: the environment fails, or the agent's actions are none.
    """
    folder, seed = Path.cwd(), int(os.environ.get("AUTORESEARCH_SEED", "0"))
    project, episodes = environment_project(folder), _episodes(folder)
    tally, talk = Tally(), Conversation.given()
    name = project.component("environment").name
    inner = Members(project, seed=seed, made=lambda *made: made[2]).default("environment")
    environment = Recorder(inner, tally, map(partial(episode_seed, seed), itertools.count()))
    action_space = getattr(environment, "action_space", None)
    spaces = [description_of(space) for space in (action_space, getattr(environment, "observation_space", None))]
    talk.send({"name": name, "episodes": episodes, "action_space": spaces[0], "observation_space": spaces[1]})
    for _ in range(episodes):
        observation, info = environment.reset()
        talk.send([observation, _plain(info)])
        ended = False
        while not ended:
            action = _action(talk.receive(), action_space)
            observation, reward, terminated, truncated, info = environment.step(action)
            ended = bool(terminated or truncated)
            talk.send([observation, float(reward), bool(terminated), bool(truncated), _plain(info)])
    metrics = tally.metrics()
    metrics["standard_error"] = metrics["std_reward"] / math.sqrt(episodes)
    metrics |= _lines(inner, seed)
    for metric, value in metrics.items():
        sys.stdout.write(f"{metric}: {value!r}\n" if math.isfinite(value) else f"{metric}: none\n")


# What acting at random is worth is played so often, and no longer than so many steps.
_RANDOM_EPISODES, _RANDOM_STEPS = 20, 20_000


def _lines(environment: Any, seed: int) -> dict[str, float]:  # noqa: ANN401 - a stranger's class
    """What a reward is compared with: what random actions earn, and ``solved_reward`` where the environment has one."""
    tally = Tally()
    space: Any = getattr(environment, "action_space", None)
    recorder = Recorder(environment, tally, map(partial(episode_seed, seed), itertools.count()))
    numbers = np.random.default_rng(seed)
    if hasattr(space, "seed"):
        space.seed(seed % 2**32)
    while space is not None and len(tally.rewards) < _RANDOM_EPISODES and tally.steps < _RANDOM_STEPS:
        recorder.reset()
        ended = False
        while not ended and tally.steps < _RANDOM_STEPS:
            action = int(numbers.integers(space.n)) if hasattr(space, "n") else space.sample()
            _, _, terminated, truncated, _ = recorder.step(action)
            ended = bool(terminated or truncated)
    lines = {"random_reward": statistics.fmean(tally.rewards)} if tally.rewards else {}
    solved = getattr(environment, "solved_reward", None)
    return lines | {"solved_reward": float(solved)} if isinstance(solved, int | float) else lines


def _episodes(folder: Path) -> int:
    section = load_ini(folder / ENVIRONMENT_INI).section(BENCHMARK)
    text = section.items["episodes"].text if section and "episodes" in section.items else ""
    if not text.isdecimal() or not 1 <= int(text) <= 1_000_000:
        raise UsageError(f"{ENVIRONMENT_INI}: [{BENCHMARK}] episodes must be a whole number from 1, not “{text}”")
    return int(text)


def _action(given: object, space: Any) -> Any:  # noqa: ANN401 - a stranger's class
    """An action as the environment takes it. Raises AutoresearchError where it is none."""
    kind = getattr(space, "dtype", None)
    try:
        if kind is not None and isinstance(given, np.ndarray | np.generic | float | list):
            given = np.asarray(given, dtype=kind)
            given = given[()] if given.shape == () else given
        if space is None or not hasattr(space, "contains") or space.contains(given):
            return given
    except (TypeError, ValueError, OverflowError):
        pass  # as any other that is none
    raise AutoresearchError(f"the agent's action {one_line(repr(given), 60)} is not in the action space {space}")


def _plain(info: object) -> dict[str, object]:
    """What of an environment's info can be told; the rest stays here."""
    if not isinstance(info, Mapping):
        return {}
    return {key: value for key, value in info.items() if isinstance(key, str) and isinstance(value, _PLAIN)}
