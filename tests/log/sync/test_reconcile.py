"""Reconciliation finds exactly the difference of two sets, within its limits, whichever side asks."""

import random
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from autoresearch.log.sync.index import LOWEST, KeyIndex, Violation
from autoresearch.log.sync.messages import REPLY_BYTES, REQUEST_BYTES
from autoresearch.log.sync.reconciliation import Initiator, Responder
from tests.log.sync.driving import SALT, random_keys, reconciled, truth

# Ids that share long prefixes, times that are equal or end in zero bytes.
ids = st.binary(min_size=2, max_size=2).map(lambda end: end[:1] * 3 + bytes(28) + end[1:])
keys = st.tuples(st.sampled_from([0, 1, 255, 256, 65_536, 2**53]) | st.integers(0, 20), ids)


@given(st.sets(keys, max_size=150), st.sets(keys, max_size=30), st.sets(keys, max_size=30))
@settings(max_examples=60, deadline=None)
def test_it_finds_exactly_the_difference(common, mine, theirs):
    mine, theirs = common | mine, common | theirs
    # One id has one time: the id is the hash of bytes that hold the time.
    once = {record_id: (time, record_id) for time, record_id in sorted(mine | theirs)}
    mine = {once[record_id] for _, record_id in mine}
    theirs = {once[record_id] for _, record_id in theirs}
    for first, other in ((mine, theirs), (theirs, mine)):
        have, need, round_trips = reconciled(first, other)
        assert (have, need) == truth(first, other)
        assert round_trips <= 8


@pytest.mark.parametrize(
    ("mine", "theirs"), [(0, 0), (0, 1), (0, 5_000), (33, 0), (32, 33), (5_000, 5_000), (10, 5_000)]
)
def test_sets_of_very_different_sizes(mine, theirs):
    first, other = random_keys(mine, seed=1), random_keys(theirs, seed=2)
    for left, right in ((first, other), (other, first), (first | other, other)):
        assert reconciled(left, right)[:2] == truth(left, right)


@pytest.mark.parametrize("different", [0, 1, 10, 300])
@pytest.mark.parametrize("place", ["newest", "anywhere"])
def test_few_differences_in_many_keys(different, place):
    common = sorted(random_keys(20_000))
    chance = random.Random(5)
    gone = common[-different:] if place == "newest" and different else chance.sample(common, different)
    mine, theirs = set(common) - set(gone[::2]), set(common) - set(gone[1::2])
    transcript = []
    have, need, round_trips = reconciled(mine, theirs, transcript=transcript)
    assert (have, need) == truth(mine, theirs)
    assert round_trips <= 4
    if not different:
        assert (round_trips, sum(map(len, transcript))) == (1, 18)
    elif place == "newest":
        assert sum(map(len, transcript)) < 1_500 + 20 * different


def test_all_keys_at_one_time():
    keys = sorted((7, record_id) for _, record_id in random_keys(5_000))
    assert reconciled(set(keys[:4_000]), set(keys[500:]))[:2] == truth(keys[:4_000], keys[500:])


@pytest.mark.slow
def test_a_full_message_is_continued_in_the_next():
    """Everything differs: requests and replies reach their limits, and the rest comes later."""
    first, other = random_keys(20_000, seed=1), random_keys(20_000, seed=2)
    common = random_keys(160_000, seed=3)
    transcript = []
    have, need, _ = reconciled(first | common, other | common, transcript=transcript)
    assert (have, need) == truth(first, other)
    assert max(map(len, transcript[::2])) > REQUEST_BYTES - 1_024
    assert max(map(len, transcript[1::2])) > REPLY_BYTES - 1_024


@pytest.mark.slow
def test_an_empty_side_gets_lists_in_full_replies():
    other = random_keys(100_000)
    transcript = []
    have, need, round_trips = reconciled(set(), other, transcript=transcript)
    assert (have, need) == truth(set(), other)
    assert round_trips == 4  # 800 kB of ids in replies of 256 KiB
    assert sum(map(len, transcript[::2])) < 100


def test_the_horizon_leaves_out_what_is_older():
    first, other = random_keys(3_000, seed=1), random_keys(3_000, seed=2)
    since = 500_224  # ends in zero bytes as a time of 8 bytes
    lower = since.to_bytes(8, "big").rstrip(b"\0")
    have, need, _ = reconciled(first, other, lower=lower)
    newer = [{key for key in side if key[0] >= since} for side in (first, other)]
    assert (have, need) == truth(*newer)


def test_eight_rounds_of_fingerprints_then_lists():
    """A responder that claims a difference everywhere gets to lists, and the session to its end."""
    mine = KeyIndex(random_keys(3_000))
    asks = Initiator(mine, SALT, LOWEST)
    requests = 0
    while (request := asks.request()) is not None:
        requests += 1
        # Says of each range that is compared "mine is different", and of each list that is asked for "I have none".
        reply, at = bytearray(), 0
        while at < len(request):
            head = request[at]
            bound = request[at : at + 1 + (head & 63)]
            at += len(bound) + (16 if head >> 6 == 1 else 0)
            reply += bound + {0: b"", 1: b"?" * 16, 2: b"\0"}[head >> 6]
        assert not isinstance(asks.receive(bytes(reply)), Violation)
        assert requests < 40
    assert requests <= 9


def test_keys_that_come_and_go_during_a_session_do_no_harm():
    chance = random.Random(8)
    common = random_keys(4_000)
    mine, theirs = KeyIndex(common | random_keys(300, seed=2)), KeyIndex(common | random_keys(300, seed=3))
    asks, answers = Initiator(mine, SALT, LOWEST), Responder(theirs, SALT, LOWEST)
    have, need = set(), set()
    before = [{record_id for _, record_id in random_keys(300, seed=seed)} for seed in (2, 3)]
    while (request := asks.request()) is not None:
        reply = answers.answer(request)
        assert not isinstance(reply, Violation)
        for index in (mine, theirs):
            index.update([(chance.randrange(1_000_000), chance.randbytes(32)) for _ in range(20)])
        difference = asks.receive(reply)
        assert not isinstance(difference, Violation)
        have.update(difference.have())
        need |= difference.need
    assert before[0] <= have
    assert truth(set(), {(0, record_id) for record_id in before[1]})[1] <= need


def test_ids_that_collide_under_a_salt_are_offered_together(monkeypatch):
    monkeypatch.setattr("autoresearch.log.sync.reconciliation.short_id", lambda record_id, salt: record_id[:1] * 8)
    theirs = KeyIndex((0, bytes([first]) + bytes(30) + bytes([last])) for first in (1, 2) for last in range(5))
    answers = Responder(theirs, SALT, LOWEST)
    answers.answer(b"\x80")
    assert Counter(each[:1] for each in answers.resolve([b"\1" * 8])) == {b"\1": 5}
