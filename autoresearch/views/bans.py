"""Who cheated for all to see: fraud that records prove by themselves takes a participant's word away for a while.

Nobody has to be believed for that, and nobody decides it: every peer finds the same in the same records. A fork of a
device's history is a proof too, but of a restored copy far more often than of a lie: its runs do not count until its
root key merges it, and nobody is banned for it.
"""

from __future__ import annotations

from collections import defaultdict
from typing import NamedTuple

from autoresearch.log import Log
from autoresearch.verification import network_rules
from autoresearch.views.memory import Memory, memory_of, remembered


class Ban(NamedTuple):
    """From a record on, until a time (exclusive, Unix ms), a voice does not count."""

    record: bytes
    device: bytes
    seq: int
    start_ms: int
    end_ms: int


def bans(log: Log) -> dict[bytes, list[Ban]]:
    """All bans by voice, and by the device that signed the proof, the first first."""
    return _found(log)[0]


def is_fraud(log: Log, record: bytes) -> bool:
    """Whether a record proves that its author cheated."""
    return record in _found(log)[1]


def is_banned(log: Log, voice: bytes, time_ms: int, *, device: bytes = b"", seq: int = 0) -> bool:
    """Whether a voice does not count at a time; what ``device`` signed after the proof comes after it, whenever."""
    found = bans(log)
    spoken = any(ban.start_ms < time_ms < ban.end_ms for ban in found.get(voice, ()))
    return spoken or any(
        seq > ban.seq and time_ms < ban.end_ms for ban in found.get(device, ()) if ban.device == device
    )


def _found(log: Log) -> tuple[dict[bytes, list[Ban]], frozenset[bytes]]:
    return remembered(log, "bans", lambda: _find(log, memory_of(log)))


def _find(log: Log, memory: Memory) -> tuple[dict[bytes, list[Ban]], frozenset[bytes]]:
    by_key: defaultdict[bytes, list[Ban]] = defaultdict(list)
    for row in sorted(memory.frauds, key=lambda row: (row.time, row.id)):
        voice = memory.roster.voice(row.author, row.time).voice
        ban = Ban(row.id, row.author, row.seq, row.time, row.time + network_rules(log.network).ban_ms)
        for key in {voice, row.author}:
            by_key[key].append(ban)
    return dict(by_key), frozenset(row.id for row in memory.frauds)
