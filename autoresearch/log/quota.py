"""How many records of one author are kept: a function of the set of records, never of their arrival.

Three nested buckets keep their k smallest by (seq, id): author · day · seq, then author · day, then author. Dropping
the largest of nested buckets can be done step by step in any order with the same outcome, so all peers keep the same
records. Rules that look as harmless (caps in bytes, buckets that cross) don't have that property.

One bucket more, of all authors together whom the network does not name, is in :mod:`autoresearch.log.unattested`.
"""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Iterable, Sequence

from autoresearch.records import DAY_MS, Network

# The row of ``bucket`` that counts all of an author's records.
ALL_DAYS = -1

Stored = tuple[int, bytes, bytes, int, int]  # n, id, author, seq, time
_AT = "SELECT n, id, author, seq, time FROM record WHERE author = ? AND seq = ?"
LAST_OF_DAY = """
SELECT n, id, author, seq, time FROM record WHERE author = ? AND time >= ? AND time < ?
ORDER BY seq DESC, id DESC LIMIT ?
"""
_LAST = "SELECT n, id, author, seq, time FROM record WHERE author = ? ORDER BY seq DESC, id DESC LIMIT ?"


def enforce(connection: sqlite3.Connection, network: Network, inserted: Sequence[Stored]) -> list[Stored]:
    """Drop what is over quota after ``inserted`` came in, and return it. Counts them all. Projections are untouched."""
    _count(connection, inserted, sign=1)
    dropped: list[Stored] = []
    for author, seq in {(author, seq) for _, _, author, seq, _ in inserted}:
        dropped += drop(connection, _crowded(connection, author, seq, network.per_day_seq))
    for author, day in sorted({(author, time // DAY_MS) for _, _, author, _, time in inserted}):
        if (excess := bucket(connection, author, day) - network.per_day) > 0:
            within = (author, day * DAY_MS, (day + 1) * DAY_MS, excess)
            dropped += drop(connection, connection.execute(LAST_OF_DAY, within).fetchall())
    for author in sorted({author for _, _, author, _, _ in inserted}):
        if (excess := bucket(connection, author, ALL_DAYS) - network.per_author) > 0:
            dropped += drop(connection, connection.execute(_LAST, (author, excess)).fetchall())
    return dropped


def bucket(connection: sqlite3.Connection, author: bytes, day: int) -> int:
    """How many records of ``author`` are kept for a UTC day, or in all for ``ALL_DAYS``."""
    query = "SELECT records FROM bucket WHERE author = ? AND day = ?"
    found = connection.execute(query, (author, day)).fetchone()
    return int(found[0]) if found else 0


def _crowded(connection: sqlite3.Connection, author: bytes, seq: int, limit: int) -> list[Stored]:
    """Beyond the ``limit`` smallest ids of each day with this author and sequence number."""
    found: list[Stored] = connection.execute(_AT, (author, seq)).fetchall()
    if len(found) <= limit:
        return []
    over, days = [], Counter[int]()
    for stored in sorted(found, key=lambda stored: stored[1]):
        day = stored[4] // DAY_MS
        days[day] += 1
        if days[day] > limit:
            over.append(stored)
    return over


def drop(connection: sqlite3.Connection, over: list[Stored]) -> list[Stored]:
    """Delete these records, which are counted no more, and return them. Projections are untouched."""
    if over:
        connection.executemany("DELETE FROM record WHERE n = ?", [(stored[0],) for stored in over])
        _count(connection, over, sign=-1)
    return over


def _count(connection: sqlite3.Connection, changed: Iterable[Stored], *, sign: int) -> None:
    counts = Counter[tuple[bytes, int]]()
    for _, _, author, _, time in changed:
        counts[author, time // DAY_MS] += sign
        counts[author, ALL_DAYS] += sign
    connection.executemany(
        "INSERT INTO bucket VALUES(?, ?, ?) ON CONFLICT DO UPDATE SET records = records + excluded.records",
        [(author, day, count) for (author, day), count in counts.items()],
    )
    if sign < 0:  # keys made for a flood leave nothing behind
        gone = "DELETE FROM bucket WHERE author = ? AND day = ? AND records = 0"
        connection.executemany(gone, counts.keys())
