"""One exchange with one peer over any stream: after it both sides hold the union. Bytes in, effects out. Pure.

The side that opened the stream says hello; the other answers with its own hello and its first request, and leads from
there, so that a caller gets no more bytes out of a stranger than it puts in. The sides take turns, so neither ever
waits for the other to read. A turn of the leader is any number of ``records`` (what the follower lacks), then one of
``reconcile`` (a request), ``want`` or ``done``. The follower answers ``reconcile`` with one ``reconcile`` and ``want``
with ``records`` up to one that is marked as the last.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from hashlib import sha256
from itertools import islice

from autoresearch.log.sync import messages
from autoresearch.log.sync.index import (
    NONCE_BYTES,
    TIME_BYTES,
    KeyIndex,
    MalformedError,
    Violation,
    session_salt,
    short_id,
)
from autoresearch.log.sync.reconciliation import Initiator, ReplyDifference, Responder
from autoresearch.record.record import Network


@dataclass(frozen=True, slots=True)
class Send:
    """Write these bytes to the stream, and wait until it takes more, before the next effect."""

    data: bytes


@dataclass(frozen=True, slots=True)
class Fetch:
    """Read the records with these ids, at most 256, and give those that are there to ``Session.supply``."""

    ids: tuple[bytes, ...]


@dataclass(frozen=True, slots=True)
class Store:
    """Admit these records of the peer, keep what is admitted, and add their keys to the index, now or by the end."""

    records: tuple[messages.Pair, ...]


@dataclass(frozen=True, slots=True)
class SyncFinished:
    """All is exchanged. How many records went each way, and how many requests it took."""

    sent: int
    received: int
    requests: int


Effect = Send | Fetch | Store | SyncFinished | Violation
"""A Violation, too, is the last effect of a session: close the stream."""


FETCH_IDS = 256


class Session(ABC):
    """What both sides have in common; use :class:`Opener` where a stream was opened, :class:`Leader` where it arrived.

    ``nonce``: 16 fresh random bytes. ``since_ms``: records before it take no part; the later of both sides' counts.
    ``index`` may grow during the session. Give what the stream brings to :meth:`receive` and carry out the effects in
    order. After Finished or Violation nothing follows.
    """

    def __init__(self, network: Network, index: KeyIndex, nonce: bytes, *, since_ms: int = 0) -> None:
        if len(nonce) != NONCE_BYTES:
            raise ValueError(f"a nonce has {NONCE_BYTES} bytes")
        self._network = network
        self._index = index
        self._hello = messages.Hello(network.id, nonce, since_ms, len(index))
        self._frames = messages.FrameReader()
        self._fetching = False
        self._sent = self._received = self._requests = 0
        self.peer: messages.Hello | None = None
        self.over = False

    def start(self) -> list[Effect]:
        """The first effects, before anything was received."""
        return []

    def receive(self, chunk: bytes) -> Iterator[Effect]:
        """What follows from bytes of the stream, cut anywhere. Raises nothing, whatever they are.

        Carry out each effect before asking for the next: batches are unpacked one at a time, so that many small frames
        that unpack to large ones don't fill the memory.
        """
        if self.over:
            return
        self._frames.feed(chunk)
        try:
            while not self.over and (arrived := self._frames.next()):
                yield from self._noted(self._frame(*arrived))
        except MalformedError as error:
            yield from self._noted([Violation(f"The peer sent what is no message: {error}.")])

    def supply(self, records: Sequence[messages.Pair]) -> list[Effect]:
        """What follows when the records of a Fetch were read. Raises ValueError when none was asked for."""
        if not self._fetching:
            raise ValueError("no records were asked for")
        self._fetching = False
        self._sent += len(records)
        return self._noted(self._supplied(records))

    def _noted(self, effects: list[Effect]) -> list[Effect]:
        self.over = self.over or (bool(effects) and isinstance(effects[-1], SyncFinished | Violation))
        return effects

    def _frame(self, kind: messages.Type, payload: bytes) -> list[Effect]:
        if self._fetching:
            return [Violation("The peer spoke out of turn.")]
        if self.peer is None:
            return (
                self._greet(messages.decode_hello(payload))
                if kind is messages.Type.HELLO
                else [Violation("The peer said no hello.")]
            )
        if kind is messages.Type.RECORDS:
            batch = messages.decode_batch(payload, self._network.record_bytes)
            self._received += len(batch.records)
            return self._batch(batch)
        return self._turn(kind, payload)

    def _greet(self, hello: messages.Hello) -> list[Effect]:
        if hello.network != self._network.id:
            return [Violation("The peer is in another network.")]
        if hello.nonce == self._hello.nonce:
            return [Violation("The peer gave this side's own nonce back.")]
        self.peer = hello
        return self._greeted(hello)

    def _lower(self, hello: messages.Hello) -> bytes:
        """The bound where both sides' windows begin."""
        return max(hello.since_ms, self._hello.since_ms).to_bytes(TIME_BYTES, "big").rstrip(b"\0")

    def _say_hello(self) -> Send:
        return Send(messages.frame(messages.Type.HELLO, messages.encode_hello(self._hello)))

    def _fetch(self, ids: Sequence[bytes]) -> list[Effect]:
        self._fetching = True
        return [Fetch(tuple(ids))]

    def _finished(self) -> SyncFinished:
        return SyncFinished(self._sent, self._received, self._requests)

    @abstractmethod
    def _greeted(self, hello: messages.Hello) -> list[Effect]: ...

    @abstractmethod
    def _turn(self, kind: messages.Type, payload: bytes) -> list[Effect]: ...

    @abstractmethod
    def _batch(self, batch: messages.Batch) -> list[Effect]: ...

    @abstractmethod
    def _supplied(self, records: Sequence[messages.Pair]) -> list[Effect]: ...


