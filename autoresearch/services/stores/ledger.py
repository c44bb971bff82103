"""Which rows of which client's store a server's store has. Pure.

A client's store numbers its rows 0, 1, 2, … and has a name of its own (its source). The ledger keeps the last number
that arrived from each source, so rows that are sent again are known, and a new source starts at its first row.
"""

from __future__ import annotations

from collections.abc import Mapping

# Before the first row.
NONE_YET = -1


class Ledger:
    """The last row of each source. It belongs to a store's content: keep and load them together."""

    def __init__(self, offsets: Mapping[str, int] | None = None) -> None:
        self._offsets = dict(offsets or {})

    def offset(self, source: str) -> int:
        """The number of the last row that arrived from a source; -1 before the first."""
        return self._offsets.get(source, NONE_YET)

    def new_rows(self, source: str, last: int, count: int) -> int:
        """How many of the last ``count`` rows up to number ``last`` are new here: the rest arrived before."""
        return max(0, min(count, last - self.offset(source)))

    def arrived(self, source: str, last: int) -> None:
        """Note that the rows up to this number are in the store."""
        self._offsets[source] = max(last, self.offset(source))

    def as_dict(self) -> dict[str, int]:
        """All offsets, to be kept beside the store's rows."""
        return dict(self._offsets)
