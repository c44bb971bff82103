"""The project's own stream protocols besides sync: blobs and peer exchange (trio). docs/protocol.md specifies them."""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Awaitable, Callable
from enum import IntEnum

import trio

from autoresearch_daemon.net.greeting import Greeting, decode_greeting
from autoresearch_daemon.net.model import ADDRESS_BYTES_MAX, BLOB_PART_BYTES_MAX
from autoresearch_daemon.net.streams import WRITE_BYTES, FrameStream, StreamBroken

SYNC = "/autoresearch/sync/1"
BLOB = "/autoresearch/blob/1"
PEERS = "/autoresearch/peers/1"
NETWORK = "/autoresearch/network/1"
HELLO = "/autoresearch/hello/1"
ATTEST = "/autoresearch/attest/1"

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
ATTEST_SECONDS = 60.0
# What is asked comes at once.
ATTEST_QUESTION_SECONDS = 10.0
ATTESTS_SERVED = 8
ATTESTS_SERVED_PER_PEER = 2

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
        if 0 < length <= BLOB_PART_BYTES_MAX:
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
    found: list[str] = []
    while len(found) < PEERS_MAX and (frame := await stream.receive()) is not None:
        if len(frame) > ADDRESS_BYTES_MAX:
            raise StreamBroken("an address is too long")
        found.append(frame.decode("ascii", "replace"))
    return found


async def ask_greeting(stream: FrameStream) -> Greeting:
    """What a peer says of itself. Raises StreamBroken."""
    greeting = decode_greeting(await stream.receive() or b"")
    if greeting is None:
        raise StreamBroken("the peer says nothing of itself")
    return greeting


async def ask_network(stream: FrameStream) -> bytes:
    """The bytes of the manifest of a peer's network. The caller checks them. Raises StreamBroken."""
    manifest = await stream.receive()
    if not manifest:
        raise StreamBroken("the peer says nothing of its network")
    return manifest


async def ask_attestor(stream: FrameStream, question: bytes) -> bytes:
    """An attestor's reply. The caller reads it. Raises StreamBroken."""
    await stream.send(question)
    reply = await stream.receive()
    if not reply:
        raise StreamBroken("the attestor says nothing")
    return reply
