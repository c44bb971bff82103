"""What a host answers to peers that open a stream, and asks of them (trio).

Exchanges, blobs, addresses, which network this is, who it is: docs/protocol.md specifies the protocols.
"""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from enum import IntEnum
from functools import partial
from typing import Protocol

import trio
from libp2p.abc import INetStream

from autoresearch.trust.attestation import MESSAGE_BYTES_MAX
from autoresearch.trust.manifest import is_loopback
from autoresearch_daemon.net import model
from autoresearch_daemon.net.host.streams import WRITE_BYTES, FrameStream, Meters, StreamBroken
from autoresearch_daemon.net.host.watching import ConnectionWatch, Relaying, circuit

SYNC = "/autoresearch/sync/1"
BLOB = "/autoresearch/blob/1"
PEERS = "/autoresearch/peers/1"
NETWORK = "/autoresearch/network/1"
HELLO = "/autoresearch/hello/1"
QUESTIONS: dict[model.Topic, str] = {"attest": "/autoresearch/attest/1", "services": "/autoresearch/services/1"}

# A blob request: the blob's name, the first byte, how many bytes; big-endian.
BLOB_REQUEST_END = struct.Struct(">QI")
# The SHA-256 of the blob; for one that has a manifest of chunks, that one's SHA-256 behind it.
BLOB_NAME_BYTES = (32, 64)
BLOB_REQUEST_BYTES_MAX = max(BLOB_NAME_BYTES) + BLOB_REQUEST_END.size
# With its length in front it fills one Yamux frame (`streams.WRITE_BYTES`).
BLOB_FRAME_BYTES = WRITE_BYTES - 4
BLOB_SECONDS = 60.0
BLOBS_SERVED = 16
BLOBS_SERVED_PER_PEER = 4
PEERS_SECONDS = 10.0
# How long an answer to a greeting waits for the daemon's signature.
INTRODUCTION_SECONDS = 2.0
PEERS_MAX = 32
NETWORK_SECONDS = 10.0
# An attestor hashes the address and hands a mail to its server before it answers.
QUESTION_SECONDS = 60.0
# What is asked comes at once.
HEAR_QUESTION_SECONDS = 10.0
QUESTIONS_SERVED = 8
QUESTIONS_SERVED_PER_PEER = 2

BlobSource = Callable[[str, bytes, int, int], Awaitable[bytes | None]]


class BlobStatus(IntEnum):
    """The first frame of an answer is one byte of these."""

    FOUND = 0
    NOT_HERE = 1
    BUSY = 2


class BlobNotHere(Exception):
    """The peer says that it has no such part."""


class PeerBusy(Exception):
    """The peer has too much to do now."""


class BlobServer:
    """Answers blob requests, so many at a time."""

    def __init__(self, source: BlobSource) -> None:
        self._source = source
        self._serving: Counter[str] = Counter()

    async def serve(self, stream: FrameStream) -> None:
        """Answer the one request of a stream and end it. Raises StreamBroken."""
        self._serving[stream.peer] += 1
        try:
            with trio.fail_after(BLOB_SECONDS):
                await self._answer(stream)
        except trio.TooSlowError as error:
            raise StreamBroken("a blob request took too long") from error
        finally:
            self._serving[stream.peer] -= 1
            if not self._serving[stream.peer]:
                del self._serving[stream.peer]

    async def _answer(self, stream: FrameStream) -> None:
        request = await stream.receive()
        if request is None:
            return
        name, end = request[: -BLOB_REQUEST_END.size], request[-BLOB_REQUEST_END.size :]
        if len(name) not in BLOB_NAME_BYTES:
            raise StreamBroken("a blob request has another size")
        offset, length = BLOB_REQUEST_END.unpack(end)
        if self._serving.total() > BLOBS_SERVED or self._serving[stream.peer] > BLOBS_SERVED_PER_PEER:
            await stream.send(bytes([BlobStatus.BUSY]))
            return
        data = None
        if 0 < length <= model.BLOB_PART_BYTES_MAX:
            data = await self._source(stream.peer, name, offset, length)
        if data is None:
            await stream.send(bytes([BlobStatus.NOT_HERE]))
            return
        await stream.send(bytes([BlobStatus.FOUND]))
        for start in range(0, len(data), BLOB_FRAME_BYTES):
            await stream.send(data[start : start + BLOB_FRAME_BYTES])


