"""A queue of rows that forgets the oldest."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from itertools import islice
from threading import Lock
from typing import Any

from autoresearch.services.stores.base import DataStoreBase


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
