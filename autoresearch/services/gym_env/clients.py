"""Environments that are elsewhere, with the interface of Gymnasium."""

from __future__ import annotations

import secrets
import time
from typing import Any

import numpy as np

from autoresearch.errors import BadMessage, CannotRunHere, NoAnswer, UsageError, install_command
from autoresearch.services.links.client import RequestClient
from autoresearch.services.links.sockets import ClientKeys
from autoresearch.services.spaces import space_from

try:
    import gymnasium
    from gymnasium.vector.utils import batch_space
except ModuleNotFoundError:
    raise CannotRunHere("remote environments need Gymnasium", hint=install_command("projects")) from None

_PATIENCE_S = 30.0


class _Remote:
    """The questions of one client, each with a number: one that is asked again is dealt with once."""

    def __init__(
        self, place: tuple[str, int, float, ClientKeys | None], retry_interval: float, patience_s: float
    ) -> None:
        self._link = RequestClient(*place)
        self._client = secrets.token_hex(8)
        self._number = 0
        self._pause, self._patience = retry_interval, patience_s

    def spec(self, *, vector: bool) -> dict[str, Any]:
        """What the environment is. Raises UsageError where it is a vector and should not be, or the other way."""
        spec = self._ask({"type": "spec"})
        if not isinstance(spec, dict) or "num_envs" not in spec:
            raise BadMessage("what the server answered is no environment", hint="is it another service's port?")
        if (spec["num_envs"] is not None) != vector:
            kind, name = ("a vector of", "GymVectorEnvClient") if not vector else ("one", "GymEnvClient")
            raise UsageError(f"the server has {kind} environment{'' if vector else 's'}", hint=f"use {name}")
        return spec

    def do(self, kind: str, argument: object) -> Any:  # noqa: ANN401
        """Reset, step or render, once. Raises ServiceError where it failed."""
        self._number += 1
        return self._ask({"type": kind, "client": self._client, "number": self._number, "given": argument})

    def close(self) -> None:
        """End the connection."""
        self._link.close()

    def _ask(self, question: object) -> Any:  # noqa: ANN401
        until = time.monotonic() + self._patience
        while True:
            try:
                return self._link.ask(question)
            except NoAnswer:
                if time.monotonic() + self._pause > until:
                    raise
                time.sleep(self._pause)


class _Client:
    """What both kinds of environment have in common: the connection, and what is said of all at once."""

    _is_vector = False

    def __init__(
        self,
        host: str = "localhost",
        port: int = 5546,
        retry_interval: float = 0.5,
        timeout_ms: float = 800,
        keys: ClientKeys | None = None,
        *,
        patience_s: float = _PATIENCE_S,
    ) -> None:
        self._remote = _Remote((host, port, timeout_ms, keys), retry_interval, patience_s)
        spec = self._remote.spec(vector=self._is_vector)
        self.metadata, self.render_mode = spec["metadata"], spec["render_mode"]
        self._take(spec)

    def _take(self, spec: dict[str, Any]) -> None:
        raise NotImplementedError

    def render(self) -> Any:  # noqa: ANN401
        """What is rendered there. Raises ServiceError."""
        return self._remote.do("render", None)


class GymEnvClient(_Client, gymnasium.Env[Any, Any]):
    """An environment that a GymEnvServer serves. It can be wrapped and trained in as if it were here.

    A step that has no answer within ``timeout_ms`` is asked for again after ``retry_interval`` seconds, up to
    ``patience_s`` seconds in all; the environment takes it once.

    Raises:
        ServiceError: no server answers, or it refuses this client's key.
        UsageError: the server has a vector of environments.
    """

    def _take(self, spec: dict[str, Any]) -> None:
        self.observation_space = space_from(spec["observation_space"])
        self.action_space = space_from(spec["action_space"])

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Begin an episode, and take the environment from any other client. Raises ServiceError."""
        super().reset(seed=seed)
        observation, info = self._remote.do("reset", _reset_arguments(seed, options))
        return observation, info

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:  # noqa: ANN401
        """Take an action. Raises ServiceError; ServiceRefused where another client has begun an episode."""
        observation, reward, terminated, truncated, info = self._remote.do("step", action)
        return observation, reward, terminated, truncated, info

    def close(self) -> None:
        """End the connection. The environment stays open for other clients."""
        self._remote.close()


class GymVectorEnvClient(_Client, gymnasium.vector.VectorEnv[Any, Any, Any]):
    """A vector of environments that a GymEnvServer serves: one question steps all of them.

    Arguments and errors are those of GymEnvClient. Arrays of objects in an info arrive as lists.
    """

    _is_vector = True

    def _take(self, spec: dict[str, Any]) -> None:
        self.num_envs = int(spec["num_envs"])
        self.single_observation_space = space_from(spec["observation_space"])
        self.single_action_space = space_from(spec["action_space"])
        self.observation_space = batch_space(self.single_observation_space, self.num_envs)
        self.action_space = batch_space(self.single_action_space, self.num_envs)
        self.metadata |= _autoreset(spec.get("autoreset_mode"))

    def reset(
        self, *, seed: int | list[int | None] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Begin an episode in each environment. Raises ServiceError."""
        observations, infos = self._remote.do("reset", _reset_arguments(seed, options))
        return observations, infos

    def step(self, actions: Any) -> tuple[Any, Any, Any, Any, dict[str, Any]]:  # noqa: ANN401
        """Take an action in each environment. Raises ServiceError."""
        observations, rewards, terminated, truncated, infos = self._remote.do("step", np.asarray(actions))
        return observations, rewards, terminated, truncated, infos

    def close_extras(self, **_: Any) -> None:  # noqa: ANN401
        """End the connection. The environments stay open for other clients."""
        self._remote.close()


def _autoreset(mode: object) -> dict[str, Any]:
    """When a vector's environments begin again, as its metadata has it; older versions of Gymnasium have none."""
    modes = getattr(gymnasium.vector, "AutoresetMode", None)
    value = next((each for each in modes or () if each.value == mode), None)
    return {} if value is None else {"autoreset_mode": value}


def _reset_arguments(seed: object, options: object) -> dict[str, object]:
    """The arguments that were given: an environment need not take the others."""
    return {name: each for name, each in (("seed", seed), ("options", options)) if each is not None}
