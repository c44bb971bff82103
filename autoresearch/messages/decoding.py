"""Frames as a value, whoever sent them. Pure.

Nothing in a message can run code or ask for more memory than its frames have: an array's shape must fit its bytes.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from datetime import datetime
from functools import cache
from typing import TYPE_CHECKING, Any

import msgspec

from autoresearch.errors import BadMessage
from autoresearch.messages.limits import (
    ARRAY,
    BFLOAT16,
    MAX_BYTES,
    MAX_DEPTH,
    MAX_DIMENSIONS,
    MAX_FRAMES,
    NUMBERS,
    SCALAR,
    SET,
    TENSOR,
    TUPLE,
)

if TYPE_CHECKING:
    import numpy as np

_PLAIN = frozenset({type(None), bool, int, float, str, bytes})
_CONTAINERS = frozenset({list, tuple, dict, set})
_HINT = "both sides must run the same version of autoresearch"


class _Packed(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """An array as its extension holds it; ``data`` is its bytes, or the number of its frame."""

    name: str
    shape: tuple[int, ...]
    data: bytes | int


_DECODER: msgspec.msgpack.Decoder[Any] = msgspec.msgpack.Decoder()
_PACKED = msgspec.msgpack.Decoder(_Packed)


def decode(frames: Sequence[bytes | memoryview]) -> Any:  # noqa: ANN401 - a message may hold anything that can be sent
    """The value of a message. Large arrays are views of their frames.

    Raises:
        BadMessage: these frames are no message.
    """
    if not frames or (len(frames) > 1 and (len(frames) > MAX_FRAMES or sum(map(len, frames)) > MAX_BYTES)):
        raise BadMessage("a message has no frame, or more than it may", hint=_HINT)
    try:
        if len(frames) == 1:
            value = _DECODER.decode(frames[0])
            if _is_plain(value, 0):
                return value
        reading = _Reading(frames)
        value = msgspec.msgpack.decode(frames[0], ext_hook=reading.extension)
        _check(value, 0)
    except (msgspec.MsgspecError, LookupError, ValueError, TypeError, OverflowError, RecursionError) as error:
        raise BadMessage("bytes that are no message came", hint=_HINT) from error
    if reading.unused:
        raise BadMessage("a message has frames that nothing in it names", hint=_HINT)
    return value


def _is_plain(value: object, depth: int) -> bool:
    """Whether nothing in it is of an extension type, and nothing too deep: most questions and answers."""
    if type(value) in _PLAIN:
        return True
    if depth >= MAX_DEPTH or not isinstance(value, dict | list):
        return False
    for part in value.values() if isinstance(value, dict) else value:
        if type(part) not in _PLAIN and not _is_plain(part, depth + 1):
            return False
    return True


class _Reading:
    """A message on its way in: ``unused`` are the frames that no array named yet."""

    def __init__(self, frames: Sequence[bytes | memoryview]) -> None:
        self.frames = frames
        self.unused = set(range(1, len(frames)))

    def extension(self, code: int, data: memoryview) -> object:
        """The value of an extension type. Raises ValueError and its like for anything malformed."""
        if code == TUPLE:
            return tuple(self._list(data))
        if code == SET:
            return set(self._list(data))
        if code in {ARRAY, SCALAR, TENSOR}:
            return self._array(code, _PACKED.decode(data))
        raise ValueError(code)

    def _list(self, data: memoryview) -> list[object]:
        found: list[object] = msgspec.msgpack.decode(data, type=list, ext_hook=self.extension)
        return found

    def _array(self, code: int, packed: _Packed) -> object:
        import numpy as np

        bfloat = code == TENSOR and packed.name == BFLOAT16
        kind = _kinds()["int16" if bfloat else packed.name]
        shape = packed.shape
        if len(shape) > MAX_DIMENSIONS or any(side < 0 for side in shape):
            raise ValueError(shape)
        inline = isinstance(packed.data, bytes)
        data = packed.data if isinstance(packed.data, bytes) else self._frame(packed.data)
        if math.prod(shape) * kind.itemsize != len(data):
            raise ValueError(shape)
        array = np.frombuffer(data, kind).reshape(shape)
        # Small ones are copied: their bytes may not be written, and may lie where a processor reads them slowly.
        if inline or not array.flags.aligned or not array.flags.writeable:
            array = array.copy()
        if code == SCALAR:
            return array[()]
        return _tensor(array, bfloat=bfloat) if code == TENSOR else array

    def _frame(self, number: int) -> bytes | memoryview:
        self.unused.remove(number)  # a frame belongs to one array
        return self.frames[number]


def _tensor(array: np.ndarray[Any, np.dtype[Any]], *, bfloat: bool) -> object:
    """A tensor where torch is loaded, else an array. Nothing that comes makes this process load torch."""
    torch: Any = sys.modules.get("torch")
    if torch is None:
        if bfloat:
            raise BadMessage("a bfloat16 tensor came, which numpy does not know", hint="import torch here first")
        return array
    tensor = torch.from_numpy(array)
    return tensor.view(torch.bfloat16) if bfloat else tensor


@cache
def _kinds() -> dict[str, np.dtype[Any]]:
    import numpy as np

    return {name: np.dtype(name).newbyteorder("<") for name in NUMBERS}


def _check(value: object, depth: int) -> None:
    """Refuse deep nesting, and the times that MessagePack knows and messages do not. Raises ValueError."""
    kind = type(value)
    if kind in _PLAIN:
        return
    if kind not in _CONTAINERS:
        if isinstance(value, datetime):
            raise ValueError(value)
        return
    if depth >= MAX_DEPTH:
        raise ValueError(depth)
    for part in value.values() if isinstance(value, dict) else value:  # type: ignore[attr-defined]
        if type(part) not in _PLAIN:
            _check(part, depth + 1)
