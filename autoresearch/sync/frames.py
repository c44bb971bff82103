"""Frames: what travels on a stream between two sessions. A length, a type, a payload. Pure."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from operator import lt

from autoresearch.sync.ranges import REPLY_BYTES, split_shorts
from autoresearch.sync.salt import NONCE_BYTES, SHORT_BYTES
from autoresearch.sync.wire import MalformedError, Reader, leading_varint, varint

VERSION = 1
BATCH_BYTES = 256 * 1024
# The largest payload is a full batch that does not compress; zlib adds little to it.
FRAME_BYTES = BATCH_BYTES + 1024

_NETWORK_BYTES = 16
_SIGNATURE_BYTES = 64
_MAX_COUNT = 2**53
# Records are mostly hashes and numbers: higher levels cost time and gain little.
_ZLIB_LEVEL = 3

Pair = tuple[bytes, bytes]
"""A record's bytes and its signature."""


class Type(IntEnum):
    """What a frame is."""

    HELLO = 1
    RECONCILE = 2
    WANT = 3
    RECORDS = 4
    DONE = 5


@dataclass(frozen=True, slots=True)
class Hello:
    """The first frame of each side. ``since_ms``: nothing older takes part. ``count``: how many records it has."""

    network: bytes
    nonce: bytes
    since_ms: int
    count: int


@dataclass(frozen=True, slots=True)
class Batch:
    """Records, and whether they are the last answer to a ``want``."""

    records: tuple[Pair, ...]
    last: bool


def frame(kind: Type, payload: bytes = b"") -> bytes:
    """One frame as bytes."""
    return varint(1 + len(payload)) + bytes((kind,)) + payload


class FrameReader:
    """Cuts a stream into frames; holds at most one frame that is not complete, and what the last chunk had after it."""

    def __init__(self) -> None:
        self._buffer = bytearray()

    def feed(self, chunk: bytes) -> None:
        """Take bytes from the stream, cut anywhere."""
        self._buffer += chunk

    def next(self) -> tuple[Type, bytes] | None:
        """The next complete frame, or None. Raises MalformedError, also for a length that is too large to wait for."""
        found = leading_varint(self._buffer)
        if found is None:
            return None
        length, start = found
        if not 1 <= length <= FRAME_BYTES:
            raise MalformedError(f"a frame of {length} bytes")
        if start < len(self._buffer) and self._buffer[start] not in Type.__members__.values():
            raise MalformedError(f"a frame of the unknown type {self._buffer[start]}")
        if len(self._buffer) < start + length:
            return None
        kind, payload = Type(self._buffer[start]), bytes(self._buffer[start + 1 : start + length])
        del self._buffer[: start + length]
        return kind, payload


def encode_hello(hello: Hello) -> bytes:
    """The payload of a hello."""
    return bytes((VERSION,)) + hello.network + hello.nonce + varint(hello.since_ms) + varint(hello.count)


def decode_hello(payload: bytes) -> Hello:
    """The hello. Raises MalformedError."""
    reader = Reader(payload)
    if (version := reader.byte()) != VERSION:
        raise MalformedError(f"version {version} of the protocol is unknown here")
    network, nonce = reader.take(_NETWORK_BYTES), reader.take(NONCE_BYTES)
    hello = Hello(network, nonce, reader.varint(_MAX_COUNT), reader.varint(_MAX_COUNT))
    if reader.more:
        raise MalformedError("the hello is too long")
    return hello


def decode_want(payload: bytes) -> list[bytes]:
    """The short ids of a want: at least one, ascending. Raises MalformedError."""
    shorts = split_shorts(payload)
    if not payload or len(payload) % SHORT_BYTES or len(payload) > REPLY_BYTES:
        raise MalformedError("a want is a list of short ids")
    if not all(map(lt, shorts, shorts[1:])):
        raise MalformedError("the short ids of a want do not ascend")
    return shorts


def encode_batches(records: Sequence[Pair], *, last: bool) -> list[bytes]:
    """The payloads of as many batches as the records need; with ``last`` at least one, and the last one marked."""
    plain, batches = bytearray(), list[bytearray]()
    for raw, signature in records:
        entry = varint(len(raw)) + raw + signature
        if plain and len(plain) + len(entry) > BATCH_BYTES:
            batches.append(plain)
            plain = bytearray()
        plain += entry
    if plain or last:
        batches.append(plain)
    final = len(batches) - 1
    return [
        bytes((last and number == final,)) + zlib.compress(batch, _ZLIB_LEVEL) for number, batch in enumerate(batches)
    ]


def decode_batch(payload: bytes, record_bytes: int) -> Batch:
    """The records of a batch, none longer than ``record_bytes``. Raises MalformedError, before it unpacks a bomb."""
    if not payload or payload[0] > 1:
        raise MalformedError("a batch begins with an unknown byte")
    unpacker = zlib.decompressobj()
    try:
        plain = unpacker.decompress(payload[1:], BATCH_BYTES + 1)
    except zlib.error as error:
        raise MalformedError("a batch is not compressed by zlib") from error
    if len(plain) > BATCH_BYTES:
        raise MalformedError(f"a batch unpacks to more than {BATCH_BYTES} bytes")
    if not unpacker.eof or unpacker.unused_data:
        raise MalformedError("a batch does not end where its compressed data does")
    reader, records = Reader(plain), list[Pair]()
    while reader.more:
        length = reader.varint(record_bytes)
        if not length:
            raise MalformedError("a record is empty")
        records.append((reader.take(length), reader.take(_SIGNATURE_BYTES)))
    if not records and not payload[0]:
        raise MalformedError("a batch that is not the last is empty")
    return Batch(tuple(records), last=bool(payload[0]))
