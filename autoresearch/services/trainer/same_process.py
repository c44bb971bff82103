"""Learner and actors in one process: the same calls, without sockets and without copies."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

from autoresearch.services.stores import DataStoreBase

_logger = logging.getLogger(__name__)


class TrainerSMInterface:
    """Stands for a TrainerServer and for its clients, in threads of one process that share their stores."""

    def __init__(self) -> None:
        self.network_version = 0
        self._on_network: list[Callable[[Any], object]] = []
        self._on_request: Callable[[str, Any], Any] | None = None
        self._stores: dict[str, DataStoreBase] = {}

    def register_data_store(self, name: str, data_store: DataStoreBase) -> None:
        """Give a store a name."""
        self._stores[name] = data_store

    def data_store(self, name: str) -> DataStoreBase | None:
        """The store of a name; none where there is none."""
        return self._stores.get(name)

    def store_names(self) -> set[str]:
        """The names of all stores."""
        return set(self._stores)

    def recv_network_callback(self, callback_fn: Callable[[Any], object]) -> None:
        """Call this with published weights."""
        self._on_network.append(callback_fn)

    def publish_network(self, payload: Any) -> int:  # noqa: ANN401 - weights may be anything
        """Call every callback with these weights now, and return their version."""
        self.network_version += 1
        for callback in self._on_network:
            try:
                callback(payload)
            except Exception:
                _logger.exception("the callback for published weights raised an error")
        return self.network_version

    def network_lag(self) -> int:
        """Always 0: weights are there as soon as they are published."""
        return 0

    def register_request_callback(self, callback_fn: Callable[[str, Any], Any]) -> None:
        """Answer requests with this."""
        self._on_request = callback_fn

    def request(self, type: str, payload: Any) -> Any:  # noqa: A002, ANN401 - the call that agentlace's programs make
        """The answer of the request callback; None without one."""
        return self._on_request(type, payload) if self._on_request is not None else None

    send_request = request

    def update(self) -> bool:
        """Always True: actors insert into the learner's own stores."""
        return True

    def start(self, threaded: bool = False) -> None:  # noqa: FBT001, FBT002 - the call that agentlace's programs make
        """Nothing has to be started."""

    def start_async_update(self, interval: float = 10) -> None:
        """Nothing has to be sent."""

    def stop(self) -> None:
        """Nothing has to be ended."""