async def fetch_blob(stream: FrameStream, name: bytes, offset: int, length: int) -> bytes:
    """Ask for a part; shorter than ``length`` only where the blob ends. The caller checks the hash.

    Raises:
        BlobNotHere: the peer has it not.
        PeerBusy: it serves too many already.
        StreamBroken: the answer is none.
    """
    await stream.send(name + BLOB_REQUEST_END.pack(offset, length))
    status = await stream.receive()
    if status == bytes([BlobStatus.BUSY]):
        raise PeerBusy("the peer serves too many blobs already")
    if status == bytes([BlobStatus.NOT_HERE]):
        raise BlobNotHere("not here")
    if status != bytes([BlobStatus.FOUND]):
        raise StreamBroken("the answer to a blob request is none")
    data = bytearray()
    while (part := await stream.receive()) is not None:
        data += part
        if len(data) > length or not part:
            raise StreamBroken("the answer to a blob request is longer than asked for")
    return bytes(data)


async def tell_peers(stream: FrameStream, addresses: list[str]) -> None:
    """Answer a peer exchange: one multiaddr a frame."""
    for address in addresses[:PEERS_MAX]:
        await stream.send(address.encode())


async def ask_peers(stream: FrameStream) -> list[str]:
    """The multiaddrs that a peer knows. Raises StreamBroken."""
    addresses: list[str] = []
    while len(addresses) < PEERS_MAX and (frame := await stream.receive()) is not None:
        if len(frame) > model.ADDRESS_BYTES_MAX:
            raise StreamBroken("an address is too long")
        addresses.append(frame.decode("ascii", "replace"))
    return addresses


async def ask_greeting(stream: FrameStream) -> model.Greeting:
    """What a peer says of itself. Raises StreamBroken."""
    greeting = model.decode_greeting(await stream.receive() or b"")
    if greeting is None:
        raise StreamBroken("the peer says nothing of itself")
    return greeting


async def ask_network(stream: FrameStream) -> bytes:
    """The bytes of the manifest of a peer's network. The caller checks them. Raises StreamBroken."""
    manifest = await stream.receive()
    if not manifest:
        raise StreamBroken("the peer says nothing of its network")
    return manifest


async def ask_question(stream: FrameStream, question: bytes) -> bytes:
    """A peer's reply. The caller reads it. Raises StreamBroken."""
    await stream.send(question)
    reply = await stream.receive()
    if not reply:
        raise StreamBroken("the peer does not answer that")
    return reply


SYNCS_PER_PEER = 2
SYNCS_INBOUND = 16
# An exchange of records that would have to wait longer than this is refused.
SESSION_DELAY_SECONDS_MAX = 15.0

Serve = Callable[[INetStream], Awaitable[None]]


class HostHandlers(Protocol):
    """What a host calls."""

    def on_record(self, raw: bytes, signature: bytes, peer: str) -> bool:
        """An admitted record arrived. ``False``: there was no room for it."""

    async def on_sync(self, stream: FrameStream) -> None:
        """A peer opened a sync stream; it is closed when this returns."""

    async def on_blob(self, peer: str, name: bytes, offset: int, length: int, /) -> bytes | None:
        """A part of a blob, or ``None``. ``name``: its SHA-256, and behind it that of its manifest if it has one."""

    async def on_question(self, peer: str, topic: model.Topic, data: bytes, /) -> bytes | None:
        """A peer asks this node about something; the reply, or ``None``."""

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


