"""The index holds what a sorted set would hold, and its fingerprints depend on that set alone."""

import random
from bisect import bisect_left

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from autoresearch.log.sync.index import HIGHEST, LOWEST, KeyIndex, cut

SALT = b"s" * 32
few_ids = st.sampled_from(
    [bytes(31) + bytes([last]) for last in range(4)] + [bytes([first]) * 32 for first in (1, 255)]
)
keys = st.tuples(st.integers(0, 3) | st.sampled_from([255, 256, 2**53]), few_ids)


def packed(key):
    return key[0].to_bytes(8, "big") + key[1]


def contents(index):
    return index.slice(0, len(index))


@given(st.lists(st.tuples(st.booleans(), keys), max_size=60), st.lists(keys, max_size=40))
def test_adding_and_discarding_in_any_order_is_that_of_a_set(steps, loaded):
    index, model = KeyIndex(loaded), set(loaded)
    for adds, key in steps:
        changed = index.add(*key) if adds else index.discard(*key)
        assert changed == ((key not in model) if adds else (key in model))
        model = model | {key} if adds else model - {key}
    assert len(index) == len(model)
    assert contents(index) == b"".join(sorted(map(packed, model)))
    assert all((key in index) == (key in model) for _, key in steps)


@pytest.mark.parametrize("order", ["ascending", "descending", "shuffled"])
def test_thousands_of_keys_in_many_blocks(order):
    chance = random.Random(3)
    made = [(chance.randrange(10_000), chance.randbytes(32)) for _ in range(9_000)]
    expected = sorted(map(packed, made))
    if order != "shuffled":
        made.sort(reverse=order == "descending")
    index = KeyIndex(made)
    assert contents(index) == b"".join(expected)
    for start, stop in [(0, 0), (0, 9_000), (1, 2), (1_023, 1_025), (1_000, 7_777), (8_999, 9_000)]:
        assert index.slice(start, stop) == b"".join(expected[start:stop])
        assert index.ids(start, stop) == [key[8:] for key in expected[start:stop]]
    for bound in [LOWEST, HIGHEST, b"\0", expected[5_000], expected[5_000] + b"\0", expected[77][:6], b"\xff"]:
        assert index.lower_bound(bound) == bisect_left(expected, bound)
    assert list(index.scan(expected[10], expected[5_000])) == [key[8:] for key in expected[10:5_000]]
    for key in made[::3]:
        index.discard(*key)
    assert contents(index) == b"".join(sorted(set(expected) - set(map(packed, made[::3]))))


def test_removing_everything_leaves_an_empty_index():
    made = [(time, bytes(32)) for time in range(5_000)]
    index = KeyIndex(made)
    for key in made:
        assert index.discard(*key)
    assert len(index) == 0
    assert index.lower_bound(HIGHEST) == 0
    assert index.fingerprint(0, 0, SALT) == KeyIndex().fingerprint(0, 0, SALT)


@given(st.lists(keys, unique=True, max_size=40), st.randoms(use_true_random=False), st.data())
def test_a_fingerprint_depends_on_the_keys_and_the_salt_alone(made, order, data):
    index = KeyIndex(sorted(made))
    order.shuffle(made)
    other = KeyIndex(made)
    start = data.draw(st.integers(0, len(made)))
    stop = data.draw(st.integers(start, len(made)))
    assert index.fingerprint(start, stop, SALT) == other.fingerprint(start, stop, SALT)
    assert index.fingerprint(start, stop, SALT) != index.fingerprint(start, stop, b"t" * 32)
    if start < stop:
        assert index.fingerprint(start, stop, SALT) != index.fingerprint(start, stop - 1, SALT)


def test_blocks_do_not_show_in_fingerprints():
    made = [(time, bytes(32)) for time in range(5_000)]
    loaded, grown = KeyIndex(made), KeyIndex()
    for time, record_id in reversed(made):
        grown.add(time, record_id)
    assert loaded.fingerprint(7, 4_321, SALT) == grown.fingerprint(7, 4_321, SALT)


def test_scanning_goes_on_while_the_index_changes():
    made = [(time, time.to_bytes(32, "big")) for time in range(0, 6_000, 2)]
    index = KeyIndex(made)
    seen = []
    for position, record_id in enumerate(index.scan(LOWEST, HIGHEST)):
        seen.append(record_id)
        if position < 3_000:
            index.add(2 * position + 1, (2 * position + 1).to_bytes(32, "big"))
        index.discard(0, bytes(32))
    assert seen == sorted(set(seen))
    assert {record_id for _, record_id in made} <= set(seen)


@given(keys, keys)
@settings(max_examples=200)
def test_a_cut_is_the_shortest_bound_between_two_keys(left, other):
    before, after = sorted([packed(left), packed(other)])
    if before != after:
        bound = cut(before, after)
        assert before < bound <= after
        assert not before < bound[:-1]
        assert bound[-1] != 0
