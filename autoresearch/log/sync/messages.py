"""Reconciliation messages, and the frames (a length, a type, a payload) in which they travel between two sessions.

Pure. A message is a sequence of ranges of keys, each with what the sender says or asks about it. A range goes from the
end of the one before (the first from the session's horizon) up to its own upper bound. ``docs/protocol.md`` has the
layout.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from operator import lt
from typing import NamedTuple

from autoresearch.log.sync import index

REQUEST_BYTES = 64 * 1024
REPLY_BYTES = 256 * 1024
REQUEST_RANGES = 4_096
REPLY_RANGES = 32_768

# A head byte and a bound; and the largest integer that counts ids.
_BOUND_BYTES = 1 + index.KEY_BYTES
_COUNT_BYTES = 3


class Mode(IntEnum):
    """What a message says of a range."""

    SKIP = 0
    """Nothing: it is equal, or was not asked for."""
    FINGERPRINT = 1
    """The hash of the sender's keys there."""
    IDS = 2
    """In a reply the sender's short ids there; in a request: send me yours."""


class Range(NamedTuple):
    """Up to ``upper``, exclusive. ``payload`` is the fingerprint, or the short ids, packed."""

    upper: bytes
    mode: Mode
    payload: bytes = b""


class RangeWriter:
    """Writes a message of at most ``limit`` bytes that begins at the bound ``lower``."""

    def __init__(self, limit: int, lower: bytes) -> None:
        self._limit = limit
        self._out = bytearray()
        self._skipped = False
        self.upper = lower
        self.ranges = 0

    @property
    def room(self) -> int:
        """How many bytes of payload still fit, in one range, between two skips."""
        return self._limit - len(self._out) - 3 * _BOUND_BYTES - _COUNT_BYTES

    def skip(self, upper: bytes) -> None:
        """Say nothing of what lies between here and ``upper``; skips in a row become one."""
        self._skipped = self._skipped or upper != self.upper
        self.upper = upper

    def put(self, upper: bytes, mode: Mode, payload: bytes = b"") -> None:
        """Say something of the range up to ``upper``. The caller has looked whether there is room."""
        self._flush()
        self._head(upper, mode)
        self._out += payload
        self.upper = upper

    def message(self) -> bytes:
        """The message, with a last skip if there is one."""
        self._flush()
        return bytes(self._out)

    def _flush(self) -> None:
        if self._skipped:
            self._head(self.upper, Mode.SKIP)
            self._skipped = False

    def _head(self, upper: bytes, mode: Mode) -> None:
        bound = b"" if upper == index.HIGHEST else upper
        self._out.append(mode << 6 | len(bound))
        self._out += bound
        self.ranges += 1


def packed_shorts(shorts: list[bytes]) -> bytes:
    """The payload of a reply that lists short ids."""
    distinct = sorted(set(shorts))
    return index.varint(len(distinct)) + b"".join(distinct)


def split_shorts(payload: bytes) -> list[bytes]:
    """The short ids of a decoded list."""
    return [payload[at : at + index.SHORT_BYTES] for at in range(0, len(payload), index.SHORT_BYTES)]


def decode_request(data: bytes, lower: bytes) -> list[Range]:
    """The ranges of a request. Raises MalformedError for anything but the one way to write it."""
    ranges = _decode(data, lower, REQUEST_BYTES, REQUEST_RANGES, listing=False)
    if ranges[-1].mode is Mode.SKIP:
        raise index.MalformedError("a request ends with what it asks for")
    return ranges


def decode_reply(data: bytes, lower: bytes) -> list[Range]:
    """The ranges of a reply. Raises MalformedError for anything but the one way to write it."""
    return _decode(data, lower, REPLY_BYTES, REPLY_RANGES, listing=True)


def _decode(data: bytes, lower: bytes, most_bytes: int, most_ranges: int, *, listing: bool) -> list[Range]:
    if len(data) > most_bytes:
        raise index.MalformedError(f"the message has {len(data)} bytes, more than the {most_bytes} allowed")
    reader, ranges = index.MessageReader(data), list[Range]()
    while reader.more:
        item = _decode_range(reader, listing=listing)
        if item.upper <= lower:
            raise index.MalformedError("the bounds of ranges do not ascend")
        if item.mode is Mode.SKIP and ranges and ranges[-1].mode is Mode.SKIP:
            raise index.MalformedError("two ranges that say nothing follow each other")
        if len(ranges) == most_ranges:
            raise index.MalformedError(f"the message has more than {most_ranges} ranges")
        ranges.append(item)
        lower = item.upper
    if not ranges:
        raise index.MalformedError("the message is empty")
    return ranges


