"""What two peers compare: the keys of all records, sorted by (time, id).

Also the salt of a session, the short ids under it, for which nobody can prepare records, and the smallest parts of
messages. Pure. A key is 40 bytes: the time in ms, big-endian in 8, and the id. They lie packed in blocks, so that a
million keys take about 40 MB, an insertion moves one block, and a fingerprint is one hash over memory as it lies.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from hashlib import blake2b
from itertools import accumulate, islice, starmap
from operator import lt
from struct import Struct

# Nine groups of seven bits: every integer up to 2**63 - 1.
_VARINT_BYTES = 9


class MalformedError(ValueError):
    """The bytes spell no message; ``str(error)`` says why. Stays within this room: callers get a Violation."""


@dataclass(frozen=True, slots=True)
class Violation:
    """The peer broke the protocol: the session is over, what was learned before stays true. A sentence says how."""

    sentence: str


def varint(number: int) -> bytes:
    """Unsigned LEB128: seven bits a byte, the lowest first, the top bit on all but the last."""
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)


def leading_varint(data: bytes | bytearray, at: int = 0) -> tuple[int, int] | None:
    """The integer at ``at`` and the position after it; None when more bytes are needed. Raises MalformedError."""
    number = 0
    for index in range(_VARINT_BYTES):
        if at + index >= len(data):
            return None
        byte = data[at + index]
        number |= (byte & 0x7F) << (7 * index)
        if byte < 0x80:
            if byte == 0 and index:
                raise MalformedError("an integer is not written in its shortest form")
            return number, at + index + 1
    raise MalformedError("an integer is too long")


class MessageReader:
    """Reads a message from its beginning to its end. Every method raises MalformedError at the end of the bytes."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    @property
    def more(self) -> bool:
        """Whether bytes are left."""
        return self._at < len(self._data)

    def byte(self) -> int:
        """The next byte."""
        return self.take(1)[0]

    def take(self, count: int) -> bytes:
        """The next ``count`` bytes."""
        end = self._at + count
        if end > len(self._data):
            raise MalformedError("the message ends too early")
        taken = self._data[self._at : end]
        self._at = end
        return taken

    def varint(self, most: int) -> int:
        """The next integer, which is at most ``most``."""
        decoded = leading_varint(self._data, self._at)
        if decoded is None:
            raise MalformedError("the message ends too early")
        number, self._at = decoded
        if number > most:
            raise MalformedError(f"a number is {number}, more than the {most} allowed here")
        return number


NONCE_BYTES = 16
SALT_BYTES = 32
SHORT_BYTES = 8


def session_salt(opener: bytes, leader: bytes) -> bytes:
    """The salt made of one nonce from each side, the opener's first: neither side chooses it alone."""
    return blake2b(opener + leader, digest_size=SALT_BYTES, person=b"autoresearch/1").digest()


def short_id(record_id: bytes, salt: bytes) -> bytes:
    """8 bytes for an id: BLAKE2b keyed with the salt. Two ids that collide in one session don't in the next."""
    return blake2b(record_id, key=salt, digest_size=SHORT_BYTES).digest()


KEY_BYTES = 40
TIME_BYTES = 8
FINGERPRINT_BYTES = 16
# Above every key, as the empty string is below: bounds compare with keys as byte strings do.
LOWEST, HIGHEST = b"", b"\xff" * (KEY_BYTES + 1)

_BLOCK = 1024
_pack = Struct(">Q32s").pack


