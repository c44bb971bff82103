"""What a host answers to peers that open a stream: exchanges, blobs, addresses, which network this is, who it is."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Protocol

import trio
from libp2p.abc import INetStream

from autoresearch.attesting import MESSAGE_BYTES_MAX
from autoresearch.networks import is_loopback
from autoresearch_daemon.net import protocols
from autoresearch_daemon.net.address_book import AddressBook
from autoresearch_daemon.net.greeting import Greeting, encode_greeting
from autoresearch_daemon.net.meters import Meters
from autoresearch_daemon.net.model import HostOptions
from autoresearch_daemon.net.relaying import Relaying, circuit
from autoresearch_daemon.net.streams import FrameStream
from autoresearch_daemon.net.watching import Watch

SYNCS_PER_PEER = 2
SYNCS_INBOUND = 16
# An exchange of records that would have to wait longer than this is refused.
SESSION_DELAY_SECONDS_MAX = 15.0

Serve = Callable[[INetStream], Awaitable[None]]


class Handlers(Protocol):
    """What a host calls."""

    def on_record(self, raw: bytes, signature: bytes, peer: str) -> bool:
        """An admitted record arrived. ``False``: there was no room for it."""

    async def on_sync(self, stream: FrameStream) -> None:
        """A peer opened a sync stream; it is closed when this returns."""

    async def on_blob(self, peer: str, name: bytes, offset: int, length: int, /) -> bytes | None:
        """A part of a blob, or ``None``. ``name``: its SHA-256, and behind it that of its manifest if it has one."""

    async def on_attest(self, peer: str, data: bytes, /) -> bytes | None:
        """A peer asks this node as an attestor; the reply, or ``None``."""

    def on_change(self) -> None:
        """A peer came or went."""


@dataclass(slots=True)
class _Places:
    """Streams of one kind that peers have open here: so many for one peer, and for all."""

    per_peer: int
    most: int
    by_peer: dict[str, int] = field(default_factory=dict)

    def take(self, peer: str) -> bool:
        if self.by_peer.get(peer, 0) >= self.per_peer or sum(self.by_peer.values()) >= self.most:
            return False
        self.by_peer[peer] = self.by_peer.get(peer, 0) + 1
        return True

    def give_back(self, peer: str) -> None:
        self.by_peer[peer] -= 1
        if not self.by_peer[peer]:
            del self.by_peer[peer]


class Serving:
    """The streams that peers open. ``frames(stream, bytes_max)`` reads one in frames, ``addresses()`` are the host's.

    ``manifest`` are the bytes that peers get who ask for the network.
    """

    def __init__(  # noqa: PLR0913 - the parts of a host
        self,
        options: HostOptions,
        handlers: Handlers,
        meters: Meters,
        watch: Watch,
        book: AddressBook,
        relaying: Relaying,
        *,
        frames: Callable[..., FrameStream],
        addresses: Callable[[], list[str]],
        now_ms: Callable[[], int],
    ) -> None:
        self.manifest = options.manifest
        self._options = options
        self._handlers = handlers
        self._meters = meters
        self._watch = watch
        self._book = book
        self._relaying = relaying
        self._frames = frames
        self._addresses = addresses
        self._now_ms = now_ms
        self._device_proof = b""
        self._introduced = trio.Event()
        self._blobs = protocols.BlobServer(self._blob)
        self._syncs = _Places(SYNCS_PER_PEER, SYNCS_INBOUND)
        self._attests = _Places(protocols.ATTESTS_SERVED_PER_PEER, protocols.ATTESTS_SERVED)

    def introduce(self, proof: bytes) -> None:
        """Tell peers from now on which device this host is of."""
        self._device_proof = proof
        self._introduced.set()

    def protocols(self) -> list[tuple[str, Serve]]:
        """What is served, and how."""
        served: list[tuple[str, Serve]] = [
            (protocols.SYNC, self._serve_sync),
            (protocols.BLOB, self._serve_blob),
            (protocols.PEERS, self._serve_peers),
            (protocols.NETWORK, self._serve_network),
            (protocols.HELLO, self._serve_hello),
        ]
        return [*served, (protocols.ATTEST, self._serve_attest)] if self._options.attest else served

    async def _serve_sync(self, stream: INetStream) -> None:
        frames = self._frames(stream)
        delay = self._meters.session_delay(frames.peer)
        if delay > SESSION_DELAY_SECONDS_MAX or not self._syncs.take(frames.peer):
            await frames.reset()
            return
        try:
            await trio.sleep(delay)
            await self._handlers.on_sync(frames)
        finally:
            self._syncs.give_back(frames.peer)
            await frames.close()

    async def _serve_blob(self, stream: INetStream) -> None:
        frames = self._frames(stream, protocols.BLOB_REQUEST_BYTES_MAX)
        await self._blobs.serve(frames)
        await frames.close()

    async def _serve_peers(self, stream: INetStream) -> None:
        frames = self._frames(stream)
        connected = self._watch.connected_peers()
        own = [address for address in self._addresses() if not is_loopback(address)][:2] or self._addresses()[:1]
        waiting = [peer for peer in self._relaying.clients() if peer in connected and peer != frames.peer]
        through_here = [circuit(address, peer) for peer in waiting for address in own]
        await protocols.tell_peers(frames, through_here + self._book.shareable(frames.peer, connected))
        await frames.close()

    async def _serve_network(self, stream: INetStream) -> None:
        frames = self._frames(stream)
        if self.manifest:
            await frames.send(self.manifest)
        await frames.close()

    async def _serve_hello(self, stream: INetStream) -> None:
        options = self._options
        if options.device_key:  # peers ask once: the first may come before the daemon has signed
            with trio.move_on_after(protocols.INTRODUCTION_SECONDS):
                await self._introduced.wait()
        proof = self._device_proof
        greeting = Greeting(
            agent=options.agent,
            network=options.network.id,
            time_ms=self._now_ms(),
            devices=list(options.devices),
            device_key=options.device_key if proof else b"",
            device_proof=proof,
        )
        frames = self._frames(stream)
        await frames.send(encode_greeting(greeting))
        await frames.close()

    async def _serve_attest(self, stream: INetStream) -> None:
        frames = self._frames(stream, MESSAGE_BYTES_MAX)
        question = None
        if self._meters.attest_delay(frames.peer) <= 0:
            with trio.move_on_after(protocols.ATTEST_QUESTION_SECONDS):
                question = await frames.receive()
        # Who says nothing takes no place of those who ask.
        if not question or not self._attests.take(frames.peer):
            await frames.reset()
            return
        try:
            with trio.move_on_after(protocols.ATTEST_SECONDS):
                reply = await self._handlers.on_attest(frames.peer, question)
                if reply:
                    await frames.send(reply)
        finally:
            self._attests.give_back(frames.peer)
            await frames.close()

    async def _blob(self, peer: str, name: bytes, offset: int, length: int) -> bytes | None:
        if self._meters.day_is_over():
            return None
        return await self._handlers.on_blob(peer, name, offset, length)
