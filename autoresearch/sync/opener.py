"""The side of an exchange that opened the stream: it says hello first, then answers. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from autoresearch.records import Network
from autoresearch.sync.effects import Effect, Send
from autoresearch.sync.frames import Batch, Hello, Pair, Type, decode_want, frame
from autoresearch.sync.index import KeyIndex
from autoresearch.sync.responder import Responder
from autoresearch.sync.salt import session_salt
from autoresearch.sync.session import FETCH_IDS, Session, sent, stored
from autoresearch.sync.wire import Violation


class Opener(Session):
    """The session of the side that opened the stream."""

    def __init__(self, network: Network, index: KeyIndex, nonce: bytes, *, since_ms: int = 0) -> None:
        super().__init__(network, index, nonce, since_ms=since_ms)
        self._responder: Responder | None = None
        self._wanted: list[bytes] = []

    def start(self) -> list[Effect]:
        """Hello."""
        return [self._say_hello()]

    def _greeted(self, hello: Hello) -> list[Effect]:
        salt = session_salt(self._hello.nonce, hello.nonce)
        self._responder = Responder(self._index, salt, self._lower(hello))
        return []

    def _turn(self, kind: Type, payload: bytes) -> list[Effect]:
        assert self._responder is not None
        if kind is Type.RECONCILE:
            self._requests += 1
            reply = self._responder.answer(payload)
            return [reply] if isinstance(reply, Violation) else [Send(frame(Type.RECONCILE, reply))]
        if kind is Type.WANT:
            found = self._responder.resolve(decode_want(payload))
            if isinstance(found, Violation):
                return [found]
            self._wanted = found
            return self._more()
        if kind is Type.DONE and not payload:
            return [self._finished()]
        return [Violation("The peer said what is not its to say.")]

    def _batch(self, batch: Batch) -> list[Effect]:
        return [Violation("The peer answered what was not asked.")] if batch.last else stored(batch)

    def _supplied(self, records: Sequence[Pair]) -> list[Effect]:
        effects = sent(records, last=not self._wanted)
        return effects + (self._more() if self._wanted else [])

    def _more(self) -> list[Effect]:
        page, self._wanted = self._wanted[:FETCH_IDS], self._wanted[FETCH_IDS:]
        return self._fetch(page)
