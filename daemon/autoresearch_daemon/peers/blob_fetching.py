"""Fetches blobs: which chunk is asked of which peer, what an answer means.

Every answer is checked, what is right is kept. Every chunk is asked of one peer at a time; only when a peer is silent
for long and another has nothing to do, of that one too. A peer that is busy or fails is left alone for a while, and
gets less at a time; one that has not got the blob is asked no more; one that lied is asked no more and its other
answers are not waited for.
"""

from __future__ import annotations

import asyncio
import hashlib
import random
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass, field
from enum import StrEnum, auto
from time import monotonic
from typing import Protocol

import structlog

from autoresearch.errors import AutoresearchError, NotFound, Refused, TimedOut
from autoresearch.link import backoff
from autoresearch.log.blobs import BlobStore
from autoresearch.log.chunks import CHUNK_BYTES, Manifest, decode_manifest, encode_manifest
from autoresearch.record.kinds import BlobRef
from autoresearch_daemon.net.model import PeerInfo
from autoresearch_daemon.net.network import Busy

# A peer serves four requests of ours at a time: one place is left for another download from it.
ASKED_OF_ONE = 3
ASKED_IN_ALL = 12
# After so many seconds without the answer an idle peer is asked for the same chunk.
PATIENCE_SECONDS = 5.0
PAUSE_SECONDS = 0.25
PAUSE_SECONDS_MAX = 8.0
# A peer that fails so often in a row is asked no more.
FAILURES_MAX = 4


class Outcome(StrEnum):
    """How a question ended."""

    RIGHT = auto()
    WRONG = auto()
    NOT_HERE = auto()
    BUSY = auto()
    BROKEN = auto()


@dataclass(frozen=True, slots=True)
class Ask:
    """A question that is under way: this chunk, of this peer."""

    peer: str
    chunk: int


