"""Rows of experience as arrays: columns of a fixed number of rows, where a new row takes the place of the oldest.

Pure. Not safe for several threads. A row is one value, or a mapping of values and further mappings. Each value has a
key: the names that lead to it. A row that is one value has the empty key. The parts of a row that is a tuple, as an
environment's ``step`` returns, can have their places as keys; a part that is no number is kept as it is.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from autoresearch.errors import UsageError

Array = npt.NDArray[Any]
Key = tuple[str | int, ...]

_NUMBERS = "biufc"


class DataShape(msgspec.Struct, frozen=True):
    """A column of a buffer: its name, the shape of one value, and anything that numpy takes as a data type.

    A column of nested rows has the names that lead to it.
    """

    name: str | Key
    shape: tuple[int, ...] = ()
    dtype: Any = "float32"


class ArrayColumn(msgspec.Struct, frozen=True):
    """What every value of a column is like. ``dtype`` is numpy's name of it, as ``float32``."""

    shape: tuple[int, ...]
    dtype: str


Layout = dict[Key, ArrayColumn]


def key_name(key: Key) -> str:
    """A key as people read it: ``observations/image``."""
    return "/".join(map(str, key)) or "value"


def flat(row: object) -> dict[Key, Array]:
    """The arrays of a row by their keys.

    Raises:
        UsageError: a value holds something other than numbers, or a name is no text.
    """
    arrays: dict[Key, Array] = {}
    _walk(row, (), arrays)
    if not arrays:
        raise UsageError("a row holds no value", hint="insert a mapping of names to arrays, or an array")
    return arrays


def _walk(value: object, key: Key, values: dict[Key, Array]) -> None:
    if not isinstance(value, Mapping):
        values[key] = as_array(value, key_name(key))
        return
    for name, each in value.items():
        if not isinstance(name, str):
            raise UsageError(f"a row's name must be text, not {type(name).__name__}")
        _walk(each, (*key, name), values)


def parts_of(row: tuple[Any, ...]) -> dict[Key, Array]:
    """The parts of a tuple by their places. Raises UsageError where there are none."""
    if not row:
        raise UsageError("a row holds no value", hint="insert a mapping of names to arrays, or an array")
    parts: dict[Key, Array] = {}
    for place, part in enumerate(row):
        try:
            parts[(place,)] = as_array(part, str(place))
        except UsageError:
            parts[(place,)] = np.empty((), object)
            parts[(place,)][()] = part
    return parts


def as_array(value: object, name: str) -> Array:
    """Numbers, nested lists of them, an array or a torch tensor as an array. Raises UsageError for anything else."""
    if hasattr(value, "detach"):  # a tensor that has a gradient or is on a card
        value = value.detach().cpu()
    try:
        array: Array = np.asarray(value)
    except (ValueError, TypeError) as error:
        raise UsageError(f"{name} is no array: {error}") from None
    if array.dtype.kind not in _NUMBERS:
        raise UsageError(f"{name} holds {type(value).__name__}, not numbers", hint="a buffer keeps numbers and arrays")
    return array


def nested(columns: Mapping[Key, Any]) -> Any:  # noqa: ANN401
    """The opposite of ``flat`` and of ``parts_of``."""
    if list(columns) == [()]:
        return columns[()]
    if columns and all(len(key) == 1 and isinstance(key[0], int) for key in columns):
        return tuple(columns.values())
    tree: dict[str | int, Any] = {}
    for key, column in columns.items():
        place = tree
        for name in key[:-1]:
            place = place.setdefault(name, {})
        place[key[-1]] = column
    return tree


def layout_of_shapes(shapes: Iterable[DataShape]) -> Layout:
    """The columns that a caller describes. Raises UsageError for a data type that is none of numbers."""
    layout: Layout = {}
    for each in shapes:
        key = (each.name,) if isinstance(each.name, str) else tuple(each.name)
        try:
            dtype = np.dtype(each.dtype)
        except TypeError:
            dtype = np.dtype(object)
        if dtype.kind not in _NUMBERS:
            raise UsageError(
                f"the column {key_name(key)} can't be of the type {each.dtype}", hint="as float32 or uint8"
            )
        layout[key] = ArrayColumn(tuple(each.shape), dtype.name)
    return layout


def fitted(row: Mapping[Key, Array], layout: Layout) -> dict[Key, Array]:
    """A row's arrays in the layout's data types and order.

    Raises:
        UsageError: names or a shape differ, or a number would change its value in the column's type.
    """
    if row.keys() != layout.keys():
        lacks = ", ".join(key_name(key) for key in layout if key not in row)
        more = ", ".join(key_name(key) for key in row if key not in layout)
        difference = "; ".join(
            f"{word} {names}" for word, names in (("it lacks", lacks), ("it also has", more)) if names
        )
        raise UsageError(f"the row's names are not those of the buffer: {difference}")
    return {key: _fitted(row[key], column, key) for key, column in layout.items()}


def _fitted(value: Array, column: ArrayColumn, key: Key) -> Array:
    if value.shape != column.shape:
        raise UsageError(f"{key_name(key)} has the shape {value.shape}, the buffer {column.shape}")
    dtype = np.dtype(column.dtype)
    if value.dtype.kind == "O" != dtype.kind:
        raise UsageError(f"{key_name(key)} is no number, the buffer keeps {dtype} there")
    if value.dtype == dtype or np.can_cast(value.dtype, dtype, "same_kind"):
        return value.astype(dtype, copy=False)
    with np.errstate(invalid="ignore"):
        fitted: Array = value.astype(dtype)
    if not np.array_equal(fitted, value):  # 1.0 is as good as True, 0.5 is not
        raise UsageError(f"{key_name(key)} is {value.dtype.name}, which does not fit {column.dtype}")
    return fitted


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

    def fit(self, row: object, *, in_parts: bool = False) -> Fitted:
        """A row as ``put`` takes it; ``in_parts``: a tuple is its parts, not an array.

        Raises:
            UsageError: its names, shapes or types are not those of the others.
        """
        arrays = parts_of(row) if in_parts and isinstance(row, tuple) else flat(row)
        if not self.layout:
            self._allocate({key: ArrayColumn(value.shape, value.dtype.name) for key, value in arrays.items()})
        return fitted(arrays, self.layout)

    def put(self, index: int, row: Fitted) -> None:
        """Write a row."""
        place = index % self.capacity
        for key, value in row.items():
            column = self.columns[key]
            column[place] = value.item() if column.dtype.kind == "O" else value

    def put_many(self, index: int, rows: Sequence[Fitted]) -> None:
        """Write rows from ``index`` on, no more than the capacity."""
        if rows:
            places = np.arange(index, index + len(rows)) % self.capacity
            for key, column in self.columns.items():
                if column.dtype.kind == "O":
                    for place, each in zip(places, rows, strict=True):
                        column[place] = each[key].item()
                else:
                    column[places] = [each[key] for each in rows]

    def take(self, indices: Array, keys: Sequence[Key] | None = None) -> dict[Key, Array]:
        """Copies of rows, as columns."""
        places = indices % self.capacity
        return {key: self.columns[key][places] for key in (self.columns if keys is None else keys)}

    def rows(self, indices: Array) -> list[dict[Key, Any]]:
        """Copies of rows, each a mapping of its own."""
        rows = self.take(indices)
        return [{key: column[place] for key, column in rows.items()} for place in range(len(indices))]
