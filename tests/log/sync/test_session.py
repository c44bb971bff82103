"""A session leaves both sides with the union, over any stream, and ends at the first breach of the protocol."""

import hashlib
import random
import zlib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from autoresearch.log.sync.index import KeyIndex, Violation
from autoresearch.log.sync.messages import BATCH_BYTES, Type, encode_batches, frame
from autoresearch.log.sync.session import Fetch, Leader, Opener, Send, Store, SyncFinished
from autoresearch.record.record import Network
from tests.log.sync.driving import NETWORK, Side, exchange, made_record, pair


def records(count, *, seed=1, **options):
    chance = random.Random(seed)
    return [made_record(chance, **options) for _ in range(count)]


@pytest.mark.parametrize("chunk", [None, 1, 7, 4_096])
@pytest.mark.parametrize(("mine", "theirs", "common"), [(0, 0, 0), (0, 40, 0), (40, 0, 0), (3, 5, 0), (30, 60, 300)])
def test_afterwards_both_sides_hold_the_union(mine, theirs, common, chunk):
    shared = records(common, seed=3)
    opening, leading = pair(records(mine, seed=1) + shared, records(theirs, seed=2) + shared)
    exchange(opening, leading, chunk=chunk)
    assert len(opening.records) == mine + theirs + common
    assert opening.records == leading.records
    assert isinstance(leading.outcome, SyncFinished)
    assert (leading.outcome.sent, leading.outcome.received) == (theirs, mine)
    assert (opening.outcome.sent, opening.outcome.received) == (mine, theirs)
    assert opening.session.over
    assert leading.session.over


@given(st.integers(0, 80), st.integers(0, 80), st.integers(0, 200), st.integers(1, 5_000), st.integers(0, 2**32))
@settings(max_examples=30, deadline=None)
def test_any_sets_over_any_stream(mine, theirs, common, chunk, seed):
    shared = records(common, seed=seed)
    opening, leading = pair(records(mine, seed=seed + 1) + shared, records(theirs, seed=seed + 2) + shared, number=seed)
    exchange(opening, leading, chunk=chunk)
    assert opening.records == leading.records
    assert len(opening.records) == mine + theirs + common


def test_equal_sides_need_a_hello_each_and_one_round_trip():
    shared = records(5_000)
    log = []
    opening, leading = pair(shared, shared)
    exchange(opening, leading, log=log)
    assert leading.outcome == SyncFinished(sent=0, received=0, requests=1)
    assert len(log) == 4  # hello; hello and request; reply; done
    assert sum(map(len, log)) < 120


def test_many_large_records_go_in_batches():
    big = records(100, seed=1, size=16_000)
    opening, leading = pair(big[:50], big[50:] + records(1_000, seed=2))
    log = []
    exchange(opening, leading, log=log)
    assert opening.records == leading.records
    assert len(opening.records) == 1_100


def test_the_later_horizon_of_both_counts():
    old, new = records(5, seed=1, time_ms=1_000), records(5, seed=2, time_ms=9_000)
    opening = Side(old + new, Opener, nonce=b"a" * 16)
    leading = Side([], Leader, nonce=b"b" * 16, since_ms=5_000)
    exchange(opening, leading)
    assert leading.records == {hashlib.sha256(raw).digest(): (raw, signature) for raw, signature in new}
    assert opening.session.peer.since_ms == 5_000
    assert leading.session.peer.count == 10


def test_a_record_that_went_meanwhile_is_left_out():
    opening, leading = pair(records(10), [])
    gone = next(iter(opening.records))
    del opening.records[gone]
    exchange(opening, leading)
    assert isinstance(leading.outcome, SyncFinished)
    assert len(leading.records) == 9


def test_all_that_was_offered_may_be_gone():
    opening, leading = pair(records(10), [])
    opening.records.clear()
    exchange(opening, leading)
    assert leading.outcome == SyncFinished(sent=0, received=0, requests=1)


def test_another_network_learns_nothing():
    stranger = Side(records(3), Opener, nonce=b"a" * 16, network=Network(name="other"))
    leading = Side(records(3), Leader, nonce=b"b" * 16)
    log = []
    exchange(stranger, leading, log=log)
    assert leading.outcome == Violation("The peer is in another network.")
    assert len(log) == 1


