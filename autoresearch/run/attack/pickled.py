"""Numbers in pickles and in files of torch: read, and replaced in their place. Nothing of them is run. Pure."""

from __future__ import annotations

import io
import pickle
import pickletools
import zipfile
from collections.abc import Mapping
from itertools import pairwise
from typing import Any, NamedTuple

_TEXTS = frozenset({"BINUNICODE", "SHORT_BINUNICODE", "UNICODE"})
_NUMBERS = frozenset({"BININT", "BININT1", "BININT2", "LONG1", "BINFLOAT"})
_NEXT = _TEXTS | {"SETITEM", "SETITEMS", "BINGET", "LONG_BINGET"}
_PASSING = frozenset({"BINPUT", "LONG_BINPUT", "MEMOIZE", "FRAME"})
# What torch calls its storages, as NumPy calls their numbers.
_TYPES = {
    "torch FloatStorage": "<f4", "torch DoubleStorage": "<f8", "torch HalfStorage": "<f2",
    "torch LongStorage": "<i8", "torch IntStorage": "<i4"
}  # fmt: skip


class _Number(NamedTuple):
    """A number behind its name in a pickle: from which byte to which."""

    start: int
    end: int
    value: float


def _scanned(raw: bytes) -> tuple[dict[str, _Number], dict[str, str], list[int]]:
    """The named numbers of a pickle, the types of its storages by their names, and where its frames begin.

    Raises ValueError where it is none.
    """
    everything = [(code.name, argument, at or 0) for code, argument, at in pickletools.genops(raw)]
    ends = {at: after for (_, _, at), (_, _, after) in pairwise(everything)}
    codes = [each for each in everything if each[0] not in _PASSING]
    numbers, types = {}, {}
    for (kind, name, _), (number, value, at), (after, text, _) in zip(codes, codes[1:], codes[2:], strict=False):
        if kind in _TEXTS and number in _NUMBERS and after in _NEXT:
            numbers[str(name)] = _Number(at, ends[at], value or 0)
        if (number, after) == ("GLOBAL", "BINUNICODE") and value in _TYPES:
            types[str(text)] = _TYPES[value]
    return numbers, types, [at for kind, _, at in everything if kind == "FRAME"]


def _replaced(raw: bytes, value: Mapping[str, Any]) -> bytes:
    """A pickle with other numbers behind its names. Raises TypeError for what is no number."""
    numbers, _, frames = _scanned(raw)
    pieces = [(at, at + 9, b"") for at in frames]  # how long a frame is would be wrong, and is not needed
    for name, number in numbers.items():
        if type(value[name]) not in (int, float):
            raise TypeError("no number")
        pieces.append((number.start, number.end, pickle.dumps(value[name], 2)[2:-1]))
    out, last = b"", 0
    for start, end, piece in sorted(pieces):
        out, last = out + raw[last:start] + piece, end
    return out + raw[last:]


def read_pickle(content: bytes) -> dict[str, Any] | None:
    """The named numbers of a pickle, or of a file of torch with its storages as lists; None where it is neither."""
    try:
        if not content.startswith(b"PK"):
            return {name: number.value for name, number in _scanned(content)[0].items()} or None
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            folder = _folder(archive)
            numbers, types, _ = _scanned(archive.read(f"{folder}/data.pkl"))
            lists = {
                f"data/{name}": _numpy(archive.read(f"{folder}/data/{name}"), kind) for name, kind in types.items()
            }
    except (ValueError, KeyError, IndexError, UnicodeDecodeError, NotImplementedError, zipfile.BadZipFile):
        return None
    return {**{name: number.value for name, number in numbers.items()}, **lists} or None


def written_pickle(content: bytes, value: Mapping[str, Any]) -> bytes:
    """The same file with these numbers. Raises TypeError or ValueError where they don't fit into it."""
    import numpy as np

    if not content.startswith(b"PK"):
        return _replaced(content, value)
    out = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(content)) as archive, zipfile.ZipFile(out, "w") as copy:
        folder = _folder(archive)
        types = _scanned(archive.read(f"{folder}/data.pkl"))[1]
        for entry in archive.namelist():
            data, name = archive.read(entry), entry.removeprefix(f"{folder}/")
            if name == "data.pkl":
                data = _replaced(data, value)
            elif name in value:
                changed = np.asarray(value[name], types[name.removeprefix("data/")]).tobytes()
                if len(changed) != len(data):
                    raise ValueError("another number of numbers")
                data = changed
            copy.writestr(entry, data)
    return out.getvalue()


def _folder(archive: zipfile.ZipFile) -> str:
    names = [name for name in archive.namelist() if name.endswith("/data.pkl")]
    return names[0].removesuffix("/data.pkl")


def _numpy(data: bytes, kind: str) -> list[Any]:
    import numpy as np

    return list(np.frombuffer(data, kind).tolist())
