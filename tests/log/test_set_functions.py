"""The log is a function of the set of records: no order, no batch and no detour changes what it holds."""

import random
import tempfile
from collections import Counter
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from autoresearch.log.log import Log
from autoresearch.log.rows import State
from autoresearch.record.record import DAY_MS
from tests.log.dumping import dump
from tests.log.universe import AMPLE, SMALL, records
from tests.record.making import NETWORK, NOW_MS, key, pairs, run_body, sealed

# In memory where the system has such a folder: these logs are many, and what a disk does is tested elsewhere.
MEMORY = "/dev/shm" if Path("/dev/shm").is_dir() else None


# Each example opens logs, so that shrinking a failing one would take longer than reading it.


@contextmanager
def fresh(network):
    with tempfile.TemporaryDirectory(dir=MEMORY) as folder, Log.open(Path(folder) / "log.sqlite", network) as log:
        yield log


def fill(log, made, order=None, batch=1000):
    made = list(made)
    if order is not None:
        order.shuffle(made)
    verdicts = []
    for start in range(0, len(made), batch):
        verdicts += log.writer.ingest(pairs(made[start : start + batch]), now_ms=NOW_MS + 10**6)
    assert not [verdict for verdict in verdicts if verdict.state in (State.REFUSED, State.EARLY)]
    return verdicts


def keep(entries, network):
    """The quota as the design states it: the k smallest by (seq, id) of nested buckets."""
    for limit, bucket in (
        (network.per_day_seq, lambda entry: (entry[0], entry[1], entry[2])),
        (network.per_day, lambda entry: (entry[0], entry[1])),
        (network.per_author, lambda entry: entry[0]),
    ):
        taken, stored = Counter(), set()
        for entry in sorted(entries, key=lambda entry: (entry[2], entry[3])):
            taken[bucket(entry)] += 1
            if taken[bucket(entry)] <= limit:
                stored.add(entry)
        entries = stored
    return entries


def entry(record):
    return record.author, record.time // DAY_MS, record.seq, record.id


@pytest.mark.slow
@given(records(AMPLE), st.randoms(use_true_random=False), st.integers(1, 8))
@settings(max_examples=40, deadline=None)
def test_any_order_and_a_rebuild_give_the_same_tables(made, order, batch):
    with fresh(AMPLE) as first, fresh(AMPLE) as other:
        fill(first, made)
        fill(other, made, order, batch)
        contents = dump(first)
        assert dump(other) == contents
        other.writer.rebuild()
        assert dump(other) == contents


@pytest.mark.slow
@given(records(SMALL), st.randoms(use_true_random=False), st.integers(1, 8))
@settings(max_examples=40, deadline=None)
def test_any_order_under_a_quota_gives_the_same_tables(made, order, batch):
    with fresh(SMALL) as first, fresh(SMALL) as other:
        fill(first, made)
        fill(other, made, order, batch)
        contents = dump(first)
        assert dump(other) == contents
        assert {record.id for record in made if entry(record) in keep(set(map(entry, made)), SMALL)} == {
            row[0] for row in contents["record"]
        }
        other.writer.rebuild()
        assert dump(other) == contents


CROWDS = {
    "of a number": [(0, 1), (0, 1), (0, 1)],
    "of a day": [(0, seq) for seq in range(1, 7)],
    "of an author": [(day, 3 * day + seq) for day in range(3) for seq in range(1, 4)],
}


@pytest.mark.parametrize("batch", [1, 1000], ids=["one by one", "at once"])
@pytest.mark.parametrize("crowd", CROWDS.values(), ids=CROWDS)
def test_of_one_record_more_than_a_limit_one_goes(crowd, batch):
    made = [
        sealed(key(1), run_body(float(number)), seq=seq, time_ms=NOW_MS - day * DAY_MS, network=SMALL)
        for number, (day, seq) in enumerate(crowd)
    ]
    stored = keep(set(map(entry, made)), SMALL)
    assert len(stored) == len(made) - 1
    with fresh(SMALL) as log:
        fill(log, made, batch=batch)
        assert {record.id for record in made if entry(record) in stored} == {row[0] for row in dump(log)["record"]}


entries = st.tuples(
    st.sampled_from([b"a", b"b"]), st.integers(0, 2), st.integers(1, 4), st.binary(min_size=1, max_size=2)
)


@given(st.sets(entries, max_size=60), st.sets(entries, max_size=60))
@settings(max_examples=200)
def test_what_peers_keep_does_not_depend_on_who_saw_what_first(first, other):
    stored = keep(keep(first, SMALL) | keep(other, SMALL), SMALL)
    assert stored == keep(first | other, SMALL)


