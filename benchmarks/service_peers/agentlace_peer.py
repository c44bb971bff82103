"""agentlace (github.com/youliangtan/agentlace), where it can be imported; it is no dependency."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from benchmarks.service_peers import KEYS, random_array

TIMEOUT_MS = 60_000


def _modules() -> tuple[Any, Any, Any]:
    import agentlace.action
    import agentlace.data.data_store
    import agentlace.trainer

    return agentlace.action, agentlace.trainer, agentlace.data.data_store


def _quiet() -> None:
    """It sets the root logger to DEBUG when a socket is made, which would be measured too."""
    logging.getLogger().setLevel(logging.WARNING)


def serve(ports: list[int]) -> None:
    """Answer until the process ends."""
    actions, trainers, stores = _modules()
    array = random_array()
    action = actions.ActionServer(
        actions.ActionConfig(ports[0], list(KEYS), list(KEYS)),
        lambda keys: {"down": array} if "down" in keys else {"position": 1.5},
        lambda key, payload: payload if key == "echo" else {"success": True},
    )
    trainer = trainers.TrainerServer(trainers.TrainerConfig(ports[1], ports[2]), log_level=logging.WARNING)
    trainer.register_data_store("rows", stores.QueuedDataStore(10_000))
    _quiet()
    trainer.start(threaded=True)
    action.start()


class Client:
    """An action client and a trainer client."""

    def __init__(self, ports: list[int]) -> None:
        actions, trainers, stores = _modules()
        config = actions.ActionConfig(ports[0], list(KEYS), list(KEYS))
        self._action = actions.ActionClient("127.0.0.1", config, wait_for_server=True, timeout_ms=TIMEOUT_MS)
        self._store = stores.QueuedDataStore(10_000)
        self._trainer = trainers.TrainerClient(
            "rows", "127.0.0.1", trainers.TrainerConfig(ports[1], ports[2]), self._store, timeout_ms=TIMEOUT_MS
        )
        _quiet()

    def small(self) -> None:
        """A small observation."""
        assert self._action.obs({"small"}) == {"position": 1.5}

    def down(self) -> None:
        """A megabyte from the server."""
        assert len(self._action.obs({"down"})["down"])

    def up(self, array: np.ndarray[Any, Any]) -> None:
        """A megabyte to the server."""
        assert self._action.act("up", array)

    def echo(self, array: np.ndarray[Any, Any]) -> None:
        """A megabyte there and back."""
        assert len(self._action.act("echo", array)) == len(array)

    def update(self, rows: Sequence[Any]) -> None:
        """Rows into a store of the server."""
        self._store.batch_insert(rows)
        assert self._trainer.update()


class Publisher:
    """Its broadcast server."""

    def __init__(self) -> None:
        from agentlace.zmq_wrapper.broadcast import BroadcastServer

        from benchmarks.services import free_ports

        (self.port,) = free_ports(1)
        self._server = BroadcastServer(self.port)
        _quiet()

    def publish(self, weights: dict[str, np.ndarray[Any, Any]]) -> None:
        """Send weights to every subscriber."""
        self._server.broadcast(weights)

    def stop(self) -> None:
        """End it."""
        self._server.socket.close(linger=0)


def subscribe(port: int, on_weights: Callable[[Any], object]) -> object:
    """Call this with each weights that come, in a thread."""
    from agentlace.zmq_wrapper.broadcast import BroadcastClient

    client = BroadcastClient("127.0.0.1", port)
    _quiet()
    client.async_start(on_weights)
    return client
