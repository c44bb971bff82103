"""Buffers in files: numpy's npz with a JSON header, read without pickle."""

from __future__ import annotations

import os
import tempfile
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar

import msgspec
import numpy as np

from autoresearch.errors import NotFound, UsageError
from autoresearch.sanitise import one_line
from autoresearch.services.buffers.ring import Ring
from autoresearch.services.buffers.rows import Array, Column, Key, Layout, shown

HEADER = "header"
_COLUMNS = "columns"
_H = TypeVar("_H", bound=msgspec.Struct)


class _Entry(msgspec.Struct, frozen=True):
    key: tuple[str, ...]
    column: Column


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


def pack_header(header: msgspec.Struct) -> Array:
    """A header as an array of bytes."""
    return np.frombuffer(msgspec.json.encode(header), np.uint8)


def unpack_header(arrays: Mapping[str, Array], kind: type[_H], path: str) -> _H:
    """The header of a file. Raises UsageError where it is missing or of another kind."""
    try:
        return msgspec.json.decode(arrays[HEADER].tobytes(), type=kind)
    except (KeyError, msgspec.MsgspecError, UnicodeDecodeError):
        raise UsageError(f"{path} holds no such buffer", hint="load it by the class that saved it") from None


def generator_of(state: Mapping[str, Any], path: str) -> np.random.Generator:
    """The random generator of a file. Raises UsageError where its state is none."""
    found = np.random.default_rng(0)
    try:
        found.bit_generator.state = state
    except (KeyError, ValueError, TypeError, OverflowError) as error:
        raise UsageError(f"{path} is damaged: {one_line(str(error), 120)}") from None
    return found


def pack_columns(header: msgspec.Struct, ring: Ring, first: int, end: int) -> dict[str, Array]:
    """A header and the rows from ``first`` to before ``end``."""
    entries = [_Entry(key, column) for key, column in ring.layout.items()]
    found = {
        HEADER: pack_header(header),
        _COLUMNS: np.frombuffer(msgspec.json.encode(entries), np.uint8),
    }
    taken = ring.take(np.arange(first, end))
    return {**found, **{_name(key): each for key, each in taken.items()}}


def _name(key: Key) -> str:
    """The name of a column in a file, with ``/`` and ``~`` in a key's names escaped as in JSON pointers."""
    return "/".join(("data", *(part.replace("~", "~0").replace("/", "~1") for part in key)))


def unpack_columns(arrays: Mapping[str, Array], capacity: int, first: int, end: int, path: str) -> Ring:
    """A ring with the rows that ``pack_columns`` took. Raises UsageError where they contradict the header."""
    try:
        entries = msgspec.json.decode(arrays[_COLUMNS].tobytes(), type=list[_Entry])
        layout: Layout = {each.key: each.column for each in entries}
        if not 0 <= end - first <= capacity:
            raise ValueError("it holds more rows than its capacity")
        ring = Ring(capacity, layout)
        for key, column in layout.items():
            found = arrays[_name(key)]
            if found.shape != (end - first, *column.shape) or found.dtype.name != column.dtype:
                raise ValueError(f"{shown(key)} is not what the header says")
            ring.columns[key][np.arange(first, end) % capacity] = found
    except (KeyError, ValueError, TypeError, MemoryError, UnicodeDecodeError, msgspec.MsgspecError) as error:
        raise UsageError(f"{path} is damaged: {one_line(str(error), 120)}") from None
    return ring
