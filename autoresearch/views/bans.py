"""Bans: records that prove fraud by themselves ban their author for a while.

No participant decides it and no statement has to be trusted: every peer finds the same in the same records. A fork of a
device's log is evidence too, but its usual cause is a restored copy, so it bans nobody. Runs after a fork count when
others verified them, or once the root key merged it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from autoresearch.log import Log
from autoresearch.verification import network_rules
from autoresearch.views.cache import Cache, cache_of, cached


class Ban(NamedTuple):
    """A voter does not count from ``record`` on until ``end_ms`` (exclusive, Unix ms)."""

    record: bytes
    device: bytes
    seq: int
    start_ms: int
    end_ms: int


class Bans(NamedTuple):
    """All bans by voter and by the device that signed the fraud, oldest first; and the records that prove fraud."""

    by_key: Mapping[bytes, Sequence[Ban]]
    frauds: frozenset[bytes]

    def cover(self, voter: bytes, time_ms: int, *, device: bytes = b"", seq: int = 0) -> bool:
        """Whether a voter is banned at a time. Records of ``device`` with a ``seq`` after its fraud are banned too."""
        spoken = any(ban.start_ms < time_ms < ban.end_ms for ban in self.by_key.get(voter, ()))
        return spoken or any(
            seq > ban.seq and time_ms < ban.end_ms for ban in self.by_key.get(device, ()) if ban.device == device
        )


def bans(log: Log) -> Bans:
    """All bans in a log."""
    return cached(log, "bans", lambda: _find(log, cache_of(log)), by=())


def is_banned(log: Log, voter: bytes, time_ms: int, *, device: bytes = b"", seq: int = 0) -> bool:
    """Whether a voter is banned at a time, see :meth:`Bans.cover`."""
    return bans(log).cover(voter, time_ms, device=device, seq=seq)


def _find(log: Log, cache: Cache) -> Bans:
    by_key: defaultdict[bytes, list[Ban]] = defaultdict(list)
    for row in sorted(cache.frauds, key=lambda row: (row.time, row.id)):
        voter = cache.roster.voter(row.author, row.time).voter
        ban = Ban(row.id, row.author, row.seq, row.time, row.time + network_rules(log.network).ban_ms)
        for key in {voter, row.author}:
            by_key[key].append(ban)
    return Bans(dict(by_key), frozenset(row.id for row in cache.frauds))
