"""Columns of a fixed number of rows; a new row takes the place of the oldest. Pure. Not safe for several threads."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from autoresearch.errors import UsageError
from autoresearch.services.buffers.rows import Array, Key, Layout, fitted, flat, layout_of

Fitted = dict[Key, Array]


class Ring:
    """Rows by an index that only grows: row ``i`` lies at place ``i % capacity`` of every column."""

    def __init__(self, capacity: int, layout: Layout | None = None) -> None:
        """Without a layout the first row decides it.

        Raises:
            UsageError: ``capacity`` is not positive.
        """
        if capacity < 1:
            raise UsageError(f"a buffer's capacity must be positive, not {capacity}")
        self.capacity = int(capacity)
        self.layout: Layout = {}
        self.columns: dict[Key, Array] = {}
        if layout:
            self._allocate(layout)

    def _allocate(self, layout: Layout) -> None:
        self.layout = layout
        self.columns = {key: np.zeros((self.capacity, *each.shape), each.dtype) for key, each in layout.items()}

    def fit(self, row: object) -> Fitted:
        """A row as ``put`` takes it. Raises UsageError where its names, shapes or types are not those of the others."""
        arrays = flat(row)
        if not self.layout:
            self._allocate(layout_of(arrays))
        return fitted(arrays, self.layout)

    def put(self, index: int, row: Fitted) -> None:
        """Write a row."""
        place = index % self.capacity
        for key, value in row.items():
            self.columns[key][place] = value

    def put_many(self, index: int, rows: Sequence[Fitted]) -> None:
        """Write rows from ``index`` on, no more than the capacity."""
        if rows:
            places = np.arange(index, index + len(rows)) % self.capacity
            for key, column in self.columns.items():
                column[places] = [each[key] for each in rows]

    def take(self, indices: Array, keys: Sequence[Key] | None = None) -> dict[Key, Array]:
        """Copies of rows, as columns."""
        places = indices % self.capacity
        return {key: self.columns[key][places] for key in (self.columns if keys is None else keys)}

    def rows(self, indices: Array) -> list[dict[Key, Any]]:
        """Copies of rows, each a mapping of its own."""
        found = self.take(indices)
        return [{key: column[place] for key, column in found.items()} for place in range(len(indices))]
