"""A replay buffer: the newest rows of experience, drawn uniformly, safe for several threads.

Also buffers in files: numpy's npz with a JSON header, read without pickle.
"""

from __future__ import annotations

import os
import tempfile
import threading
import zipfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Self, TypeVar

import msgspec
import numpy as np

from autoresearch.errors import NotFound, UsageError
from autoresearch.services.data.data_store import DataStoreBase, Ledger, ledger_of
from autoresearch.services.data.rows import (
    Array,
    ArrayColumn,
    DataShape,
    Key,
    Layout,
    Ring,
    key_name,
    layout_of_shapes,
    nested,
)
from autoresearch.text import one_line

HEADER = "header"
_COLUMNS = "columns"
_H = TypeVar("_H", bound=msgspec.Struct)


class _ColumnEntry(msgspec.Struct, frozen=True):
    key: Key
    column: ArrayColumn


def write_arrays(path: Path, arrays: Mapping[str, Array]) -> None:
    """Write named arrays; a file that is there is replaced when the new one is whole."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as out:
            np.savez(out, allow_pickle=False, **arrays)
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def read_arrays(path: Path) -> dict[str, Array]:
    """The arrays of a file.

    Raises:
        NotFound: there is no such file.
        UsageError: it is no npz file, or holds something other than numbers.
    """
    try:
        with np.load(path, allow_pickle=False) as file:
            if not isinstance(file, np.lib.npyio.NpzFile):
                raise UsageError(f"{path} is no npz file")
            return {name: file[name] for name in file.files}
    except FileNotFoundError:
        raise NotFound(f"there is no file {path}", hint="save() writes one") from None
    except (ValueError, OSError, EOFError, KeyError, zipfile.BadZipFile, MemoryError, NotImplementedError) as error:
        raise UsageError(f"{path} can't be read as npz: {one_line(str(error), 120)}") from None


def unpack_header(arrays: Mapping[str, Array], kind: type[_H], path: str) -> _H:
    """The header of a file. Raises UsageError where it is missing or of another kind."""
    try:
        return msgspec.json.decode(arrays[HEADER].tobytes(), type=kind)
    except (KeyError, msgspec.MsgspecError, UnicodeDecodeError):
        raise UsageError(f"{path} holds no such buffer", hint="load it by the class that saved it") from None


def generator_of(state: Mapping[str, Any], path: str) -> np.random.Generator:
    """The random generator of a file. Raises UsageError where its state is none."""
    generator = np.random.default_rng(0)
    try:
        generator.bit_generator.state = state
    except (KeyError, ValueError, TypeError, OverflowError) as error:
        raise UsageError(f"{path} is damaged: {one_line(str(error), 120)}") from None
    return generator


def pack_columns(header: msgspec.Struct, ring: Ring, first: int, end: int) -> dict[str, Array]:
    """A header and the rows from ``first`` to before ``end``."""
    for key, column in ring.layout.items():
        if column.dtype == "object":
            raise UsageError(f"{key_name(key)} of the rows holds no numbers, and a file keeps nothing else")
    entries = [_ColumnEntry(key, column) for key, column in ring.layout.items()]
    arrays = {
        HEADER: np.frombuffer(msgspec.json.encode(header), np.uint8),
        _COLUMNS: np.frombuffer(msgspec.json.encode(entries), np.uint8),
    }
    taken = ring.take(np.arange(first, end))
    return {**arrays, **{_name(key): each for key, each in taken.items()}}


def _name(key: Key) -> str:
    """The name of a column in a file, with ``/`` and ``~`` in a key's names escaped as in JSON pointers."""
    return "/".join(("data", *(str(part).replace("~", "~0").replace("/", "~1") for part in key)))


def unpack_columns(arrays: Mapping[str, Array], capacity: int, first: int, end: int, path: str) -> Ring:
    """A ring with the rows that ``pack_columns`` took. Raises UsageError where they contradict the header."""
    try:
        entries = msgspec.json.decode(arrays[_COLUMNS].tobytes(), type=list[_ColumnEntry])
        layout: Layout = {each.key: each.column for each in entries}
        if not 0 <= end - first <= capacity:
            raise ValueError("it holds more rows than its capacity")
        ring = Ring(capacity, layout)
        for key, column in layout.items():
            array = arrays[_name(key)]
            if array.shape != (end - first, *column.shape) or array.dtype.name != column.dtype:
                raise ValueError(f"{key_name(key)} is not what the header says")
            ring.columns[key][np.arange(first, end) % capacity] = array
    except (KeyError, ValueError, TypeError, MemoryError, UnicodeDecodeError, msgspec.MsgspecError) as error:
        raise UsageError(f"{path} is damaged: {one_line(str(error), 120)}") from None
    return ring


class _ReplayHeader(msgspec.Struct, frozen=True, tag="replay"):
    capacity: int
    count: int
    random: dict[str, Any]
    offsets: dict[str, int] = {}