def _decode_range(reader: index.MessageReader, *, listing: bool) -> Range:
    head = reader.byte()
    length = head & 0x3F
    if length > index.KEY_BYTES or head >> 6 > max(Mode):
        raise index.MalformedError("a range begins with an unknown byte")
    upper = reader.take(length) if length else index.HIGHEST
    if length and upper[-1] == 0:
        raise index.MalformedError("a bound is not written in its shortest form")
    mode = Mode(head >> 6)
    if mode is Mode.FINGERPRINT:
        return Range(upper, mode, reader.take(index.FINGERPRINT_BYTES))
    if mode is Mode.IDS and listing:
        payload = reader.take(index.SHORT_BYTES * reader.varint(REPLY_BYTES // index.SHORT_BYTES))
        shorts = split_shorts(payload)
        if not all(map(lt, shorts, shorts[1:])):
            raise index.MalformedError("the short ids of a list do not ascend")
        return Range(upper, mode, payload)
    return Range(upper, mode)


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
    return index.varint(1 + len(payload)) + bytes((kind,)) + payload


class FrameReader:
    """Cuts a stream into frames; holds at most one frame that is not complete, and what the last chunk had after it."""

    def __init__(self) -> None:
        self._buffer = bytearray()

    def feed(self, chunk: bytes) -> None:
        """Take bytes from the stream, cut anywhere."""
        self._buffer += chunk

    def next(self) -> tuple[Type, bytes] | None:
        """The next complete frame, or None. Raises MalformedError, also for a length that is too large to wait for."""
        decoded = index.leading_varint(self._buffer)
        if decoded is None:
            return None
        length, start = decoded
        if not 1 <= length <= FRAME_BYTES:
            raise index.MalformedError(f"a frame of {length} bytes")
        if start < len(self._buffer) and self._buffer[start] not in Type.__members__.values():
            raise index.MalformedError(f"a frame of the unknown type {self._buffer[start]}")
        if len(self._buffer) < start + length:
            return None
        kind, payload = Type(self._buffer[start]), bytes(self._buffer[start + 1 : start + length])
        del self._buffer[: start + length]
        return kind, payload


def encode_hello(hello: Hello) -> bytes:
    """The payload of a hello."""
    return bytes((VERSION,)) + hello.network + hello.nonce + index.varint(hello.since_ms) + index.varint(hello.count)


def decode_hello(payload: bytes) -> Hello:
    """The hello. Raises MalformedError."""
    reader = index.MessageReader(payload)
    if (version := reader.byte()) != VERSION:
        raise index.MalformedError(f"version {version} of the protocol is unknown here")
    network, nonce = reader.take(_NETWORK_BYTES), reader.take(index.NONCE_BYTES)
    hello = Hello(network, nonce, reader.varint(_MAX_COUNT), reader.varint(_MAX_COUNT))
    if reader.more:
        raise index.MalformedError("the hello is too long")
    return hello


def decode_want(payload: bytes) -> list[bytes]:
    """The short ids of a want: at least one, ascending. Raises MalformedError."""
    shorts = split_shorts(payload)
    if not payload or len(payload) % index.SHORT_BYTES or len(payload) > REPLY_BYTES:
        raise index.MalformedError("a want is a list of short ids")
    if not all(map(lt, shorts, shorts[1:])):
        raise index.MalformedError("the short ids of a want do not ascend")
    return shorts


def encode_batches(records: Sequence[Pair], *, last: bool) -> list[bytes]:
    """The payloads of as many batches as the records need; with ``last`` at least one, and the last one marked."""
    plain, batches = bytearray(), list[bytearray]()
    for raw, signature in records:
        entry = index.varint(len(raw)) + raw + signature
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
        raise index.MalformedError("a batch begins with an unknown byte")
    unpacker = zlib.decompressobj()
    try:
        plain = unpacker.decompress(payload[1:], BATCH_BYTES + 1)
    except zlib.error as error:
        raise index.MalformedError("a batch is not compressed by zlib") from error
    if len(plain) > BATCH_BYTES:
        raise index.MalformedError(f"a batch unpacks to more than {BATCH_BYTES} bytes")
    if not unpacker.eof or unpacker.unused_data:
        raise index.MalformedError("a batch does not end where its compressed data does")
    reader, records = index.MessageReader(plain), list[Pair]()
    while reader.more:
        length = reader.varint(record_bytes)
        if not length:
            raise index.MalformedError("a record is empty")
        records.append((reader.take(length), reader.take(_SIGNATURE_BYTES)))
    if not records and not payload[0]:
        raise index.MalformedError("a batch that is not the last is empty")
    return Batch(tuple(records), last=bool(payload[0]))
