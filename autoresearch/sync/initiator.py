"""The side of a reconciliation that asks, and learns what each side lacks. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum, auto
from typing import NamedTuple

from autoresearch.sync import salt as salting
from autoresearch.sync.index import HIGHEST, KeyIndex
from autoresearch.sync.ranges import (
    REPLY_BYTES,
    REQUEST_BYTES,
    REQUEST_RANGES,
    Mode,
    Range,
    RangeWriter,
    decode_reply,
    split_shorts,
)
from autoresearch.sync.responder import BRANCH, LEAF, PARTS_BYTES, put_parts
from autoresearch.sync.wire import MalformedError, Violation

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


class Listing(NamedTuple):
    """All short ids that the other side has from ``lower`` up to ``upper``."""

    lower: bytes
    upper: bytes
    shorts: list[bytes]


class Difference:
    """What one reply told. Read :meth:`have` to its end; then ``need`` is complete."""

    def __init__(self, index: KeyIndex, salt: bytes, listings: list[Listing]) -> None:
        self._index = index
        self._salt = salt
        self._listings = listings
        self.need: set[bytes] = set()

    def have(self) -> Iterator[bytes]:
        """The ids that are here and not there, found as they are asked for: they can be as many as all records."""
        for lower, upper, shorts in self._listings:
            theirs = set(shorts)
            for record_id in self._index.scan(lower, upper):
                short = salting.short_id(record_id, self._salt) if theirs else b""
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
        writer = RangeWriter(REQUEST_BYTES, self._lower)
        while self._open and writer.room >= PARTS_BYTES and writer.ranges + BRANCH < REQUEST_RANGES:
            self._ask(writer, self._open.pop())
        return writer.message()

    def receive(self, reply: bytes) -> Difference | Violation:
        """What the reply says, or how it breaks the protocol."""
        try:
            ranges = decode_reply(reply, self._lower)
            listings, differing = self._weigh(ranges)
            unanswered = self._unanswered(ranges[-1].upper, len(reply))
        except MalformedError as error:
            return Violation(f"The reply is malformed: {error}.")
        self._open += reversed(differing + unanswered)
        self._asked = []
        return Difference(self._index, self._salt, listings)

    def _ask(self, writer: RangeWriter, item: _Open) -> None:
        start, stop = self._index.lower_bound(item.lower), self._index.lower_bound(item.upper)
        writer.skip(item.lower)
        if item.how is _How.LIST or stop - start <= LEAF or item.level >= MAX_LEVEL:
            writer.put(item.upper, Mode.IDS)
            self._asked.append(item._replace(how=_How.LIST))
        elif item.how is _How.WHOLE:
            writer.put(item.upper, Mode.FINGERPRINT, self._index.fingerprint(start, stop, self._salt))
            self._asked.append(item)
        else:
            parts = put_parts(writer, self._index, self._salt, start, stop, item.upper)
            self._asked += [_Open(lower, upper, item.level, _How.WHOLE) for lower, upper in parts]

    def _weigh(self, ranges: list[Range]) -> tuple[list[Listing], list[_Open]]:
        """The lists among the ranges, and what still differs. Raises MalformedError for what was not asked."""
        listings, differing = list[Listing](), list[_Open]()
        lower, number, pieces = self._lower, 0, 0
        for item in ranges:
            if item.mode is not Mode.SKIP:
                while number < len(self._asked) and self._asked[number].upper <= lower:
                    number, pieces = number + 1, 0
                pieces += 1
                asked = self._fitting(number, lower, item, pieces)
                if item.mode is Mode.IDS:
                    listings.append(Listing(lower, item.upper, split_shorts(item.payload)))
                elif item.payload != self._own_fingerprint(lower, item.upper):
                    differing.append(_Open(lower, item.upper, asked.level + 1, _How.SPLIT))
            lower = item.upper
        return listings, differing

    def _fitting(self, number: int, lower: bytes, item: Range, pieces: int) -> _Open:
        asked = self._asked[number] if number < len(self._asked) else None
        if asked is None or lower < asked.lower or item.upper > asked.upper:
            raise MalformedError("it speaks of what was not asked for")
        if item.mode is Mode.FINGERPRINT and asked.how is _How.LIST:
            raise MalformedError("it has a fingerprint where ids were asked for")
        if pieces > BRANCH:
            raise MalformedError(f"it splits a range into more than {BRANCH}")
        return asked

    def _unanswered(self, covered: bytes, reply_bytes: int) -> list[_Open]:
        """What was asked for beyond ``covered``, where the reply ends. Raises MalformedError when it ends too early."""
        if not self._asked or covered > self._asked[-1].upper:
            raise MalformedError("it speaks of what was not asked for")
        # Only a reply that is full may stop short; else a peer could answer in tiny steps for ever.
        if covered < self._asked[-1].upper and reply_bytes < REPLY_BYTES // 2:
            raise MalformedError("it stops short of what was asked for")
        left = [item for item in self._asked if item.upper > covered]
        return [item._replace(lower=max(item.lower, covered)) for item in left]

    def _own_fingerprint(self, lower: bytes, upper: bytes) -> bytes:
        start, stop = self._index.lower_bound(lower), self._index.lower_bound(upper)
        return self._index.fingerprint(start, stop, self._salt)
