"""Driving both sides by hand: sets of keys through Initiator and Responder, records through two sessions."""

import hashlib
import random

from autoresearch.log.sync.index import LOWEST, KeyIndex, Violation, session_salt, short_id
from autoresearch.log.sync.messages import REPLY_BYTES, REQUEST_BYTES
from autoresearch.log.sync.reconciliation import Initiator, Responder
from autoresearch.log.sync.session import Fetch, Leader, Opener, Send, Store, SyncFinished
from autoresearch.record.record import Network

NETWORK = Network(name="test")
SALT = session_salt(b"o" * 16, b"l" * 16)


def random_keys(count, *, seed=1, spread_ms=1_000_000):
    chance = random.Random(seed)
    return {(chance.randrange(spread_ms), chance.randbytes(32)) for _ in range(count)}


def reconciled(mine, theirs, *, salt=SALT, lower=LOWEST, transcript=None):
    """What the initiator learns: its ids that the other lacks, the short ids that it lacks, and the round trips."""
    asks, answers = Initiator(KeyIndex(sorted(mine)), salt, lower), Responder(KeyIndex(sorted(theirs)), salt, lower)
    have, need, round_trips = set(), set(), 0
    while (request := asks.request()) is not None:
        reply = answers.answer(request)
        assert not isinstance(reply, Violation), reply
        assert len(request) <= REQUEST_BYTES
        assert len(reply) <= REPLY_BYTES
        difference = asks.receive(reply)
        assert not isinstance(difference, Violation), difference
        have.update(difference.have())
        need |= difference.need
        assert len(answers.resolve(sorted(difference.need))) >= len(difference.need)
        round_trips += 1
        if transcript is not None:
            transcript += [request, reply]
    return have, need, round_trips


def truth(mine, theirs, *, salt=SALT):
    ids, others = {record_id for _, record_id in mine}, {record_id for _, record_id in theirs}
    return ids - others, {short_id(record_id, salt) for record_id in others - ids}


def made_record(chance, *, size=40, time_ms=None):
    """Bytes that stand for a record: they begin with the time. A signature goes with them."""
    time_ms = chance.randrange(1_000_000) if time_ms is None else time_ms
    return time_ms.to_bytes(8, "big") + chance.randbytes(size), chance.randbytes(64)


class Side:
    """One peer: its records, its session, and what the driver of a session does."""

    def __init__(self, records, role, *, nonce, network=NETWORK, since_ms=0):
        self.records = {}
        self.index = KeyIndex()
        self.outcome = None
        self.store(records)
        self.session = role(network, self.index, nonce, since_ms=since_ms)

    def store(self, records):
        for raw, signature in records:
            record_id = hashlib.sha256(raw).digest()
            self.records[record_id] = (raw, signature)
            self.index.add(int.from_bytes(raw[:8], "big"), record_id)

    def perform(self, effects):
        """Carry the effects out; returns the bytes for the other side."""
        out, waiting = bytearray(), [iter(effects)]
        while waiting:
            match next(waiting[-1], None):
                case None:
                    waiting.pop()
                case _ if self.outcome:
                    raise AssertionError("something followed the end")
                case Send(data):
                    out += data
                case Store(records):
                    self.store(records)
                case Fetch(ids):
                    assert 1 <= len(ids) <= 256
                    results = [self.records[record_id] for record_id in ids if record_id in self.records]
                    waiting.append(iter(self.session.supply(results)))
                case SyncFinished() | Violation() as outcome:
                    assert self.outcome is None
                    self.outcome = outcome
        return bytes(out)


def exchange(opening, leading, *, chunk=None, log=None, alter=lambda data: data):
    """Run both sides until neither has anything to say. ``chunk``: how the stream is cut."""
    going, coming = opening, leading
    data = going.perform(going.session.start())
    while data:
        data = alter(data)
        if log is not None:
            log.append(data)
        size = chunk or len(data) or 1
        answer = b""
        for at in range(0, len(data), size):
            answer += coming.perform(coming.session.receive(data[at : at + size]))
        data = answer
        going, coming = coming, going


def pair(mine, theirs, *, number=0, **options):
    nonces = hashlib.sha256(number.to_bytes(8, "big")).digest()
    return Side(mine, Opener, nonce=nonces[:16], **options), Side(theirs, Leader, nonce=nonces[16:], **options)
