"""One exchange with one peer over any stream: after it both sides hold the union. Bytes in, effects out. Pure.

The side that opened the stream says hello; the other answers with its own hello and its first request, and leads from
there. The sides take turns, so neither ever waits for the other to read. A turn of the leader is any number of
``records`` (what the follower lacks), then one of ``reconcile`` (a request), ``want`` or ``done``. The follower answers
``reconcile`` with one ``reconcile`` and ``want`` with ``records`` up to one that is marked as the last.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence

from autoresearch.records import Network
from autoresearch.sync.effects import Effect, Fetch, Finished, Send, Store
from autoresearch.sync.frames import (
    Batch,
    FrameReader,
    Hello,
    Pair,
    Type,
    decode_batch,
    decode_hello,
    encode_batches,
    encode_hello,
    frame,
)
from autoresearch.sync.index import TIME_BYTES, KeyIndex
from autoresearch.sync.salt import NONCE_BYTES
from autoresearch.sync.wire import MalformedError, Violation

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
        self._hello = Hello(network.id, nonce, since_ms, len(index))
        self._frames = FrameReader()
        self._fetching = False
        self._sent = self._received = self._requests = 0
        self.peer: Hello | None = None
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

    def supply(self, records: Sequence[Pair]) -> list[Effect]:
        """What follows when the records of a Fetch were read. Raises ValueError when none was asked for."""
        if not self._fetching:
            raise ValueError("no records were asked for")
        self._fetching = False
        self._sent += len(records)
        return self._noted(self._supplied(records))

    def _noted(self, effects: list[Effect]) -> list[Effect]:
        self.over = self.over or (bool(effects) and isinstance(effects[-1], Finished | Violation))
        return effects

    def _frame(self, kind: Type, payload: bytes) -> list[Effect]:
        if self._fetching:
            return [Violation("The peer spoke out of turn.")]
        if self.peer is None:
            return self._greet(decode_hello(payload)) if kind is Type.HELLO else [Violation("The peer said no hello.")]
        if kind is Type.RECORDS:
            batch = decode_batch(payload, self._network.record_bytes)
            self._received += len(batch.records)
            return self._batch(batch)
        return self._turn(kind, payload)

    def _greet(self, hello: Hello) -> list[Effect]:
        if hello.network != self._network.id:
            return [Violation("The peer is in another network.")]
        if hello.nonce == self._hello.nonce:
            return [Violation("The peer gave this side's own nonce back.")]
        self.peer = hello
        return self._greeted(hello)

    def _lower(self, hello: Hello) -> bytes:
        """The bound where both sides' windows begin."""
        return max(hello.since_ms, self._hello.since_ms).to_bytes(TIME_BYTES, "big").rstrip(b"\0")

    def _say_hello(self) -> Send:
        return Send(frame(Type.HELLO, encode_hello(self._hello)))

    def _fetch(self, ids: Sequence[bytes]) -> list[Effect]:
        self._fetching = True
        return [Fetch(tuple(ids))]

    def _finished(self) -> Finished:
        return Finished(self._sent, self._received, self._requests)

    @abstractmethod
    def _greeted(self, hello: Hello) -> list[Effect]: ...

    @abstractmethod
    def _turn(self, kind: Type, payload: bytes) -> list[Effect]: ...

    @abstractmethod
    def _batch(self, batch: Batch) -> list[Effect]: ...

    @abstractmethod
    def _supplied(self, records: Sequence[Pair]) -> list[Effect]: ...


def sent(records: Sequence[Pair], *, last: bool) -> list[Effect]:
    """Frames with the records."""
    return [Send(frame(Type.RECORDS, payload)) for payload in encode_batches(records, last=last)]


def stored(batch: Batch) -> list[Effect]:
    """What to do with the records of a batch, if it has any."""
    return [Store(batch.records)] if batch.records else []