class ReplayBuffer(DataStoreBase):
    """Rows are arrays, mappings of names to arrays and further mappings, or tuples; the first decides names and shapes.

    The parts of a tuple that are no numbers, as the ``info`` of an environment's step, come back as they were.

    Every row has an id, from 0 on. A full buffer forgets its oldest row for each new one.
    """

    def __init__(self, capacity: int, data_shapes: Iterable[DataShape] | None = None, seed: int = 0) -> None:
        """``data_shapes`` says before the first row what rows hold.

        Raises:
            UsageError: the capacity is not positive, or a data type is none of numbers.
        """
        self._start(Ring(capacity, layout_of_shapes(data_shapes) if data_shapes else None), seed)

    def _start(self, ring: Ring, seed: int = 0) -> None:
        super().__init__(ring.capacity)
        self._ring = ring
        self._count = 0
        self._random = np.random.default_rng(seed)
        self._lock = threading.RLock()

    def __len__(self) -> int:
        """How many rows it holds."""
        return min(self._count, self.capacity)

    def latest_data_id(self) -> int:
        """The id of the newest row, -1 for none."""
        return self._count - 1

    def get_latest_data(self, from_id: int) -> list[Any]:
        """Copies of the rows that it holds and whose id is higher than ``from_id``, the oldest first."""
        with self._lock:
            first = max(from_id + 1, self._count - len(self))
            return [nested(row) for row in self._ring.rows(np.arange(first, self._count))]

    def insert(self, data: Any) -> None:  # noqa: ANN401 - a row is whatever fits
        """Add a row. Raises UsageError where its names, shapes or types are not those of the others."""
        with self._lock:
            self._ring.put(self._count, self._ring.fit(data, in_parts=True))
            self._count += 1

    def batch_insert(self, batch_data: Sequence[object]) -> None:
        """Add rows, all or none of them. Raises UsageError as ``insert``."""
        with self._lock:
            rows = [self._ring.fit(row, in_parts=True) for row in batch_data][-self.capacity :]
            self._ring.put_many(self._count + len(batch_data) - len(rows), rows)
            self._count += len(batch_data)

    def sample(self, batch_size: int, keys: Iterable[str] | None = None, indx: Sequence[int] | None = None) -> Any:  # noqa: ANN401
        """Rows as columns, drawn uniformly with repetition.

        ``keys`` takes only the columns of these names. ``indx`` takes the rows of these ids instead of drawn ones.

        Raises:
            UsageError: the buffer is empty, has no such name or no longer such a row.
        """
        with self._lock:
            oldest = self._count - len(self)
            if indx is None:
                if not self._count:
                    raise UsageError(
                        "the buffer is empty", hint="sample() waits for no rows: wait until len(buffer) is above 0"
                    )
                indices: Array = self._random.integers(oldest, self._count, batch_size)
            else:
                indices = np.asarray(indx, np.int64)
                if len(indices) and not (oldest <= indices.min() and indices.max() < self._count):
                    raise UsageError(f"the buffer holds the rows {oldest} to {self._count - 1} only")
            return nested(self._ring.take(indices, self._chosen(keys)))

    def _chosen(self, keys: Iterable[str] | None) -> list[Key] | None:
        if keys is None:
            return None
        names = list(keys)
        fields = {key[0] for key in self._ring.layout if key}
        if missing := [name for name in names if name not in fields]:
            has = ", ".join(sorted(map(str, fields)))
            raise UsageError(f"the buffer has no {', '.join(missing)}", hint=f"it has {has}")
        return [key for key in self._ring.layout if key[0] in names]

    def save(self, path: str | Path) -> None:
        """Write it to a file in numpy's npz format, whole or not at all. Nothing in the file is pickled."""
        with self._lock:
            offsets = ledger_of(self).as_dict()  # first: rows of an update in hand come again rather than never
            header = _ReplayHeader(self.capacity, self._count, dict(self._random.bit_generator.state), offsets)
            arrays = pack_columns(header, self._ring, self._count - len(self), self._count)
        write_arrays(Path(path), arrays)

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read a buffer that ``save`` wrote: the same rows, ids and further draws, and what it has of which actor.

        Raises:
            NotFound: there is no such file.
            UsageError: the file is no replay buffer.
        """
        buffer = cls.__new__(cls)
        buffer._restore(read_arrays(Path(path)), str(path))  # noqa: SLF001 - its own
        return buffer

    def _restore(self, arrays: Mapping[str, Array], path: str) -> None:
        header = unpack_header(arrays, _ReplayHeader, path)
        held = min(header.count, header.capacity)
        self._start(unpack_columns(arrays, header.capacity, header.count - held, header.count, path))
        self._random = generator_of(header.random, path)
        self._count = header.count
        ledger_of(self, Ledger(header.offsets))
