"""Replay buffers: what is inserted, kept, drawn and saved."""

import pickle
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from autoresearch.errors import NotFound, UsageError
from autoresearch.services.data.jaxrl_data_store import ReplayBufferDataStore
from autoresearch.services.data.replay_buffer import ReplayBuffer
from autoresearch.services.data.rows import DataShape
from autoresearch.services.data.trajectory_buffer import TrajectoryBuffer


def transition(number: int) -> dict[str, object]:
    image = np.full((2, 2), number, np.uint8)
    return {
        "observations": {"image": image, "speed": np.float32(number)},
        "actions": np.array([number, -number], np.float32),
        "rewards": float(number),
    }


def test_the_first_row_decides_what_a_buffer_holds() -> None:
    buffer = ReplayBuffer(capacity=2)
    buffer.insert(np.array([1.0, 2.0]))  # agentlace's README inserts observations alone
    buffer.insert(np.array([3.0, 4.0]))
    assert buffer.sample(5).shape == (5, 2)
    with pytest.raises(UsageError, match=r"value has the shape \(3,\), the buffer \(2,\)"):
        buffer.insert(np.zeros(3))
    assert len(buffer) == 2
    assert buffer.latest_data_id() == 1


def test_rows_come_back_as_columns_of_the_same_shape() -> None:
    buffer = ReplayBuffer(10)
    buffer.batch_insert([transition(number) for number in range(10)])
    batch = buffer.sample(4, indx=[3, 1, 4, 1])
    assert batch["observations"]["image"].dtype == np.uint8
    assert batch["observations"]["image"][:, 0, 0].tolist() == [3, 1, 4, 1]
    assert batch["rewards"].tolist() == [3.0, 1.0, 4.0, 1.0]
    assert set(buffer.sample(2, keys=["observations"])) == {"observations"}
    with pytest.raises(UsageError, match="no masks"):
        buffer.sample(2, keys=["masks"])


@given(capacity=st.integers(1, 8), sizes=st.lists(st.integers(0, 10), max_size=8), after=st.integers(-1, 30))
def test_the_newest_rows_are_kept_whatever_batches_they_come_in(capacity: int, sizes: list[int], after: int) -> None:
    buffer, one_by_one, count = ReplayBuffer(capacity), ReplayBuffer(capacity), 0
    for size in sizes:
        rows = [{"n": number} for number in range(count, count + size)]
        buffer.batch_insert(rows)
        for row in rows:
            one_by_one.insert(row)
        count += size
    newest = list(range(count))[-capacity:]
    for each in (buffer, one_by_one):
        assert [int(row["n"]) for row in each.get_latest_data(after)] == [n for n in newest if n > after]
        assert len(each) == len(newest)
        assert each.latest_data_id() == count - 1


def test_every_row_is_drawn_about_as_often() -> None:
    buffer = ReplayBuffer(100, seed=3)
    buffer.batch_insert([{"n": number} for number in range(150)])
    counts = np.bincount(buffer.sample(100_000)["n"], minlength=150)
    assert counts[:50].sum() == 0
    assert 800 < counts[50:].min() <= counts[50:].max() < 1200


def test_a_row_that_does_not_fit_changes_nothing() -> None:
    buffer = ReplayBuffer(4, [DataShape("a", (2,)), DataShape("flag", dtype="bool")])
    buffer.insert({"a": [1, 2], "flag": 1.0})
    for wrong, message in (
        ({"a": [1, 2]}, "it lacks flag"),
        ({"a": [1, 2], "flag": True, "c": 1}, "it also has c"),
        ({"a": [1, 2], "flag": 0.5}, "flag is float64, which does not fit bool"),
        ({"a": "text", "flag": True}, "a holds str, not numbers"),
        ({"a": [[1], [1, 2]], "flag": True}, "a is no array"),
        ({}, "a row holds no value"),
        ({1: 2}, "must be text"),
    ):
        with pytest.raises(UsageError, match=message):
            buffer.insert(wrong)
        with pytest.raises(UsageError, match=message):
            buffer.batch_insert([{"a": [3, 4], "flag": False}, wrong])
    assert len(buffer) == 1
    assert buffer.sample(1, indx=[0])["a"].tolist() == [[1.0, 2.0]]


@pytest.mark.parametrize("call", [lambda: ReplayBuffer(0), lambda: ReplayBuffer(2, [DataShape("a", dtype="object")])])
def test_a_buffer_that_cannot_be_is_refused(call: object) -> None:
    with pytest.raises(UsageError):
        call()  # type: ignore[operator]


