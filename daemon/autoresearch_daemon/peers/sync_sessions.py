"""Which exchanges of records run with whom: one with a peer at a time, and one great catching up at a time.

Also which peer a person means. Two peers that send the same hundred thousand records side by side are twice the traffic
and none the faster.
"""

from __future__ import annotations

import asyncio
import re
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Iterable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Protocol

import structlog

from autoresearch.ask.node import PeerView
from autoresearch.errors import AmbiguousId, AutoresearchError, Refused, TimedOut, UsageError
from autoresearch.log.log import Log
from autoresearch.log.sync.index import NONCE_BYTES, KeyIndex, Violation
from autoresearch.log.sync.session import Effect, Fetch, Leader, Opener, Send, Session, Store, SyncFinished
from autoresearch.text import one_line
from autoresearch_daemon.net.network import SyncStream

# Base58 of an Ed25519 key as it is, or of the SHA-256 of another key.
BASE58 = "[1-9A-HJ-NP-Za-km-z]"
PEER_ID = re.compile(f"12D3KooW{BASE58}{{44}}|Qm{BASE58}{{44}}")
# A terminal shows the last twelve characters; fewer than these are typed by mistake.
TAIL_CHARACTERS_MIN = 4
CANDIDATES_MAX = 5
# So much of what was typed is said again.
TYPED_CHARACTERS = 80


def named_peer(text: str, peers: Sequence[PeerView], *, own: str) -> str:
    """The peer id that a person typed, or the one of a known peer that ends so.

    Raises:
        AmbiguousId: several known peers' ids end so.
        Refused: it names no peer, or this node.
    """
    ends_so = [peer.peer for peer in peers if len(text) >= TAIL_CHARACTERS_MIN and peer.peer.endswith(text)]
    if text == own or (not ends_so and len(text) >= TAIL_CHARACTERS_MIN and own.endswith(text)):
        raise Refused(f"{text} is this node", hint="autoresearch network peers shows the ids of the others")
    if len(ends_so) > 1:
        raise AmbiguousId(f"{text} is the end of several peer ids", ends_so[:CANDIDATES_MAX])
    if ends_so:
        return ends_so[0]
    if not PEER_ID.fullmatch(text):
        raise Refused(
            f"“{one_line(text, TYPED_CHARACTERS)}” is no peer id, and no known peer's id ends so",
            hint="autoresearch network peers shows them",
        )
    return text


def check_dialled(address: str, peers: Sequence[PeerView], *, own: str) -> None:
    """Refuse an address that will never be dialled; ``address`` has the form of one.

    Raises:
        Refused: it is this node's, or of a peer that is blocked or shut out here.
        UsageError: what it ends in is no peer id.
    """
    peer = address.rpartition("/p2p/")[2]
    if not PEER_ID.fullmatch(peer):
        raise UsageError(
            f"“{one_line(peer, TYPED_CHARACTERS)}” is no peer id",
            hint="peer ids look like 12D3KooW…: autoresearch network peers, on that machine",
        )
    if peer == own:
        raise Refused(
            "that is the address of this node", hint="give it to others: autoresearch network peers add, there"
        )
    for candidate in peers:
        if candidate.peer == peer and (candidate.blocked or candidate.shut_out):
            why = "blocked" if candidate.blocked else f"shut out: it {candidate.shut_out}"
            raise Refused(f"{peer} is {why}", hint=f"autoresearch network peers unblock {peer}")


logger = structlog.get_logger()

# Sessions under way at a time, both ways together.
SESSIONS_MAX = 8
# A peer that answers nothing for so long is not worth waiting for; the next round asks another.
SILENCE_SECONDS = 30.0
# A session opened here that brought so many records is a catching up: peers that call meanwhile are sent away.
CATCHING_UP_RECORDS = 1_000
# A session holds up others for so long at most, because a peer may drip.
TURN_SECONDS = 300.0

Pairs = Sequence[tuple[bytes, bytes]]


@dataclass(slots=True)
class _Opened:
    """A session that was opened here: since when, by the loop's clock, and how many records it brought."""

    began: float
    received: int = 0


class Ingesting(Protocol):
    """What sessions need of whoever stores records."""

    async def gather(self, pairs: Pairs, peer: str) -> None:
        """Take records of a peer, to be in the log and the index soon."""

    async def settle(self) -> None:
        """Until those that were given before are there. Raises AutoresearchError when nothing can be written."""


