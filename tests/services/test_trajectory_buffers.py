"""Trajectory buffers: agentlace's own tests read again, and the same rules against a plain model."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from autoresearch.errors import UsageError
from autoresearch.services.data.jaxrl_data_store import TrajectoryBufferDataStore, make_default_trajectory_buffer
from autoresearch.services.data.replay_buffer import ReplayBuffer
from autoresearch.services.data.rows import DataShape
from autoresearch.services.data.sampler import FutureSampler, LatestSampler, SequenceSampler
from autoresearch.services.data.trajectory_buffer import TrajectoryBuffer


def make(shortest: int = 2, capacity: int = 100) -> TrajectoryBufferDataStore:
    store = TrajectoryBufferDataStore(
        capacity=capacity,
        data_shapes=[
            DataShape(name="data"),
            DataShape(name="index", dtype="int32"),
            DataShape(name="trajectory_id", dtype="int32"),
        ],
        min_trajectory_length=shortest,
    )
    whole = {"data": LatestSampler(), "index": LatestSampler(), "trajectory_id": LatestSampler()}
    store.register_sample_config("default", whole)
    if shortest >= 3:
        store.register_sample_config("need_padding", whole, (-1, 2))
    return store


def add(store: TrajectoryBuffer, length: int, number: int, *, ends: bool = True) -> None:
    for index in range(length):
        store.insert({"data": index / 7, "index": index, "trajectory_id": number}, False)
    if ends:
        store.end_trajectory()


def test_insert_and_retrieve() -> None:
    store = make()
    for number, length in enumerate((10, 15, 20)):
        add(store, length, number)
    samples, valid = store.sample("default", 64, force_indices=np.arange(45))
    assert samples["data"].shape == (45,)
    assert valid["data"].all()
    assert store.sample("default", 64)[0]["index"].shape == (64,)
    assert np.flatnonzero(store.metadata["trajectory_begin_flag"]).tolist() == [0, 10, 25]
    assert {name: int(column[44]) for name, column in store.metadata.items()} == {
        "ep_begin": 25,
        "ep_end": 45,
        "trajectory_id": 2,
        "seq_id": 44,
        "trajectory_begin_flag": 0,
    }
    assert {int(column[45]) for column in store.metadata.values()} == {-1, 0}


def test_windows_over_an_end_are_marked() -> None:
    store = make()
    store.register_sample_config(
        "sequence",
        {
            "before": SequenceSampler(begin=-3, end=1, source="index"),
            "after": SequenceSampler(begin=0, end=4, source="index"),
            "next": SequenceSampler(squeeze=True, begin=1, end=2, source="index"),
            "index": LatestSampler(),
            "trajectory_id": LatestSampler(),
        },
    )
    for number, length in enumerate((10, 15, 20, 75)):
        add(store, length, number)
    data, valid = store.sample("sequence", 100, force_indices=np.array(store.ids))
    assert (data["trajectory_id"] != 0).all()
    index = data["index"][:, None]
    lengths = np.array([10, 15, 20, 75])[data["trajectory_id"]][:, None]
    cut = np.array([0, 10, 0, 0])[data["trajectory_id"]][:, None]  # the first ten rows of 1 are overwritten
    for name, steps in (("before", np.arange(-3, 1)), ("after", np.arange(4))):
        positions = index + steps
        assert (valid[name] == ((positions >= cut) & (positions < lengths))).all()
        assert (data[name] == np.clip(positions, cut, lengths - 1)).all()
    assert data["next"].shape == (len(store.ids),)
    assert (data["next"][valid["next"]] == data["index"][valid["next"]] + 1).all()


def test_steps_too_near_to_an_end_are_not_drawn() -> None:
    store = make(3)
    for number in range(3):
        add(store, 40, number)
    for data, valid in (
        store.sample("need_padding", 100, force_indices=np.array(store.ids)),
        store.sample("need_padding", 5000),
    ):
        assert valid["index"].all()
        assert data["index"].min() == 1 or data["trajectory_id"].min() == 0
        assert data["index"].max() == 38


def test_a_trajectory_that_is_too_short_is_dropped() -> None:
    store = make(3)
    add(store, 10, 0)
    add(store, 2, 1)
    assert (store.sample("need_padding", 100)[0]["trajectory_id"] == 0).all()
    assert len(store) == 10


def test_what_overwriting_leaves_too_short_is_not_drawn() -> None:
    store = make(3)
    for number in range(10):
        add(store, 10, number)
    add(store, 8, 10)
    assert store.ids == range(10, 108)
    assert (store.sample("need_padding", 100, force_indices=np.array(store.ids))[0]["trajectory_id"] != 0).all()


@pytest.mark.parametrize(("length", "drawn"), [(10, True), (1, False)])
def test_a_trajectory_in_progress_is_drawn_when_it_is_long_enough(length: int, *, drawn: bool) -> None:
    store = make(3)
    add(store, 10, 0)
    add(store, length, 1, ends=False)
    assert (store.sample("need_padding", 200)[0]["trajectory_id"] == 1).any() == drawn


def test_agentlaces_file_test(tmp_path: Path) -> None:
    store = make()
    for number in range(10):
        add(store, 5, number)
    for number in range(8):
        add(store, 8, number)
    assert store.ids == range(15, 5 * 10 + 8 * 8)
    store.save(tmp_path / "test.npz")
    again = TrajectoryBufferDataStore.load(tmp_path / "test.npz")
    assert (again.ids, again.capacity) == (store.ids, store.capacity)
    held = np.array(store.ids) % store.capacity
    assert (again.dataset["data"][held] == store.dataset["data"][held]).all()
    again.insert({"data": 0, "index": 0, "trajectory_id": 0})


class Model:
    """The rules, on lists."""

    def __init__(self, capacity: int, shortest: int) -> None:
        self.capacity, self.shortest = capacity, shortest
        self.done: list[list[int]] = []
        self.open: list[int] = []
        self.lowest = 0

    def insert(self, number: int) -> None:
        self.open.append(number)
        count = sum(map(len, self.done)) + len(self.open)
        self.lowest = max(self.lowest, count - self.capacity)

    def end(self) -> None:
        if len(self.open) >= self.shortest:
            self.done.append(self.open)
        self.open = []

    def described(self) -> list[dict[str, int | bool]]:
        """What ``metadata`` says of each row, by its id."""
        rows: list[dict[str, int | bool]] = []
        for number, each in enumerate([*self.done, self.open]):
            begin = len(rows)
            rows += [
                {
                    "ep_begin": begin,
                    "ep_end": -1 if each is self.open else begin + len(each),
                    "trajectory_id": number,
                    "seq_id": at,
                    "trajectory_begin_flag": at == begin,
                }
                for at in range(begin, begin + len(each))
            ]
        return rows

    def drawn(self) -> list[list[int]]:
        windows, at = [], 0
        for each in [*self.done, self.open]:
            is_open = each is self.open
            window = each[max(0, self.lowest - at) :]
            at += len(each)
            if len(window) >= self.shortest or (is_open and len(each) >= self.shortest):
                windows.append(window)
        return [each for each in windows if each]


commands = st.lists(st.one_of(st.integers(1, 9), st.just("end"), st.just("save")), max_size=25)


@settings(deadline=None, max_examples=40)
@given(capacity=st.integers(3, 12), shortest=st.integers(1, 3), script=commands, span=st.integers(0, 2))
def test_it_draws_what_the_rules_say(capacity: int, shortest: int, script: list[object], span: int) -> None:
    def fresh(buffer: TrajectoryBuffer) -> TrajectoryBuffer:
        buffer.register_sample_config("window", {"n": LatestSampler()}, (-min(span, shortest - 1), 1))
        return buffer

    buffer = fresh(TrajectoryBuffer(capacity, [DataShape("n", dtype="int64")], min_trajectory_length=shortest))
    model, number, copy, sent = Model(capacity, shortest), 0, ReplayBuffer(1000), -1
    ended: set[int] = set()
    for command in script:
        if command == "end":
            buffer.end_trajectory()
            model.end()
        elif command == "save":
            buffer = fresh(TrajectoryBuffer.deserialize(buffer.serialized()))
        else:
            for _ in range(int(str(command))):
                buffer.insert({"n": number})
                model.insert(number)
                number += 1
        rows = [each for trajectory in model.drawn() for each in trajectory]
        assert len(buffer) == len(rows)
        metadata, described = buffer.metadata, model.described()
        for row in buffer.ids:
            at = {name: column[row % capacity] for name, column in metadata.items()}
            assert at == described[row]
        assert {column.shape for column in metadata.values()} == {(capacity,)}
        copied = buffer.get_latest_data(sent)
        sent = buffer.latest_data_id()
        copy.batch_insert([{"n": row["n"]} for row in copied])
        ended |= {int(row["n"]) for row in copied if row["end_of_trajectory"]}
        before = min(span, shortest - 1)
        centres = sorted(each for trajectory in model.drawn() for each in trajectory[before:])
        if not rows:
            with pytest.raises(UsageError):
                buffer.sample("window", 1)
            continue
        data, valid = buffer.sample("window", 300)
        assert set(data["n"].tolist()) <= set(centres)
        assert valid["n"].all()
        forced = buffer.sample("window", 1, force_indices=np.array(buffer.ids))[0]["n"]
        assert set(forced.tolist()) == set(centres)
    # What was copied out is no dropped row, in order, each once, with the ends where they were.
    got = [int(row["n"]) for row in copy.get_latest_data(-1)]
    assert got == sorted(set(got))
    whole = {each for trajectory in [*model.done, model.open] for each in trajectory}
    assert set(got) <= whole
    assert ended <= {trajectory[-1] for trajectory in model.done}
    if capacity == 12 and number <= 12:
        model.end()
        buffer.end_trajectory()
        got += [int(row["n"]) for row in buffer.get_latest_data(sent)]
        assert got == [each for trajectory in model.done for each in trajectory]


def test_every_step_is_drawn_equally_often() -> None:
    store = make(3)
    for number in range(10):
        add(store, 10, number)
    data = store.sample("need_padding", 80_000)[0]
    counts = np.bincount(data["trajectory_id"] * 10 + data["index"], minlength=100).reshape(10, 10)
    assert counts[:, [0, 9]].sum() == 0
    assert 850 < counts[:, 1:9].min() <= counts.max() < 1150


@pytest.mark.parametrize("max_future", [None, 4])
def test_future_steps_are_later_steps_of_the_same_trajectory(max_future: int | None) -> None:
    store = make()
    for number in range(5):
        add(store, 20, number)
    far = FutureSampler.Distribution.EXPONENTIAL
    store.register_sample_config(
        "goal",
        {
            "uniform": FutureSampler(max_future=max_future, source="index"),
            "far": FutureSampler(far, lambda_=5.0, source="index"),
            "whose": FutureSampler(max_future=max_future, source="trajectory_id"),
            "index": LatestSampler(),
            "trajectory_id": LatestSampler(),
        },
    )
    data, valid = store.sample("goal", 4000)
    for name in ("uniform", "far"):
        assert valid[name]["data"].all()
        assert (data[name]["data"] == data["index"] + data[name]["offset"]).all()
        assert data[name]["offset"].min() == 0
    assert data["uniform"]["offset"].max() == (19 if max_future is None else 3)
    assert data["far"]["data"].max() == 19
    assert (data["whose"]["data"] == data["trajectory_id"]).all()


def test_settings_that_cannot_be_are_refused() -> None:
    store = make()
    for call in (
        lambda: TrajectoryBuffer(3, use_jax=True),
        lambda: TrajectoryBuffer(3, device="cpu"),
        lambda: TrajectoryBuffer(1),
        lambda: SequenceSampler(begin=2, end=2),
        lambda: SequenceSampler(squeeze=True, end=2),
        lambda: FutureSampler(max_future=0),
        lambda: FutureSampler(FutureSampler.Distribution.EXPONENTIAL),
        lambda: store.register_sample_config("long", {}, (0, 3)),
        lambda: store.sample("none", 1),
        lambda: store.sample("default", 1),
        lambda: store.sample("default", 1, force_indices=[0]),
    ):
        with pytest.raises(UsageError):
            call()
    store.register_sample_config("odd", {"a": LatestSampler(source="nothing")})
    add(store, 5, 0)
    with pytest.raises(UsageError, match="no column nothing"):
        store.sample("odd", 1)


def test_the_default_buffer_draws_whole_transitions_the_last_ones_too() -> None:
    spaces = pytest.importorskip("gymnasium.spaces")
    seen = spaces.Dict({"image": spaces.Box(0, 255, (2,), np.uint8), "at": spaces.Discrete(300)})
    store = make_default_trajectory_buffer(seen, spaces.Discrete(2), 100)

    def observed(at: int) -> dict[str, object]:
        return {"image": np.full(2, at, np.uint8), "at": at}

    for at in range(40):
        step = at % 10
        row = {"observations": observed(at), "next_observations": observed(at + 1), "actions": step % 2, "rewards": at}
        store.insert(row | {"masks": float(step != 9), "end_of_trajectory": step == 9})
    batch, valid = store.sample("training", 500)
    assert valid["next_observations"]["at"].all()
    assert (batch["next_observations"]["at"] == batch["observations"]["at"] + 1).all()
    assert (batch["observations"]["image"][:, 0] == batch["rewards"]).all()
    assert set(batch["observations"]["at"].tolist()) == set(range(40))
    assert (batch["end_of_trajectory"] == (batch["masks"] == 0)).all()


def test_a_batch_is_inserted_whole_or_not_at_all() -> None:
    store = make(1)
    good = {"data": 1, "index": 1, "trajectory_id": 1}
    with pytest.raises(UsageError, match="it lacks data"):
        store.batch_insert([good, good, {"index": 1, "trajectory_id": 1}])
    assert len(store) == 0
    store.batch_insert([good, good])
    assert len(store) == 2
