"""An actor's side: its stores are copied to the learner, and the newest weights come back."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

from autoresearch.errors import ServiceError, ServiceRefused
from autoresearch.services.caller import Caller, Errors
from autoresearch.services.configs import check_same
from autoresearch.services.links import ClientKeys, RequestClient, Subscriber
from autoresearch.services.stores import DataStoreBase
from autoresearch.services.trainer.config import TrainerConfig
from autoresearch.services.trainer.sending import Sending

_logger = logging.getLogger(__name__)


class TrainerClient:
    """Sends the rows of its stores to a TrainerServer, each once, and receives published weights.

    A failure is None or False, and ``last_error`` says why; ``errors="raise"`` raises it instead. ``data_store`` is the
    store of the client's ``name``; ``data_stores`` are further ones by their names at the server.

    Raises:
        NoAnswer: no server is there, unless ``wait_for_server``.
        ServiceRefused: the server has another configuration, or does not accept this client's key.
    """

    def __init__(  # noqa: PLR0913 - the order is that of agentlace
        self,
        name: str,
        server_ip: str,
        config: TrainerConfig,
        data_store: DataStoreBase | None = None,
        data_stores: Mapping[str, DataStoreBase] | None = None,
        log_level: int = logging.INFO,
        wait_for_server: bool = False,  # noqa: FBT001, FBT002 - the call that agentlace's programs make
        timeout_ms: float = 800,
        *,
        keys: ClientKeys | None = None,
        errors: Errors = "none",
    ) -> None:
        _logger.setLevel(log_level)
        self.client_name, self.server_ip, self.config = name, server_ip, config
        self.data_stores = dict(data_stores or {}) | ({name: data_store} if data_store is not None else {})
        self._keys = keys
        self._subscriber: Subscriber | None = None
        self._ended = threading.Event()
        self._updating: threading.Thread | None = None
        self._last_request = float("-inf")
        self._caller = Caller(server_ip, config.port_number, timeout_ms=timeout_ms, keys=keys, errors=errors)
        answer = self._caller.first_answer({"type": "config"}, wait=wait_for_server)
        try:
            check_same(config.agreed(), answer.get("agreed") if isinstance(answer, dict) else None)
        except ServiceError:
            self._caller.close()
            raise
        told = answer.get("broadcast_port")
        self._broadcast_port = config.broadcast_port or (told if isinstance(told, int) else 0)
        self._sending = {
            store_name: Sending(self._caller.link, store_name, store) for store_name, store in self.data_stores.items()
        }
        with suppress(ServiceError):  # a store that the server lacks is told of by the next update
            self.update()
        self._last_request = float("-inf")

    @property
    def last_error(self) -> ServiceError | None:
        """Why the last call failed; none where it did not."""
        return self._caller.last_error

    @property
    def req_rep_client(self) -> RequestClient:
        """The link for rows and requests, as agentlace calls it: its ``timeout_ms`` may be changed."""
        return self._caller.link

    @property
    def network_version(self) -> int:
        """The version of the newest weights that came; 0 before the first."""
        return self._subscriber.version if self._subscriber is not None else 0

    def network_lag(self) -> int | None:
        """How many versions of weights the server is ahead; None where it did not answer."""
        newest = self._caller.ask({"type": "network_version"})
        return max(0, newest - self.network_version) if isinstance(newest, int) else None

    def rows_lost(self, name: str) -> int:
        """How many rows a store of this client forgot, for lack of room, before they were sent."""
        return self._sending[name].lost

    def update(self) -> bool:
        """Send what is new in every store: whether all of it is at the server now. False also without any store."""
        if not self._sending or not self._may_ask():
            return False
        results = [self._send(sending) for sending in self._sending.values()]
        return all(results)

    def update_datastore(self, name: str, from_id: int, confirm_update: bool = False) -> bool:  # noqa: ARG002, FBT001, FBT002
        """Send the rows of one store that are newer than ``from_id``: whether they are at the server now.

        Rows that the server has are not stored twice. Every update is confirmed, so ``confirm_update`` changes nothing.
        """
        if name not in self._sending:
            self._caller.failed(ServiceRefused(f"this client has no data store {name}"))
            return False
        return self._may_ask() and self._send(self._sending[name], from_id)

    def get_server_last_update_id(self, name: str) -> int | None:
        """The number of the last row of this client's store that the server has; -1 for none, None for no answer."""
        sending = self._sending.get(name)
        if sending is None:
            self._caller.failed(ServiceRefused(f"this client has no data store {name}"))
            return None
        found = self._caller.ask(sending.question)
        return found if isinstance(found, int) else None

    def request(self, type: str, payload: Any) -> Any:  # noqa: A002, ANN401 - the call that agentlace's programs make
        """The answer of the server's ``request_callback``; None where there is none, or the config has no such type."""
        if type not in self.config.request_types:
            self._caller.failed(ServiceRefused(f"no such request: {type}", hint="add it to request_types"))
            return None
        if not self._may_ask():
            return None
        return self._caller.ask({"type": "request", "name": type, "payload": payload})

    send_request = request

    def recv_network_callback(self, callback_fn: Callable[[Any], object]) -> None:
        """Call this with the newest weights, in a thread of its own; at once where there are some."""
        if self._subscriber is not None:
            self._subscriber.stop()
        self._subscriber = Subscriber(
            lambda weights, _: callback_fn(weights), self.server_ip, self._broadcast_port, self._keys
        )

    def start_async_update(self, interval: float = 10) -> None:
        """Update every ``interval`` seconds in a thread of its own, until ``stop``."""
        if self._updating is None:
            self._updating = threading.Thread(target=self._update_always, args=(interval,), daemon=True)
            self._updating.start()

    def stop(self) -> None:
        """End the connection and the threads. What was not sent stays in the client's stores."""
        self._ended.set()
        if self._subscriber is not None:
            self._subscriber.stop()
        if self._updating is not None and self._updating is not threading.current_thread():
            self._updating.join(5 + self._caller.link.timeout_ms / 1000)
        self._caller.close()

    def _update_always(self, interval: float) -> None:
        while not self._ended.is_set():
            try:
                self.update()
            except ServiceError as error:  # raised where the caller wants that; here nobody could catch it
                _logger.warning("rows were not sent: %s", error)
            self._ended.wait(interval)

    def _send(self, sending: Sending, from_id: int | None = None) -> bool:
        try:
            sending.send(from_id)
        except ServiceError as error:
            _logger.info("rows of %s were not sent: %s", sending.name, error)
            self._caller.failed(error)
            return False
        return True

    def _may_ask(self) -> bool:
        """Whether the config's rate limit allows a request now."""
        self._caller.last_error = None
        now = time.monotonic()
        if self.config.rate_limit and now - self._last_request < 1 / self.config.rate_limit:
            self._caller.failed(ServiceRefused(f"more than {self.config.rate_limit:g} requests in a second"))
            return False
        self._last_request = now
        return True
