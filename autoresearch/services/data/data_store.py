"""Stores of rows between actors and a learner: what any offers, and a queue that forgets the oldest.

Also how many samples a learner draws for each row that actors insert: neither side runs far ahead of the other.

A client's store numbers its rows 0, 1, 2, … and has a name of its own (its source). The server's ledger keeps the last
number that arrived from each source, so rows that are sent again are known, and a new source starts at its first row.
"""

from __future__ import annotations

import os
import secrets
import threading
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Mapping, Sequence
from itertools import islice
from threading import Lock
from typing import Any
from weakref import WeakKeyDictionary

from autoresearch.errors import ServiceRefused, UsageError

# Before the first row.
NONE_YET = -1


class Ledger:
    """The last row of each source. It belongs to a store's content: keep and load them together."""

    def __init__(self, offsets: Mapping[str, int] | None = None) -> None:
        self._offsets = dict(offsets or {})

    def offset(self, source: str) -> int:
        """The number of the last row that arrived from a source; -1 before the first."""
        return self._offsets.get(source, NONE_YET)

    def new_rows(self, source: str, last: int, count: int) -> int:
        """How many of the last ``count`` rows up to number ``last`` are new here: the rest arrived before."""
        return max(0, min(count, last - self.offset(source)))

    def arrived(self, source: str, last: int) -> None:
        """Note that the rows up to this number are in the store."""
        self._offsets[source] = max(last, self.offset(source))

    def as_dict(self) -> dict[str, int]:
        """All offsets, to be kept beside the store's rows."""
        return dict(self._offsets)


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


def ledger_of(store: DataStoreBase, ledger: Ledger | None = None) -> Ledger:
    """The ledger of a server's store, which lives as long as the store; ``ledger`` is what was loaded with its rows."""
    if ledger is not None:
        _ledgers[store] = ledger
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


class SamplesPerInsert:
    """Holds samples / rows near ``ratio``. Safe among threads.

    Actors' rows are refused while the learner is more than ``slack`` samples behind, and their ``update`` says False.
    The learner calls ``take`` before it draws, and waits there while it is as far ahead. Before ``min_size`` rows
    there is no limit on rows, and no sample.

    Raises:
        UsageError: the ratio is not above 0, or the slack is below one row's samples.
    """

    def __init__(self, ratio: float, min_size: int = 1, slack: float | None = None) -> None:
        self.ratio, self.min_size = ratio, min_size
        self.slack = max(ratio, 1.0) * 100 if slack is None else slack
        if not ratio > 0 or not self.slack >= ratio:
            raise UsageError(
                f"samples per insert {ratio:g} with slack {self.slack:g}",
                hint="a ratio above 0, and a slack of that many samples or more",
            )
        self.rows = 0
        self.samples = 0
        self._changed = threading.Condition()

    def has_room(self) -> bool:
        """Whether rows may be inserted now."""
        with self._changed:
            return self.rows < self.min_size or self._owed() <= self.slack

    def inserted(self, rows: int) -> None:
        """Note rows that were inserted."""
        with self._changed:
            self.rows += rows
            self._changed.notify_all()

    def take(self, samples: int, wait_s: float | None = None) -> bool:
        """Note samples that the learner will draw, as soon as it may. False where that is not within ``wait_s``."""
        with self._changed:
            if not self._changed.wait_for(lambda: self._may_sample(samples), wait_s):
                return False
            self.samples += samples
            return True

    def _owed(self) -> float:
        """Samples that the learner is behind; rows before the first sample are not owed for."""
        return (self.rows - self.min_size) * self.ratio - self.samples

    def _may_sample(self, samples: int) -> bool:
        # A batch larger than the slack must pass as well: it is drawn when nothing is drawn ahead.
        return self.rows >= self.min_size and (samples - self._owed() <= self.slack or self._owed() >= 0)


class QueuedDataStore(DataStoreBase):
    """At most ``capacity`` rows of any kind, in the order in which they came. Safe among threads."""

    def __init__(self, capacity: int) -> None:
        super().__init__(capacity)
        self._data_queue: deque[Any] = deque(maxlen=capacity)
        self.latest_seq_id = -1
        self._lock = Lock()

    def latest_data_id(self) -> int:
        """The number of the newest row; -1 before the first."""
        return self.latest_seq_id

    def insert(self, data: Any) -> None:  # noqa: ANN401 - a row is whatever the program makes it
        """Add a row; the oldest goes where there is no room."""
        with self._lock:
            self.latest_seq_id += 1
            self._data_queue.append(data)

    def batch_insert(self, batch_data: Sequence[Any]) -> None:
        """Add rows, all at once for those who read."""
        with self._lock:
            self.latest_seq_id += len(batch_data)
            self._data_queue.extend(batch_data)

    def get_latest_data(self, from_id: int) -> list[Any]:
        """The rows newer than row ``from_id`` that are still there, oldest first."""
        with self._lock:
            newer = max(0, min(len(self._data_queue), self.latest_seq_id - from_id))
            return list(islice(self._data_queue, len(self._data_queue) - newer, None))

    def __len__(self) -> int:
        return len(self._data_queue)
