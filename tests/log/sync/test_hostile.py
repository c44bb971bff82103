"""Whatever bytes arrive: a clean refusal or a bounded answer, never an exception."""

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from autoresearch.log.sync.index import LOWEST, KeyIndex, Violation
from autoresearch.log.sync.messages import REPLY_BYTES, REQUEST_BYTES, Type, frame
from autoresearch.log.sync.reconciliation import Initiator, Responder
from autoresearch.log.sync.session import Leader, Opener, Send, SyncFinished
from tests.log.sync.driving import NETWORK, SALT, exchange, made_record, pair, random_keys
from tests.log.sync.test_session import greeted

INDEX = KeyIndex(random_keys(3_000))
OTHER = KeyIndex(random_keys(3_000, seed=2))


def mutated(data, chance):
    """The bytes with a few changes: flipped, cut, repeated, inserted."""
    data = bytearray(data)
    for _ in range(chance.randrange(1, 5)):
        at = chance.randrange(len(data) + 1)
        match chance.randrange(5):
            case 0 if at < len(data):
                data[at] ^= 1 << chance.randrange(8)
            case 1:
                del data[at : at + chance.randrange(40)]
            case 2:
                data[at:at] = chance.randbytes(chance.randrange(1, 20))
            case 3:
                data[at:at] = data[at : at + 200]
            case _:
                data = data[:at]
    return bytes(data)


def honest_messages():
    """The requests and replies of an honest session."""
    asks, answers, messages = Initiator(INDEX, SALT, LOWEST), Responder(OTHER, SALT, LOWEST), []
    while (request := asks.request()) is not None:
        reply = answers.answer(request)
        asks.receive(reply)
        messages.append((request, reply))
    return messages


MESSAGES = honest_messages()


@given(st.binary(max_size=400))
@settings(max_examples=100, deadline=None)
def test_garbage(data):
    answer = Responder(INDEX, SALT, LOWEST).answer(data)
    assert isinstance(answer, Violation) or len(answer) <= REPLY_BYTES
    asks = Initiator(INDEX, SALT, LOWEST)
    asks.request()
    asks.receive(data)


@pytest.mark.parametrize("seed", range(20))
def test_mutated_messages(seed):
    chance = random.Random(seed)
    for _ in range(40):
        turn = chance.randrange(len(MESSAGES))
        answers, asks = Responder(INDEX, SALT, LOWEST), Initiator(INDEX, SALT, LOWEST)
        answer = answers.answer(mutated(MESSAGES[turn][0], chance))
        assert isinstance(answer, Violation) or len(answer) <= REPLY_BYTES
        asks.request()
        for _, reply in MESSAGES[:turn]:
            asks.receive(reply)
            asks.request()
        difference = asks.receive(mutated(MESSAGES[turn][1], chance))
        if not isinstance(difference, Violation):
            assert sum(1 for _ in difference.have()) <= len(INDEX)
            assert len(difference.need) <= REPLY_BYTES // 8
            request = asks.request()
            assert request is None or len(request) <= REQUEST_BYTES


def fingerprints(count):
    """A request of many tiny ranges with wrong fingerprints."""
    bounds = sorted({(at * 250).to_bytes(8, "big").rstrip(b"\0") for at in range(1, count + 1)})
    return b"".join(bytes([1 << 6 | len(bound)]) + bound + b"?" * 16 for bound in bounds)


def test_many_bogus_ranges_draw_a_bounded_answer():
    answers = Responder(INDEX, SALT, LOWEST)
    answer = answers.answer(fingerprints(2_500))
    assert isinstance(answer, bytes)
    assert len(answer) <= REPLY_BYTES
    assert isinstance(Responder(INDEX, SALT, LOWEST).answer(fingerprints(10_000)), Violation)


@pytest.mark.parametrize("request_", [b"\x40" + b"?" * 16, b"\x80", fingerprints(2_500)])
def test_a_session_can_be_asked_for_so_much_work_and_no_more(request_):
    answers = Responder(INDEX, SALT, LOWEST)
    for _ in range(2_000):
        if isinstance(answers.answer(request_), Violation):
            return
    pytest.fail("it answers for ever")


def test_a_fingerprint_that_differs_costs_twice_one_that_is_equal():
    """Both are computed from every record of the range; the one that differs is computed again for its parts."""
    equal = INDEX.fingerprint(0, len(INDEX), SALT)
    assert times(b"\x40" + b"?" * 16) == pytest.approx(times(b"\x40" + equal) / 2, abs=2)


