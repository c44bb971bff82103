"""The side of a reconciliation that answers. It keeps nothing between two requests but what it offered last. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from autoresearch.records import ID_BYTES
from autoresearch.sync import salt as salting
from autoresearch.sync.index import FINGERPRINT_BYTES, KEY_BYTES, KeyIndex, cut
from autoresearch.sync.ranges import (
    REPLY_BYTES,
    Mode,
    Range,
    RangeWriter,
    decode_request,
    packed_shorts,
)
from autoresearch.sync.salt import SHORT_BYTES
from autoresearch.sync.wire import MalformedError, Violation

BRANCH = 16
LEAF = 32

# What a session may cost, counted in keys that go into fingerprints: an honest one descends a few levels, hashing every
# key twice on each, and has every key listed once. A range costs as much as some keys: many empty ones are not free.
_PASSES = 32
_SMALLEST = 4_096
_RANGE_COST = 64
_LIST_COST = 12
# A part's bound, its head and its fingerprint.
PARTS_BYTES = BRANCH * (1 + KEY_BYTES + FINGERPRINT_BYTES)


class Responder:
    """Answers requests about ``index`` from ``lower`` on, and says which full ids it offered."""

    def __init__(self, index: KeyIndex, salt: bytes, lower: bytes) -> None:
        self._index = index
        self._salt = salt
        self._lower = lower
        self._spent = 0
        self._offered: dict[bytes, bytes] = {}

    def answer(self, request: bytes) -> bytes | Violation:
        """The reply, of at most 256 KiB: where that is too little it stops short, and the rest is asked for again."""
        try:
            asked = decode_request(request, self._lower)
        except MalformedError as error:
            return Violation(f"The request is malformed: {error}.")
        self._offered = {}
        writer = RangeWriter(REPLY_BYTES, self._lower)
        start = self._index.lower_bound(self._lower)
        for item in asked:
            stop = self._index.lower_bound(item.upper)
            self._spent += _RANGE_COST
            self._tell(writer, item, start, stop)
            if self._spent > _PASSES * (len(self._index) + _SMALLEST):
                return Violation("The requests of this session cost more than an honest one's can.")
            if writer.upper != item.upper:
                break
            start = stop
        return writer.message()

    def resolve(self, wanted: Sequence[bytes]) -> list[bytes] | Violation:
        """The full ids of short ids that the last reply listed. Every reply can be asked about once."""
        offered, self._offered = self._offered, {}
        if not all(short in offered for short in wanted):
            return Violation("It wants records that were not offered.")
        found = [offered[short] for short in wanted]
        return [ids[at : at + ID_BYTES] for ids in found for at in range(0, len(ids), ID_BYTES)]

    def _tell(self, writer: RangeWriter, asked: Range, start: int, stop: int) -> None:
        """Write what is asked for, as far as there is room."""
        if asked.mode is Mode.SKIP:
            writer.skip(asked.upper)
        elif asked.mode is Mode.IDS:
            self._list(writer, asked.upper, start, stop)
        else:
            self._spent += stop - start
            if asked.payload == self._index.fingerprint(start, stop, self._salt):
                writer.skip(asked.upper)
            elif stop - start <= LEAF:
                self._list(writer, asked.upper, start, stop)
            elif writer.room >= PARTS_BYTES:
                self._spent += stop - start
                put_parts(writer, self._index, self._salt, start, stop, asked.upper)

    def _list(self, writer: RangeWriter, upper: bytes, start: int, stop: int) -> None:
        fitting = writer.room // SHORT_BYTES
        if fitting <= 0:
            return
        if stop - start > fitting:
            stop = start + fitting
            upper = cut(self._index.key(stop - 1), self._index.key(stop))
        self._spent += _LIST_COST * (stop - start)
        ids = self._index.ids(start, stop)
        shorts = [salting.short_id(record_id, self._salt) for record_id in ids]
        for short, record_id in zip(shorts, ids, strict=True):
            # Ids that collide under this salt are offered together.
            self._offered[short] = self._offered.get(short, b"") + record_id
        writer.put(upper, Mode.IDS, packed_shorts(shorts))


def put_parts(
    writer: RangeWriter, index: KeyIndex, salt: bytes, start: int, stop: int, upper: bytes
) -> list[tuple[bytes, bytes]]:
    """Write fingerprints of up to 16 even parts of a slice of the index; returns the bounds of each part."""
    parts = min(BRANCH, -(-(stop - start) // (LEAF // 2)))
    edges = [start + (stop - start) * part // parts for part in range(parts + 1)]
    bounds = []
    for first, last in pairwise(edges):
        lower = writer.upper
        end = upper if last == stop else cut(index.key(last - 1), index.key(last))
        writer.put(end, Mode.FINGERPRINT, index.fingerprint(first, last, salt))
        bounds.append((lower, end))
    return bounds
