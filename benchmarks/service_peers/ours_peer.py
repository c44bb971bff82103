"""The services of this project."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from autoresearch.services import ActionClient, ActionConfig, ActionServer
from autoresearch.services.data.data_store import QueuedDataStore
from autoresearch.services.links.newest import Subscriber
from autoresearch.services.trainer import TrainerClient, TrainerConfig, TrainerServer
from benchmarks.service_peers import KEYS, random_array

TIMEOUT_MS = 60_000


def serve(ports: list[int]) -> None:
    """Answer until the process ends."""
    array = random_array()
    action = ActionServer(
        ActionConfig(ports[0], list(KEYS), list(KEYS)),
        lambda keys: {"down": array} if "down" in keys else {"position": 1.5},
        lambda key, payload: payload if key == "echo" else {"success": True},
    )
    trainer = TrainerServer(TrainerConfig(ports[1], ports[2]))
    trainer.register_data_store("rows", QueuedDataStore(10_000))
    trainer.start(threaded=True)
    action.start()


class Client:
    """An action client and a trainer client."""

    def __init__(self, ports: list[int]) -> None:
        config = ActionConfig(ports[0], list(KEYS), list(KEYS))
        self._action = ActionClient("127.0.0.1", config, wait_for_server=True, timeout_ms=TIMEOUT_MS, errors="raise")
        self._store = QueuedDataStore(10_000)
        self._trainer = TrainerClient(
            "rows", "127.0.0.1", TrainerConfig(ports[1], ports[2]), self._store, timeout_ms=TIMEOUT_MS, errors="raise"
        )

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
    """A trainer that publishes weights."""

    def __init__(self) -> None:
        self._server = TrainerServer(TrainerConfig(0, 0))
        self._server.start(threaded=True)
        self.port = self._server.broadcast_port

    def publish(self, weights: dict[str, np.ndarray[Any, Any]]) -> None:
        """Send weights to every subscriber."""
        self._server.publish_network(weights)

    def stop(self) -> None:
        """End it."""
        self._server.stop()


def subscribe(port: int, on_weights: Callable[[Any], object]) -> Subscriber:
    """Call this with each weights that come."""
    return Subscriber(lambda weights, _: on_weights(weights), "127.0.0.1", port)