@dataclass(eq=False)
class Serving:
    """The streams that peers open. ``frames(stream, bytes_max)`` reads one in frames, ``addresses()`` are the host's.

    ``manifest`` are the bytes that peers get who ask for the network.
    """

    options: model.HostOptions
    handlers: HostHandlers
    meters: Meters
    watch: ConnectionWatch
    book: model.AddressBook
    relaying: Relaying
    frames: Callable[..., FrameStream]
    addresses: Callable[[], list[str]]
    now_ms: Callable[[], int]

    def __post_init__(self) -> None:
        self.manifest = self.options.manifest
        self._device_proof = b""
        self._introduced = trio.Event()
        self._blobs = BlobServer(self._blob)
        self._syncs = _Places(SYNCS_PER_PEER, SYNCS_INBOUND)
        self._questions = _Places(QUESTIONS_SERVED_PER_PEER, QUESTIONS_SERVED)

    def introduce(self, proof: bytes) -> None:
        """Tell peers from now on which device this host is of."""
        self._device_proof = proof
        self._introduced.set()

    def protocols(self) -> list[tuple[str, Serve]]:
        """What is served, and how."""
        served: list[tuple[str, Serve]] = [
            (SYNC, self._serve_sync),
            (BLOB, self._serve_blob),
            (PEERS, self._serve_peers),
            (NETWORK, self._serve_network),
            (HELLO, self._serve_hello),
        ]
        offered: list[model.Topic] = ["attest", "services"] if self.options.attest else ["services"]
        return served + [(QUESTIONS[topic], partial(self._serve_question, topic)) for topic in offered]

    async def _serve_sync(self, stream: INetStream) -> None:
        frames = self.frames(stream)
        delay = self.meters.session_delay(frames.peer)
        if delay > SESSION_DELAY_SECONDS_MAX or not self._syncs.take(frames.peer):
            await frames.reset()
            return
        try:
            await trio.sleep(delay)
            await self.handlers.on_sync(frames)
        finally:
            self._syncs.give_back(frames.peer)
            await frames.close()

    async def _serve_blob(self, stream: INetStream) -> None:
        frames = self.frames(stream, BLOB_REQUEST_BYTES_MAX)
        await self._blobs.serve(frames)
        await frames.close()

    async def _serve_peers(self, stream: INetStream) -> None:
        frames = self.frames(stream)
        connected = self.watch.connected_peers()
        own = [address for address in self.addresses() if not is_loopback(address)][:2] or self.addresses()[:1]
        waiting = [peer for peer in self.relaying.clients() if peer in connected and peer != frames.peer]
        through_here = [circuit(address, peer) for peer in waiting for address in own]
        await tell_peers(frames, through_here + self.book.shareable(frames.peer, connected))
        await frames.close()

    async def _serve_network(self, stream: INetStream) -> None:
        frames = self.frames(stream)
        if self.manifest:
            await frames.send(self.manifest)
        await frames.close()

    async def _serve_hello(self, stream: INetStream) -> None:
        options = self.options
        if options.device_key:  # peers ask once: the first may come before the daemon has signed
            with trio.move_on_after(INTRODUCTION_SECONDS):
                await self._introduced.wait()
        proof = self._device_proof
        greeting = model.Greeting(
            agent=options.agent,
            network=options.network.id,
            time_ms=self.now_ms(),
            devices=list(options.devices),
            device_key=options.device_key if proof else b"",
            device_proof=proof,
        )
        frames = self.frames(stream)
        await frames.send(model.encode_greeting(greeting))
        await frames.close()

    async def _serve_question(self, topic: model.Topic, stream: INetStream) -> None:
        frames = self.frames(stream, MESSAGE_BYTES_MAX)
        question = None
        if self.meters.question_delay(frames.peer) <= 0:
            with trio.move_on_after(HEAR_QUESTION_SECONDS):
                question = await frames.receive()
        # Who says nothing takes no place of those who ask.
        if not question or not self._questions.take(frames.peer):
            await frames.reset()
            return
        try:
            with trio.move_on_after(QUESTION_SECONDS):
                reply = await self.handlers.on_question(frames.peer, topic, question)
                if reply:
                    await frames.send(reply)
        finally:
            self._questions.give_back(frames.peer)
            await frames.close()

    async def _blob(self, peer: str, name: bytes, offset: int, length: int) -> bytes | None:
        if self.meters.why_no_blobs():
            return None
        return await self.handlers.on_blob(peer, name, offset, length)
