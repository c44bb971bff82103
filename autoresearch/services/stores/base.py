"""What a store of rows offers, whoever wrote it."""

from __future__ import annotations

import os
import secrets
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any
from weakref import WeakKeyDictionary

from autoresearch.errors import ServiceRefused
from autoresearch.services.stores.ledger import Ledger

# A store that other threads fill all the time is asked so often for rows and their last number that fit together.
_ATTEMPTS = 1000


class DataStoreBase(ABC):
    """A store of at most ``capacity`` rows. Rows are numbered 0, 1, 2, … as they are inserted; the oldest go first."""

    def __init__(self, capacity: int) -> None:
        self.capacity = capacity

    @abstractmethod
    def latest_data_id(self) -> int:
        """The number of the newest row; -1 before the first."""

    @abstractmethod
    def get_latest_data(self, from_id: int) -> Sequence[Any]:
        """The rows that are newer than row ``from_id``, oldest first; -1 asks for all that there are."""

    @abstractmethod
    def __len__(self) -> int:
        """How many rows there are."""

    @abstractmethod
    def insert(self, data: Any) -> None:  # noqa: ANN401 - a row is whatever the program makes it
        """Add a row."""

    def batch_insert(self, batch_data: Sequence[Any]) -> None:
        """Add rows, by ``insert`` where a store has no faster way."""
        for data in batch_data:
            self.insert(data)


_sources: WeakKeyDictionary[DataStoreBase, str] = WeakKeyDictionary()
_ledgers: WeakKeyDictionary[DataStoreBase, Ledger] = WeakKeyDictionary()


def source_of(store: DataStoreBase) -> str:
    """The name of a client's store in ledgers: the same as long as it lives, another one in each process."""
    return f"{_sources.setdefault(store, secrets.token_hex(8))}-{os.getpid()}"


def ledger_of(store: DataStoreBase, kept: Ledger | None = None) -> Ledger:
    """The ledger of a server's store, which lives as long as the store; ``kept`` is what was loaded with its rows."""
    if kept is not None:
        _ledgers[store] = kept
    return _ledgers.setdefault(store, Ledger())


def newer_than(store: DataStoreBase, from_id: int) -> tuple[Sequence[Any], int]:
    """The rows newer than ``from_id`` and the number of the last of them, though other threads insert meanwhile.

    Raises:
        ServiceRefused: rows are inserted faster than they can be read.
    """
    for _ in range(_ATTEMPTS):
        before = store.latest_data_id()
        rows = store.get_latest_data(from_id)
        if store.latest_data_id() == before:
            return rows, before
    raise ServiceRefused("a data store changes while it is read", hint="use a QueuedDataStore, or insert less often")
