"""Rows on their way from a client's store to the server's: as columns, each row once, in order.

Rows of one form travel as one array for each field, and arrive as views of it. A column is a pair of its kind and its
content. A dict or tuple in rows is a dict or list of columns. What differs from row to row travels as a list.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Sequence
from typing import Any

import msgspec

from autoresearch.errors import BadMessage, NoAnswer, ServiceRefused
from autoresearch.services.data.data_store import NONE_YET, DataStoreBase, newer_than, source_of
from autoresearch.services.links.client import RequestClient
from autoresearch.services.messages import MAX_DEPTH

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


class RowsSent(msgspec.Struct, frozen=True):
    """Rows of a client's store: the last ``count`` up to number ``last``. ``after`` is what the server said it had."""

    store: str
    source: str
    after: int
    last: int
    count: int
    columns: Any


class RowsTaken(msgspec.Struct, frozen=True):
    """What became of rows: how many were stored now, and the number of the last one that the server has."""

    stored: int
    offset: int


def as_message(rows: RowsSent | RowsTaken) -> dict[str, object]:
    """A struct as what can be sent."""
    return {name: getattr(rows, name) for name in rows.__struct_fields__}


def rows_sent(message: object) -> RowsSent:
    """Rows from a message. Raises BadMessage where it is another one."""
    match message:
        case {
            "store": str() as store,
            "source": str() as source,
            "after": int() as after,
            "last": int() as last,
            "count": int() as count,
            "columns": columns,
        } if after >= -1 and 0 <= count <= last + 1:
            return RowsSent(store, source, after, last, count, columns)
    raise BadMessage("rows came without what says which they are")


def rows_taken(message: object) -> RowsTaken:
    """What a server said about rows. Raises BadMessage where it is something else."""
    match message:
        case {"stored": int() as stored, "offset": int() as offset}:
            return RowsTaken(stored, offset)
    raise BadMessage("the server did not say what became of the rows")


# So many rows and bytes are one message at most, more are several. After a time-out the next one is half as large,
# down to the least: a slow network takes less within the same time.
ROWS_AT_ONCE = 20_000
BYTES_AT_ONCE, LEAST_BYTES, MOST_BYTES = 8 << 20, 1 << 16, 64 << 20
# A server that lost its store again and again while rows came.
_ATTEMPTS = 5


class Sending:
    """Sends one store. ``offset`` is the last row that the server said it has; unknown at first and after a failure.

    A server may take rows whose answer is lost: so after a failure it is asked what it has before anything is sent.
    """

    def __init__(self, link: RequestClient, name: str, store: DataStoreBase) -> None:
        self.name, self.lost = name, 0
        self._link, self._store = link, store
        self._offset: int | None = None
        self._bytes = BYTES_AT_ONCE
        self._dealt_with = NONE_YET  # rows up to this number arrived at some time, or are counted as lost
        self._lock = threading.Lock()

    @property
    def question(self) -> dict[str, object]:
        """What asks the server for the last row that it has."""
        return {"type": "get_last_update_id", "store": self.name, "source": source_of(self._store)}

    def send(self, from_id: int = NONE_YET) -> None:
        """Bring what the store has after this row to the server.

        Raises:
            ServiceError: some of it did not arrive.
        """
        with self._lock:
            offset, self._offset = self._offset, None
            self._offset = self._send(offset, from_id)

    def _ask(self) -> int:
        answer = self._link.ask(self.question)
        if not isinstance(answer, int):
            raise NoAnswer(f"the server did not say what it has of {self.name}")
        return answer

    def _send(self, offset: int | None, from_id: int) -> int:
        """Send from this offset on, and return the one that was reached."""
        for _ in range(_ATTEMPTS):
            number = self._ask() if offset is None else offset
            begin = max(number, from_id)
            rows, last = newer_than(self._store, begin)
            self._count_lost(begin, last - len(rows))
            # Where nothing is new, only asking shows that the server is there and still has the rest.
            reached = self._send_all(rows, number, last) if rows or offset is None else self._ask()
            if reached >= number:
                return reached
            offset = reached
        raise ServiceRefused(f"the server's store {self.name} loses its rows again and again")

    def _send_all(self, rows: Sequence[Any], number: int, last: int) -> int:
        """Send rows up to number ``last``, and return how far the server is: less than before if it lost its store."""
        while rows:
            part = rows[: self._fitting(rows)]
            rows = rows[len(part) :]
            reached = self._send_part(part, number, last - len(rows))
            if reached < number:
                return reached
            number = reached
        return number

    def _count_lost(self, number: int, forgotten: int) -> None:
        """Count the rows up to ``forgotten`` that the store no longer has, and no server ever had."""
        number = max(number, self._dealt_with)
        self.lost += max(0, forgotten - number)
        self._dealt_with = max(number, forgotten)

    def _send_part(self, part: Sequence[Any], offset: int, last: int) -> int:
        """Send rows up to number ``last`` in one message, and return how far the server is then."""
        sent = RowsSent(
            store=self.name,
            source=source_of(self._store),
            after=offset,
            last=last,
            count=len(part),
            columns=to_columns(part),
        )
        try:
            taken = rows_taken(self._link.ask({"type": "datastore", "rows": as_message(sent)}))
        except NoAnswer:
            self._bytes = max(LEAST_BYTES, self._bytes // 2)
            raise
        self._bytes = min(MOST_BYTES, self._bytes * 2)
        self._dealt_with = max(self._dealt_with, taken.offset)
        return taken.offset

    def _fitting(self, rows: Sequence[Any]) -> int:
        """How many of these rows are one message: one at least, however large."""
        size = 0
        for count, row in enumerate(rows[:ROWS_AT_ONCE]):
            size += _size(row)
            if size > self._bytes and count:
                return count
        return min(len(rows), ROWS_AT_ONCE)


def _size(value: Any) -> int:  # noqa: ANN401 - a row is whatever the program makes it
    """About how many bytes a row is in a message."""
    if isinstance(value, dict):
        return 1 + sum(map(_size, value.values()))
    if isinstance(value, list | tuple):
        return 1 + sum(map(_size, value))
    return int(getattr(value, "nbytes", 0)) + (len(value) if isinstance(value, str | bytes) else 8)