def times(request):
    """How many times a session answers a request."""
    answers, count = Responder(INDEX, SALT, LOWEST), 0
    while not isinstance(answers.answer(request), Violation):
        count += 1
    return count


@pytest.mark.parametrize(
    "request_",
    [
        b"",
        b"\0",
        b"\x41\x01" + b"?" * 16 + b"\x00",
        b"\x01\x05\x01\x06\x80",
        b"\x81\x06\x81\x05",
        b"\x81\x05\x81\x05",
        b"\x80\x80",
        b"\x82\x05\x00",
        b"\xc0",
        b"\xa9" + b"x" * 41,
        b"\x40" + b"?" * 15,
        b"\x88\x00",
        b"".join(b"\x83\x01" + at.to_bytes(2, "big") for at in range(1, 65_536) if at & 255),
        b"\x80" + bytes(REQUEST_BYTES),
    ],
)
def test_requests_that_are_not_canonical_are_refused(request_):
    assert isinstance(Responder(INDEX, SALT, LOWEST).answer(request_), Violation)


def listing(*shorts, upper=b""):
    return bytes([2 << 6 | len(upper)]) + upper + bytes([len(shorts)]) + b"".join(shorts)


@pytest.mark.parametrize(
    "reply",
    [
        b"",
        listing(b"b" * 8, b"a" * 8),
        listing(b"a" * 8, b"a" * 8),
        listing(b"a" * 8, upper=b"\x01"),  # stops short
        b"\x01\x05",  # stops short
        listing(upper=b"\x01") + listing(),
        b"\x40" + b"?" * 16,
    ],
)
def test_replies_that_do_not_answer_the_question_are_refused(reply):
    asks = Initiator(KeyIndex(), SALT, LOWEST)
    asks.request()
    if reply == listing(upper=b"\x01") + listing():
        assert not isinstance(asks.receive(reply), Violation)  # one list in two parts is as good
    else:
        assert isinstance(asks.receive(reply), Violation)


def test_a_range_is_split_into_sixteen_at_most():
    asks = Initiator(INDEX, SALT, LOWEST)
    asks.request()
    seventeen = b"".join(bytes([0x41, at]) + b"?" * 16 for at in range(1, 17)) + b"\x40" + b"?" * 16
    assert isinstance(asks.receive(seventeen), Violation)


def test_an_answer_without_a_question_is_refused():
    assert isinstance(Initiator(INDEX, SALT, LOWEST).receive(b"\0"), Violation)


@pytest.mark.parametrize("seed", range(30))
def test_mutated_sessions_end_or_wait(seed):
    """A stream that is damaged on its way: each side refuses it, finishes, or waits for more."""
    chance = random.Random(seed)
    shared = [made_record(chance) for _ in range(200)]
    for number in range(6):
        mine, theirs = ([made_record(chance) for _ in range(30)] for _ in range(2))
        opening, leading = pair(shared + mine, shared + theirs, number=number)
        steps = iter(range(10_000))
        breaks = chance.randrange(6)
        exchange(
            opening,
            leading,
            alter=lambda data, steps=steps, breaks=breaks: mutated(data, chance) if next(steps) == breaks else data,
        )
        for side in (opening, leading):
            assert side.outcome is None or isinstance(side.outcome, Violation | SyncFinished)


@given(st.binary(max_size=300), st.booleans())
@settings(max_examples=100, deadline=None)
def test_garbage_on_a_stream(data, after_hello):
    opening, leading, _ = greeted()
    sides = (
        (opening.session, leading.session)
        if after_hello
        else (Opener(NETWORK, INDEX, b"a" * 16), Leader(NETWORK, INDEX, b"b" * 16))
    )
    for session in sides:
        effects = list(session.receive(data))
        assert all(len(effect.data) <= REPLY_BYTES + 8 for effect in effects if isinstance(effect, Send))


@pytest.mark.parametrize("kind", list(Type))
def test_garbage_in_every_frame(kind):
    chance = random.Random(kind)
    for _ in range(50):
        opening, leading, _ = greeted()
        for session in (opening.session, leading.session):
            list(session.receive(frame(kind, chance.randbytes(chance.randrange(200)))))


def test_what_is_listed_is_listed_about_twice_at_most():
    answers, listed = Responder(INDEX, SALT, LOWEST), 0
    while not isinstance(answer := answers.answer(b"\x80"), Violation):
        listed += (len(answer) - 3) // 8
    assert 2 * len(INDEX) <= listed <= 3 * len(INDEX) + 12_000
