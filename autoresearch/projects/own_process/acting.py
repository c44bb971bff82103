"""An environment as an action server: clients send ``reset`` and ``step``, and every observation is published."""

from __future__ import annotations

from typing import Any

from autoresearch.errors import ServiceRefused
from autoresearch.services import ActionConfig, ActionServer, ServerKeys

ACTIONS = ["reset", "step"]
OBSERVATIONS = ["observation", "reward", "terminated", "truncated"]


class Acting:
    """Raises Refused where the address is open to other machines without keys, or the port is taken."""

    def __init__(self, environment: Any, port: int, address: str, keys: ServerKeys | None) -> None:  # noqa: ANN401
        self._environment = environment
        self._last: dict[str, Any] = {}
        config = ActionConfig(port, ACTIONS, OBSERVATIONS, broadcast_port=0)
        self.server = ActionServer(config, self._observe, self._act, address=address, keys=keys)

    def _observe(self, keys: set[str]) -> dict[str, Any]:
        if not self._last:
            raise ServiceRefused("there is no observation yet", hint="act('reset') begins an episode")
        return {key: each for key, each in self._last.items() if key in keys}

    def _act(self, key: str, payload: Any) -> dict[str, Any]:  # noqa: ANN401
        if key == "reset":
            seed = payload.get("seed") if isinstance(payload, dict) else None
            observation, _ = self._environment.reset(**({} if seed is None else {"seed": seed}))
            reward, terminated, truncated = 0.0, False, False
        elif self._last:
            observation, reward, terminated, truncated, _ = self._environment.step(payload)
        else:
            raise ServiceRefused("no episode has begun", hint="act('reset') begins one")
        self._last = dict(zip(OBSERVATIONS, (observation, reward, terminated, truncated), strict=True))
        self.server.publish_obs(self._last)
        return self._last
