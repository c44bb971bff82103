"""How the rows of an actor's store get to a server: each one once, in order."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

from autoresearch.errors import NoAnswer, ServiceRefused
from autoresearch.services.links import RequestClient
from autoresearch.services.stores import NONE_YET, DataStoreBase, newer_than, source_of, to_columns
from autoresearch.services.trainer.config import RowsSent, as_message, rows_taken

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
        found = self._link.ask(self.question)
        if not isinstance(found, int):
            raise NoAnswer(f"the server did not say what it has of {self.name}")
        return found

    def _send(self, offset: int | None, from_id: int) -> int:
        """Send from this offset on, and return the one that was reached."""
        for _ in range(_ATTEMPTS):
            known = self._ask() if offset is None else offset
            begin = max(known, from_id)
            rows, last = newer_than(self._store, begin)
            self._count_lost(begin, last - len(rows))
            # Where nothing is new, only asking shows that the server is there and still has the rest.
            reached = self._send_all(rows, known, last) if rows or offset is None else self._ask()
            if reached >= known:
                return reached
            offset = reached
        raise ServiceRefused(f"the server's store {self.name} loses its rows again and again")

    def _send_all(self, rows: Sequence[Any], known: int, last: int) -> int:
        """Send rows up to number ``last``, and return how far the server is: less than before if it lost its store."""
        while rows:
            part = rows[: self._fitting(rows)]
            rows = rows[len(part) :]
            reached = self._send_part(part, known, last - len(rows))
            if reached < known:
                return reached
            known = reached
        return known

    def _count_lost(self, known: int, forgotten: int) -> None:
        """Count the rows up to ``forgotten`` that the store no longer has, and no server ever had."""
        known = max(known, self._dealt_with)
        self.lost += max(0, forgotten - known)
        self._dealt_with = max(known, forgotten)

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