@dataclass(slots=True)
class _Peer:
    connected: bool = True
    window: int = 1
    requests: dict[int, float] = field(default_factory=dict)
    free_at: float = 0.0
    pauses: int = 0
    failures: int = 0
    out: Outcome | None = None

    def may_be_asked(self, now: float) -> bool:
        """Whether one more question may be put to it."""
        return self.connected and self.out is None and len(self.requests) < self.window and now >= self.free_at

    def pause(self, now: float) -> None:
        """Leave it alone for a while, each time longer, and ask less of it at a time."""
        self.free_at = now + backoff(self.pauses, PAUSE_SECONDS, PAUSE_SECONDS_MAX)
        self.pauses += 1
        self.window = max(1, self.window // 2)


class Download:
    """The state of one download of ``chunks`` chunks, of which ``missing`` are to be fetched."""

    def __init__(self, chunks: int, missing: Iterable[int] | None = None) -> None:
        self.missing = set(range(chunks) if missing is None else missing)
        self.chunks = chunks
        self._peers: dict[str, _Peer] = {}

    @property
    def done(self) -> bool:
        """Whether every chunk is here."""
        return not self.missing

    @property
    def hopeless(self) -> bool:
        """Whether no connected peer is left that could be asked, now or after a pause."""
        return not self.done and not any(peer.connected and peer.out is None for peer in self._peers.values())

    def out(self, outcome: Outcome) -> int:
        """How many connected peers are asked no more for this reason."""
        return sum(peer.connected and peer.out is outcome for peer in self._peers.values())

    def meet(self, peers: Sequence[str]) -> None:
        """These peers are connected now, in the order in which they are to be preferred.

        One that was gone is asked anew, unless it lied.
        """
        for name in peers:
            self._peers.setdefault(name, _Peer())
        for name, peer in list(self._peers.items()):
            peer.connected = name in peers
            if not peer.connected and not peer.requests and peer.out is not Outcome.WRONG:
                del self._peers[name]

    def next(self, now: float) -> list[Ask]:
        """What to ask now; each is under way until `answer` is called for it, or returns it."""
        asks: list[Ask] = []
        under_way = self._under_way()
        waiting = sorted(self.missing - under_way.keys(), reverse=True)
        late = [
            chunk
            for chunk, since in sorted(under_way.items(), key=lambda pair: min(pair[1]))
            if self._is_late(chunk, since, now)
        ]
        while len(asks) + sum(map(len, under_way.values())) < ASKED_IN_ALL:
            free = [name for name, peer in self._peers.items() if peer.may_be_asked(now)]
            if waiting and free:
                asks.append(self._ask(min(free, key=lambda name: len(self._peers[name].requests)), waiting.pop(), now))
                continue
            idle = [name for name in free if not self._peers[name].requests]
            if waiting or not late or not idle:
                break
            asks.append(self._ask(idle[0], late.pop(0), now))
        return asks

    def answer(self, ask: Ask, outcome: Outcome, now: float) -> list[Ask]:
        """A question ended. Returns those that nobody needs the answer of any more; they are not under way any more."""
        peer = self._peers.get(ask.peer)
        if peer is None or peer.requests.pop(ask.chunk, None) is None:
            return []
        match outcome:
            case Outcome.RIGHT:
                self.missing.discard(ask.chunk)
                peer.window = min(ASKED_OF_ONE, peer.window + 1)
                peer.pauses = peer.failures = 0
                return self._drop([Ask(name, ask.chunk) for name in self._peers])
            case Outcome.BUSY:
                peer.pause(now)
            case Outcome.BROKEN:
                peer.pause(now)
                peer.failures += 1
                if peer.failures >= FAILURES_MAX:
                    peer.out = outcome
            case Outcome.NOT_HERE:
                peer.out = outcome
            case Outcome.WRONG:
                peer.out = outcome
                return self._drop([Ask(ask.peer, chunk) for chunk in peer.requests])
        return []

    def look_at(self, now: float) -> float | None:
        """When `next` may have something though nothing happened; None when only an answer or a peer can help."""
        times = [peer.free_at for peer in self._peers.values() if peer.connected and peer.out is None]
        times += [since + PATIENCE_SECONDS for peer in self._peers.values() for since in peer.requests.values()]
        return min((time for time in times if time > now), default=None)

    def _ask(self, name: str, chunk: int, now: float) -> Ask:
        self._peers[name].requests[chunk] = now
        return Ask(name, chunk)

    def _drop(self, asks: list[Ask]) -> list[Ask]:
        return [ask for ask in asks if self._peers[ask.peer].requests.pop(ask.chunk, None) is not None]

    def _under_way(self) -> dict[int, list[float]]:
        """The chunks that are asked for, and since when."""
        chunks: dict[int, list[float]] = {}
        for peer in self._peers.values():
            for chunk, since in peer.requests.items():
                chunks.setdefault(chunk, []).append(since)
        return chunks

    def _is_late(self, chunk: int, since: list[float], now: float) -> bool:
        return chunk in self.missing and now - max(since) >= PATIENCE_SECONDS


logger = structlog.get_logger()

HASH_BYTES = 32
# Downloads under way at a time; the others wait.
DOWNLOADS = 4
# How long a node without any peer waits for one: just after its start they are being dialled.
LONELY_SECONDS = 5.0
# A manifest has to fit one part: with 32 bytes a chunk and a little around them.
BLOB_BYTES_MAX = (CHUNK_BYTES // 32 - 8) * CHUNK_BYTES


class Peers(Protocol):
    """What a fetcher needs of the network."""

    def peers(self) -> list[PeerInfo]:
        """The peers, connected ones and others."""

    async def fetch_blob(self, peer: str, name: bytes, offset: int, length: int, /) -> bytes:
        """A part of a blob of a peer. Raises NotFound, Busy, AutoresearchError."""

    async def shut_out(self, peer: str, reason: str) -> None:
        """Refuse a peer for a while."""


class Room(Protocol):
    """Who watches over the disk."""

    async def make_room(self, size: int) -> None:
        """Have room for so many bytes. Raises Refused."""

    def hold(self, *blobs: BlobRef) -> AbstractContextManager[None]:
        """Keep these meanwhile."""


@dataclass(frozen=True, slots=True)
class _Order:
    """What is downloaded: its ``name`` on the wire, its size, and who keeps a chunk and says whether it fits."""

    name: bytes
    size: int
    keep: Callable[[int, bytes], bool]

    def length(self, chunk: int) -> int:
        return min(CHUNK_BYTES, self.size - chunk * CHUNK_BYTES)


class Fetcher:
    """Gets blobs from the connected peers into ``blobs``. ``room`` is asked first; it may refuse."""

    def __init__(self, network: Peers, blobs: BlobStore, room: Room) -> None:
        self._network = network
        self._blobs = blobs
        self._room = room
        self._places = asyncio.Semaphore(DOWNLOADS)
        self._locks: dict[bytes, asyncio.Lock] = {}
        self._waiting: dict[bytes, int] = {}  # who waits for each blob, so that its lock can be forgotten
        self._changed = asyncio.Event()

    def peers_changed(self) -> None:
        """A peer came or went."""
        self._changed.set()
        self._changed = asyncio.Event()

    async def fetch(self, blob: BlobRef, seconds: float) -> None:
        """Have the blob here. What came before the time was up stays, and the next fetch goes on from there.

        Raises:
            NotFound: no connected peer has it.
            TimedOut: it did not come in ``seconds``.
            Refused: it does not fit the quota, or is not what its reference says.
        """
        lock = self._locks.setdefault(blob.sha256, asyncio.Lock())
        self._waiting[blob.sha256] = self._waiting.get(blob.sha256, 0) + 1
        try:
            async with asyncio.timeout(seconds), lock, self._places:
                if not self._blobs.has(blob.sha256):
                    with self._room.hold(blob):
                        await self._fetch(blob)
        except TimeoutError:
            raise TimedOut(
                f"the blob did not come within {seconds:g} seconds; what came is kept",
                hint="ask again to go on from there",
            ) from None
        finally:
            self._waiting[blob.sha256] -= 1
            if not self._waiting[blob.sha256]:
                del self._waiting[blob.sha256], self._locks[blob.sha256]

    async def _fetch(self, blob: BlobRef) -> None:
        if blob.size > BLOB_BYTES_MAX:
            raise Refused(f"blobs of more than {BLOB_BYTES_MAX >> 30} GiB can't be fetched")
        await self._room.make_room(blob.size - self._blobs.begun_bytes(blob.sha256))
        if blob.size <= CHUNK_BYTES:
            data = await self._whole(blob.sha256, blob.size)
            if len(data) != blob.size:
                raise Refused(f"the record gives the blob {blob.size} bytes, and it has {len(data)}")
            await asyncio.to_thread(self._put, data)
            return
        if blob.manifest is None:
            raise Refused("the record names no manifest of chunks, without which a large blob can't be checked")
        if not self._blobs.has(blob.manifest):
            size = len(encode_manifest(blob.size, [bytes(32)] * -(-blob.size // CHUNK_BYTES)))
            await asyncio.to_thread(self._put, await self._whole(blob.manifest, size))
        manifest = decode_manifest(await asyncio.to_thread(self._blobs.get, blob.manifest))
        if manifest.size != blob.size:
            raise Refused(f"the record gives the blob {blob.size} bytes, and its manifest {manifest.size}")
        await self._chunks(blob.sha256, blob.manifest, manifest)

    def _put(self, data: bytes) -> None:
        self._blobs.put_stream([data], fetched=True)

    async def _whole(self, sha256: bytes, size: int) -> bytes:
        """A blob of at most 1 MiB. More than ``size`` is asked for: whoever states a size may be wrong."""
        parts: list[bytes] = []

        def keep(_: int, data: bytes) -> bool:
            if hashlib.sha256(data).digest() != sha256:
                return False
            parts.append(data)
            return True

        await self._run(Download(1), _Order(sha256, CHUNK_BYTES, keep), shortest=size)
        return parts[0]

    async def _chunks(self, sha256: bytes, manifest_sha256: bytes, manifest: Manifest) -> None:
        with self._blobs.begin(sha256, manifest) as partial:
            missing = await asyncio.to_thread(partial.look)
            download = Download(len(manifest.hashes), missing)
            began = monotonic()
            await self._run(download, _Order(sha256 + manifest_sha256, manifest.size, partial.put))
            await asyncio.to_thread(self._blobs.finish, sha256, manifest_sha256, partial)
        logger.info(
            "fetched a blob",
            blob=sha256.hex(),
            bytes=manifest.size,
            seconds=round(monotonic() - began, 1),
            resumed=len(manifest.hashes) - len(missing),
        )

    async def _run(self, download: Download, order: _Order, *, shortest: int | None = None) -> None:
        """Ask until everything is here. Raises NotFound when nobody is left who could be asked."""
        under_way: dict[asyncio.Task[Outcome], Ask] = {}
        lonely_until = monotonic() + LONELY_SECONDS
        try:
            while not download.done:
                changed = asyncio.ensure_future(self._changed.wait())
                try:
                    connected = [peer.peer for peer in self._network.peers() if peer.connected]
                    download.meet(random.sample(connected, len(connected)))
                    for ask in download.next(monotonic()):
                        under_way[asyncio.create_task(self._ask(order, ask, shortest))] = ask
                    if not under_way and download.hopeless and (connected or monotonic() >= lonely_until):
                        raise NotFound(nobody(download, len(connected)), hint="autoresearch network peers")
                    wake = [time for time in (download.look_at(monotonic()), lonely_until) if time]
                    later = min((time for time in wake if time > monotonic()), default=None)
                    await asyncio.wait(
                        {*under_way, changed},
                        timeout=None if later is None else later - monotonic() + 0.001,
                        return_when=asyncio.FIRST_COMPLETED,
                    )
                finally:
                    changed.cancel()
                for task in [task for task in under_way if task.done()]:
                    await self._settle(download, under_way, task, order)
        finally:
            for task in under_way:
                task.cancel()
            await asyncio.gather(*under_way, return_exceptions=True)

    async def _settle(
        self,
        download: Download,
        under_way: dict[asyncio.Task[Outcome], Ask],
        task: asyncio.Task[Outcome],
        order: _Order,
    ) -> None:
        if (ask := under_way.pop(task, None)) is None:
            return  # given up because of another answer
        outcome = task.result()
        needless = download.answer(ask, outcome, monotonic())
        for other in [other for other, request in under_way.items() if request in needless]:
            del under_way[other]
            other.cancel()
        if outcome is Outcome.WRONG:
            logger.warning(
                "a peer sent wrong bytes of a blob", peer=ask.peer, blob=order.name[:HASH_BYTES].hex(), chunk=ask.chunk
            )
            with suppress(AutoresearchError):
                await self._network.shut_out(ask.peer, f"sent wrong bytes of the blob {order.name.hex()[:12]}")

    async def _ask(self, order: _Order, ask: Ask, shortest: int | None) -> Outcome:
        length = order.length(ask.chunk)
        try:
            data = await self._network.fetch_blob(ask.peer, order.name, ask.chunk * CHUNK_BYTES, length)
        except NotFound:
            return Outcome.NOT_HERE
        except Busy:
            return Outcome.BUSY
        except AutoresearchError as error:
            logger.debug("a part of a blob did not come", peer=ask.peer, chunk=ask.chunk, reason=str(error))
            return Outcome.BROKEN
        if await asyncio.to_thread(order.keep, ask.chunk, data):
            return Outcome.RIGHT
        # What is too short may have been cut off on the way, which is nobody's fault.
        return Outcome.WRONG if len(data) >= min(length, length if shortest is None else shortest) else Outcome.BROKEN


def nobody(download: Download, connected: int) -> str:
    """Why nobody is left who could be asked."""
    if not connected:
        return "no peer is connected"
    peers_asked = f"{connected} connected peer{'s' * (connected != 1)}"
    if wrong := download.out(Outcome.WRONG):
        return f"none of {peers_asked} has it; {wrong} sent wrong bytes"
    if download.out(Outcome.BROKEN):
        return f"none of {peers_asked} has it, or answers"
    return f"none of {peers_asked} has it"


async def serve_part(blobs: BlobStore, name: bytes, offset: int, length: int) -> bytes | None:
    """The part; None when it is not here. ``name``: the blob's SHA-256, and that of its manifest if it has one.

    The manifest is a part of the name so that bytes which don't fit it prove that the peer lies: a record of a third
    that names the blob with a manifest of something else finds nobody who has that.
    """
    digest, manifest = name[:HASH_BYTES], name[HASH_BYTES:] or None
    try:
        return await asyncio.to_thread(blobs.part, digest, manifest, offset, length)
    except (NotFound, Refused):
        return None
