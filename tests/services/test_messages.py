"""Messages: what goes in comes out; what cannot be sent is named; no bytes do harm."""

from __future__ import annotations

import enum
import pickle
import subprocess
import sys
from contextlib import suppress
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from autoresearch.errors import BadMessage
from autoresearch.services.messages import MAX_DEPTH, MAX_FRAMES, decode, encode

DTYPES = ("?", "i1", "<i2", ">i4", "<i8", "u1", "<u8", "<f2", ">f4", "<f8", "<c8", "<c16")
ARRAYS = st.sampled_from(DTYPES).flatmap(
    lambda name: arrays.arrays(np.dtype(name), arrays.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=9))
)
PLAIN = (
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats()
    | st.text(st.characters(exclude_categories=["Cs"]))
    | st.binary(max_size=50)
)
KEYS = st.text(st.characters(exclude_categories=["Cs"]), max_size=5) | st.integers(-5, 5) | st.none() | st.binary()
VALUES = st.recursive(
    PLAIN | ARRAYS,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.lists(inner, max_size=4).map(tuple)
        | st.dictionaries(KEYS, inner, max_size=4)
        | st.sets(st.integers(-9, 9), max_size=4)
    ),
    max_leaves=8,
)


def arrived(frames: list[bytes | memoryview]) -> list[bytes | memoryview]:
    """The frames as they come from a socket: in other memory, which may be written."""
    return [bytes(frames[0]), *(memoryview(bytearray(frame)) for frame in frames[1:])]


def same(left: object, right: object) -> bool:
    """Equality with kinds, with NaN equal to itself; of arrays not the byte order."""
    if type(left) is not type(right):
        return False
    if isinstance(left, np.ndarray) and isinstance(right, np.ndarray):
        kind = left.dtype.newbyteorder("=") == right.dtype.newbyteorder("=")
        return kind and left.shape == right.shape and np.array_equal(left, right, equal_nan=left.dtype.kind in "fc")
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(same(part, right[key]) for key, part in left.items())
    if isinstance(left, list | tuple) and isinstance(right, list | tuple):
        return len(left) == len(right) and all(map(same, left, right))
    return left == right or (left != left and right != right)  # noqa: PLR0124 - NaN


@given(VALUES)
def test_what_goes_in_comes_out(value: object) -> None:
    assert same(decode(arrived(encode(value))), value)


@pytest.mark.parametrize("name", ["float32", "float16", "bfloat16", "int64", "bool", "complex64"])
@pytest.mark.parametrize("shape", [(), (3, 2), (0, 4), (70, 70)])
def test_tensors_arrive_as_tensors(name: str, shape: tuple[int, ...]) -> None:
    import torch

    tensor = (
        torch.ones(shape).cumsum(0).to(getattr(torch, name)) if shape else torch.ones((), dtype=getattr(torch, name))
    )
    tensor = tensor.t() if len(shape) == 2 else tensor

    decoded = decode(arrived(encode({"weights": tensor})))["weights"]

    assert decoded.dtype == tensor.dtype
    assert torch.equal(decoded, tensor)
    decoded.zero_()  # it may be changed


def test_a_tensor_that_learns_is_sent_as_its_numbers() -> None:
    import torch

    decoded = decode(encode(torch.nn.Linear(2, 2).state_dict() | {"grown": torch.ones(2, requires_grad=True)}))

    assert not decoded["grown"].requires_grad


@pytest.mark.parametrize("value", [np.float32(1.5), np.int8(-3), np.bool_(True), np.complex64(1j)])
def test_a_number_of_numpy_keeps_its_type(value: np.generic) -> None:
    decoded = decode(encode(value))

    assert type(decoded) is type(value)
    assert decoded == value


def test_large_arrays_are_not_copied_and_small_ones_may_be_changed() -> None:
    large, small = np.arange(100_000.0), np.arange(3)
    frames = encode({"large": large, "small": small})
    large[0] = 7.0

    came = [bytes(frames[0]), memoryview(bytearray(frames[1]))]
    decoded = decode(came)

    assert len(frames) == 2
    assert decoded["large"][0] == 7.0
    assert np.shares_memory(decoded["large"], np.frombuffer(came[1], np.uint8))
    decoded["small"] += 1


def test_views_of_arrays_arrive_as_what_they_show() -> None:
    array = np.arange(60_000, dtype=np.float32).reshape(300, 200)

    for view in (array.T, array[::3, 5:], array[::-1], np.broadcast_to(array[0], (40, 200)), np.asfortranarray(array)):
        assert np.array_equal(decode(arrived(encode(view))), view)


class Colour(enum.IntEnum):
    RED = 3


class Words(dict):  # type: ignore[type-arg]
    pass


def test_classes_that_derive_from_plain_ones_arrive_as_the_plain_ones() -> None:
    decoded = decode(encode([Colour.RED, Words(a=1), np.float64(2.5), bytearray(b"x"), memoryview(b"y")]))

    assert decoded == [3, {"a": 1}, 2.5, b"x", b"y"]


