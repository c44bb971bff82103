"""A value as frames. Pure.

numpy and torch are looked up among the modules that are loaded: without them there is no array to send, and a small
machine that only sends numbers needs neither.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from functools import cache
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec.msgpack import Ext

from autoresearch.errors import BadMessage
from autoresearch.messages.limits import (
    ARRAY,
    BFLOAT16,
    INLINE_BYTES,
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
from autoresearch.sanitise import one_line

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

Frame = bytes | memoryview

_PLAIN = frozenset({type(None), bool, int, float, str, bytes})
_KEYS = frozenset({type(None), bool, int, float, str, bytes})
_NAMES = frozenset(NUMBERS)
_HINT = "send None, bools, numbers, text, bytes, arrays, tensors, or lists, tuples, sets and dicts of these"
_ENCODER = msgspec.msgpack.Encoder()


def encode(value: object) -> list[Frame]:
    """The frames of a value. Large arrays are frames that share the array's memory: send them before it changes.

    Raises:
        BadMessage: a part of it cannot be sent, and the sentence says which; or it is too large.
    """
    if _is_plain(value, 0):
        return [_packed(value)]
    writing = _Writing()
    frames: list[Frame] = [_packed(writing.plain(value, 0)), *writing.frames]
    if len(frames) > MAX_FRAMES:
        raise BadMessage(
            f"a message has {len(frames):,} large arrays; {MAX_FRAMES:,} is the most",
            hint="stack them into fewer arrays",
        )
    if (size := sum(map(len, frames))) > MAX_BYTES:
        raise BadMessage(f"a message has {size:,} bytes; {MAX_BYTES:,} is the most", hint="send it in several messages")
    return frames


def _is_plain(value: object, depth: int) -> bool:
    """Whether MessagePack encodes it as it is: most questions and answers, which shall take microseconds."""
    kind = type(value)
    if kind in _PLAIN:
        return True
    if depth >= MAX_DEPTH:
        return False
    if isinstance(value, dict) and kind is dict:
        for key in value:
            if type(key) is not str:
                return False
        parts: Iterable[object] = value.values()
    elif isinstance(value, list) and kind is list:
        parts = value
    else:
        return False
    for part in parts:  # noqa: SIM110 - a generator takes longer than these checks
        if type(part) not in _PLAIN and not _is_plain(part, depth + 1):
            return False
    return True


def _packed(plain: object) -> bytes:
    try:
        return _ENCODER.encode(plain)
    except OverflowError as error:
        raise BadMessage("a whole number in a message needs more than 64 bits", hint=_HINT) from error
    except UnicodeEncodeError as error:
        raise BadMessage("text in a message is no valid Unicode", hint="send it as bytes") from error


class _Writing:
    """A message on its way out: ``frames`` gathers its large arrays."""

    def __init__(self) -> None:
        self.frames: list[Frame] = []

    def plain(self, value: object, depth: int) -> object:
        """What MessagePack encodes as it is."""
        kind = type(value)
        if kind in _PLAIN:
            return value
        if depth >= MAX_DEPTH:
            raise BadMessage(f"a message has more than {MAX_DEPTH} levels of lists and dicts", hint="flatten it")
        if isinstance(value, dict):
            for key in value:
                if type(key) not in _KEYS:
                    raise BadMessage(f"a {_name(key)} as a key of a dict cannot be sent", hint="use text as keys")
            return {key: self._part(key, part, depth) for key, part in value.items()}
        if isinstance(value, list):
            return [part if type(part) in _PLAIN else self.plain(part, depth + 1) for part in value]
        if isinstance(value, tuple):
            return Ext(TUPLE, _packed([self.plain(part, depth + 1) for part in value]))
        if isinstance(value, set | frozenset):
            return Ext(SET, _packed([self.plain(part, depth + 1) for part in value]))
        return self._number(value)

    def _part(self, key: object, part: object, depth: int) -> object:
        if type(part) in _PLAIN:
            return part
        try:
            return self.plain(part, depth + 1)
        except BadMessage as error:
            raise BadMessage(f"{one_line(repr(key), 40)}: {error}", hint=error.hint) from error

    def _number(self, value: object) -> object:
        numpy, torch = sys.modules.get("numpy"), sys.modules.get("torch")
        if numpy is not None and isinstance(value, numpy.ndarray):
            return self._array(ARRAY, _name_of(value.dtype), value)
        if numpy is not None and isinstance(value, numpy.generic) and _name_of(value.dtype) in _NAMES:
            return self._array(SCALAR, _name_of(value.dtype), numpy.asarray(value))
        if torch is not None and isinstance(value, torch.Tensor):
            return self._tensor(value, torch)
        for plain in (int, float, str):
            if isinstance(value, plain):  # a class derived from it, such as IntEnum
                return plain(value)
        if isinstance(value, bytes | bytearray | memoryview):
            return bytes(value)
        raise BadMessage(f"a {_name(value)} cannot be sent", hint=_HINT)

    def _tensor(self, value: Any, torch: Any) -> object:  # noqa: ANN401 - torch is not loaded here
        try:
            tensor = value.detach().cpu().contiguous()
            name = str(tensor.dtype).removeprefix("torch.")
            return self._array(
                TENSOR,
                name,
                (tensor.view(torch.int16) if name == BFLOAT16 else tensor.resolve_conj().resolve_neg()).numpy(),
            )
        except (RuntimeError, TypeError) as error:
            raise BadMessage(
                f"a tensor cannot be sent: {one_line(str(error), 100)}", hint="send a dense tensor of numbers"
            ) from error

    def _array(self, kind: int, name: str, array: NDArray[Any]) -> Ext:
        if name not in _NAMES and not (kind == TENSOR and name == BFLOAT16):
            raise BadMessage(
                f"an array of {one_line(name, 40)} cannot be sent", hint=f"send one of {', '.join(NUMBERS)}"
            )
        if array.ndim > MAX_DIMENSIONS:
            raise BadMessage(f"an array of {array.ndim} dimensions cannot be sent", hint="reshape it")
        if sys.byteorder == "big" or not array.dtype.isnative:
            array = array.astype(array.dtype.newbyteorder("<"))
        if array.nbytes <= INLINE_BYTES:
            return Ext(kind, _ENCODER.encode((name, array.shape, array.tobytes())))
        self.frames.append(_bytes_of(array))
        return Ext(kind, _ENCODER.encode((name, array.shape, len(self.frames))))


def _bytes_of(array: NDArray[Any]) -> memoryview:
    """The array's bytes, row by row; a copy only where they lie differently."""
    import numpy as np

    flat: Any = np.ascontiguousarray(array).reshape(-1)
    return memoryview(flat.view(np.uint8))


@cache
def _name_of(dtype: np.dtype[Any]) -> str:
    return dtype.name


def _name(value: object) -> str:
    kind = type(value)
    return one_line(kind.__name__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__name__}", 60)
