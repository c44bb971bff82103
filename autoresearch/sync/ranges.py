"""Reconciliation messages: ranges of keys, each with what the sender says or asks about it. Pure.

A message is a sequence of ranges, each from the end of the one before (the first from the session's horizon) up to its
own upper bound. ``docs/protocol.md`` has the layout.
"""

from __future__ import annotations

from enum import IntEnum
from operator import lt
from typing import NamedTuple

from autoresearch.sync.index import FINGERPRINT_BYTES, HIGHEST, KEY_BYTES
from autoresearch.sync.salt import SHORT_BYTES
from autoresearch.sync.wire import MalformedError, Reader, varint

REQUEST_BYTES = 64 * 1024
REPLY_BYTES = 256 * 1024
REQUEST_RANGES = 4_096
REPLY_RANGES = 32_768

# A head byte and a bound; and the largest integer that counts ids.
_BOUND_BYTES = 1 + KEY_BYTES
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
        bound = b"" if upper == HIGHEST else upper
        self._out.append(mode << 6 | len(bound))
        self._out += bound
        self.ranges += 1


def packed_shorts(shorts: list[bytes]) -> bytes:
    """The payload of a reply that lists short ids."""
    distinct = sorted(set(shorts))
    return varint(len(distinct)) + b"".join(distinct)


def split_shorts(payload: bytes) -> list[bytes]:
    """The short ids of a decoded list."""
    return [payload[at : at + SHORT_BYTES] for at in range(0, len(payload), SHORT_BYTES)]


def decode_request(data: bytes, lower: bytes) -> list[Range]:
    """The ranges of a request. Raises MalformedError for anything but the one way to write it."""
    ranges = _decode(data, lower, REQUEST_BYTES, REQUEST_RANGES, listing=False)
    if ranges[-1].mode is Mode.SKIP:
        raise MalformedError("a request ends with what it asks for")
    return ranges


def decode_reply(data: bytes, lower: bytes) -> list[Range]:
    """The ranges of a reply. Raises MalformedError for anything but the one way to write it."""
    return _decode(data, lower, REPLY_BYTES, REPLY_RANGES, listing=True)


def _decode(data: bytes, lower: bytes, most_bytes: int, most_ranges: int, *, listing: bool) -> list[Range]:
    if len(data) > most_bytes:
        raise MalformedError(f"the message has {len(data)} bytes, more than the {most_bytes} allowed")
    reader, ranges = Reader(data), list[Range]()
    while reader.more:
        item = _decode_range(reader, listing=listing)
        if item.upper <= lower:
            raise MalformedError("the bounds of ranges do not ascend")
        if item.mode is Mode.SKIP and ranges and ranges[-1].mode is Mode.SKIP:
            raise MalformedError("two ranges that say nothing follow each other")
        if len(ranges) == most_ranges:
            raise MalformedError(f"the message has more than {most_ranges} ranges")
        ranges.append(item)
        lower = item.upper
    if not ranges:
        raise MalformedError("the message is empty")
    return ranges


def _decode_range(reader: Reader, *, listing: bool) -> Range:
    head = reader.byte()
    length = head & 0x3F
    if length > KEY_BYTES or head >> 6 > max(Mode):
        raise MalformedError("a range begins with an unknown byte")
    upper = reader.take(length) if length else HIGHEST
    if length and upper[-1] == 0:
        raise MalformedError("a bound is not written in its shortest form")
    mode = Mode(head >> 6)
    if mode is Mode.FINGERPRINT:
        return Range(upper, mode, reader.take(FINGERPRINT_BYTES))
    if mode is Mode.IDS and listing:
        payload = reader.take(SHORT_BYTES * reader.varint(REPLY_BYTES // SHORT_BYTES))
        shorts = split_shorts(payload)
        if not all(map(lt, shorts, shorts[1:])):
            raise MalformedError("the short ids of a list do not ascend")
        return Range(upper, mode, payload)
    return Range(upper, mode)