@given(records(SMALL), st.data())
@settings(max_examples=25, deadline=None)
def test_two_logs_that_exchange_what_they_kept_hold_what_one_log_would(made, data):
    """f(f(S) ∪ f(T)) = f(S ∪ T), with logs."""
    left = [record for record in made if data.draw(st.booleans())]
    right = [record for record in made if record not in left or data.draw(st.booleans())]
    with fresh(SMALL) as first, fresh(SMALL) as other, fresh(SMALL) as both:
        fill(first, left)
        fill(other, right)
        fill(both, made)
        for local, remote in ((first, other), (other, first)):
            local.writer.ingest(list(remote.records.iter_raw()), now_ms=NOW_MS + 10**6)
        assert dump(first) == dump(other) == dump(both)


def test_late_records_with_small_numbers_push_out_those_over_quota():
    author = key(1)
    made = [sealed(author, run_body(source=b"%d" % seq), seq=seq, network=SMALL) for seq in range(1, 9)]
    with fresh(SMALL) as log:
        assert [verdict.state for verdict in fill(log, made[3:])] == [State.STORED] * 5
        assert [verdict.state for verdict in fill(log, made[:3])] == [State.STORED] * 3
        assert [record.seq for record in log.records.newest()] == [
            record.seq for record in sorted(made[:5], key=lambda record: record.id, reverse=True)
        ]
        assert [verdict.state for verdict in fill(log, made[5:])] == [State.OVER_QUOTA] * 3
        assert len(log.runs.history(made[0].body.task)) == 5


def test_a_run_is_no_stray_any_more_when_its_parent_on_another_task_goes_over_the_quota():
    numbers = [1, 2, 4, 5, 6]
    made = [sealed(key(1), run_body(source=b"%d" % seq, task=b"t" * 32), seq=seq, network=SMALL) for seq in numbers]
    child = sealed(key(2), run_body(parent=made[-1].id), network=SMALL)
    with fresh(SMALL) as log:
        fill(log, [*made, child])
        assert [row[0] for row in dump(log)["stray"]] == [made[-1].id]
        fill(log, [sealed(key(1), run_body(source=b"late"), seq=3, network=SMALL)])
        assert dump(log)["stray"] == []


def test_a_run_is_no_stray_any_more_when_its_parent_goes_for_the_quota():
    parent = sealed(key(1), run_body(task=b"t" * 32), seq=9, network=SMALL)
    child = sealed(key(2), run_body(parent=parent.id), network=SMALL)
    smaller = [sealed(key(1), run_body(source=b"%d" % seq), seq=seq, network=SMALL) for seq in range(1, 6)]
    with fresh(SMALL) as log, fresh(SMALL) as other:
        fill(log, [parent, child])
        assert [row for (row,) in dump(log)["stray"]] == [parent.id]
        fill(log, smaller)
        fill(other, [*smaller, child])
        assert dump(log) == dump(other)
        assert not dump(log)["stray"]


class WhileChecked(list):
    """Records of which something is done the second time that they are gone through: when each is checked."""

    def __init__(self, pairs, act):
        super().__init__(pairs)
        self.acts = [act, lambda: None]

    def __iter__(self):
        self.acts.pop()()
        return super().__iter__()


def test_what_another_process_stores_while_records_are_checked_is_no_news():
    made = [sealed(key(1), run_body(source=b"%d" % seq), seq=seq) for seq in range(1, 4)]
    with tempfile.TemporaryDirectory(dir=MEMORY) as folder:
        path = Path(folder) / "log.sqlite"
        with Log.open(path, NETWORK) as log, Log.open(path, NETWORK) as other:
            batch = WhileChecked(pairs(made), lambda: fill(other, made[1:]))
            states = [verdict.state for verdict in log.writer.ingest(batch, now_ms=NOW_MS)]
            assert states == [State.STORED, State.DUPLICATE, State.DUPLICATE]
            assert log.records.count() == 3


@pytest.mark.slow
def test_five_hundred_records_in_random_orders_give_the_same_tables():
    chance = random.Random(7)
    made = [
        sealed(
            key(chance.randrange(5)),
            run_body(
                chance.choice([1.0, 0.3, 1e100]), source=b"%d" % chance.randrange(40), replicate=chance.randrange(3)
            ),
            seq=chance.randrange(1, 120),
            time_ms=NOW_MS - chance.randrange(3) * DAY_MS,
        )
        for _ in range(500)
    ]
    made = list({record.id: record for record in made}.values())
    with fresh(NETWORK) as first:
        fill(first, made)
        contents = dump(first)
    for seed in range(5):
        with fresh(NETWORK) as other:
            fill(other, made, random.Random(seed), batch=seed * 37 + 1)
            assert dump(other) == contents