class Crafted:
    """What pickle would call when it is loaded."""

    def __reduce__(self) -> tuple[Any, ...]:
        return (pytest.fail, ("code ran",))


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (Crafted(), "Crafted cannot be sent"),
        ({"cam": np.array([object()])}, "'cam': an array of object"),
        (np.array(["text"]), "an array of str"),
        (np.zeros(2, [("a", "i4")]), "an array of void"),
        (2**64, "more than 64 bits"),
        ({"x": [0, -(2**63) - 1]}, "'x': 1: a whole number in a message needs more than 64 bits"),
        ({"x": [(0, "\ud800")]}, "'x': 0: 1: text in a message is no valid Unicode"),
        ({"x": [0, Crafted()]}, "'x': 1: a tests.services.test_messages.Crafted cannot be sent"),
        ({"w": np.broadcast_to(np.float32(1), (1 << 30, 1 << 20))}, "'w': a message has 4,503,599,627,370,496 bytes"),
        ({(1, 2): 3}, "a tuple as a key"),
        (lambda: 1, "a function cannot be sent"),
    ],
)
def test_what_cannot_be_sent_is_named_at_the_sender(value: object, message: str) -> None:
    with pytest.raises(BadMessage) as caught:
        encode(value)

    assert message in str(caught.value)
    assert caught.value.hint


@pytest.mark.parametrize("layout", ["sparse", "meta"])
def test_a_tensor_without_plain_numbers_is_named_at_the_sender(layout: str) -> None:
    import torch

    with pytest.raises(BadMessage, match="a tensor cannot be sent") as caught:
        encode(torch.ones(3).to_sparse() if layout == "sparse" else torch.empty(2, device="meta"))
    assert caught.value.hint


def nested(levels: int, kind: type) -> object:
    value: object = 1
    for _ in range(levels):
        value = {"a": value} if kind is dict else kind([value])
    return value


@pytest.mark.parametrize("kind", [list, dict, tuple])
def test_so_deep_and_no_deeper(kind: type) -> None:
    assert decode(encode(nested(MAX_DEPTH, kind))) == nested(MAX_DEPTH, kind)
    with pytest.raises(BadMessage, match="levels"):
        encode(nested(MAX_DEPTH + 1, kind))
    with pytest.raises(BadMessage):
        decode([msgspec.msgpack.encode(nested(MAX_DEPTH + 1, list))])


def test_so_many_arrays_and_no_more() -> None:
    array = np.zeros(8193, np.uint8)
    assert len(decode(encode([array] * (MAX_FRAMES - 1)))) == MAX_FRAMES - 1
    with pytest.raises(BadMessage, match="large arrays"):
        encode([array] * MAX_FRAMES)


def packed(code: int, *parts: object) -> bytes:
    return msgspec.msgpack.encode(msgspec.msgpack.Ext(code, msgspec.msgpack.encode(parts)))


@pytest.mark.parametrize(
    "frames",
    [
        [],
        [b""],
        [b"\xc1"],
        [b"\x01\x01"],
        [pickle.dumps(Crafted())],
        [b"\xdd\xff\xff\xff\xff"],
        [b"\x91" * 100_000 + b"\x01"],
        [packed(6, 1.0)],  # a complex number without its imaginary part
        [msgspec.msgpack.encode(msgspec.msgpack.Ext(7, msgspec.msgpack.encode("tomorrow")))],
        [packed(77)],
        [packed(1, 1)[:-1]],
        [packed(2, [1])],  # a list in a set
        [packed(3, "object", [1], b"12345678")],
        [packed(3, "V8", [1], b"12345678")],
        [packed(3, "bfloat16", [1], b"12")],
        [packed(3, "float32", [2], b"1234")],
        [packed(3, "float32", [-1, -1], b"1234")],
        [packed(3, "float32", [2**40, 2**40], b"1234")],
        [packed(3, "int8", [1] * 40, b"1")],
        [packed(3, "int8", [1], 0), b"1"],
        [packed(3, "int8", [1], 2), b"1"],
        [packed(3, "int8", [1], -1), b"1"],
        [packed(3, "int8", [1], b"1", "more")],
        [b"\x92" + packed(3, "int8", [1], 1) * 2, b"1"],  # one frame, twice
        [b"\x01", b"nothing names it"],
    ],
)
def test_bytes_that_are_no_message_are_refused(frames: list[bytes]) -> None:
    with pytest.raises(BadMessage):
        decode(frames)


@settings(max_examples=80)
@given(VALUES, st.data())
def test_changed_messages_are_values_or_refused(value: object, data: st.DataObject) -> None:
    frames = [bytearray(frame) for frame in encode(value)]
    for _ in range(data.draw(st.integers(1, 4))):
        frame = data.draw(st.sampled_from(frames))
        place = data.draw(st.integers(0, len(frame)))
        match data.draw(st.sampled_from(["change", "cut", "add", "frame"])):
            case "change":
                frame[place : place + 1] = data.draw(st.binary(min_size=1, max_size=1))
            case "cut":
                del frame[place:]
            case "add":
                frame[place:place] = data.draw(st.binary(max_size=9))
            case _:
                frames.append(bytearray(data.draw(st.binary(max_size=9))))
    with suppress(BadMessage):
        decode([bytes(frame) for frame in frames])


def test_numbers_and_words_travel_without_numpy_and_torch() -> None:
    program = (
        "import sys; from autoresearch.services.links.client import RequestClient\n"
        "from autoresearch.services.links.server import RequestServer\n"
        "server = RequestServer(lambda value: [value]); server.start(threaded=True)\n"
        "print(RequestClient('localhost', server.port).ask({'a': (1, 2.5)}), server.stop())\n"
        "print({'torch', 'numpy'} & set(sys.modules) or 'none')"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)

    assert done.stdout.splitlines() == ["[{'a': (1, 2.5)}] True", "none"]