@dataclass(eq=False)
class Sessions:
    """Drives sessions over streams. ``index`` gives the keys that are offered now, ``raw`` the records for their ids.

    ``ingester`` takes the records of a peer. ``refused`` has the ids that are not to be asked of a peer again.

    ``on_finished(peer, how)`` is told of each session that came to its end.

    ``me`` is this host's peer id: when both sides call at once, the call of the smaller one counts.
    """

    log: Log
    index: Callable[[], KeyIndex]
    raw: Callable[[Sequence[bytes]], Pairs]
    ingester: Ingesting
    refused: Callable[[str], Collection[bytes]]
    on_finished: Callable[[str, SyncFinished], None]
    open_stream: Callable[[str], Awaitable[SyncStream]]
    me: Callable[[], str]

    def __post_init__(self) -> None:
        self._slots = asyncio.Semaphore(SESSIONS_MAX)
        self._turn = asyncio.Lock()
        self._opened: dict[str, _Opened] = {}
        self._answered: set[str] = set()

    async def open(self, peer: str) -> None:
        """Give a connected peer what it lacks and take what is missing here, unless that is under way already.

        Waits until other sessions that were opened here are over, or for five minutes. Raises AutoresearchError.
        """
        async with self._my_turn(), self._slots:
            if peer in self._opened or peer in self._answered:
                return
            self._opened[peer] = _Opened(began=asyncio.get_running_loop().time())
            try:
                async with await self.open_stream(peer) as stream:
                    await self._drive(stream, Opener(self.log.network, self.index(), nonce()))
            finally:
                del self._opened[peer]

    async def answer(self, stream: SyncStream) -> None:
        """Lead the session of a stream that a peer opened, or say why not. Raises AutoresearchError."""
        if reason := self._reason_against(stream.peer):
            stream.abandon(reason)
            return
        self._answered.add(stream.peer)
        try:
            async with self._slots:
                unwanted = self.refused(stream.peer)
                await self._drive(stream, Leader(self.log.network, self.index(), nonce(), unwanted=unwanted))
        finally:
            self._answered.discard(stream.peer)

    def _reason_against(self, peer: str) -> str:
        if self._slots.locked():
            return "too many sessions at a time"
        if peer in self._answered or (peer in self._opened and self.me() < peer):
            return "a session with this peer is under way"
        since = asyncio.get_running_loop().time() - TURN_SECONDS
        if any(mine.began > since and mine.received > CATCHING_UP_RECORDS for mine in self._opened.values()):
            return "catching up with another peer"
        return ""

    @asynccontextmanager
    async def _my_turn(self) -> AsyncIterator[None]:
        """Wait for the sessions opened before, but not for ever."""
        try:
            async with asyncio.timeout(TURN_SECONDS):
                await self._turn.acquire()
        except TimeoutError:
            yield
            return
        try:
            yield
        finally:
            self._turn.release()

    async def _drive(self, stream: SyncStream, session: Session) -> None:
        await self._perform(stream, session, session.start())
        while not session.over:
            try:
                async with asyncio.timeout(SILENCE_SECONDS):
                    chunk = await stream.receive()
            except TimeoutError as error:
                raise TimedOut(f"{stream.peer} went silent") from error
            if chunk is None:
                return
            await self._perform(stream, session, session.receive(chunk))

    async def _perform(self, stream: SyncStream, session: Session, effects: Iterable[Effect]) -> None:
        waiting = [iter(effects)]
        while waiting:
            match next(waiting[-1], None):
                case None:
                    waiting.pop()
                case Send(data):
                    await stream.send(data)
                case Fetch(ids):
                    waiting.append(iter(session.supply(self.raw(ids))))
                case Store(records):
                    if stream.peer in self._opened:
                        self._opened[stream.peer].received += len(records)
                    await self.ingester.gather(records, stream.peer)
                case SyncFinished() as finished:
                    await self.ingester.settle()
                    self.on_finished(stream.peer, finished)
                    logger.info("synchronised", peer=stream.peer, sent=finished.sent, received=finished.received)
                case Violation(sentence):
                    raise AutoresearchError(f"the peer broke the protocol: {sentence}")


def nonce() -> bytes:
    """Fresh random bytes for one session."""
    return secrets.token_bytes(NONCE_BYTES)
