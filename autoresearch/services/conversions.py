"""Values of other libraries and of the standard library, as the values that messages have types for.

Pure. What an object's own methods raise becomes a sentence: they are other people's code.
"""

from __future__ import annotations

import dataclasses
import sys
from collections import deque
from collections.abc import Mapping
from datetime import date, time, timedelta
from functools import cache
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

from autoresearch.errors import BadMessage
from autoresearch.text import one_line

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

# Types of numbers on the wire, all little-endian. bfloat16 is a tensor's alone: numpy does not know it.
NUMBERS = (
    *("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
    *("float16", "float32", "float64", "complex64", "complex128"),
)
BFLOAT16 = "bfloat16"
_ARRAYS = ("__array__", "__array_interface__")


def type_name(value: object) -> str:
    """The name of its type, as sentences have it."""
    kind = type(value)
    return one_line(kind.__name__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__name__}", 60)


def array_of(value: object) -> NDArray[Any] | None:
    """The array that an object of another library gives; None where it is no array.

    Raises:
        BadMessage: it gives none, gives something other than numbers, or is not in main memory.
    """
    kind = type(value)
    reads_memory, exports = any(hasattr(kind, name) for name in _ARRAYS), hasattr(kind, "__dlpack__")
    if not (reads_memory or exports):
        return None
    reason = ""
    try:
        import numpy as np

        if reads_memory:
            try:
                return _numbers(np.asarray(value), value)
            except TypeError:  # an array on a card, as cupy's, refuses here what it does by DLPack
                if not exports:
                    raise
        try:
            return _numbers(np.from_dlpack(value), value)  # type: ignore[arg-type]
        except (TypeError, ValueError, BufferError, RuntimeError):
            return _numbers(np.from_dlpack(value, device="cpu"), value)  # type: ignore[arg-type]
    except BadMessage:
        raise
    except Exception as error:  # noqa: BLE001 - whatever its methods raise
        reason = f"{type(error).__name__}: {one_line(str(error), 100)}"
    raise BadMessage(
        f"a {type_name(value)} cannot be sent: it gives no array ({reason})", hint="send numpy.asarray() of it"
    )


def _numbers(array: NDArray[Any], value: object) -> NDArray[Any]:
    if array.dtype.kind not in "?biufc":
        raise BadMessage(
            f"a {type_name(value)} cannot be sent: it is an array of {one_line(array.dtype.name, 40)}",
            hint="send it as numbers, as with astype('float32')",
        )
    return array


def bytes_of(array: NDArray[Any]) -> memoryview:
    """The array's bytes, row by row; a copy only where they lie differently."""
    import numpy as np

    flat: Any = np.ascontiguousarray(array).reshape(-1)
    return memoryview(flat.view(np.uint8))


def tensor_of(array: np.ndarray[Any, np.dtype[Any]], *, bfloat: bool) -> object:
    """A tensor where torch is loaded, else an array. Nothing that comes makes this process load torch."""
    torch: Any = sys.modules.get("torch")
    if torch is None:
        if bfloat:
            raise BadMessage("a bfloat16 tensor came, which numpy does not know", hint="import torch here first")
        return array
    tensor = torch.from_numpy(array)
    return tensor.view(torch.bfloat16) if bfloat else tensor


@cache
def number_types() -> dict[str, np.dtype[Any]]:
    """The types of numbers by their names on the wire."""
    import numpy as np

    return {name: np.dtype(name).newbyteorder("<") for name in NUMBERS}


def plain_of(value: object) -> object:
    """A value of the standard library as one that messages have: a dict, a list, text or a number. Else itself.

    Raises:
        BadMessage: its own methods failed.
    """
    try:
        if isinstance(value, Mapping):
            return dict(value)
        if isinstance(value, deque):
            return list(value)
        if isinstance(value, PurePath):
            return str(value)
        if isinstance(value, date | time):
            return value.isoformat()
        if isinstance(value, timedelta):
            return value.total_seconds()
        if dataclasses.is_dataclass(value) and not isinstance(value, type):
            return {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    except Exception as error:
        reason = f"{type(error).__name__}: {one_line(str(error), 100)}"
        raise BadMessage(f"a {type_name(value)} cannot be sent: {reason}", hint="send its parts") from error
    return value
