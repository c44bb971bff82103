"""How many records are kept: of one participant, and of all authors together whom the network does not name.

A function of the set of records, never of their arrival. Four nested buckets keep their k smallest: author · day · seq
and author · day by (seq, id), then participant · day and participant, where a root key's own records come before those
of its devices. Dropping the largest of nested buckets can be done step by step in any order with the same outcome, so
all peers keep the same records. Rules that look as harmless (caps in bytes, buckets that cross) don't have that
property.

Named are the keys that the network trusts, those for which a trusted attestor ever gave its word, those whom the
founders' latest admission admits, and the devices that any of these delegated. Such a root key and its devices are one
participant, however many devices it has; every other author is one by itself. The records of authors that are not named
make one more bucket, around their buckets of author and day: a bound that many keys don't lift. It keeps those of the
newest days; within a day whole authors, in the order of a hash of day and author, and of one author the smallest by
(seq, id). That order agrees with the inner buckets', so that all peers who trust alike keep the same. Keys that are
made for it push out others who are not named, and nobody else.
"""

from __future__ import annotations

import hashlib
import heapq
import sqlite3
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence

from autoresearch.record.kinds import Attestation, Identity
from autoresearch.record.record import DAY_MS, Network, Record, parse_stored
from autoresearch.trust.roster import Trust, is_admission, last_admissions

# The row of ``bucket`` that counts all of an author's records.
ALL_DAYS = -1

Stored = tuple[int, bytes, bytes, int, int]  # n, id, author, seq, time
_AT = "SELECT n, id, author, seq, time FROM record WHERE author = ? AND seq = ?"
_SHARED = """
SELECT author, seq FROM record AS new WHERE n > ?
AND EXISTS(SELECT 1 FROM record AS other WHERE other.author = new.author AND other.seq = new.seq AND other.n <> new.n)
"""
LAST_OF_DAY = """
SELECT n, id, author, seq, time FROM record WHERE author = ? AND time >= ? AND time < ?
ORDER BY seq DESC, id DESC LIMIT ?
"""
_LAST = "SELECT n, id, author, seq, time FROM record WHERE author = ? ORDER BY seq DESC, id DESC LIMIT ?"


def shared_places(connection: sqlite3.Connection, after: int) -> set[tuple[bytes, int]]:
    """Author and sequence number of the records stored after a row, where another record has both."""
    return set(connection.execute(_SHARED, (after,)).fetchall())


