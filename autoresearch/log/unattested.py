"""How many records of all authors together are kept whom the network does not name: a bound that many keys don't lift.

Named are the keys that the network trusts, those for which a trusted attestor ever gave its word, those whom the
founders' latest admission admits, and the devices that any of these delegated. The records of all others make one more
bucket, around their buckets of author and day. It keeps those of the newest days; within a day whole authors, in the
order of a hash of day and author, and of one author the smallest by (seq, id). That order agrees with the inner
buckets', so that all peers who trust alike keep the same. Keys that are made for it push out others who are not named,
and nobody else.
"""

from __future__ import annotations

import hashlib
import heapq
import sqlite3
from collections import Counter
from collections.abc import Iterable

from autoresearch.identity import Decision, Trust, latest_decisions
from autoresearch.log.quota import LAST_OF_DAY, Stored
from autoresearch.records import DAY_MS, Admission, Attestation, Record, parse_stored

# Records of these kinds may name an author.
NAMING = frozenset({"identity", "attestation", "admission"})
_DOMAIN = b"autoresearch/unattested/1"
_OF_KIND = "SELECT author, raw, signature FROM record WHERE kind = ?"


class Unattested:
    """How many records each author that the network does not name has here on each UTC day.

    ``own`` are the keys of this machine: nothing of theirs is dropped.
    """

    def __init__(self, connection: sqlite3.Connection, trust: Trust, own: frozenset[bytes]) -> None:
        self.trust = trust
        self._own = own
        self._named = _named(connection, trust) | own
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
        naming = any(record.kind in NAMING for record in records)
        return naming and _named(connection, trust) | self._own != self._named

    def change(self, came: Iterable[Stored], went: Iterable[Stored]) -> None:
        """Count what was stored and what was dropped."""
        for sign, records in ((1, came), (-1, went)):
            for (day, author), count in Counter((one[4] // DAY_MS, one[2]) for one in records).items():
                self._count(day, author, sign * count)

    def take_excess(self, connection: sqlite3.Connection, most: int) -> list[Stored]:
        """The records that are too many; they are counted no more."""
        over: list[Stored] = []
        while self._total > most:
            day, _, author = self._worst[0]
            count = min(self._total - most, self._counts[day, author])
            within = (author, day * DAY_MS, (day + 1) * DAY_MS, count)
            over += connection.execute(LAST_OF_DAY, within).fetchall()
            self._count(day, author, -count)
            if not self._counts[day, author]:
                heapq.heappop(self._worst)
                del self._counts[day, author]
        return over

    def _count(self, day: int, author: bytes, records: int) -> None:
        if author in self._named:
            return
        if (day, author) not in self._counts:
            heapq.heappush(self._worst, (day, -_draw(day, author), author))
        self._counts[day, author] += records
        self._total += records


def _draw(day: int, author: bytes) -> int:
    return int.from_bytes(hashlib.sha256(_DOMAIN + day.to_bytes(8, "big") + author).digest(), "big")


def _named(connection: sqlite3.Connection, trust: Trust) -> frozenset[bytes]:
    """All keys that the network names, by what the log holds."""
    attestors = _with_devices(connection, trust.attestors)
    attested = {
        body.subject
        for author, raw, signature in connection.execute(_OF_KIND, ("attestation",))
        if author in attestors and isinstance(body := parse_stored(raw, signature).body, Attestation)
    }
    admitted = _admitted(connection, trust.founders)
    return _with_devices(connection, trust.attestors | trust.participants | trust.founders | attested | admitted)


def _admitted(connection: sqlite3.Connection, founders: frozenset[bytes]) -> frozenset[bytes]:
    """Whom the latest word of a founder or of any of its devices admits; when those spoke for it does not matter."""
    speakers = _with_devices(connection, founders)
    said = [
        Decision(record.time, record.seq, record.id, author, body.participant, body.action == "admit")
        for author, raw, signature in connection.execute(_OF_KIND, ("admission",))
        if author in speakers and isinstance(body := (record := parse_stored(raw, signature)).body, Admission)
    ]
    return frozenset(who for who, decision in latest_decisions(said).items() if decision.admits)


def _with_devices(connection: sqlite3.Connection, roots: frozenset[bytes]) -> frozenset[bytes]:
    """These root keys and the devices that they name; what the devices say of it may not be here yet."""
    named = connection.execute("SELECT root, device FROM delegation").fetchall()
    return roots | {device for root, device in named if root in roots}


def _version(connection: sqlite3.Connection) -> int:
    """Another one after another process has changed the file."""
    return int(connection.execute("PRAGMA data_version").fetchone()[0])
