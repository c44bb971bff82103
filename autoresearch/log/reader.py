"""One connection to the log: queries, snapshots, and parts of queries that several tables share."""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from threading import RLock

from autoresearch.log.connection import refusals
from autoresearch.log.rows import Revision
from autoresearch.words import STOPPED

# So many keys a query takes at once, and so many rows are read at once where there may be many.
PAGE = 500
_REVISION = """
SELECT coalesce(max(n), 0), coalesce((SELECT value FROM meta WHERE key = 'drops'), 0),
    coalesce((SELECT value FROM meta WHERE key = 'settled'), 0),
    coalesce((SELECT value FROM meta WHERE key = 'people'), 0),
    coalesce((SELECT value FROM meta WHERE key = 'tasks'), 0) FROM record
"""


def in_parts(keys: Collection[bytes], most: int = PAGE) -> Iterator[list[bytes]]:
    """Keys in parts as a query takes them: SQLite has no more than 32,766 values in one."""
    ordered = list(keys)
    for start in range(0, len(ordered), most):
        yield ordered[start : start + most]


def marks(keys: Collection[object]) -> str:
    """Placeholders for values, which may stand in a query more than once."""
    return ", ".join(f"?{number}" for number in range(1, len(keys) + 1))


class Reader:
    """Reads through one connection. Threads take turns by ``lock``, also to write through it.

    ``pinned`` is the revision of the snapshot that is open, None without one. ``failures`` counts the transactions
    that were undone: what was read in one holds no longer.
    """

    def __init__(self, connection: sqlite3.Connection) -> None:
        self.connection = connection
        self.lock = RLock()
        self.pinned: Revision | None = None
        self.failures = 0
        self._data_version = self.rows("PRAGMA data_version")[0][0]

    def close(self) -> None:
        """Let go of the file."""
        with self.lock:
            self.connection.close()

    @contextmanager
    def snapshot(self) -> Iterator[Revision]:
        """A consistent read view: all that is read in it is of one revision. Nothing can be written in it.

        Other threads wait until it ends. One within another is part of it.
        """
        with self.lock:
            if self.pinned is not None:
                yield self.pinned
                return
            with refusals(None):
                self.connection.execute("BEGIN")
            try:
                with self.pin() as revision:
                    yield revision
            finally:
                self.connection.execute("ROLLBACK")

    @contextmanager
    def pin(self) -> Iterator[Revision]:
        """The same in a transaction that somebody else began and ends."""
        self.pinned = self._revision()
        try:
            yield self.pinned
        finally:
            self.pinned = None

    def revision(self) -> Revision:
        """How far the log has come: the same as before means that it holds the same. In a snapshot that of this."""
        with self.lock:
            return self.pinned or self._revision()

    def _revision(self) -> Revision:
        return Revision._make((*self.read(_REVISION, ())[0], self.failures))

    def changed_elsewhere(self) -> bool:
        """Whether another process has changed the log since this was asked last."""
        version = self.rows("PRAGMA data_version")[0][0]
        before, self._data_version = self._data_version, version
        return bool(version != before)

    def rows(self, query: str, *values: object) -> list[tuple]:  # type: ignore[type-arg]
        """What a query finds."""
        return self.read(query, values)

    def read(self, query: str, values: Sequence[object]) -> list[tuple]:  # type: ignore[type-arg]
        """The same, with the values in a sequence."""
        with self.lock, refusals(None):
            return self.connection.execute(query, values).fetchall()


# A run that somebody stopped says nothing about its source: others may try it.
ENDED = f"run.status NOT IN ({', '.join(repr(status.value) for status in sorted(STOPPED))})"
# With this join ``suspect.author`` is there for a run after a fork of its author that no merge ended.
SUSPECT = "LEFT JOIN suspect ON suspect.author = run.author AND suspect.seq <= run.seq"
# Another participant published the checkpoint of a run before.
COPIED = "EXISTS(SELECT 1 FROM copy WHERE copy.n = run.n AND copy.model)"
COUNTS = "run.status = 'ok' AND run.value IS NOT NULL"
