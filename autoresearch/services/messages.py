"""A value as frames, and frames as a value, whoever sent them.

Also the most that a message may hold, the numbers of its extension types. Pure. Nothing in a message can run code or
ask for more memory than its frames have: an array's shape must fit its bytes, and its small values are counted before
they are made. numpy and torch are looked up among the modules that are loaded: without them there is no array to send,
and a small machine that only sends numbers needs neither.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable, Sequence
from datetime import datetime
from functools import cache
from itertools import islice
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec.msgpack import Ext

from autoresearch.errors import BadMessage
from autoresearch.services.conversions import (
    BFLOAT16,
    NUMBERS,
    array_of,
    bytes_of,
    number_types,
    plain_of,
    tensor_of,
    type_name,
)
from autoresearch.text import one_line

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

# Bytes of all frames together. Larger weights are published in parts.
MAX_BYTES = 1 << 30
# Frames of a message, the first one among them: each array of more than INLINE_BYTES is one.
MAX_FRAMES = 4096
# Values in the first frame, those within others counted too: an empty dict is one byte there and 64 in memory.
MAX_VALUES = 1 << 20
# Lists within lists, or dicts within dicts.
MAX_DEPTH = 64
MAX_DIMENSIONS = 32

# Arrays up to this size travel in the first frame: a frame of its own costs more than two copies of these.
# ZeroMQ also keeps larger frames alone that are in memory of their own, aligned for every type of number.
INLINE_BYTES = 8192

# MessagePack extension types. TUPLE and SET hold a list; ARRAY, SCALAR and TENSOR [type of number, shape, bytes or
# frame]; COMPLEX [real, imaginary]; MOMENT a date and time as ISO 8601 text.
TUPLE, SET, ARRAY, SCALAR, TENSOR, COMPLEX, MOMENT = 1, 2, 3, 4, 5, 6, 7

Frame = bytes | memoryview

_PLAIN = frozenset({type(None), bool, int, float, str, bytes})
_NAMES = frozenset(NUMBERS)
_HINT = "send None, bools, numbers, text, bytes, times, arrays, tensors, or lists, tuples, sets and dicts of these"
_ENCODER = msgspec.msgpack.Encoder()


def encode(value: object) -> list[Frame]:
    """The frames of a value. Large arrays are frames that share the array's memory: send them before it changes.

    Raises:
        BadMessage: a part of it cannot be sent, and the sentence says which; or it is too large.
    """
    if _is_plain(value, 0):
        return [_bounded(_packed(value))]
    writing = _Writing()
    frames: list[Frame] = [_bounded(_packed(writing.plain(value, 0))), *writing.frames]
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
    if (kind := type(value)) in _PLAIN:
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
    except (OverflowError, UnicodeEncodeError) as error:
        # MessagePack names no place: the part that fails alone is the one
        parts = plain.items() if isinstance(plain, dict) else enumerate(plain if isinstance(plain, list) else ())
        for key, part in parts:
            try:
                _packed(part)
            except BadMessage as failure:
                raise _placed(key, failure) from error
        if isinstance(error, UnicodeEncodeError):
            raise BadMessage("text in a message is no valid Unicode", hint="send it as bytes") from error
        raise BadMessage("a whole number in a message needs more than 64 bits", hint=_HINT) from error


def _placed(key: object, error: BadMessage) -> BadMessage:
    return BadMessage(f"{one_line(repr(key), 40)}: {error}", hint=error.hint)


def _bounded(frame: bytes) -> bytes:
    if has_too_many_values(frame):
        raise BadMessage(f"a message has more than {MAX_VALUES:,} values", hint="send arrays, or several messages")
    return frame


# How many bytes follow the first one of a value that has no others inside; of a list or a dict those of its length.
_FOLLOWING = {
    **{0xA0 + length: length for length in range(32)},
    0xCC: 1,
    0xCD: 2,
    0xCE: 4,
    0xCF: 8,
    0xD0: 1,
    0xD1: 2,
    0xD2: 4,
    0xD3: 8,
    0xCA: 4,
    0xCB: 8,
    0xDC: 2,
    0xDD: 4,
    0xDE: 2,
    0xDF: 4,
}
_SKIPS = bytes(1 + _FOLLOWING.get(first, 0) for first in range(256))
# Bytes that say how long text, bytes or an extension is; an extension's code comes after them.
_TEXTS = {0xD9: 1, 0xDA: 2, 0xDB: 4, 0xC4: 1, 0xC5: 2, 0xC6: 4}
_EXTENSIONS = {0xC7: 1, 0xC8: 2, 0xC9: 4}
_FIXED = {0xD4: 1, 0xD5: 2, 0xD6: 4, 0xD7: 8, 0xD8: 16}


def has_too_many_values(frame: Frame) -> bool:
    """Whether a first frame holds more values than a message may; it makes none of them.

    A value has at least one byte, so short frames are not looked through.
    """
    if len(frame) <= MAX_VALUES:
        return False
    at, ends = 0, [len(frame)]
    for _ in range(MAX_VALUES + 1):
        while at >= ends[-1]:
            at = ends.pop()  # whatever the inside of an extension says, the next value begins behind it
            if not ends:
                return False
        first = frame[at]
        if first in _TEXTS:
            size = _TEXTS[first]
            at += 1 + size + int.from_bytes(frame[at + 1 : at + 1 + size], "big")
        elif first in _FIXED or first in _EXTENSIONS:
            size = _EXTENSIONS.get(first, 0)
            length = _FIXED[first] if first in _FIXED else int.from_bytes(frame[at + 1 : at + 1 + size], "big")
            at += 2 + size
            ends.append(min(at + length, ends[-1]))
        else:
            at += _SKIPS[first]
    return True


class _Writing:
    """A message on its way out: ``frames`` gathers its large arrays."""

    def __init__(self) -> None:
        self.frames: list[Frame] = []
        self._bytes = 0

    def plain(self, value: object, depth: int) -> object:
        """What MessagePack encodes as it is."""
        kind = type(value)
        if kind in _PLAIN:
            return value
        if depth >= MAX_DEPTH:
            raise BadMessage(f"a message has more than {MAX_DEPTH} levels of lists and dicts", hint="flatten it")
        if isinstance(value, dict):
            for key in value:
                if type(key) not in _PLAIN:
                    raise BadMessage(f"a {type_name(key)} as a key of a dict cannot be sent", hint="use text as keys")
            return dict(zip(value, self._parts(value.values(), value, depth), strict=True))
        if isinstance(value, list):
            return self._parts(value, range(len(value)), depth)
        if isinstance(value, tuple | set | frozenset):
            code = TUPLE if isinstance(value, tuple) else SET
            return Ext(code, _packed(self._parts(value, range(len(value)), depth)))
        return self._other(value, depth)

    def _parts(self, values: Iterable[object], keys: Iterable[object], depth: int) -> list[object]:
        """The parts of a container; where one can't be sent, the sentence begins with its key or place."""
        parts: list[object] = []
        try:
            for part in values:
                parts.append(part if type(part) in _PLAIN else self.plain(part, depth + 1))  # noqa: PERF401 - see except
        except BadMessage as error:
            raise _placed(next(islice(keys, len(parts), None)), error) from error
        return parts

    def _other(self, value: object, depth: int) -> object:
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
        if isinstance(value, complex):
            return Ext(COMPLEX, _ENCODER.encode((value.real, value.imag)))
        array = array_of(value)
        if array is not None:
            return self._array(ARRAY, _name_of(array.dtype), array)
        other = plain_of(value)
        if other is value:
            raise BadMessage(f"a {type_name(value)} cannot be sent", hint=_HINT)
        if isinstance(value, datetime):
            return Ext(MOMENT, _ENCODER.encode(other))
        return self.plain(other, depth)

    def _tensor(self, value: Any, torch: Any) -> object:  # noqa: ANN401 - torch is not loaded here
        try:
            self._room(value.numel() * value.element_size())
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
        self._room(array.nbytes)
        if sys.byteorder == "big" or not array.dtype.isnative:
            array = array.astype(array.dtype.newbyteorder("<"))
        if array.nbytes <= INLINE_BYTES:
            return Ext(kind, _ENCODER.encode((name, array.shape, array.tobytes())))
        self._bytes += array.nbytes
        self.frames.append(bytes_of(array))
        return Ext(kind, _ENCODER.encode((name, array.shape, len(self.frames))))

    def _room(self, size: int) -> None:
        """Refuse what is too large before it is copied: a view may show more than there is memory for."""
        if (size := size + self._bytes) > MAX_BYTES:
            raise BadMessage(
                f"a message has {size:,} bytes of arrays; {MAX_BYTES:,} is the most", hint="send it in several messages"
            )


