"""Records in the bytes of a damaged log: found without SQLite, since each proves itself by its hash and signature.

A row of the table ``record`` is a cell of a page: how long it is and its number as varints, then a header with the
type of each column, then the columns. What does not fit into the page goes on in a chain of others. The header of a
record's row begins alike in all of them, so that rows are found by it: also where a page's own header, the schema or
the first page is gone, in a file that was cut off, in its write-ahead log, and in pages that nothing points to any
more. Source: https://www.sqlite.org/fileformat2.html.
"""

from __future__ import annotations

import mmap
import re
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

# A row's number (NULL: it is the key), id and author (32 bytes), seq and time (integers), kind (text), task (32 bytes
# or none), the record's bytes (a blob), the signature (64 bytes).
_HEADER = re.compile(
    rb"\x00LL[\x01-\x06\x08\x09][\x01-\x06\x08\x09][\x0d-\x4d][\x00L][\x80-\xff]{0,2}[\x00-\x7f]\x81\x0c"
)
_SIZES = (0, 1, 2, 3, 4, 6, 8, 8, 0, 0)
_SIGNATURE_BYTES = 64
_WAL_HEADER, _FRAME_HEADER = 32, 24
_LARGEST = 65_536
# A page can be there in many versions in the write-ahead log. So many pages are tried for one row.
_WAYS = 256


class Row(NamedTuple):
    """A row that was found: its number where it can still be read (else 0), the record's bytes and its signature."""

    number: int
    raw: bytes
    signature: bytes


def salvage(files: Sequence[Path], *, most_bytes: int) -> Iterator[Row]:
    """All that looks like a row of ``record`` in a database and its write-ahead log, whose name ends in ``-wal``.

    The same row may come again, and rows of which nobody signed the bytes: who takes them checks that. ``most_bytes``
    is how long a record is at most.
    """
    with ExitStack() as opened:
        images = [_Image(path, opened.enter_context(_mapped(path))) for path in files if path.stat().st_size]
        # A header that is damaged can say anything: pages of the usual sizes are looked for as well.
        sizes = {4096, 8192, *(size for image in images for size in image.page_sizes())}
        by_size = [_Pages(images, size) for size in sorted(sizes)]
        for image in images:
            for match in _HEADER.finditer(image.content):
                for pages in by_size:
                    yield from _rows(image, match, pages, most_bytes)


def _mapped(path: Path) -> mmap.mmap:
    with path.open("rb") as file:
        return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)


class _Image:
    """The bytes of a database or of a write-ahead log."""

    def __init__(self, path: Path, content: mmap.mmap) -> None:
        self.content = content
        self.is_wal = path.name.endswith("-wal")

    def page_sizes(self) -> list[int]:
        """The size of a page as the file's header has it; none where that is damaged."""
        head = self.content[8:12] if self.is_wal else self.content[16:18]
        size = int.from_bytes(head, "big")
        size = _LARGEST if size == 1 else size
        return [size] if 512 <= size <= _LARGEST and not size & (size - 1) else []

    def page(self, number: int, size: int) -> list[bytes]:
        """The versions of a page, the newest first."""
        if self.is_wal:
            return []
        content = self.content[(number - 1) * size : number * size]
        return [content] if len(content) == size else []

    def frames(self, size: int) -> Iterator[tuple[int, int]]:
        """The number of the page in each frame of a write-ahead log, and where its content begins."""
        for start in range(_WAL_HEADER, len(self.content) - _FRAME_HEADER - size + 1, _FRAME_HEADER + size):
            yield int.from_bytes(self.content[start : start + 4], "big"), start + _FRAME_HEADER

    def room(self, position: int, size: int) -> int:
        """How many bytes of the page that holds a position follow it, from it on."""
        if self.is_wal:
            return size - (position - _WAL_HEADER) % (_FRAME_HEADER + size) + _FRAME_HEADER
        return size - position % size


class _Pages:
    """Pages by their number, in all files at once."""

    def __init__(self, images: Sequence[_Image], size: int) -> None:
        self.size = size
        self._images = images
        self._frames: dict[int, list[tuple[_Image, int]]] = {}
        for image in images:
            if image.is_wal:
                for number, start in image.frames(size):
                    self._frames.setdefault(number, []).append((image, start))

    def versions(self, number: int) -> Iterator[bytes]:
        """All that a page was, the newest first."""
        for image, start in reversed(self._frames.get(number, [])):
            yield image.content[start : start + self.size]
        for image in self._images:
            yield from image.page(number, self.size)

    def chains(self, number: int, length: int, ways: Iterator[int]) -> Iterator[bytes]:
        """What the chain of pages that begins with this one can hold. Each page that is tried takes one of ``ways``."""
        if length <= 0:
            yield b""
            return
        for page in self.versions(number) if number else ():
            if next(ways, None) is None:
                return
            rest = length - (self.size - 4)
            for tail in self.chains(int.from_bytes(page[:4], "big"), rest, ways):
                yield page[4 : 4 + min(length, self.size - 4)] + tail


def _rows(image: _Image, match: re.Match[bytes], pages: _Pages, most_bytes: int) -> Iterator[Row]:
    """The row whose header was found, in each way that its pages can be put together."""
    content, size = image.content, pages.size
    start = match.start() - 1  # of the header, whose first byte is its length
    if start < 0 or content[start] != match.end() - start:
        return
    types = match[0]
    raw_type = _varint(types[7:-2])
    raw_bytes = (raw_type - 12) // 2
    if raw_type < 12 or raw_type % 2 or raw_bytes > most_bytes:
        return
    before = 64 + _SIZES[types[3]] + _SIZES[types[4]] + (types[5] - 13) // 2 + (32 if types[6] else 0)
    total = len(types) + 1 + before + raw_bytes + _SIGNATURE_BYTES
    within = _within_page(total, size)
    local = content[start : start + min(within, image.room(start, size))]
    if len(local) < within:
        return
    chains: Iterator[bytes] = iter([b""])
    if within < total:
        first = int.from_bytes(content[start + within : start + within + 4], "big")
        chains = pages.chains(first, total - within, iter(range(_WAYS)))
    number = _number_before(content, start, total)
    begin = len(types) + 1 + before
    for chain in chains:
        payload = local + chain
        if len(payload) == total:
            yield Row(number, payload[begin : begin + raw_bytes], payload[begin + raw_bytes :])


def _within_page(total: int, size: int) -> int:
    """How much of a row is in its own page; the rest is in the chain."""
    most, least = size - 35, (size - 12) * 32 // 255 - 23
    if total <= most:
        return total
    within = least + (total - least) % (size - 4)
    return within if within <= most else least


def _varint(octets: bytes) -> int:
    value = 0
    for octet in octets:
        value = value << 7 | octet & 0x7F
    return value


def _number_before(content: mmap.mmap, start: int, total: int) -> int:
    """The row's number, which stands between the row's length and its header; 0 where these were overwritten."""
    for taken in range(1, 10):
        octets = content[start - taken : start]
        if len(octets) == taken and all(octet & 0x80 for octet in octets[:-1]) and not octets[-1] & 0x80:
            length = content[max(0, start - taken - 3) : start - taken]
            if any(_varint(length[-width:]) == total for width in (1, 2, 3) if _is_varint(length[-width:])):
                return _varint(octets)
    return 0


def _is_varint(octets: bytes) -> bool:
    return bool(octets) and not octets[-1] & 0x80 and all(octet & 0x80 for octet in octets[:-1])
