"""Random numbers that are the same on every machine and Python version.

Of ``random.Random`` only ``random()`` is promised to stay as it is; everything here is built on it, and the
normal draw is a sum of uniforms, because ``log`` and ``cos`` differ in the last bit between C libraries.
"""

from __future__ import annotations

import hashlib
import random
from collections.abc import Iterable, Sequence
from typing import TypeVar

T = TypeVar("T")


class Draws:
    """A stream of random draws that follows from its seed parts alone."""

    def __init__(self, *parts: bytes) -> None:
        digest = hashlib.sha256(b"".join(len(part).to_bytes(8, "big") + part for part in parts)).digest()
        self._uniform = random.Random(int.from_bytes(digest, "big")).random  # noqa: S311 - not for secrets

    def uniform(self) -> float:
        """A number in [0, 1)."""
        return self._uniform()

    def chance(self, probability: float) -> bool:
        """True with this probability."""
        return self._uniform() < probability

    def below(self, count: int) -> int:
        """A whole number from 0 to ``count - 1``."""
        return min(count - 1, int(self._uniform() * count))

    def choice(self, items: Sequence[T]) -> T:
        """One of the items."""
        return items[self.below(len(items))]

    def sample(self, items: Iterable[T], count: int) -> list[T]:
        """``count`` different items, or all of them when there are fewer, in random order."""
        pool = list(items)
        count = min(count, len(pool))
        for i in range(count):
            j = i + self.below(len(pool) - i)
            pool[i], pool[j] = pool[j], pool[i]
        return pool[:count]

    def normal(self) -> float:
        """Nearly a standard normal number (twelve uniforms, so never beyond 6)."""
        return sum(self._uniform() for _ in range(12)) - 6.0

    def geometric(self, probability: float) -> int:
        """How many times a coin that ends the series with this probability goes on."""
        count = 0
        while count < 1000 and not self.chance(probability):
            count += 1
        return count
