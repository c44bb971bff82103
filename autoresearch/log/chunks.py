"""A large blob while it is fetched: the hashes of its chunks, and the file that they are written to in any order.

Each chunk is checked before it is written. No list says which chunks are there: the file's own bytes do, hashed again
when the fetch goes on. So a process that is killed in the middle, or a disk that lost its last writes, costs the chunks
concerned and nothing else.
"""

from __future__ import annotations

import errno
import fcntl
import hashlib
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from typing import Self

from autoresearch.errors import Locked, Refused
from autoresearch.log.connection import refusals
from autoresearch.record.encoding import EncodingError, decode, encode

CHUNK_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class Manifest:
    """``size`` bytes in chunks of ``chunk`` bytes, the last one shorter; ``hashes`` are their SHA-256 in order."""

    size: int
    chunk: int
    hashes: tuple[bytes, ...]

    def fits(self, index: int, data: bytes) -> bool:
        """Whether ``data`` is the chunk number ``index``, from 0."""
        return index < len(self.hashes) and hashlib.sha256(data).digest() == self.hashes[index]


def encode_manifest(size: int, hashes: Sequence[bytes]) -> bytes:
    """The bytes of a manifest: a map of version, size, chunk size and the hashes one after the other."""
    return encode({"v": 1, "size": size, "chunk": CHUNK_BYTES, "hashes": b"".join(hashes)})


def decode_manifest(raw: bytes) -> Manifest:
    """The manifest that ``raw`` spells. Raises Refused when it is none, or doesn't fit its own size."""
    try:
        value = decode(raw)
    except EncodingError as error:
        raise Refused("This is no chunk manifest.") from error
    if not isinstance(value, dict) or value.keys() != {"v", "size", "chunk", "hashes"} or value["v"] != 1:
        raise Refused("This is no chunk manifest.")
    size, chunk, hashes = value["size"], value["chunk"], value["hashes"]
    if not (type(size) is int and chunk == CHUNK_BYTES and isinstance(hashes, bytes) and size > 0):
        raise Refused("This is no chunk manifest.")
    if len(hashes) != 32 * -(-size // CHUNK_BYTES):
        raise Refused("The chunk manifest doesn't fit its own size.")
    return Manifest(size, CHUNK_BYTES, tuple(hashes[at : at + 32] for at in range(0, len(hashes), 32)))


class PartialBlob:
    """The chunks of one blob at ``path``; a context manager that holds a lock on them, and leaves them on the disk.

    Threads may share it; what comes after its end is not kept.

    Raises:
        Locked: another fetch of the blob is under way.
        Refused: the file can't be used.
    """

    def __init__(self, path: Path, manifest: Manifest) -> None:
        self.path = path
        self.manifest = manifest
        self._lock = Lock()
        self._open = True
        with refusals(path):
            self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            try:
                fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                if os.fstat(self._descriptor).st_size > manifest.size:
                    os.ftruncate(self._descriptor, manifest.size)
            except BlockingIOError as error:
                os.close(self._descriptor)
                raise Locked("This blob is being fetched already.", hint="try again in a moment") from error
            except BaseException:
                os.close(self._descriptor)
                raise
        self.missing: set[int] = set()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._open = False
            os.close(self._descriptor)

    def look(self) -> set[int]:
        """Hash what is there. Returns the numbers of the chunks that are missing; those are in ``missing`` too."""
        with refusals(self.path):
            intact = {index for index in self._written() if self.manifest.fits(index, self._read(index))}
        self.missing = set(range(len(self.manifest.hashes))) - intact
        return set(self.missing)

    def put(self, index: int, data: bytes) -> bool:
        """Keep a chunk. Returns False, and keeps nothing, when it is not the one that the manifest names."""
        if not self.manifest.fits(index, data):
            return False
        with self._lock, refusals(self.path):
            written = 0
            while self._open and written < len(data):
                written += os.pwrite(self._descriptor, data[written:], index * self.manifest.chunk + written)
            self.missing.discard(index)
        return True

    def flush(self) -> None:
        """Force the chunks to the disk."""
        with refusals(self.path):
            os.fsync(self._descriptor)

    def _read(self, index: int) -> bytes:
        return os.pread(self._descriptor, self.manifest.chunk, index * self.manifest.chunk)

    def _written(self) -> list[int]:
        """The chunks that are no hole in the file: nothing else has to be hashed."""
        size, chunk = os.fstat(self._descriptor).st_size, self.manifest.chunk
        numbers: list[int] = []
        place = 0
        while place < size:
            try:
                place = os.lseek(self._descriptor, place, os.SEEK_DATA)
            except OSError as error:
                if error.errno == errno.ENXIO:  # a hole up to the end
                    break
                raise
            numbers.append(place // chunk)
            place = (place // chunk + 1) * chunk
        return numbers
