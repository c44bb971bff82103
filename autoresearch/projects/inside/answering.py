"""``answer``: an agent with what it learned plays episodes of an environment that is in another sandbox."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import Any

import msgspec

from autoresearch.errors import AutoresearchError, BadMessage
from autoresearch.projects.exchange.learned import LEARNED, unpack_learned
from autoresearch.projects.inside.conversation import Conversation, ConversationEnded
from autoresearch.projects.inside.folder import flat_project
from autoresearch.projects.own_process.episodes import Session
from autoresearch.projects.own_process.messages import Order
from autoresearch.projects.spaces import space_of


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
        found = self._talk.receive()
        if not isinstance(found, list | tuple) or len(found) != count:
            raise BadMessage("the environment's side told something else than a step")
        return tuple(found)


def main() -> None:
    """Play until the other side has seen enough.

    Raises:
        AutoresearchError: the project, or what it learned, can't be loaded, or a component fails.
    """
    here, talk = Path.cwd(), Conversation.given()
    asked = talk.receive()
    project = flat_project(here)
    components = {kind: members for kind, members in project.components.items() if kind != "environment"}
    defaults = {kind: name for kind, name in project.defaults.items() if kind != "environment"}
    with tempfile.TemporaryDirectory(dir=here) as scratch:
        if (here / LEARNED).exists():
            unpack_learned(here / LEARNED, Path(scratch))
        order = Order(
            project=msgspec.structs.replace(project, components=components, defaults=defaults),
            mode="bench",
            episodes=int(asked["episodes"]),
            seed=int(os.environ.get("AUTORESEARCH_SEED", "0")),
            learned=scratch,
            out=scratch,
        )
        session = Session(order, lambda _figures: None, lambda: False)
        spaces = (space_of(asked["action_space"]), space_of(asked["observation_space"]))
        session.members.register("environment", str(asked["name"]), lambda: RemoteEnvironment(talk, *spaces))
        try:
            session.run()
        except ConversationEnded:
            raise AutoresearchError("the environment's side ended before the last episode") from None