def sent(records: Sequence[messages.Pair], *, last: bool) -> list[Effect]:
    """Frames with the records."""
    return [
        Send(messages.frame(messages.Type.RECORDS, payload)) for payload in messages.encode_batches(records, last=last)
    ]


def stored(batch: messages.Batch) -> list[Effect]:
    """What to do with the records of a batch, if it has any."""
    return [Store(batch.records)] if batch.records else []


# More than any honest difference takes; what is left then is for the next session.
MAX_REQUESTS = 4_096


class Leader(Session):
    """The session of the side where the stream arrived. ``unwanted``: ids that it does not ask for."""

    def __init__(
        self,
        network: Network,
        index: KeyIndex,
        nonce: bytes,
        *,
        since_ms: int = 0,
        unwanted: Collection[bytes] = (),
    ) -> None:
        super().__init__(network, index, nonce, since_ms=since_ms)
        self._unwanted = unwanted
        self._refused: set[bytes] = set()
        self._salt = b""
        self._initiator: Initiator | None = None
        self._difference: ReplyDifference | None = None
        self._have: Iterator[bytes] = iter(())
        self._wants = False
        self._awaited: set[bytes] = set()

    def _greeted(self, hello: messages.Hello) -> list[Effect]:
        self._salt = session_salt(hello.nonce, self._hello.nonce)
        self._refused = {short_id(record_id, self._salt) for record_id in self._unwanted}
        self._initiator = Initiator(self._index, self._salt, self._lower(hello))
        return [self._say_hello(), *self._ask()]

    def _turn(self, kind: messages.Type, payload: bytes) -> list[Effect]:
        if kind is not messages.Type.RECONCILE or self._wants or self._initiator is None:
            return [Violation("The peer said what is not its to say.")]
        reply = self._initiator.receive(payload)
        if isinstance(reply, Violation):
            return [reply]
        self._difference, self._have = reply, reply.have()
        return self._push()

    def _batch(self, batch: messages.Batch) -> list[Effect]:
        shorts = {short_id(sha256(raw).digest(), self._salt) for raw, _ in batch.records}
        if not self._wants or not shorts <= self._awaited:
            return [Violation("The peer sent records that were not asked for.")]
        self._awaited -= shorts
        return stored(batch) + (self._ask() if batch.last else [])

    def _supplied(self, records: Sequence[messages.Pair]) -> list[Effect]:
        return sent(records, last=False) + self._push()

    def _push(self) -> list[Effect]:
        """Send what the peer lacks; when that is done, want what is lacking here; when that is nothing, ask on."""
        if page := list(islice(self._have, FETCH_IDS)):
            return self._fetch(page)
        assert self._difference is not None
        self._awaited = self._difference.need - self._refused
        self._difference = None
        if self._awaited:
            self._wants = True
            return [Send(messages.frame(messages.Type.WANT, b"".join(sorted(self._awaited))))]
        return self._ask()

    def _ask(self) -> list[Effect]:
        assert self._initiator is not None
        self._wants = False
        request = self._initiator.request()
        if request is None or self._requests == MAX_REQUESTS:
            return [Send(messages.frame(messages.Type.DONE)), self._finished()]
        self._requests += 1
        return [Send(messages.frame(messages.Type.RECONCILE, request))]


class Opener(Session):
    """The session of the side that opened the stream."""

    def __init__(self, network: Network, index: KeyIndex, nonce: bytes, *, since_ms: int = 0) -> None:
        super().__init__(network, index, nonce, since_ms=since_ms)
        self._responder: Responder | None = None
        self._wanted: list[bytes] = []

    def start(self) -> list[Effect]:
        """Hello."""
        return [self._say_hello()]

    def _greeted(self, hello: messages.Hello) -> list[Effect]:
        salt = session_salt(self._hello.nonce, hello.nonce)
        self._responder = Responder(self._index, salt, self._lower(hello))
        return []

    def _turn(self, kind: messages.Type, payload: bytes) -> list[Effect]:
        assert self._responder is not None
        if kind is messages.Type.RECONCILE:
            self._requests += 1
            reply = self._responder.answer(payload)
            return [reply] if isinstance(reply, Violation) else [Send(messages.frame(messages.Type.RECONCILE, reply))]
        if kind is messages.Type.WANT:
            ids = self._responder.resolve(messages.decode_want(payload))
            if isinstance(ids, Violation):
                return [ids]
            self._wanted = ids
            return self._more()
        if kind is messages.Type.DONE and not payload:
            return [self._finished()]
        return [Violation("The peer said what is not its to say.")]

    def _batch(self, batch: messages.Batch) -> list[Effect]:
        return [Violation("The peer answered what was not asked.")] if batch.last else stored(batch)

    def _supplied(self, records: Sequence[messages.Pair]) -> list[Effect]:
        effects = sent(records, last=not self._wanted)
        return effects + (self._more() if self._wanted else [])

    def _more(self) -> list[Effect]:
        page, self._wanted = self._wanted[:FETCH_IDS], self._wanted[FETCH_IDS:]
        return self._fetch(page)
