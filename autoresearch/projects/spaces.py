"""The space of a few numbers, for environments that do without Gymnasium. Pure."""

from __future__ import annotations

import msgspec


class Discrete(msgspec.Struct, frozen=True):
    """The whole numbers from 0 to ``n`` - 1."""

    n: int

    @property
    def shape(self) -> tuple[int, ...]:
        """One number has no dimensions."""
        return ()

    def contains(self, value: int) -> bool:
        """Whether a number is one of them."""
        return 0 <= int(value) < self.n