def test_an_empty_buffer_has_nothing_to_draw() -> None:
    buffer = ReplayBuffer(3)
    assert buffer.get_latest_data(-1) == []
    assert buffer.latest_data_id() == -1
    with pytest.raises(UsageError, match="the buffer is empty"):
        buffer.sample(1)
    buffer.insert(1)
    with pytest.raises(UsageError, match="rows 0 to 0 only"):
        buffer.sample(1, indx=[1])


@settings(deadline=None, max_examples=40)
@given(
    value=arrays.arrays(
        st.sampled_from([np.bool_, np.int8, np.uint16, np.int64, np.float32, np.float64, np.complex64]),
        arrays.array_shapes(min_dims=1, max_dims=3, max_side=4),
    ),
    name=st.text(min_size=1, max_size=4),
)
def test_a_saved_buffer_is_the_same_buffer(
    value: np.ndarray, name: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.mktemp("b") / "buffer.npz"
    buffer = ReplayBuffer(3, seed=5)
    for number in range(5):
        buffer.insert({name: {"/": value}, "n": number} if name != "n" else {"n": value})
    buffer.sample(3)
    buffer.save(path)
    again = ReplayBuffer.load(path)
    assert len(again) == 3
    assert again.latest_data_id() == 4
    np.testing.assert_equal(again.get_latest_data(-1), buffer.get_latest_data(-1))
    np.testing.assert_equal(again.sample(7), buffer.sample(7))  # it goes on with the same random numbers
    again.insert(buffer.get_latest_data(3)[0])
    assert again.latest_data_id() == 5


def test_a_file_that_is_no_buffer_is_refused(tmp_path: Path) -> None:
    buffer = ReplayBuffer(3)
    buffer.insert(np.arange(3))
    path = tmp_path / "deep" / "buffer.npz"
    buffer.save(path)
    whole = path.read_bytes()
    assert [each.name for each in path.parent.iterdir()] == ["buffer.npz"]
    with pytest.raises(NotFound):
        ReplayBuffer.load(tmp_path / "none.npz")
    with pytest.raises(UsageError, match="holds no such buffer"):
        TrajectoryBuffer.load(path)
    for bad in (b"", b"PK", whole[: len(whole) // 2], pickle.dumps([1]), b"\x93NUMPY\x01\x00"):
        path.write_bytes(bad)
        with pytest.raises(UsageError):
            ReplayBuffer.load(path)
    np.savez(path, a=np.array([{}], object))
    with pytest.raises(UsageError, match="can't be read"):
        ReplayBuffer.load(path)


@settings(deadline=None, max_examples=40)
@given(st.integers(0, 2**32), st.integers(0, 255))
def test_a_damaged_file_ends_in_a_sentence(tmp_path_factory: pytest.TempPathFactory, place: int, byte: int) -> None:
    path = tmp_path_factory.mktemp("b") / "buffer.npz"
    buffer = TrajectoryBuffer(4)
    for number in range(5):
        buffer.insert({"n": number})
    buffer.save(path)
    data = bytearray(path.read_bytes())
    data[place % len(data)] = byte
    path.write_bytes(data)
    with suppress(UsageError):  # any other error fails the test
        TrajectoryBuffer.load(path)


def test_torch_tensors_are_rows_too() -> None:
    torch = pytest.importorskip("torch")
    buffer = ReplayBuffer(3)
    buffer.insert({"a": torch.ones(2, requires_grad=True)})
    assert buffer.sample(1)["a"].tolist() == [[1.0, 1.0]]


def test_spaces_decide_the_columns_of_a_data_store() -> None:
    spaces = pytest.importorskip("gymnasium.spaces")
    seen = spaces.Dict({"image": spaces.Box(0, 255, (2, 2), np.uint8), "at": spaces.Discrete(3)})
    store = ReplayBufferDataStore(seen, spaces.Box(-1, 1, (2,), np.float32), capacity=10)
    row = {
        "observations": {"image": np.ones((2, 2), np.uint8), "at": 2},
        "next_observations": {"image": np.zeros((2, 2), np.uint8), "at": 1},
        "actions": np.zeros(2),
        "rewards": 1,
        "masks": 1.0,
        "dones": False,
    }
    store.batch_insert([row] * 3)
    batch = store.sample(4)
    assert batch["observations"]["image"].shape == (4, 2, 2)
    assert batch["observations"]["at"].dtype == np.int64
    assert batch["masks"].dtype == np.float32
    with pytest.raises(UsageError, match="can't keep values of the space Text"):
        ReplayBufferDataStore(spaces.Text(3), spaces.Discrete(2), 10)
