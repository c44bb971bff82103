"""The side of an exchange where the stream arrived: it asks, sends what the other lacks, fetches what it lacks. Pure.

The side that was called leads, so that a caller gets no more bytes out of a stranger than it puts in.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from hashlib import sha256
from itertools import islice

from autoresearch.records import Network
from autoresearch.sync import salt as salting
from autoresearch.sync.effects import Effect, Send
from autoresearch.sync.frames import Batch, Hello, Pair, Type, frame
from autoresearch.sync.index import KeyIndex
from autoresearch.sync.initiator import Difference, Initiator
from autoresearch.sync.session import FETCH_IDS, Session, sent, stored
from autoresearch.sync.wire import Violation

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
        self._difference: Difference | None = None
        self._have: Iterator[bytes] = iter(())
        self._wants = False
        self._awaited: set[bytes] = set()

    def _greeted(self, hello: Hello) -> list[Effect]:
        self._salt = salting.session_salt(hello.nonce, self._hello.nonce)
        self._refused = {salting.short_id(record_id, self._salt) for record_id in self._unwanted}
        self._initiator = Initiator(self._index, self._salt, self._lower(hello))
        return [self._say_hello(), *self._ask()]

    def _turn(self, kind: Type, payload: bytes) -> list[Effect]:
        if kind is not Type.RECONCILE or self._wants or self._initiator is None:
            return [Violation("The peer said what is not its to say.")]
        told = self._initiator.receive(payload)
        if isinstance(told, Violation):
            return [told]
        self._difference, self._have = told, told.have()
        return self._push()

    def _batch(self, batch: Batch) -> list[Effect]:
        shorts = {salting.short_id(sha256(raw).digest(), self._salt) for raw, _ in batch.records}
        if not self._wants or not shorts <= self._awaited:
            return [Violation("The peer sent records that were not asked for.")]
        self._awaited -= shorts
        return stored(batch) + (self._ask() if batch.last else [])

    def _supplied(self, records: Sequence[Pair]) -> list[Effect]:
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
            return [Send(frame(Type.WANT, b"".join(sorted(self._awaited))))]
        return self._ask()

    def _ask(self) -> list[Effect]:
        assert self._initiator is not None
        self._wants = False
        request = self._initiator.request()
        if request is None or self._requests == MAX_REQUESTS:
            return [Send(frame(Type.DONE)), self._finished()]
        self._requests += 1
        return [Send(frame(Type.RECONCILE, request))]
