"""Arrays of any library are sent as numpy's are, values of the standard library as the services page says."""

from __future__ import annotations

from collections import OrderedDict, deque
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time, timedelta, timezone
from pathlib import Path, PurePosixPath
from types import MappingProxyType
from typing import Any

import numpy as np
import pytest

from autoresearch.errors import BadMessage
from autoresearch.services import QueuedDataStore, TrainerClient, TrainerConfig, TrainerServer
from autoresearch.services.messages import decode, encode
from tests.daemon.daemons import wait_for


class Held:
    """An object that holds an array."""

    def __init__(self, array: Any) -> None:
        self.array = array


class Old(Held):
    """As before numpy 2."""

    def __array__(self) -> Any:
        return self.array


class New(Held):
    """As numpy 2 calls it."""

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        return np.array(self.array, dtype=dtype, copy=copy)


class Interface(Held):
    """As images of Pillow."""

    @property
    def __array_interface__(self) -> dict[str, Any]:
        interface: dict[str, Any] = self.array.__array_interface__
        return interface


class Exported(Held):
    """DLPack alone."""

    def __dlpack__(self, **options: Any) -> Any:
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        return (1, 0)


class OldExported(Exported):
    """DLPack before its versions."""

    def __dlpack__(self, *, stream: None = None) -> Any:  # type: ignore[override]
        return self.array.__dlpack__(stream=stream)


class OnCard(Exported):
    """As cupy's: no array without being asked to copy, which only DLPack can ask."""

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        raise TypeError("implicit conversion is not allowed")

    def __dlpack__(self, *, dl_device: tuple[int, int] | None = None, **options: Any) -> Any:
        if dl_device is None:
            raise BufferError("the array is on a card")
        return self.array.__dlpack__(dl_device=dl_device, **options)


KINDS = (Old, New, Interface, Exported, OldExported, OnCard)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("shape", [(), (3,), (0, 2), (70, 70)])
def test_an_array_of_any_library_arrives_as_one_of_numpy(kind: type[Held], shape: tuple[int, ...]) -> None:
    array = np.arange(np.prod(shape, dtype=int), dtype=np.float32).reshape(shape)

    decoded = decode(encode({"params": [{"bias": kind(array)}, (kind(array), 1)]}))["params"]

    for part in (decoded[0]["bias"], decoded[1][0]):
        assert type(part) is np.ndarray
        assert (part.dtype, part.shape) == (array.dtype, array.shape)
        assert np.array_equal(part, array)


def test_weights_and_rows_with_such_arrays_reach_the_other_side() -> None:
    config = TrainerConfig(port_number=0, broadcast_port=0)
    server = TrainerServer(config)
    learned = QueuedDataStore(10)
    server.register_data_store("rows", learned)
    server.start(threaded=True)
    config = TrainerConfig(port_number=server.port, broadcast_port=server.broadcast_port)
    rows, weights = QueuedDataStore(10), dict[str, Any]()
    client = TrainerClient("rows", "localhost", config, rows, wait_for_server=True)
    client.recv_network_callback(weights.update)
    rows.insert({"observation": New(np.ones(3)), "image": Interface(np.zeros((100, 100, 3), np.uint8))})

    assert client.update()
    server.publish_network({"params": {"Dense_0": {"bias": Exported(np.ones(4, np.float32))}}})

    wait_for(lambda: bool(weights))
    client.stop()
    server.stop()
    assert weights["params"]["Dense_0"]["bias"].tolist() == [1, 1, 1, 1]
    assert learned.get_latest_data(-1)[0]["image"].shape == (100, 100, 3)


@dataclass(frozen=True)
class Step:
    reward: float
    extra: dict[str, Any] = field(default_factory=dict)


@dataclass
class Slotted:
    __slots__ = ("x",)
    x: int


SUMMER = timezone(timedelta(hours=2))
INSIDE_OUT = MappingProxyType({"a": deque([1, (2,)], maxlen=2)})


