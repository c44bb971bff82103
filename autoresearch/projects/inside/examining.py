"""``examine``: plays episodes of the task's environment with an agent in another sandbox, and prints what it earned.

The environment of ``environment.ini`` lives here alone. The agent sees observations and rewards and gives actions; it
can neither reach the environment nor begin an episode anew, and what it says of its rewards is not asked.
"""

from __future__ import annotations

import math
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from autoresearch.errors import AutoresearchError, UsageError
from autoresearch.projects.inside.conversation import Conversation
from autoresearch.projects.inside.folder import BENCHMARK, ENVIRONMENT_INI, environment_project
from autoresearch.projects.model import load_ini
from autoresearch.projects.own_process.members import Members
from autoresearch.projects.own_process.recording import Recorder, Tally
from autoresearch.projects.spaces import described
from autoresearch.sanitise import one_line

_PLAIN = (bool, int, float, str, np.ndarray, np.generic)


def main() -> None:
    """Play the episodes and print the mean reward, its standard error and the other metrics.

    Raises:
        UsageError: a number of the task is none.
        AutoresearchError: the environment fails, or the agent's actions are none.
    """
    here, seed = Path.cwd(), int(os.environ.get("AUTORESEARCH_SEED", "0")) % 2**31
    project, episodes = environment_project(here), _episodes(here)
    tally, talk = Tally(), Conversation.given()
    name = project.component("environment").name
    environment = Recorder(Members(project, seed=seed, made=lambda *made: made[2]).default("environment"), tally)
    action_space = getattr(environment, "action_space", None)
    spaces = [described(space) for space in (action_space, getattr(environment, "observation_space", None))]
    talk.send({"name": name, "episodes": episodes, "action_space": spaces[0], "observation_space": spaces[1]})
    for number in range(episodes):
        observation, info = environment.reset(seed=seed + number)
        talk.send([observation, _plain(info)])
        ended = False
        while not ended:
            action = _action(talk.receive(), action_space)
            observation, reward, terminated, truncated, info = environment.step(action)
            ended = bool(terminated or truncated)
            talk.send([observation, float(reward), bool(terminated), bool(truncated), _plain(info)])
    metrics = tally.metrics()
    metrics["standard_error"] = metrics["std_reward"] / math.sqrt(episodes)
    for metric, value in metrics.items():
        sys.stdout.write(f"{metric}: {value!r}\n" if math.isfinite(value) else f"{metric}: none\n")


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
