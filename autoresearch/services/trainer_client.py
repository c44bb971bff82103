"""An actor's side: its stores are copied to the learner, each row once, in order, and the newest weights come back.

Learner and actors in one process have the same calls, without sockets and without copies.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any

from autoresearch.errors import NoAnswer, ServiceError, ServiceRefused
from autoresearch.services.links.client import Caller, Errors, RequestClient, check_same
from autoresearch.services.links.newest import Subscriber
from autoresearch.services.links.sockets import ClientKeys
from autoresearch.services.stores import NONE_YET, DataStoreBase, newer_than, source_of, to_columns
from autoresearch.services.trainer_server import RowsSent, TrainerConfig, as_message, rows_taken

# So many rows and bytes are one message at most, more are several. After a time-out the next one is half as large,
# down to the least: a slow network takes less within the same time.
ROWS_AT_ONCE = 20_000
BYTES_AT_ONCE, LEAST_BYTES, MOST_BYTES = 8 << 20, 1 << 16, 64 << 20
# A server that lost its store again and again while rows came.
_ATTEMPTS = 5


class Sending:
    """Sends one store. ``offset`` is the last row that the server said it has; unknown at first and after a failure.

    A server may take rows whose answer is lost: so after a failure it is asked what it has before anything is sent.
    """

    def __init__(self, link: RequestClient, name: str, store: DataStoreBase) -> None:
        self.name, self.lost = name, 0
        self._link, self._store = link, store
        self._offset: int | None = None
        self._bytes = BYTES_AT_ONCE
        self._dealt_with = NONE_YET  # rows up to this number arrived at some time, or are counted as lost
        self._lock = threading.Lock()

    @property
    def question(self) -> dict[str, object]:
        """What asks the server for the last row that it has."""
        return {"type": "get_last_update_id", "store": self.name, "source": source_of(self._store)}

    def send(self, from_id: int | None = None) -> None:
        """Bring everything that the store has to the server; with ``from_id`` what is newer than that row.

        Raises:
            ServiceError: some of it did not arrive.
        """
        with self._lock:
            offset, self._offset = self._offset, None
            self._offset = self._send(offset, NONE_YET if from_id is None else from_id)

    def _ask(self) -> int:
        answer = self._link.ask(self.question)
        if not isinstance(answer, int):
            raise NoAnswer(f"the server did not say what it has of {self.name}")
        return answer

    def _send(self, offset: int | None, from_id: int) -> int:
        """Send from this offset on, and return the one that was reached."""
        for _ in range(_ATTEMPTS):
            number = self._ask() if offset is None else offset
            begin = max(number, from_id)
            rows, last = newer_than(self._store, begin)
            self._count_lost(begin, last - len(rows))
            # Where nothing is new, only asking shows that the server is there and still has the rest.
            reached = self._send_all(rows, number, last) if rows or offset is None else self._ask()
            if reached >= number:
                return reached
            offset = reached
        raise ServiceRefused(f"the server's store {self.name} loses its rows again and again")

    def _send_all(self, rows: Sequence[Any], number: int, last: int) -> int:
        """Send rows up to number ``last``, and return how far the server is: less than before if it lost its store."""
        while rows:
            part = rows[: self._fitting(rows)]
            rows = rows[len(part) :]
            reached = self._send_part(part, number, last - len(rows))
            if reached < number:
                return reached
            number = reached
        return number

    def _count_lost(self, number: int, forgotten: int) -> None:
        """Count the rows up to ``forgotten`` that the store no longer has, and no server ever had."""
        number = max(number, self._dealt_with)
        self.lost += max(0, forgotten - number)
        self._dealt_with = max(number, forgotten)

    def _send_part(self, part: Sequence[Any], offset: int, last: int) -> int:
        """Send rows up to number ``last`` in one message, and return how far the server is then."""
        sent = RowsSent(
            store=self.name,
            source=source_of(self._store),
            after=offset,
            last=last,
            count=len(part),
            columns=to_columns(part),
        )
        try:
            taken = rows_taken(self._link.ask({"type": "datastore", "rows": as_message(sent)}))
        except NoAnswer:
            self._bytes = max(LEAST_BYTES, self._bytes // 2)
            raise
        self._bytes = min(MOST_BYTES, self._bytes * 2)
        self._dealt_with = max(self._dealt_with, taken.offset)
        return taken.offset

    def _fitting(self, rows: Sequence[Any]) -> int:
        """How many of these rows are one message: one at least, however large."""
        size = 0
        for count, row in enumerate(rows[:ROWS_AT_ONCE]):
            size += _size(row)
            if size > self._bytes and count:
                return count
        return min(len(rows), ROWS_AT_ONCE)


def _size(value: Any) -> int:  # noqa: ANN401 - a row is whatever the program makes it
    """About how many bytes a row is in a message."""
    if isinstance(value, dict):
        return 1 + sum(map(_size, value.values()))
    if isinstance(value, list | tuple):
        return 1 + sum(map(_size, value))
    return int(getattr(value, "nbytes", 0)) + (len(value) if isinstance(value, str | bytes) else 8)


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
        port = answer.get("broadcast_port")
        self._broadcast_port = config.broadcast_port or (port if isinstance(port, int) else 0)
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
        reply = self._caller.ask(sending.question)
        return reply if isinstance(reply, int) else None

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
