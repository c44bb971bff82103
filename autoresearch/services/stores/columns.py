"""Rows as columns and back: rows of one form travel as one array for each field, and arrive as views of it. Pure.

A column is a pair of its kind and its content. A dict or tuple in rows is a dict or list of columns. What differs from
row to row travels as a list.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

from autoresearch.errors import BadMessage
from autoresearch.messages import MAX_DEPTH

ARRAYS, NUMBERS, TENSORS, DICTS, TUPLES, LIST = "arrays", "numbers", "tensors", "dicts", "tuples", "list"
# Larger arrays are frames of their own in a message anyway; stacking them would only copy them.
STACKED_BYTES = 65_536


def to_columns(rows: Sequence[Any]) -> tuple[str, Any]:
    """The column of these values, one for each row."""
    first: Any = rows[0] if rows else None
    kind = type(first)
    if any(type(row) is not kind for row in rows):
        return LIST, list(rows)
    numpy, torch = sys.modules.get("numpy"), sys.modules.get("torch")
    if kind is dict:
        keys = first.keys()
        if keys and all(row.keys() == keys for row in rows):
            return DICTS, {key: to_columns([row[key] for row in rows]) for key in keys}
    elif kind is tuple:
        if first and all(len(row) == len(first) for row in rows):
            return TUPLES, [to_columns(part) for part in zip(*rows, strict=True)]
    elif numpy is not None and kind is numpy.ndarray:
        if first.nbytes <= STACKED_BYTES and first.dtype.kind in "biufc" and _alike(rows):
            return ARRAYS, numpy.array(rows, dtype=first.dtype)
    elif numpy is not None and issubclass(kind, numpy.generic):
        if first.dtype.kind in "biufc":
            return NUMBERS, numpy.array(rows, dtype=first.dtype)
    elif torch is not None and kind is torch.Tensor and first.nbytes <= STACKED_BYTES and _alike(rows):
        return TENSORS, torch.stack([row.detach() for row in rows])
    return LIST, list(rows)


def _alike(rows: Sequence[Any]) -> bool:
    return len({(row.dtype, row.shape) for row in rows}) == 1


def from_columns(column: object, count: int) -> list[Any]:
    """The values of a column, one for each of ``count`` rows.

    Raises:
        BadMessage: it is no column, or has another number of rows.
    """
    return _rows(column, count, 0)


def _rows(column: object, count: int, depth: int) -> list[Any]:
    match column:
        case (str() as kind, content) if depth < MAX_DEPTH:
            rows = _content(kind, content, count, depth)
        case _:
            raise BadMessage("rows came that are no columns")
    if len(rows) != count:
        raise BadMessage(f"a column of {len(rows):,} values came for {count:,} rows")
    return rows


def _content(kind: str, content: object, count: int, depth: int) -> list[Any]:
    match kind, content:
        case "list", list():
            return content
        case "dicts", dict() if content:
            parts = [_rows(part, count, depth + 1) for part in content.values()]
            return [dict(zip(content, values, strict=True)) for values in zip(*parts, strict=True)]
        case "tuples", list() if content:
            return list(zip(*(_rows(part, count, depth + 1) for part in content), strict=True))
    if kind in {ARRAYS, NUMBERS, TENSORS} and hasattr(content, "shape") and len(content.shape):
        if kind == ARRAYS and len(content.shape) == 1:
            return [content[place, ...] for place in range(len(content))]  # type: ignore[index,arg-type]
        return list(content)  # type: ignore[call-overload,no-any-return]
    raise BadMessage("rows came that are no columns")
