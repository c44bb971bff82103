"""The learner's side: stores that actors fill, requests of the program's own, weights that are published.

Also what a trainer and its actors must agree on.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import msgspec

from autoresearch.errors import BadMessage, ServiceRefused
from autoresearch.services.links.newest import Publisher
from autoresearch.services.links.server import Counts, RequestServer
from autoresearch.services.links.sockets import ServerKeys
from autoresearch.services.stores import DataStoreBase, SamplesPerInsert, from_columns, ledger_of
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


class RowsSent(msgspec.Struct, frozen=True):
    """Rows of a client's store: the last ``count`` up to number ``last``. ``after`` is what the server said it had."""

    store: str
    source: str
    after: int
    last: int
    count: int
    columns: Any


class RowsTaken(msgspec.Struct, frozen=True):
    """What became of rows: how many were stored now, and the number of the last one that the server has."""

    stored: int
    offset: int


def as_message(rows: RowsSent | RowsTaken) -> dict[str, object]:
    """A struct as what can be sent."""
    return {name: getattr(rows, name) for name in rows.__struct_fields__}


def rows_sent(message: object) -> RowsSent:
    """Rows from a message. Raises BadMessage where it is another one."""
    match message:
        case {
            "store": str() as store,
            "source": str() as source,
            "after": int() as after,
            "last": int() as last,
            "count": int() as count,
            "columns": columns,
        } if after >= -1 and 0 <= count <= last + 1:
            return RowsSent(store, source, after, last, count, columns)
    raise BadMessage("rows came without what says which they are")


def rows_taken(message: object) -> RowsTaken:
    """What a server said about rows. Raises BadMessage where it is something else."""
    match message:
        case {"stored": int() as stored, "offset": int() as offset}:
            return RowsTaken(stored, offset)
    raise BadMessage("the server did not say what became of the rows")


_logger = logging.getLogger(__name__)
DataCallback = Callable[[str, dict[str, Any]], object]
RequestCallback = Callable[[str, Any], Any]


class TrainerServer:
    """Takes actors' rows into its stores, each row once, and publishes weights with a version.

    ``data_callback(store_name, {"data": rows, "last_id": number})`` is called after rows arrived, and
    ``request_callback(type, payload)`` answers requests of the config's types; both in the server's one thread.

    Raises:
        Refused: the address is open to other machines, and there are no keys; or a port is taken.
    """

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
        try:
            self._publisher = Publisher(config.broadcast_port, address, keys)
        except BaseException:
            self._server.stop()
            raise

    @property
    def port(self) -> int:
        """Where it takes rows and requests."""
        return self._server.port

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

    @property
    def counts(self) -> Counts:
        """What it did so far."""
        return self._server.counts

    def start(self, threaded: bool = False) -> None:  # noqa: FBT001, FBT002 - the call that agentlace's programs make
        """Take rows and requests until ``stop``: in this thread, or with ``threaded`` in one of its own."""
        self._publisher.start(threaded=True)
        self._server.start(threaded)

    def stop(self) -> None:
        """End it, from any thread, any number of times."""
        self._publisher.stop()
        self._server.stop()

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
