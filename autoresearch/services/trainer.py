"""A learner and its actors: actors' rows arrive in its stores, and published weights come back.

Learner and actors in one process have the same calls, without sockets and without copies.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from autoresearch.errors import BadMessage, ServiceError, ServiceRefused
from autoresearch.services.data.data_store import NONE_YET, DataStoreBase, SamplesPerInsert, ledger_of
from autoresearch.services.data.transfer import RowsSent, RowsTaken, Sending, as_message, from_columns, rows_sent
from autoresearch.services.links.both_ends import ServiceClient, ServiceServer
from autoresearch.services.links.client import Errors, RequestClient
from autoresearch.services.links.newest import Publisher
from autoresearch.services.links.server import RequestServer
from autoresearch.services.links.sockets import ClientKeys, ServerKeys
from autoresearch.text import one_line


@dataclass
class TrainerConfig:
    """What both sides must agree on. Ports may differ; 0 is a free one that the system chooses at the server.

    ``broadcast_port`` is where weights are published; 0 at a client is where the server says. ``request_types`` are the
    names of the program's own requests. ``rate_limit`` is how many requests and updates a client sends in a second.
    ``experimental_pipeline_port`` is taken for programs written for agentlace and opens nothing: every update is fast
    and arrives once.
    """

    port_number: int = 5555
    broadcast_port: int = 5556
    request_types: list[str] = field(default_factory=list)
    rate_limit: float | None = None
    version: str = "0.0.2"
    experimental_pipeline_port: int | str | None = None

    def agreed(self) -> dict[str, object]:
        """What is compared between client and server."""
        return {"request_types": sorted(self.request_types), "version": self.version}


_logger = logging.getLogger(__name__)
DataCallback = Callable[[str, dict[str, Any]], object]
RequestCallback = Callable[[str, Any], Any]


class TrainerServer(ServiceServer):
    """Takes actors' rows into its stores, each row once, and publishes weights with a version.

    ``data_callback(store_name, {"data": rows, "last_id": number})`` is called after rows arrived, and
    ``request_callback(type, payload)`` answers requests of the config's types; both in the server's one thread.

    Raises:
        Refused: the address is open to other machines, and there are no keys; or a port is taken.
    """

    _publisher: Publisher

    def __init__(
        self,
        config: TrainerConfig,
        data_callback: DataCallback | None = None,
        request_callback: RequestCallback | None = None,
        log_level: int = logging.INFO,
        *,
        address: str = "127.0.0.1",
        keys: ServerKeys | None = None,
    ) -> None:
        _logger.setLevel(log_level)
        self.config = config
        self._data_callback, self._request_callback = data_callback, request_callback
        self._stores: dict[str, DataStoreBase] = {}
        self._limits: dict[str, SamplesPerInsert] = {}
        self._server = RequestServer(self._answer, config.port_number, address, keys)
        self._publisher = self._published(config.broadcast_port, address, keys)

    @property
    def broadcast_port(self) -> int:
        """Where weights are published."""
        return self._publisher.port

    @property
    def network_version(self) -> int:
        """The version of the newest weights; 0 before the first."""
        return self._publisher.version

    def register_data_store(self, name: str, data_store: DataStoreBase, limit: SamplesPerInsert | None = None) -> None:
        """Take rows into this store under a name; ``limit`` refuses them while the learner is too far behind.

        What the store has of each actor is known as long as the store lives, also to another server.
        """
        self._stores[name] = data_store
        if limit is not None:
            self._limits[name] = limit

    def data_store(self, name: str) -> DataStoreBase | None:
        """The store of a name; none where there is none."""
        return self._stores.get(name)

    def store_names(self) -> set[str]:
        """The names of all stores."""
        return set(self._stores)

    def publish_network(self, payload: Any) -> int:  # noqa: ANN401 - weights may be anything that can be sent
        """Make these the newest weights, and return their version. They may change afterwards.

        Raises:
            BadMessage: a part of them cannot be sent.
        """
        return self._publisher.publish(payload)

    def _answer(self, question: object) -> object:
        match question:
            case {"type": "datastore", "rows": rows}:
                return as_message(self._take(rows_sent(rows)))
            case {"type": "get_last_update_id", "store": str() as name, "source": str() as source}:
                return ledger_of(self._store(name)).offset(source)
            case {"type": "request", "name": str() as name, "payload": payload}:
                if name not in self.config.request_types:
                    raise ServiceRefused(f"no such request: {one_line(name, 60)}", hint="add it to request_types")
                return self._request_callback(name, payload) if self._request_callback is not None else {}
            case {"type": "network_version"}:
                return self.network_version
            case {"type": "config"}:
                return {"agreed": self.config.agreed(), "broadcast_port": self.broadcast_port}
        raise BadMessage("a trainer does not know this question", hint="is it another server's port?")

    def _store(self, name: str) -> DataStoreBase:
        if name not in self._stores:
            raise ServiceRefused(
                f"no data store {one_line(name, 60)} at the server", hint="register_data_store(name, store)"
            )
        return self._stores[name]

    def _take(self, sent: RowsSent) -> RowsTaken:
        """Store what is new of these rows."""
        store = self._store(sent.store)
        ledger = ledger_of(store)
        offset = ledger.offset(sent.source)
        new = ledger.new_rows(sent.source, sent.last, sent.count)
        # Behind what it said before, this is another store: the actor sends again what it still has.
        if new == 0 or offset < sent.after:
            return RowsTaken(0, offset)
        limit = self._limits.get(sent.store)
        if limit is not None and not limit.has_room():
            raise ServiceRefused(
                f"{one_line(sent.store, 60)} takes no rows now: the learner is behind", hint="call update() later"
            )
        rows = from_columns(sent.columns, sent.count)[sent.count - new :]
        before = store.latest_data_id()
        try:
            store.batch_insert(rows)
        except Exception:
            # What it took before the row that it does not like is there, and shall not come again.
            came = max(0, min(new, store.latest_data_id() - before))
            if came:
                ledger.arrived(sent.source, sent.last - new + came)
            raise
        ledger.arrived(sent.source, sent.last)
        if limit is not None:
            limit.inserted(new)
        self._tell(sent, rows)
        return RowsTaken(new, sent.last)

    def _tell(self, sent: RowsSent, rows: list[Any]) -> None:
        """Call the program's callback. The rows are in the store whatever it raises, so the actor is told so."""
        if self._data_callback is None:
            return
        try:
            self._data_callback(sent.store, {"data": rows, "last_id": sent.last})
        except Exception:
            _logger.exception("the data callback raised an error; the rows are stored")


