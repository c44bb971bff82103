"""A server around an environment. Each question of a client is dealt with once, however often it comes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from autoresearch.errors import BadMessage, ServiceRefused
from autoresearch.services.links.both_ends import ServiceServer
from autoresearch.services.links.server import RequestServer
from autoresearch.services.links.sockets import ServerKeys
from autoresearch.services.messages import encode
from autoresearch.services.spaces import space_description


class GymEnvServer(ServiceServer):
    """Serves an environment of Gymnasium, or a vector of them, to one client at a time: the one that reset it last.

    ``env`` stays usable here, also after ``stop``; its other attributes are found on the server. Between ``start`` and
    ``stop`` the server's thread alone should step it.

    Raises:
        Refused: the address is open to other machines, and there are no keys; or the port is taken.
        UsageError: a space of the environment can't be described to clients.
    """

    def __init__(
        self,
        env: Any,  # noqa: ANN401 - an environment of any library
        port: int = 5546,
        address: str = "127.0.0.1",
        keys: ServerKeys | None = None,
    ) -> None:
        self.env = env
        self._spec = _spec(env)
        self._owner = ""
        self._last: tuple[str, int, object] = ("", -1, None)
        self._server = RequestServer(self._answer, port, address, keys)

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401
        if name.startswith("_") or name == "env":
            raise AttributeError(name)
        return getattr(self.env, name)

    def _answer(self, question: object) -> object:
        match question:
            case {"type": "spec"}:
                return self._spec
            case {"type": str() as kind, "client": str() as client, "number": int() as number, "given": argument}:
                # A client that had no answer in time asks again: a step must not be taken twice.
                if self._last[:2] != (client, number):
                    self._last = (client, number, self._outcome(kind, client, argument))
                outcome = self._last[2]
                if isinstance(outcome, Exception):
                    raise outcome
                return outcome
        raise ServiceRefused("an environment server does not know this question")

    def _outcome(self, kind: str, client: str, argument: Any) -> object:  # noqa: ANN401
        try:
            return self._done(kind, client, argument)
        except Exception as error:  # noqa: BLE001 - raised again for this question, however often it comes
            return error

    def _done(self, kind: str, client: str, argument: Any) -> object:  # noqa: ANN401
        if kind == "reset":
            self._owner = client
            observation, info = self.env.reset(**_options(argument))
            return (observation, _sendable(info))
        if self._owner != client:
            reason = "another client has reset this environment" if self._owner else "no episode is in progress"
            raise ServiceRefused(reason, hint="reset() begins an episode")
        if kind == "step":
            *step, info = self.env.step(argument)
            return (*step, _sendable(info))
        if kind == "render":
            return self.env.render()
        raise ServiceRefused("an environment server does not know this question")


def _spec(env: Any) -> dict[str, Any]:  # noqa: ANN401
    count = getattr(env, "num_envs", None)
    single = "single_" if count is not None else ""
    return {
        "observation_space": space_description(getattr(env, f"{single}observation_space"), "observation space"),
        "action_space": space_description(getattr(env, f"{single}action_space"), "action space"),
        "render_mode": getattr(env, "render_mode", None),
        "metadata": _sendable(getattr(env, "metadata", {})),
        "num_envs": count,
        # An enumeration, which can't be sent: wrappers of vectors look at it.
        "autoreset_mode": getattr(getattr(env, "metadata", {}).get("autoreset_mode"), "value", None),
    }


def _options(argument: Any) -> dict[str, Any]:  # noqa: ANN401
    """The arguments of a reset: those that the client's caller gave."""
    if not isinstance(argument, dict) or not argument.keys() <= {"seed", "options"}:
        raise ServiceRefused("a reset takes seed and options alone")
    return argument


def _sendable(info: Any) -> dict[str, Any]:  # noqa: ANN401
    """What can be sent of an info: arrays of objects become lists; what nothing can be made of is left out."""
    if not isinstance(info, Mapping):
        return {}
    values = {str(name): _listed(each) for name, each in info.items()}
    return {name: each for name, each in values.items() if _is_sendable(each)}


def _listed(value: Any) -> Any:  # noqa: ANN401
    if isinstance(value, np.ndarray) and value.dtype.kind in "OUS":
        return [_listed(each) for each in value.tolist()]
    if isinstance(value, Mapping):
        return {name: _listed(each) for name, each in value.items()}
    return value


def _is_sendable(value: object) -> bool:
    try:
        encode(value)
    except BadMessage:
        return False
    return True
