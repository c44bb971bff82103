"""Keys of records that this log does not keep: they stay in the index, so that no exchange brings them again. Pure."""

from __future__ import annotations

from collections.abc import Iterable

Key = tuple[int, bytes]  # time in ms, id
# About 15 MB. Whoever offers more has the rest sent at each exchange, as fast as its turn allows.
KEYS_MAX = 100_000


class DroppedKeys:
    """The keys that were over a bound or a quota last. The oldest go when there is no room."""

    def __init__(self, most: int = KEYS_MAX) -> None:
        self._keys: dict[Key, None] = {}
        self._most = most

    def __len__(self) -> int:
        return len(self._keys)

    def keys(self) -> list[Key]:
        """All that are remembered."""
        return list(self._keys)

    def add(self, keys: Iterable[Key]) -> list[Key]:
        """Remember keys; returns those that had no room."""
        self._keys |= dict.fromkeys(keys)
        surplus = [key for key, _ in zip(self._keys, range(len(self._keys) - self._most), strict=False)]
        for key in surplus:
            del self._keys[key]
        return surplus

    def discard(self, keys: Iterable[Key]) -> None:
        """Forget those that are kept after all."""
        for key in keys:
            self._keys.pop(key, None)

    def clear(self) -> list[Key]:
        """Forget all, and return them: who is named now was perhaps not before."""
        keys, self._keys = list(self._keys), {}
        return keys
