"""An environment, a robot or a camera as a server: clients ask for observations and send actions."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from autoresearch.errors import ServiceRefused, UsageError
from autoresearch.services.links.both_ends import ServiceClient, ServiceServer
from autoresearch.services.links.client import Errors
from autoresearch.services.links.server import RequestServer
from autoresearch.services.links.sockets import ClientKeys, ServerKeys

_logger = logging.getLogger(__name__)
ObsCallback = Callable[[set[str]], Any]
ActCallback = Callable[[str, Any], Any]


@dataclass
class ActionConfig:
    """What both sides must agree on. Ports may differ; 0 is a free one that the system chooses at the server.

    ``broadcast_port`` is where observations are published; none by default. At a client, none or 0 is where the server
    says.
    """

    port_number: int
    action_keys: list[str]
    observation_keys: list[str]
    broadcast_port: int | None = None
    version: str = "0.0.1"

    def agreed(self) -> dict[str, object]:
        """What is compared between client and server."""
        return {
            "action_keys": sorted(self.action_keys),
            "observation_keys": sorted(self.observation_keys),
            "version": self.version,
        }


class ActionServer(ServiceServer):
    """Answers ``obs()`` with ``obs_callback(keys)`` and ``act()`` with ``act_callback(key, payload)``, in one thread.

    Raises:
        Refused: the address is open to other machines, and there are no keys; or a port is taken.
    """

    def __init__(
        self,
        config: ActionConfig,
        obs_callback: ObsCallback | None,
        act_callback: ActCallback | None,
        log_level: int = logging.WARNING,
        *,
        address: str = "127.0.0.1",
        keys: ServerKeys | None = None,
    ) -> None:
        _logger.setLevel(log_level)
        self.config = config
        self._obs_callback, self._act_callback = obs_callback, act_callback
        self._server = RequestServer(self._answer, config.port_number, address, keys)
        if config.broadcast_port is not None:
            self._publisher = self._published(config.broadcast_port, address, keys)

    def publish_obs(self, payload: Any) -> bool:  # noqa: ANN401 - an observation may be anything
        """Send an observation to every client that registered a callback: whether that is turned on.

        A client that is slow gets the newest one. Raises BadMessage where it cannot be sent.
        """
        if self._publisher is None:
            _logger.warning("an observation was published, and the config has no broadcast_port")
            return False
        self._publisher.publish(payload)
        return True

    def _answer(self, question: object) -> object:
        match question:
            case {"type": "obs", "keys": list() as listed} if self._obs_callback is not None:
                keys = set(listed)
                self._check_keys(keys, self.config.observation_keys)
                return self._obs_callback(keys)
            case {"type": "act", "key": str() as key, "payload": payload} if self._act_callback is not None:
                self._check_keys({key}, self.config.action_keys)
                return self._act_callback(key, payload)
            case {"type": "config"}:
                port = self._publisher.port if self._publisher is not None else None
                return {"agreed": self.config.agreed(), "broadcast_port": port}
        raise ServiceRefused("this action server does not answer that", hint="has it the callback that is asked for?")

    def _check_keys(self, keys: set[str], names: Iterable[str]) -> None:
        if unknown := keys.difference(names):
            raise ServiceRefused(f"no such key: {', '.join(sorted(map(str, unknown)))}")


class ActionClient(ServiceClient):
    """Asks an ActionServer. A failure is None, and ``last_error`` says why; ``errors="raise"`` raises it instead.

    The second argument is the config, or the port beside ``config=``. ``task_id`` is kept, as a name for this client.

    Raises:
        NoAnswer: no server is there, unless ``wait_for_server``.
        ServiceRefused: the server has another configuration, or does not accept this client's key.
    """

    def __init__(
        self,
        server_ip: str,
        port_or_config: int | ActionConfig | None = None,
        wait_for_server: bool = False,  # noqa: FBT001, FBT002 - the call that agentlace's programs make
        timeout_ms: float = 800,
        *,
        config: ActionConfig | None = None,
        task_id: str = "",
        keys: ClientKeys | None = None,
        errors: Errors = "none",
    ) -> None:
        chosen = port_or_config if isinstance(port_or_config, ActionConfig) else config
        if chosen is None:
            raise UsageError("an action client needs a config", hint="ActionClient(server_ip, config)")
        port = port_or_config if isinstance(port_or_config, int) else chosen.port_number
        self.config, self.task_id, place = chosen, task_id, (server_ip, port, keys)
        agreed, publishes = chosen.agreed(), chosen.broadcast_port
        self._connect(place, agreed, publishes, timeout_ms=timeout_ms, errors=errors, wait=wait_for_server)

    def obs(self, keys: Iterable[str] | None = None) -> Any:  # noqa: ANN401 - an observation may be anything
        """The observation of these keys, of all by default; None where the server did not answer.

        Raises:
            UsageError: a key is not among the config's.
        """
        offered = self.config.observation_keys
        names = list(offered if keys is None else keys)
        if keys is not None and (unknown := set(names).difference(offered)):
            raise UsageError(f"no such observation key: {', '.join(sorted(unknown))}")
        return self._caller.ask({"type": "obs", "keys": names})

    def act(self, key: str, payload: Any = None) -> Any:  # noqa: ANN401 - an action may be anything
        """Send an action, at most once: the server's answer, or None where there was none.

        Raises:
            UsageError: the key is not among the config's.
        """
        if key not in self.config.action_keys:
            raise UsageError(f"no such action key: {key}", hint=f"one of {', '.join(self.config.action_keys)}")
        return self._caller.ask({"type": "act", "key": key, "payload": {} if payload is None else payload})

    def register_obs_callback(self, callback: Callable[[Any], object]) -> None:
        """Call this with each observation that the server publishes, the newest where several came.

        Raises:
            UsageError: the server publishes none.
        """
        if not self._broadcast_port:
            raise UsageError("this server publishes no observations", hint="set broadcast_port in its config")
        self._subscribe(callback)
