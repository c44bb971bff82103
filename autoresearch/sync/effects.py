"""What a session asks of whoever drives it. Values."""

from __future__ import annotations

from dataclasses import dataclass

from autoresearch.sync.frames import Pair
from autoresearch.sync.wire import Violation


@dataclass(frozen=True, slots=True)
class Send:
    """Write these bytes to the stream, and wait until it takes more, before the next effect."""

    data: bytes


@dataclass(frozen=True, slots=True)
class Fetch:
    """Read the records with these ids, at most 256, and give those that are there to ``Session.supply``."""

    ids: tuple[bytes, ...]


@dataclass(frozen=True, slots=True)
class Store:
    """Admit these records of the peer, keep what is admitted, and add their keys to the index, now or by the end."""

    records: tuple[Pair, ...]


@dataclass(frozen=True, slots=True)
class Finished:
    """All is exchanged. How many records went each way, and how many requests it took."""

    sent: int
    received: int
    requests: int


Effect = Send | Fetch | Store | Finished | Violation
"""A Violation, too, is the last effect of a session: close the stream."""
