"""The two sides of a reconciliation: one asks and learns what each side lacks.

The other answers, and keeps nothing between two requests but what it offered last. Pure.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from enum import Enum, auto
from itertools import pairwise
from typing import NamedTuple

from autoresearch.log.sync import messages
from autoresearch.log.sync.index import (
    FINGERPRINT_BYTES,
    HIGHEST,
    KEY_BYTES,
    SHORT_BYTES,
    KeyIndex,
    MalformedError,
    Violation,
    cut,
    short_id,
)
from autoresearch.record.encoding import ID_BYTES

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
            ranges = messages.decode_request(request, self._lower)
        except MalformedError as error:
            return Violation(f"The request is malformed: {error}.")
        self._offered = {}
        writer = messages.RangeWriter(messages.REPLY_BYTES, self._lower)
        start = self._index.lower_bound(self._lower)
        for item in ranges:
            stop = self._index.lower_bound(item.upper)
            self._spent += _RANGE_COST
            self._tell(writer, item, start, stop)
            if self._spent > _PASSES * (len(self._index) + _SMALLEST):
                return Violation("The requests of this session cost more than an honest one's can.")
            if writer.upper != item.upper:
                break
            start = stop
        return writer.message()

    def resolve(self, shorts: Sequence[bytes]) -> list[bytes] | Violation:
        """The full ids of short ids that the last reply listed. Every reply can be asked about once."""
        offered, self._offered = self._offered, {}
        if not all(short in offered for short in shorts):
            return Violation("It wants records that were not offered.")
        offers = [offered[short] for short in shorts]
        return [ids[at : at + ID_BYTES] for ids in offers for at in range(0, len(ids), ID_BYTES)]

    def _tell(self, writer: messages.RangeWriter, request: messages.Range, start: int, stop: int) -> None:
        """Write what is asked for, as far as there is room."""
        if request.mode is messages.Mode.SKIP:
            writer.skip(request.upper)
        elif request.mode is messages.Mode.IDS:
            self._list(writer, request.upper, start, stop)
        else:
            self._spent += stop - start
            if request.payload == self._index.fingerprint(start, stop, self._salt):
                writer.skip(request.upper)
            elif stop - start <= LEAF:
                self._list(writer, request.upper, start, stop)
            elif writer.room >= PARTS_BYTES:
                self._spent += stop - start
                put_parts(writer, self._index, self._salt, start, stop, request.upper)

    def _list(self, writer: messages.RangeWriter, upper: bytes, start: int, stop: int) -> None:
        fitting = writer.room // SHORT_BYTES
        if fitting <= 0:
            return
        if stop - start > fitting:
            stop = start + fitting
            upper = cut(self._index.key(stop - 1), self._index.key(stop))
        self._spent += _LIST_COST * (stop - start)
        ids = self._index.ids(start, stop)
        shorts = [short_id(record_id, self._salt) for record_id in ids]
        for short, record_id in zip(shorts, ids, strict=True):
            # Ids that collide under this salt are offered together.
            self._offered[short] = self._offered.get(short, b"") + record_id
        writer.put(upper, messages.Mode.IDS, messages.packed_shorts(shorts))


def put_parts(
    writer: messages.RangeWriter, index: KeyIndex, salt: bytes, start: int, stop: int, upper: bytes
) -> list[tuple[bytes, bytes]]:
    """Write fingerprints of up to 16 even parts of a slice of the index; returns the bounds of each part."""
    parts = min(BRANCH, -(-(stop - start) // (LEAF // 2)))
    edges = [start + (stop - start) * part // parts for part in range(parts + 1)]
    bounds = []
    for first, last in pairwise(edges):
        lower = writer.upper
        end = upper if last == stop else cut(index.key(last - 1), index.key(last))
        writer.put(end, messages.Mode.FINGERPRINT, index.fingerprint(first, last, salt))
        bounds.append((lower, end))
    return bounds


MAX_LEVEL = 8


class _How(Enum):
    WHOLE = auto()  # one fingerprint
    SPLIT = auto()  # fingerprints of its parts: the whole is known to differ
    LIST = auto()  # the other side's short ids


class _Open(NamedTuple):
    """A range that is not settled, and how it is asked for. ``level``: how many replies led to it."""

    lower: bytes
    upper: bytes
    level: int
    how: _How


class IdListing(NamedTuple):
    """All short ids that the other side has from ``lower`` up to ``upper``."""

    lower: bytes
    upper: bytes
    shorts: list[bytes]


class ReplyDifference:
    """What one reply told. Read :meth:`have` to its end; then ``need`` is complete."""

    def __init__(self, index: KeyIndex, salt: bytes, listings: list[IdListing]) -> None:
        self._index = index
        self._salt = salt
        self._listings = listings
        self.need: set[bytes] = set()

    def have(self) -> Iterator[bytes]:
        """The ids that are here and not there, found as they are asked for: they can be as many as all records."""
        for lower, upper, shorts in self._listings:
            theirs = set(shorts)
            for record_id in self._index.scan(lower, upper):
                short = short_id(record_id, self._salt) if theirs else b""
                if short in theirs:
                    theirs.discard(short)
                else:
                    yield record_id
            self.need |= theirs


class Initiator:
    """Asks about ``index`` from ``lower`` on until every range is settled.

    Call :meth:`request`, hand its bytes to the other side, give the answer to :meth:`receive`, until there is none.
    """

    def __init__(self, index: KeyIndex, salt: bytes, lower: bytes) -> None:
        self._index = index
        self._salt = salt
        self._lower = lower
        # The range with the lowest keys is last.
        self._open = [_Open(lower, HIGHEST, 0, _How.WHOLE)]
        self._asked: list[_Open] = []

    def request(self) -> bytes | None:
        """The next request, of at most 64 KiB, or None when all is settled."""
        if not self._open:
            return None
        self._asked = []
        writer = messages.RangeWriter(messages.REQUEST_BYTES, self._lower)
        while self._open and writer.room >= PARTS_BYTES and writer.ranges + BRANCH < messages.REQUEST_RANGES:
            self._ask(writer, self._open.pop())
        return writer.message()

    def receive(self, reply: bytes) -> ReplyDifference | Violation:
        """What the reply says, or how it breaks the protocol."""
        try:
            ranges = messages.decode_reply(reply, self._lower)
            listings, differing = self._weigh(ranges)
            unanswered = self._unanswered(ranges[-1].upper, len(reply))
        except MalformedError as error:
            return Violation(f"The reply is malformed: {error}.")
        self._open += reversed(differing + unanswered)
        self._asked = []
        return ReplyDifference(self._index, self._salt, listings)

    def _ask(self, writer: messages.RangeWriter, item: _Open) -> None:
        start, stop = self._index.lower_bound(item.lower), self._index.lower_bound(item.upper)
        writer.skip(item.lower)
        if item.how is _How.LIST or stop - start <= LEAF or item.level >= MAX_LEVEL:
            writer.put(item.upper, messages.Mode.IDS)
            self._asked.append(item._replace(how=_How.LIST))
        elif item.how is _How.WHOLE:
            writer.put(item.upper, messages.Mode.FINGERPRINT, self._index.fingerprint(start, stop, self._salt))
            self._asked.append(item)
        else:
            parts = put_parts(writer, self._index, self._salt, start, stop, item.upper)
            self._asked += [_Open(lower, upper, item.level, _How.WHOLE) for lower, upper in parts]

    def _weigh(self, ranges: list[messages.Range]) -> tuple[list[IdListing], list[_Open]]:
        """The lists among the ranges, and what still differs. Raises MalformedError for what was not asked."""
        listings, differing = list[IdListing](), list[_Open]()
        lower, number, pieces = self._lower, 0, 0
        for item in ranges:
            if item.mode is not messages.Mode.SKIP:
                while number < len(self._asked) and self._asked[number].upper <= lower:
                    number, pieces = number + 1, 0
                pieces += 1
                request = self._fitting(number, lower, item, pieces)
                if item.mode is messages.Mode.IDS:
                    listings.append(IdListing(lower, item.upper, messages.split_shorts(item.payload)))
                elif item.payload != self._own_fingerprint(lower, item.upper):
                    differing.append(_Open(lower, item.upper, request.level + 1, _How.SPLIT))
            lower = item.upper
        return listings, differing

    def _fitting(self, number: int, lower: bytes, item: messages.Range, pieces: int) -> _Open:
        request = self._asked[number] if number < len(self._asked) else None
        if request is None or lower < request.lower or item.upper > request.upper:
            raise MalformedError("it speaks of what was not asked for")
        if item.mode is messages.Mode.FINGERPRINT and request.how is _How.LIST:
            raise MalformedError("it has a fingerprint where ids were asked for")
        if pieces > BRANCH:
            raise MalformedError(f"it splits a range into more than {BRANCH}")
        return request

    def _unanswered(self, covered: bytes, reply_bytes: int) -> list[_Open]:
        """What was asked for beyond ``covered``, where the reply ends. Raises MalformedError when it ends too early."""
        if not self._asked or covered > self._asked[-1].upper:
            raise MalformedError("it speaks of what was not asked for")
        # Only a reply that is full may stop short; else a peer could answer in tiny steps for ever.
        if covered < self._asked[-1].upper and reply_bytes < messages.REPLY_BYTES // 2:
            raise MalformedError("it stops short of what was asked for")
        left = [item for item in self._asked if item.upper > covered]
        return [item._replace(lower=max(item.lower, covered)) for item in left]

    def _own_fingerprint(self, lower: bytes, upper: bytes) -> bytes:
        start, stop = self._index.lower_bound(lower), self._index.lower_bound(upper)
        return self._index.fingerprint(start, stop, self._salt)