class TrainerClient(ServiceClient):
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
        self.config = config
        self.data_stores = dict(data_stores or {}) | ({name: data_store} if data_store is not None else {})
        self._ended = threading.Event()
        self._updating: threading.Thread | None = None
        self._last_request = float("-inf")
        place, agreed, publishes = (server_ip, config.port_number, keys), config.agreed(), config.broadcast_port
        self._connect(place, agreed, publishes, timeout_ms=timeout_ms, errors=errors, wait=wait_for_server)
        self._sending = {
            store_name: Sending(self._caller.link, store_name, store) for store_name, store in self.data_stores.items()
        }
        with suppress(ServiceError):  # a store that the server lacks is told of by the next update
            self.update()
        self._last_request = float("-inf")

    @property
    def network_version(self) -> int:
        """The version of the newest weights that came; 0 before the first."""
        return self._subscriber.version if self._subscriber is not None else 0

    def network_lag(self) -> int | None:
        """How many versions of weights the server is ahead; None where it did not answer."""
        newest = self._caller.ask({"type": "network_version"})
        return max(0, newest - self.network_version) if isinstance(newest, int) else None

    @property
    def req_rep_client(self) -> RequestClient:
        """The link for rows and requests, as agentlace calls it: its ``timeout_ms`` may be changed."""
        return self._caller.link

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
            self._caller.failed(ServiceRefused(f"this client has no data store {name}", hint="give it in data_stores"))
            return False
        return self._may_ask() and self._send(self._sending[name], from_id)

    def get_server_last_update_id(self, name: str) -> int | None:
        """The number of the last row of this client's store that the server has; -1 for none, None for no answer."""
        if name not in self._sending:
            self._caller.failed(ServiceRefused(f"this client has no data store {name}", hint="give it in data_stores"))
            return None
        reply = self._caller.ask(self._sending[name].question)
        return reply if isinstance(reply, int) else None

    def request(self, type: str, payload: Any) -> Any:  # noqa: A002, ANN401 - the call that agentlace's programs make
        """The answer of the server's ``request_callback``; None where there is none, or the config has no such type."""
        if type not in self.config.request_types:
            self._caller.failed(ServiceRefused(f"no such request: {type}", hint="add it to request_types"))
            return None
        if not self._may_ask():
            return None
        return self._caller.ask({"type": "request", "name": type, "payload": payload})

    def recv_network_callback(self, callback: Callable[[Any], object]) -> None:
        """Call this with the newest weights, in a thread of its own; at once where there are some."""
        self._subscribe(callback)

    def start_async_update(self, interval: float = 10) -> None:
        """Update every ``interval`` seconds in a thread of its own, until ``stop``."""
        if self._updating is None:
            self._updating = threading.Thread(target=self._update_always, args=(interval,), daemon=True)
            self._updating.start()

    def stop(self) -> None:
        """End the connection and the threads. What was not sent stays in the client's stores."""
        self._ended.set()
        if self._updating is not None and self._updating is not threading.current_thread():
            self._updating.join(5 + self._caller.link.timeout_ms / 1000)
        super().stop()

    def _update_always(self, interval: float) -> None:
        while not self._ended.is_set():
            try:
                self.update()
            except ServiceError as error:  # raised where the caller wants that; here nobody could catch it
                _logger.warning("rows were not sent: %s", error)
            self._ended.wait(interval)

    def _send(self, sending: Sending, from_id: int = NONE_YET) -> bool:
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

    def recv_network_callback(self, callback_fn: Callable[[Any], object]) -> None:
        """Call this with published weights."""
        self._on_network.append(callback_fn)

    def register_request_callback(self, callback_fn: Callable[[str, Any], Any]) -> None:
        """Answer requests with this."""
        self._on_request = callback_fn

    def request(self, type: str, payload: Any) -> Any:  # noqa: A002, ANN401 - the call that agentlace's programs make
        """The answer of the request callback; None without one."""
        return self._on_request(type, payload) if self._on_request is not None else None

    def publish_network(self, params: Any) -> int:  # noqa: ANN401 - weights may be anything
        """Call every callback with these weights now, and return their version."""
        self.network_version += 1
        for callback in self._on_network:
            try:
                callback(params)
            except Exception:
                _logger.exception("the callback for published weights raised an error")
        return self.network_version

    def network_lag(self) -> int:
        """Always 0: weights are there as soon as they are published."""
        return 0

    def update(self) -> bool:
        """Always True: actors insert into the learner's own stores."""
        return True

    def start(self, threaded: bool = False) -> None:  # noqa: FBT001, FBT002 - the call that agentlace's programs make
        """Nothing has to be started."""

    def start_async_update(self, interval: float = 10) -> None:
        """Nothing has to be sent."""

    def stop(self) -> None:
        """Nothing has to be ended."""