class KeyIndex:
    """A sorted set of keys. Ranks count from 0 in the order of (time, id). Not for several threads at once."""

    def __init__(self, keys: Iterable[tuple[int, bytes]] = ()) -> None:
        self._blocks: list[bytearray] = []
        self._firsts: list[bytes] = []
        # How many keys lie before each block; None after a change, until somebody asks.
        self._before: list[int] | None = []
        self._count = 0
        self.update(keys)

    def __len__(self) -> int:
        return self._count

    def __contains__(self, key: tuple[int, bytes]) -> bool:
        packed = _pack(*key)
        rank = self.lower_bound(packed)
        return rank < self._count and self.key(rank) == packed

    def update(self, keys: Iterable[tuple[int, bytes]]) -> None:
        """Add keys, given as time in ms and 32-byte id; those that come sorted, after all others, are taken fast."""
        source = iter(keys)
        while batch := list(islice(source, _BLOCK)):
            packed = list(starmap(_pack, batch))
            if all(map(lt, packed, packed[1:])) and (not self._count or self.key(self._count - 1) < packed[0]):
                self._blocks.append(bytearray(b"".join(packed)))
                self._firsts.append(packed[0])
                self._count += len(packed)
                self._before = None
            else:
                for time_ms, record_id in batch:
                    self.add(time_ms, record_id)

    def add(self, time_ms: int, record_id: bytes) -> bool:
        """Add one key; False when it is there."""
        key = _pack(time_ms, record_id)
        if not self._blocks:
            self._blocks.append(bytearray())
            self._firsts.append(key)
        number = max(bisect_right(self._firsts, key) - 1, 0)
        block = self._blocks[number]
        at = _position(block, key)
        if block[at : at + KEY_BYTES] == key:
            return False
        block[at:at] = key
        if at == 0:
            self._firsts[number] = key
        if len(block) >= 2 * _BLOCK * KEY_BYTES:
            self._blocks[number : number + 1] = block[: _BLOCK * KEY_BYTES], block[_BLOCK * KEY_BYTES :]
            self._firsts.insert(number + 1, bytes(block[_BLOCK * KEY_BYTES : (_BLOCK + 1) * KEY_BYTES]))
        self._count += 1
        self._before = None
        return True

    def discard(self, time_ms: int, record_id: bytes) -> bool:
        """Remove one key; False when it is not there."""
        key = _pack(time_ms, record_id)
        number = bisect_right(self._firsts, key) - 1
        if number < 0:
            return False
        block = self._blocks[number]
        at = _position(block, key)
        if block[at : at + KEY_BYTES] != key:
            return False
        del block[at : at + KEY_BYTES]
        if not block:
            del self._blocks[number], self._firsts[number]
        elif at == 0:
            self._firsts[number] = bytes(block[:KEY_BYTES])
        self._count -= 1
        self._before = None
        return True

    def lower_bound(self, bound: bytes) -> int:
        """How many keys are below ``bound``, which may be a key, a prefix of one, LOWEST or HIGHEST."""
        number = bisect_right(self._firsts, bound) - 1
        if number < 0:
            return 0
        return self._starts()[number] + _position(self._blocks[number], bound) // KEY_BYTES

    def key(self, rank: int) -> bytes:
        """The key with this rank."""
        return self.slice(rank, rank + 1)

    def slice(self, start: int, stop: int) -> bytes:
        """The keys with ranks from ``start`` up to ``stop``, packed."""
        return b"".join(self._pieces(start, stop))

    def ids(self, start: int, stop: int) -> list[bytes]:
        """The ids of :meth:`slice`."""
        packed = self.slice(start, stop)
        return [packed[at + TIME_BYTES : at + KEY_BYTES] for at in range(0, len(packed), KEY_BYTES)]

    def scan(self, lower: bytes, upper: bytes) -> Iterator[bytes]:
        """The ids from bound ``lower`` up to ``upper``, in order. The index may change meanwhile."""
        while True:
            start, stop = self.lower_bound(lower), self.lower_bound(upper)
            stop = min(stop, start + _BLOCK)
            if start >= stop:
                return
            packed = self.slice(start, stop)
            yield from (packed[at + TIME_BYTES : at + KEY_BYTES] for at in range(0, len(packed), KEY_BYTES))
            lower = packed[-KEY_BYTES:] + b"\0"

    def fingerprint(self, start: int, stop: int, salt: bytes) -> bytes:
        """16 bytes for the keys ranked from ``start`` up to ``stop``: BLAKE2b, keyed with ``salt``, of the slice."""
        digest = blake2b(key=salt, digest_size=FINGERPRINT_BYTES)
        for piece in self._pieces(start, stop):
            digest.update(piece)
        return digest.digest()

    def _pieces(self, start: int, stop: int) -> Iterator[bytes | bytearray]:
        before = self._starts()
        number = bisect_right(before, start) - 1
        while start < stop:
            block = self._blocks[number]
            first, last = start - before[number], min(len(block) // KEY_BYTES, stop - before[number])
            whole = first == 0 and last * KEY_BYTES == len(block)
            yield block if whole else block[first * KEY_BYTES : last * KEY_BYTES]
            start = before[number] + last
            number += 1

    def _starts(self) -> list[int]:
        if self._before is None:
            counts = (len(block) // KEY_BYTES for block in self._blocks[:-1])
            self._before = list(accumulate(counts, initial=0))
        return self._before


def cut(before: bytes, after: bytes) -> bytes:
    """The shortest bound that separates two keys: above ``before``, not above ``after``."""
    same = next(at for at, (low, other) in enumerate(zip(before, after, strict=True)) if low != other)
    return after[: same + 1]


def _position(block: bytearray, bound: bytes) -> int:
    """Where in ``block`` the first key not below ``bound`` begins."""
    if not block or block[-KEY_BYTES:] < bound:
        return len(block)
    ranks = range(len(block) // KEY_BYTES)
    return KEY_BYTES * bisect_left(
        ranks, bound, key=lambda rank: bytes(block[rank * KEY_BYTES : (rank + 1) * KEY_BYTES])
    )