def test_the_opener_refuses_another_network_too():
    opening = Opener(NETWORK, KeyIndex(), b"a" * 16)
    stranger = Side([], Leader, nonce=b"b" * 16, network=Network(name="other"))
    (hello,) = Opener(Network(name="other"), KeyIndex(), b"c" * 16).start()
    (answer, *_) = stranger.session.receive(hello.data)
    assert list(opening.receive(answer.data)) == [Violation("The peer is in another network.")]


def test_a_session_with_oneself_ends():
    (hello,) = Opener(NETWORK, KeyIndex(), b"a" * 16).start()
    (outcome,) = Leader(NETWORK, KeyIndex(), b"a" * 16).receive(hello.data)
    assert isinstance(outcome, Violation)


def greeted(mine=()):
    """An opener and a leader after their hellos, and what the leader sent after its hello."""
    opening, leading = pair(mine, records(40, seed=9))
    hello = opening.perform(opening.session.start())
    answer = leading.perform(leading.session.receive(hello))
    size = 1 + answer[0]
    assert opening.perform(opening.session.receive(answer[:size])) == b""
    return opening, leading, answer[size:]


def bomb():
    return b"\0" + zlib.compress(bytes(50_000_000), 9)


BREACHES = {
    "unknown type": b"\x02\x09x",
    "empty frame": b"\0",
    "endless frame": b"\xff\xff\xff\x7f",
    "integer not shortest": b"\x81\0",
    "second hello": frame(Type.HELLO, b"\x01" + b"n" * 32 + b"\0\0"),
    "bomb": frame(Type.RECORDS, bomb()),
    "empty batch": frame(Type.RECORDS, b"\0" + zlib.compress(b"")),
    "not zlib": frame(Type.RECORDS, b"\0abc"),
    "cut zlib": frame(Type.RECORDS, b"\0" + zlib.compress(b"\x01x" + bytes(64))[:-1]),
    "after zlib": frame(Type.RECORDS, b"\0" + zlib.compress(b"\x01x" + bytes(64)) + b"!"),
    "record without end": frame(Type.RECORDS, b"\0" + zlib.compress(b"\x05x")),
    "record too large": frame(Type.RECORDS, b"\0" + zlib.compress(b"\x81\x80\x01" + bytes(16_385 + 64))),
    "empty record": frame(Type.RECORDS, b"\0" + zlib.compress(bytes(65))),
    "flag of a batch": frame(Type.RECORDS, b"\2" + zlib.compress(b"\x01x" + bytes(64))),
    "no flag": frame(Type.RECORDS),
    "last, not asked": frame(Type.RECORDS, b"\1" + zlib.compress(b"\x01x" + bytes(64))),
    "want not offered": frame(Type.WANT, b"?" * 8),
    "empty want": frame(Type.WANT),
    "cut want": frame(Type.WANT, b"?" * 9),
    "want twice the same": frame(Type.WANT, b"?" * 16),
    "empty request": frame(Type.RECONCILE),
    "done with more": frame(Type.DONE, b"x"),
}


@pytest.mark.parametrize("data", BREACHES.values(), ids=BREACHES)
def test_a_breach_ends_the_session_of_the_opener(data):
    opening, _, _ = greeted(records(40))
    effects = list(opening.session.receive(data))
    assert [type(effect) for effect in effects] == [Violation]
    assert opening.session.over
    assert list(opening.session.receive(frame(Type.DONE))) == []


@pytest.mark.parametrize("data", BREACHES.values(), ids=BREACHES)
def test_a_breach_ends_the_session_of_the_leader(data):
    _, leading, _ = greeted()
    effects = list(leading.session.receive(data))
    assert [type(effect) for effect in effects] == [Violation]
    assert leading.session.over


@pytest.mark.parametrize("first", [b"", b"\x01", frame(Type.DONE), frame(Type.HELLO, b"\x02" + b"n" * 34)])
def test_the_first_word_is_a_hello_of_this_version(first):
    for role in (Opener, Leader):
        effects = list(role(NETWORK, KeyIndex(), b"a" * 16).receive(first))
        assert [type(effect) for effect in effects] == ([] if len(first) < 2 else [Violation])


