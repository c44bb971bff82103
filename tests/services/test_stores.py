"""Stores, columns, ledgers and limits, without sockets."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from autoresearch.errors import BadMessage, ServiceRefused, UsageError
from autoresearch.services.data.data_store import (
    DataStoreBase,
    Ledger,
    QueuedDataStore,
    SamplesPerInsert,
    ledger_of,
    newer_than,
    source_of,
)
from autoresearch.services.data.transfer import from_columns, to_columns
from autoresearch.services.messages import decode, encode
from tests.services.test_messages import VALUES, same

ROW = st.fixed_dictionaries(
    {
        "obs": arrays.arrays(np.float32, (3, 2)),
        "flat": arrays.arrays(np.int16, (4,)),
        "alone": arrays.arrays(np.float64, ()),
        "reward": st.floats(),
        "numbers": st.integers(-(2**63), 2**64 - 1),
        "scalar": st.integers(-5, 5).map(np.int32),
        "nested": st.fixed_dictionaries(
            {"done": st.booleans(), "pair": st.tuples(st.text("ab"), arrays.arrays("u1", 2))}
        ),
    }
)


@given(st.lists(ROW, max_size=6))
def test_rows_of_one_form_travel_as_columns(rows: list[dict[str, Any]]) -> None:
    column = to_columns(rows)

    assert same(from_columns(decode(encode(column)), len(rows)), rows)
    if rows:
        assert column[0] == "dicts"
        assert column[1]["obs"][1].shape == (len(rows), 3, 2)


@given(st.lists(VALUES, max_size=6))
def test_rows_of_any_form_arrive_as_they_were(rows: list[object]) -> None:
    assert same(from_columns(decode(encode(to_columns(rows))), len(rows)), rows)


def test_rows_are_views_of_their_column_and_large_arrays_are_not_stacked() -> None:
    small, large = np.arange(4.0), np.zeros(20_000)
    column = to_columns([{"small": small, "large": large}] * 3)
    rows = from_columns(column, 3)

    assert rows[1]["small"].base is column[1]["small"][1]
    assert rows[2]["large"] is large


def test_tensors_travel_as_one_tensor() -> None:
    import torch

    kind, stacked = to_columns([torch.ones(2), torch.zeros(2)])

    assert (kind, stacked.shape) == ("tensors", (2, 2))
    assert torch.equal(from_columns((kind, stacked), 2)[0], torch.ones(2))


@given(VALUES, st.integers(0, 9))
def test_what_is_no_column_is_refused(value: object, count: int) -> None:
    with pytest.raises(BadMessage):
        from_columns(value, count)
    with pytest.raises(BadMessage):
        from_columns(("dicts", value), count)
    with pytest.raises(BadMessage):
        from_columns(("list", [value]), 2)


def test_a_queue_numbers_its_rows_and_forgets_the_oldest() -> None:
    store = QueuedDataStore(6)
    assert (len(store), store.latest_data_id(), store.get_latest_data(-1)) == (0, -1, [])
    store.insert(1)
    store.insert(2)
    second = store.latest_data_id()
    assert store.get_latest_data(second) == []
    store.insert(3)
    assert store.get_latest_data(second) == [3]
    store.batch_insert([4, 5, 6])
    sixth = store.latest_data_id()
    store.batch_insert([7, 8, 9])
    assert len(store) == 6
    assert store.get_latest_data(second) == [4, 5, 6, 7, 8, 9]
    assert store.get_latest_data(sixth) == [7, 8, 9]
    assert store.get_latest_data(store.latest_data_id() + 5) == []
    store.batch_insert(list(range(10, 18)))
    assert store.get_latest_data(-1) == [12, 13, 14, 15, 16, 17]


class Restless(DataStoreBase):
    """A store that changes whenever it is read."""

    def __init__(self) -> None:
        super().__init__(1000)
        self.rows: list[int] = []

    def latest_data_id(self) -> int:
        return len(self.rows) - 1

    def get_latest_data(self, from_id: int) -> list[int]:
        rows = self.rows[from_id + 1 :]
        self.insert(0)
        return rows

    def insert(self, data: int) -> None:
        self.rows.append(data)

    def __len__(self) -> int:
        return len(self.rows)


@pytest.mark.slow
def test_rows_and_their_last_number_fit_together_while_others_insert() -> None:
    store, stop = QueuedDataStore(10**6), threading.Event()

    def fill() -> None:
        while not stop.is_set():
            store.insert(store.latest_data_id() + 1)
            stop.wait(0.0001)

    thread = threading.Thread(target=fill)
    thread.start()
    seen = -1
    while seen < 300:
        rows, last = newer_than(store, seen)
        assert list(rows) == list(range(seen + 1, last + 1))
        seen = last
    stop.set()
    thread.join()
    with pytest.raises(ServiceRefused, match="changes while it is read"):
        newer_than(Restless(), -1)


def test_each_store_has_a_source_and_a_ledger_of_its_own() -> None:
    first, second = QueuedDataStore(1), QueuedDataStore(1)

    assert source_of(first) == source_of(first) != source_of(second)
    assert ledger_of(first) is ledger_of(first) is not ledger_of(second)
    ledger_of(first).arrived("a", 4)
    ledger_of(second, Ledger(ledger_of(first).as_dict()))
    assert ledger_of(second).offset("a") == 4


@given(st.lists(st.tuples(st.sampled_from("ab"), st.integers(0, 30), st.integers(0, 30)), max_size=30))
def test_a_ledger_takes_each_row_once(sent: list[tuple[str, int, int]]) -> None:
    ledger, stored = Ledger(), {"a": [], "b": []}
    for source, first, count in sent:
        rows = list(range(first, first + count))
        if count and first <= ledger.offset(source) + 1:  # without a gap, as actors send
            new = ledger.new_rows(source, rows[-1], count)
            stored[source] += rows[count - new :]
            ledger.arrived(source, rows[-1])
    for source, rows in stored.items():
        assert rows == list(range(ledger.offset(source) + 1))


def test_samples_and_rows_wait_for_each_other() -> None:
    limit = SamplesPerInsert(ratio=4, min_size=10, slack=20)

    assert not limit.take(8, wait_s=0)  # there are too few rows
    limit.inserted(10)
    assert limit.take(8, wait_s=0)
    assert limit.take(12, wait_s=0)
    assert not limit.take(8, wait_s=0)  # 20 samples ahead
    assert limit.has_room()
    limit.inserted(5)
    assert limit.take(8, wait_s=0)
    limit.inserted(20)
    assert not limit.has_room()  # 72 samples behind
    assert limit.take(80, wait_s=0)  # more than the slack at once, since it is behind
    assert limit.has_room()
    assert (limit.rows, limit.samples) == (35, 108)


def test_a_learner_that_waits_goes_on_when_rows_come() -> None:
    limit = SamplesPerInsert(ratio=1, min_size=2)
    drawn = threading.Event()
    thread = threading.Thread(target=lambda: limit.take(1) and drawn.set())
    thread.start()
    limit.inserted(1)
    assert not drawn.is_set()
    limit.inserted(1)
    assert drawn.wait(20)
    thread.join()


@pytest.mark.parametrize(("ratio", "slack"), [(0, None), (-1, None), (float("nan"), None), (4, 3)])
def test_a_limit_that_nothing_could_meet_is_refused(ratio: float, slack: float | None) -> None:
    with pytest.raises(UsageError, match="samples per insert"):
        SamplesPerInsert(ratio, slack=slack)
