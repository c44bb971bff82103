"""Records that are early by the clock here: they wait in memory until their time comes. Pure.

They are offered and given to peers meanwhile, like all others; otherwise every exchange would bring them again.
"""

from __future__ import annotations

from collections.abc import Collection

Key = tuple[int, bytes]  # time in ms, id
Pair = tuple[bytes, bytes]  # bytes, signature
# Honest clocks differ by minutes: few records wait, and not for long.
RECORDS_MAX = 1000


class EarlyRecords:
    """The early records, the first to come first. Those that are due last go when there is no room."""

    def __init__(self) -> None:
        self._pairs: dict[Key, Pair] = {}
        self._ids: dict[bytes, Pair] = {}

    def __len__(self) -> int:
        return len(self._pairs)

    def keys(self) -> list[Key]:
        """Time and id of all that wait."""
        return sorted(self._pairs)

    def add(self, key: Key, pair: Pair) -> list[Key]:
        """Let a record wait; returns what had no room, which may be the record itself."""
        self._pairs[key] = self._ids[key[1]] = pair
        surplus = sorted(self._pairs)[RECORDS_MAX:]
        for other in surplus:
            self._forget(other)
        return surplus

    def raw(self, ids: Collection[bytes]) -> list[Pair]:
        """The bytes and signatures of those of ``ids`` that wait here."""
        return [self._ids[record_id] for record_id in ids if record_id in self._ids]

    def due(self, until_ms: int) -> list[tuple[Key, Pair]]:
        """Take out those whose time is at most ``until_ms``."""
        ready = [(key, self._pairs[key]) for key in sorted(self._pairs) if key[0] <= until_ms]
        for key, _ in ready:
            self._forget(key)
        return ready

    def _forget(self, key: Key) -> None:
        del self._pairs[key], self._ids[key[1]]