def wanting():
    """A leader that waits for the records it wants, and those records."""
    theirs = records(40, seed=1)
    opening, leading = pair(theirs, [])
    data = opening.perform(opening.session.start())
    data = leading.perform(leading.session.receive(data))
    want = leading.perform(leading.session.receive(opening.perform(opening.session.receive(data))))
    assert want[2] == Type.WANT
    return leading, theirs


def test_only_what_was_wanted_is_taken():
    leading, theirs = wanting()
    (payload,) = encode_batches([*theirs[:3], *records(1, seed=2)], last=False)
    assert [type(effect) for effect in leading.session.receive(frame(Type.RECORDS, payload))] == [Violation]


def test_nothing_is_taken_twice():
    leading, theirs = wanting()
    (payload,) = encode_batches(theirs[:3], last=False)
    assert [type(effect) for effect in leading.session.receive(frame(Type.RECORDS, payload))] == [Store]
    assert [type(effect) for effect in leading.session.receive(frame(Type.RECORDS, payload))] == [Violation]


def test_no_reply_instead_of_the_records():
    leading, _ = wanting()
    assert [type(effect) for effect in leading.session.receive(frame(Type.RECONCILE, b"\0"))] == [Violation]


def test_one_offer_can_be_wanted_once():
    opening, _, request = greeted(records(20))
    (reply,) = opening.session.receive(request)
    shorts = [reply.data[-8 * (count + 1) : -8 * count or None] for count in reversed(range(20))]
    want = frame(Type.WANT, b"".join(shorts))
    (fetch,) = opening.session.receive(want)
    assert isinstance(fetch, Fetch)
    assert len(fetch.ids) == 20
    sent = opening.session.supply(list(opening.records.values()))
    assert [type(effect) for effect in sent] == [Send]
    assert [type(effect) for effect in opening.session.receive(want)] == [Violation]


def test_nobody_speaks_while_records_are_fetched():
    opening, _, request = greeted(records(20))
    (reply,) = opening.session.receive(request)
    effects = list(opening.session.receive(frame(Type.WANT, reply.data[-8:]) + request))
    assert [type(effect) for effect in effects] == [Fetch, Violation]


def test_batches_are_unpacked_one_at_a_time():
    """A thousand small frames that would fill a quarter of a gigabyte."""
    opening, _, _ = greeted()
    (payload,) = encode_batches([(bytes(16_000), bytes(64))] * 16, last=False)
    data = frame(Type.RECORDS, payload) * 1_000
    assert len(data) < 2_000_000
    effects = opening.session.receive(data)
    assert [type(next(effects)) for _ in range(3)] == [Store] * 3
    assert opening.session._received == 48


def test_records_are_supplied_when_asked_for_alone():
    with pytest.raises(ValueError, match="asked"):
        Leader(NETWORK, KeyIndex(), b"a" * 16).supply([])


def test_batches_keep_their_limit():
    made = records(200, size=16_000)
    batches = encode_batches(made, last=True)
    sizes = [len(zlib.decompress(batch[1:])) for batch in batches]
    assert max(sizes) <= BATCH_BYTES
    assert [batch[0] for batch in batches] == [0] * (len(batches) - 1) + [1]
    assert encode_batches([], last=False) == []


def weak_short_id(record_id, salt):
    """One byte in place of eight: collisions everywhere, others under another salt."""
    return hashlib.blake2b(record_id, key=salt, digest_size=1).digest() + bytes(7)


def test_colliding_short_ids_cost_sessions_but_no_record(monkeypatch):
    for module in ("session", "reconciliation"):
        monkeypatch.setattr(f"autoresearch.log.sync.{module}.short_id", weak_short_id)
    mine, theirs = {}, {}
    shared = records(400, seed=1)
    opening, leading = pair(records(60, seed=2) + shared, records(60, seed=3) + shared)
    mine, theirs = opening.records, leading.records
    union = mine.keys() | theirs.keys()
    for number in range(1, 12):
        opening, leading = pair(mine.values(), theirs.values(), number=number)
        exchange(opening, leading)
        assert opening.outcome is not None or leading.outcome is not None
        mine, theirs = opening.records, leading.records
        assert mine.keys() | theirs.keys() == union
        if mine == theirs:
            break
    assert mine.keys() == theirs.keys() == union
    assert number > 1