@cache
def _name_of(dtype: np.dtype[Any]) -> str:
    return dtype.name


_CONTAINERS = frozenset({list, tuple, dict, set})
_VERSION_HINT = "both sides must run the same version of autoresearch"


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
        raise BadMessage("a message has no frame, or more than it may", hint=_VERSION_HINT)
    if has_too_many_values(frames[0]):
        raise BadMessage(f"a message with more than {MAX_VALUES:,} values came", hint=_VERSION_HINT)
    try:
        if len(frames) == 1:
            value = _DECODER.decode(frames[0])
            if _is_plain_value(value, 0):
                return value
        reading = _Reading(frames)
        value = msgspec.msgpack.decode(frames[0], ext_hook=reading.extension)
        _check(value, 0)
    except (msgspec.MsgspecError, LookupError, ValueError, TypeError, OverflowError, RecursionError) as error:
        raise BadMessage("bytes that are no message came", hint=_VERSION_HINT) from error
    if reading.unused:
        raise BadMessage("a message has frames that nothing in it names", hint=_VERSION_HINT)
    return value


def _is_plain_value(value: object, depth: int) -> bool:
    """Whether nothing in it is of an extension type, and nothing too deep: most questions and answers."""
    if type(value) in _PLAIN:
        return True
    if depth >= MAX_DEPTH or not isinstance(value, dict | list):
        return False
    for part in value.values() if isinstance(value, dict) else value:
        if type(part) not in _PLAIN and not _is_plain_value(part, depth + 1):
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
        if code == COMPLEX:
            return complex(*msgspec.msgpack.decode(data, type=tuple[float, float]))
        if code == MOMENT:
            return datetime.fromisoformat(msgspec.msgpack.decode(data, type=str))
        if code in {ARRAY, SCALAR, TENSOR}:
            return self._array(code, _PACKED.decode(data))
        raise ValueError(code)

    def _list(self, data: memoryview) -> list[object]:
        items: list[object] = msgspec.msgpack.decode(data, type=list, ext_hook=self.extension)
        return items

    def _array(self, code: int, packed: _Packed) -> object:
        import numpy as np

        bfloat = code == TENSOR and packed.name == BFLOAT16
        kind = number_types()["int16" if bfloat else packed.name]
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
        return tensor_of(array, bfloat=bfloat) if code == TENSOR else array

    def _frame(self, number: int) -> bytes | memoryview:
        self.unused.remove(number)  # a frame belongs to one array
        return self.frames[number]


def _check(value: object, depth: int) -> None:
    """Refuse deep nesting. Raises ValueError."""
    if type(value) not in _CONTAINERS:
        return
    if depth >= MAX_DEPTH:
        raise ValueError(depth)
    for part in value.values() if isinstance(value, dict) else value:  # type: ignore[attr-defined]
        if type(part) not in _PLAIN:
            _check(part, depth + 1)