def enforce(
    connection: sqlite3.Connection, network: Network, inserted: Sequence[Stored], shared: Iterable[tuple[bytes, int]]
) -> list[Stored]:
    """Drop what is over quota after ``inserted`` came in, and return it. Counts them all. Projections are untouched.

    ``shared``: the places of several records among those of ``inserted``.
    """
    _count(connection, inserted, sign=1)
    dropped: list[Stored] = []
    for author, seq in shared:
        dropped += drop(connection, _crowded(connection, author, seq, network.per_day_seq))
    for author, day in sorted({(author, time // DAY_MS) for _, _, author, _, time in inserted}):
        if (excess := bucket(connection, author, day) - network.per_day) > 0:
            within = (author, day * DAY_MS, (day + 1) * DAY_MS, excess)
            dropped += drop(connection, connection.execute(LAST_OF_DAY, within).fetchall())
    return dropped


def bucket(connection: sqlite3.Connection, author: bytes, day: int) -> int:
    """How many records of ``author`` are kept for a UTC day, or in all for ``ALL_DAYS``."""
    query = "SELECT records FROM bucket WHERE author = ? AND day = ?"
    row = connection.execute(query, (author, day)).fetchone()
    return int(row[0]) if row else 0


def _crowded(connection: sqlite3.Connection, author: bytes, seq: int, limit: int) -> list[Stored]:
    """Beyond the ``limit`` smallest ids of each day with this author and sequence number."""
    rows: list[Stored] = connection.execute(_AT, (author, seq)).fetchall()
    if len(rows) <= limit:
        return []
    over, days = [], Counter[int]()
    for stored in sorted(rows, key=lambda stored: stored[1]):
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


# Records of these kinds may name an author.
NAMING = frozenset({"identity", "attestation", "admission"})
_DOMAIN = b"autoresearch/unattested/1"
_OF_KIND = "SELECT author, raw, signature FROM record WHERE kind = ?"


class Shares:
    """How many records each participant has here on each UTC day and in all, and each author that is not named.

    ``own`` are the keys of this machine: they are never among those that are not named.
    """

    def __init__(self, connection: sqlite3.Connection, network: Network, trust: Trust, own: frozenset[bytes]) -> None:
        self.trust = trust
        self._network = network
        self._own = own
        self._roots = _roots(connection, trust)
        self._keys = defaultdict[bytes, list[bytes]](list)
        for key, root in self._roots.items():
            self._keys[root].append(key)
        self._shares = Counter[tuple[int, bytes]]()
        self._full: set[tuple[int, bytes]] = set()
        self._counts = Counter[tuple[int, bytes]]()
        self._total = 0
        self._worst: list[tuple[int, int, bytes]] = []  # a heap of all that are counted; some may be at zero by now
        query = "SELECT day, author, records FROM bucket WHERE day >= 0 AND records > 0"
        for day, author, records in connection.execute(query):
            self._count(day, author, records)
        self._version = _version(connection)

    def is_stale(self, connection: sqlite3.Connection, trust: Trust, records: Iterable[Record]) -> bool:
        """Whether another process wrote meanwhile, others are trusted, or these records name somebody new."""
        if self.trust != trust or self._version != _version(connection):
            return True
        return any(record.kind in NAMING for record in records) and _roots(connection, trust) != self._roots

    def change(self, came: Iterable[Stored], went: Iterable[Stored]) -> None:
        """Count what was stored and what was dropped."""
        for sign, records in ((1, came), (-1, went)):
            for (day, author), count in Counter((record[4] // DAY_MS, record[2]) for record in records).items():
                self._count(day, author, sign * count)

    def drop_excess(self, connection: sqlite3.Connection) -> list[Stored]:
        """Drop the records that are too many, and return them. Projections are untouched."""
        over: list[Stored] = []
        full, self._full = self._full, set()
        for day, who in sorted(full, reverse=True):  # all days last
            excess = self._shares[day, who] - (self._network.per_author if day == ALL_DAYS else self._network.per_day)
            if excess > 0:
                over += self._drop(connection, self._last_of(connection, day, who, excess))
        while self.trust.names_anybody and self._total > self._network.unattested:
            day, _, author = self._worst[0]
            count = min(self._total - self._network.unattested, self._counts[day, author])
            within = (author, day * DAY_MS, (day + 1) * DAY_MS, count)
            over += self._drop(connection, connection.execute(LAST_OF_DAY, within).fetchall())
            if not self._counts[day, author]:
                heapq.heappop(self._worst)
                del self._counts[day, author]
        return over

    def _drop(self, connection: sqlite3.Connection, records: list[Stored]) -> list[Stored]:
        self.change((), records)
        return drop(connection, records)

    def _last_of(self, connection: sqlite3.Connection, day: int, who: bytes, count: int) -> list[Stored]:
        """The last records of a participant: those of its devices, the largest numbers first, then its root key's."""
        newest: list[Stored] = []
        for key in self._keys.get(who, [who]):
            if day == ALL_DAYS:
                newest += connection.execute(_LAST, (key, count)).fetchall()
            else:
                newest += connection.execute(LAST_OF_DAY, (key, day * DAY_MS, (day + 1) * DAY_MS, count)).fetchall()
        return heapq.nlargest(count, newest, key=lambda record: (record[2] != who, record[3], record[1]))

    def _count(self, day: int, author: bytes, records: int) -> None:
        who = self._roots.get(author, author)
        for stretch, most in ((day, self._network.per_day), (ALL_DAYS, self._network.per_author)):
            self._shares[stretch, who] += records
            if self._shares[stretch, who] > most:
                self._full.add((stretch, who))
            elif not self._shares[stretch, who]:  # keys made for a flood leave nothing behind
                del self._shares[stretch, who]
        if author in self._roots or author in self._own:
            return
        if (day, author) not in self._counts:
            heapq.heappush(self._worst, (day, -_draw(day, author), author))
        self._counts[day, author] += records
        self._total += records


def _draw(day: int, author: bytes) -> int:
    return int.from_bytes(hashlib.sha256(_DOMAIN + day.to_bytes(8, "big") + author).digest(), "big")


def _roots(connection: sqlite3.Connection, trust: Trust) -> dict[bytes, bytes]:
    """All keys that the network names, by what the log holds, each with its participant's root key.

    What a device says of it may not be here yet. Where several root keys name it, it is of the one that it names.
    """
    attestors = _with_devices(connection, trust.attestors)
    attested = {
        body.subject
        for author, raw, signature in connection.execute(_OF_KIND, ("attestation",))
        if author in attestors and isinstance(body := parse_stored(raw, signature).body, Attestation)
    }
    roots = trust.attestors | trust.participants | trust.founders | attested | _admitted(connection, trust.founders)
    named = defaultdict[bytes, set[bytes]](set)
    for root, device in connection.execute("SELECT root, device FROM delegation"):
        if root in roots and device not in roots:
            named[device].add(root)
    agreed = {
        (author, body.root)
        for author, raw, signature in (connection.execute(_OF_KIND, ("identity",)) if named else ())
        if author in named and isinstance(body := parse_stored(raw, signature).body, Identity)
    }
    of_devices = {
        device: min(several, key=lambda root: ((device, root) not in agreed, root)) for device, several in named.items()
    }
    return {root: root for root in roots} | of_devices


def _admitted(connection: sqlite3.Connection, founders: frozenset[bytes]) -> frozenset[bytes]:
    """Whom the last word of a founder or of any of its devices admits; when those spoke for it does not matter."""
    speakers = _with_devices(connection, founders)
    words = [
        parse_stored(raw, signature)
        for author, raw, signature in connection.execute(_OF_KIND, ("admission",))
        if author in speakers
    ]
    return frozenset(who for who, word in last_admissions(words).items() if is_admission(word))


def _with_devices(connection: sqlite3.Connection, roots: frozenset[bytes]) -> frozenset[bytes]:
    """These root keys and the devices that they name; what the devices say of it may not be here yet."""
    named = connection.execute("SELECT root, device FROM delegation").fetchall()
    return roots | {device for root, device in named if root in roots}


def _version(connection: sqlite3.Connection) -> int:
    """Another one after another process has changed the file."""
    return int(connection.execute("PRAGMA data_version").fetchone()[0])