@pytest.mark.parametrize(
    ("value", "arrives"),
    [
        (deque([1, (2, {3})], maxlen=5), [1, (2, {3})]),
        (deque(), []),
        (Step(1.5, {"s": Step(2)}), {"reward": 1.5, "extra": {"s": {"reward": 2, "extra": {}}}}),
        (Slotted(3), {"x": 3}),
        (INSIDE_OUT, {"a": [1, (2,)]}),
        (OrderedDict(b=1, a=2), {"b": 1, "a": 2}),
        (datetime(2026, 1, 2, 3, 4, 5, 678901, UTC), datetime(2026, 1, 2, 3, 4, 5, 678901, UTC)),
        (datetime(2026, 1, 2, tzinfo=SUMMER), datetime(2026, 1, 2, tzinfo=SUMMER)),
        (datetime(1, 1, 1), datetime(1, 1, 1)),  # noqa: DTZ001 - such ones are sent too
        (date(2026, 1, 2), "2026-01-02"),
        (time(3, 4), "03:04:00"),
        (timedelta(minutes=1.5), 90.0),
        (Path("data/a b"), str(Path("data/a b"))),
        (PurePosixPath("/x"), "/x"),
        (1 + 2j, 1 + 2j),
        ({1j, 2j}, {1j, 2j}),
    ],
)
def test_values_of_the_standard_library_arrive_as_documented(value: object, arrives: object) -> None:
    decoded = decode(encode({"part": [value, {"x": 1}]}))["part"][0]

    assert type(decoded) is type(arrives)
    assert decoded == arrives


class Raises:
    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        raise RuntimeError("deleted\nbuffer" * 99)


class ReturnsText:
    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        return "no array"


class DeviceOnly(Exported):
    def __dlpack__(self, **options: Any) -> Any:
        raise BufferError("on a card")


class BrokenMapping(dict[str, int]):
    def __getattr__(self, name: str) -> Any:  # answers every name, as a mock does
        return lambda *_: 1


@dataclass
class Unset:
    x: int = field(init=False)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (Raises(), "Raises cannot be sent: it gives no array (RuntimeError: deleted"),
        (ReturnsText(), "ReturnsText cannot be sent: it gives no array ("),
        (DeviceOnly(None), "DeviceOnly cannot be sent: it gives no array (BufferError: on a card"),
        (New(np.array([object()])), "New cannot be sent: it is an array of object"),
        (New(np.array(["text"])), "New cannot be sent: it is an array of str"),
        (New(np.zeros(2, [("a", "i4")])), "New cannot be sent: it is an array of void"),
        (New(np.array(["2026"], "M8[s]")), "New cannot be sent: it is an array of datetime64"),
        (Old(np.broadcast_to(np.float64(1), (1 << 40,))), "8,796,093,022,208 bytes"),
        (Unset(), "Unset cannot be sent: AttributeError"),
        (Step(1, {"f": print}), "'extra': 'f': a builtin_function_or_method cannot be sent"),
        (deque([0, object()]), "1: a object cannot be sent"),
        (New, "a type cannot be sent"),
        (Step, "a type cannot be sent"),
    ],
)
def test_what_cannot_be_sent_is_named_with_its_place_and_type(value: object, message: str) -> None:
    with pytest.raises(BadMessage) as caught:
        encode({"actor": [0, (value,)]})

    assert str(caught.value).startswith("'actor': 1: 0: ")
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 300
    assert caught.value.hint


def test_a_value_that_contains_itself_is_refused() -> None:
    endless: deque[object] = deque()
    endless.append(endless)
    with pytest.raises(BadMessage, match="levels"):
        encode(endless)


def test_a_dict_that_answers_every_name_is_a_dict() -> None:
    assert decode(encode([BrokenMapping(a=1)])) == [{"a": 1}]


def test_many_views_that_show_too_much_are_refused_before_they_are_copied() -> None:
    view = np.broadcast_to(np.uint8(1), (1 << 29,))
    with pytest.raises(BadMessage, match=r"'c': a message has 1,610,612,736 bytes"):
        encode({"a": np.zeros(1 << 29, np.uint8), "b": np.zeros(1 << 29, np.uint8), "c": view})
