"""Rows of experience as arrays: a row is one value, or a mapping of values and further mappings. Pure.

Each value has a key: the names that lead to it. A row that is one value has the empty key.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from autoresearch.errors import UsageError

Array = npt.NDArray[Any]
Key = tuple[str, ...]

_NUMBERS = "biufc"


class DataShape(msgspec.Struct, frozen=True):
    """A column of a buffer: its name, the shape of one value, and anything that numpy takes as a data type.

    A column of nested rows has the names that lead to it.
    """

    name: str | Key
    shape: tuple[int, ...] = ()
    dtype: Any = "float32"


class Column(msgspec.Struct, frozen=True):
    """What every value of a column is like. ``dtype`` is numpy's name of it, as ``float32``."""

    shape: tuple[int, ...]
    dtype: str


Layout = dict[Key, Column]


def shown(key: Key) -> str:
    """A key as people read it: ``observations/image``."""
    return "/".join(key) or "value"


def flat(row: object) -> dict[Key, Array]:
    """The arrays of a row by their keys.

    Raises:
        UsageError: a value holds something other than numbers, or a name is no text.
    """
    found: dict[Key, Array] = {}
    _walk(row, (), found)
    if not found:
        raise UsageError("a row holds no value", hint="insert a mapping of names to arrays, or an array")
    return found


def _walk(value: object, key: Key, found: dict[Key, Array]) -> None:
    if not isinstance(value, Mapping):
        found[key] = as_array(value, shown(key))
        return
    for name, each in value.items():
        if not isinstance(name, str):
            raise UsageError(f"a row's name must be text, not {type(name).__name__}")
        _walk(each, (*key, name), found)


def as_array(value: object, name: str) -> Array:
    """Numbers, nested lists of them, an array or a torch tensor as an array. Raises UsageError for anything else."""
    if hasattr(value, "detach"):  # a tensor that has a gradient or is on a card
        value = value.detach().cpu()
    try:
        found: Array = np.asarray(value)
    except (ValueError, TypeError) as error:
        raise UsageError(f"{name} is no array: {error}") from None
    if found.dtype.kind not in _NUMBERS:
        raise UsageError(f"{name} holds {type(value).__name__}, not numbers", hint="a buffer keeps numbers and arrays")
    return found


def nested(columns: Mapping[Key, Any]) -> Any:  # noqa: ANN401
    """The opposite of ``flat``."""
    if list(columns) == [()]:
        return columns[()]
    found: dict[str, Any] = {}
    for key, column in columns.items():
        place = found
        for name in key[:-1]:
            place = place.setdefault(name, {})
        place[key[-1]] = column
    return found


def layout_of(row: Mapping[Key, Array]) -> Layout:
    """What the columns must be to take a row."""
    return {key: Column(value.shape, value.dtype.name) for key, value in row.items()}


def layout_of_shapes(shapes: Iterable[DataShape]) -> Layout:
    """The columns that a caller describes. Raises UsageError for a data type that is none of numbers."""
    found: Layout = {}
    for each in shapes:
        key = (each.name,) if isinstance(each.name, str) else tuple(each.name)
        try:
            dtype = np.dtype(each.dtype)
        except TypeError:
            dtype = np.dtype(object)
        if dtype.kind not in _NUMBERS:
            raise UsageError(f"the column {shown(key)} can't be of the type {each.dtype}", hint="as float32 or uint8")
        found[key] = Column(tuple(each.shape), dtype.name)
    return found


def fitted(row: Mapping[Key, Array], layout: Layout) -> dict[Key, Array]:
    """A row's arrays in the layout's data types and order.

    Raises:
        UsageError: names or a shape differ, or a number would change its value in the column's type.
    """
    if row.keys() != layout.keys():
        lacks = ", ".join(shown(key) for key in layout if key not in row)
        more = ", ".join(shown(key) for key in row if key not in layout)
        told = "; ".join(f"{word} {names}" for word, names in (("it lacks", lacks), ("it also has", more)) if names)
        raise UsageError(f"the row's names are not those of the buffer: {told}")
    return {key: _fitted(row[key], column, key) for key, column in layout.items()}


def _fitted(value: Array, column: Column, key: Key) -> Array:
    if value.shape != column.shape:
        raise UsageError(f"{shown(key)} has the shape {value.shape}, the buffer {column.shape}")
    dtype = np.dtype(column.dtype)
    if value.dtype == dtype or np.can_cast(value.dtype, dtype, "same_kind"):
        return value.astype(dtype, copy=False)
    with np.errstate(invalid="ignore"):
        found: Array = value.astype(dtype)
    if not np.array_equal(found, value):  # 1.0 is as good as True, 0.5 is not
        raise UsageError(f"{shown(key)} is {value.dtype.name}, which does not fit {column.dtype}")
    return found
