"""Bytes named by their hash, as files: sources, logs, checkpoints.

A blob is written to a temporary file, forced to the disk, renamed to its hash, and only then entered in the index, so
that an entry always has its bytes. What a killed process leaves behind is swept at the next opening.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import sqlite3
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager, suppress
from functools import lru_cache
from pathlib import Path
from threading import RLock
from typing import BinaryIO

from autoresearch.errors import AutoresearchError, NotFound, Refused
from autoresearch.log.chunks import CHUNK_BYTES, Manifest, PartialBlob, decode_manifest, encode_manifest
from autoresearch.log.connection import open_database, refusals, transaction
from autoresearch.log.eviction import KeptBlob
from autoresearch.paths import sync_path
from autoresearch.record.kinds import BlobRef

_SCHEMA = """
CREATE TABLE IF NOT EXISTS blob(sha256 BLOB PRIMARY KEY, size INTEGER NOT NULL, manifest BLOB,
    fetched INTEGER NOT NULL DEFAULT 0) WITHOUT ROWID
"""


def make_index(connection: sqlite3.Connection) -> None:
    """Make the table of the index; that of an older format is the same."""
    connection.execute(_SCHEMA)


class MissingBlob(NotFound):
    """A blob that is wanted is not on this machine; others may have it, and who made it had: ``author`` is its key."""

    def __init__(self, what: str, blob: BlobRef, author: bytes) -> None:
        super().__init__(f"{what} is not on this machine.", hint="autoresearch network peers")
        self.what = what
        self.blob = blob
        self.author = author

    def nowhere(self, reason: NotFound) -> NotFound:
        """The error for a blob that nobody has whom the daemon could ask, and why."""
        back = f"it may come back when its author {self.author.hex()[:12]}… is online"
        return NotFound(f"{self.what} is not on this machine, and {reason}; {back}", hint=reason.hint)


def forget_lost(root: Path) -> None:
    """Take out of the index of the blobs in ``root`` those without a file: they may be fetched again.

    For a folder that is known to be whole, as after a restore. Elsewhere a disk may only not be mounted.
    """
    with (
        closing(open_database(root / "index.sqlite", make_index, read_only=False)) as connection,
        transaction(connection, durable=True),
    ):
        files = {path.name for path in (root / "objects").glob("*/*")}
        names = [row[0] for row in connection.execute("SELECT sha256 FROM blob")]
        lost = [(name,) for name in names if name.hex() not in files]
        connection.executemany("DELETE FROM blob WHERE sha256 = ?", lost)


class BlobStore:
    """The blobs in the folder ``root``. Several processes may use it at once."""

    def __init__(self, root: Path, *, read_only: bool = False) -> None:
        self.root = root
        self.read_only = read_only
        self._objects, self._temporary, self._partial = root / "objects", root / "tmp", root / "partial"
        self._lock = RLock()
        index, lost = root / "index.sqlite", root / "index.lost"
        if not read_only:
            with refusals(root):
                for folder in (self._objects, self._temporary, self._partial):
                    folder.mkdir(parents=True, exist_ok=True)
                if not index.exists():
                    lost.touch()  # before there is an index that names nothing: files without an entry are swept
        self._connection = open_database(index, make_index, read_only=read_only)
        if not read_only:
            if lost.exists():
                # The index is new, or was lost: every file whose bytes are those of its name is entered.
                for path in list(self._objects.glob("*/*")):
                    self.put_file(path)
                lost.unlink(missing_ok=True)
            self._sweep()

    def __enter__(self) -> BlobStore:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the index."""
        with self._lock:
            self._connection.close()

    def put(self, data: bytes) -> BlobRef:
        """Keep ``data``; it is on the disk when this returns. Raises Refused when it can't be written."""
        return self.put_stream([data])

    def put_file(self, path: Path) -> BlobRef:
        """Keep a copy of a file, read piece by piece. Raises NotFound, Refused."""
        try:
            with path.open("rb") as file:
                return self.put_stream(iter(lambda: file.read(CHUNK_BYTES), b""))
        except FileNotFoundError as error:
            raise NotFound(f"There is no file {path}.") from error
        except OSError as error:
            raise Refused(f"The file {path} can't be read: {error.strerror}.") from error

    def put_stream(self, pieces: Iterable[bytes], *, fetched: bool = False) -> BlobRef:
        """Keep what the pieces are together. Above 1 MiB a manifest of its chunks is kept with it, as a blob.

        What was ``fetched`` from others may be thrown away; what this node made itself may not.
        """
        if self.read_only:
            raise Refused(f"The blobs in {self.root} were opened to read only.")
        with refusals(self.root), self._temporary_file() as (file, path):
            whole, size, hashes = _write(file, pieces)
            file.flush()
            os.fsync(file.fileno())
            manifest = None
            if size > CHUNK_BYTES:
                manifest = self.put_stream([encode_manifest(size, hashes)], fetched=fetched).sha256
            self._enter(path, whole, size, manifest, fetched=fetched)
        return BlobRef(sha256=whole, size=size, manifest=manifest)

    def find(self, sha256: bytes) -> BlobRef | None:
        """What is known of the blob with this hash, or None when it isn't here."""
        query = "SELECT size, manifest FROM blob WHERE sha256 = ?"
        with self._lock, refusals(self.root):
            row = self._connection.execute(query, (sha256,)).fetchone()
        return BlobRef(sha256=sha256, size=row[0], manifest=row[1]) if row else None

    def has(self, sha256: bytes) -> bool:
        """Whether the blob is here."""
        return self.find(sha256) is not None

    def get(self, sha256: bytes) -> bytes:
        """The bytes. Raises NotFound, or Refused when they are no longer those that the hash names."""
        with self.open(sha256) as file:
            return file.read()

    def text(self, sha256: bytes) -> str | None:
        """The blob as text; None where it is not here, damaged or no text."""
        with suppress(AutoresearchError, UnicodeDecodeError):
            return self.get(sha256).decode()
        return None

    def open(self, sha256: bytes) -> BinaryIO:
        """A file to read the blob from, checked against its hash; it counts as used now. Raises NotFound, Refused."""
        if not self.has(sha256):
            raise NotFound(f"The blob {sha256.hex()} is not here.")
        try:
            file = self._path(sha256).open("rb")
        except OSError as error:
            if not self.has(sha256):
                raise NotFound(f"The blob {sha256.hex()} was just deleted.") from error
            raise Refused(f"The blob {sha256.hex()} can't be read: {error.strerror}.") from error
        if hashlib.file_digest(file, "sha256").digest() != sha256:
            file.close()
            raise Refused(f"The blob {sha256.hex()} was changed on the disk.", hint="delete it, and fetch it again")
        file.seek(0)
        with suppress(OSError):  # a folder that is read only stays as it is
            os.utime(file.fileno())
        return file

    def part(self, sha256: bytes, manifest: bytes | None, offset: int, length: int) -> bytes:
        """Bytes of a blob whose manifest is this one, shorter at its end; only as much as that is read and checked.

        Raises:
            NotFound: there is none with this hash and this manifest.
            Refused: the bytes are no longer those that were put.
        """
        stored = self.find(sha256)
        if stored is None or stored.manifest != manifest:
            raise NotFound(f"The blob {sha256.hex()} is not here.")
        chunks = _manifest(self.get(manifest)) if manifest else Manifest(CHUNK_BYTES, CHUNK_BYTES, (sha256,))
        first = offset // CHUNK_BYTES
        with refusals(self.root), self._path(sha256).open("rb") as file:
            file.seek(first * CHUNK_BYTES)
            data = bytearray()
            for index in range(first, min(-(-(offset + length) // CHUNK_BYTES), len(chunks.hashes))):
                chunk = file.read(CHUNK_BYTES)
                if not chunks.fits(index, chunk):
                    raise Refused(f"The blob {sha256.hex()} was changed on the disk.")
                data += chunk
        start = offset - first * CHUNK_BYTES
        return bytes(data[start : start + length])

    def begin(self, sha256: bytes, manifest: Manifest) -> PartialBlob:
        """The chunks of a blob that are here already, to go on with. Raises Locked, Refused."""
        return PartialBlob(self._partial / sha256.hex(), manifest)

    def finish(self, sha256: bytes, manifest: bytes, partial: PartialBlob) -> BlobRef:
        """Keep a blob whose chunks are all here; its manifest is a blob that was put before.

        Raises:
            Refused: together they are another blob, and are deleted; or it can't be written.
        """
        with refusals(self.root), partial.path.open("rb") as file:
            if hashlib.file_digest(file, "sha256").digest() != sha256:
                partial.path.unlink(missing_ok=True)
                raise Refused(f"The manifest of the blob {sha256.hex()} is that of another blob.")
        partial.flush()
        with refusals(self.root):
            self._enter(partial.path, sha256, partial.manifest.size, manifest, fetched=True)
        return BlobRef(sha256=sha256, size=partial.manifest.size, manifest=manifest)

    def used_bytes(self) -> int:
        """How many bytes the blobs take, parts of such that are not fetched to their end included."""
        with self._lock, refusals(self.root):
            entered = self._connection.execute("SELECT total(size) FROM blob").fetchone()[0]
        return int(entered) + sum(part.size for part in self._parts())

    def stored(self) -> list[KeptBlob]:
        """All blobs with what goes with each: a manifest belongs to its blob."""
        query = """
        SELECT sha256, size + coalesce((SELECT size FROM blob AS m WHERE m.sha256 = blob.manifest), 0), fetched
        FROM blob WHERE sha256 NOT IN (SELECT manifest FROM blob WHERE manifest IS NOT NULL)
        """
        with self._lock, refusals(self.root):
            rows = self._connection.execute(query).fetchall()
        blobs = [KeptBlob(name, size, _changed_ms(self._path(name)), fetched=bool(made)) for name, size, made in rows]
        return blobs + self._parts()

    def begun_bytes(self, sha256: bytes) -> int:
        """How much of the disk the chunks of a blob take that is not fetched to its end."""
        return sum(part.size for part in self._parts() if part.sha256 == sha256)

    def delete(self, chosen: Iterable[KeptBlob]) -> int:
        """Delete blobs with their manifests, but none that was used since it was looked at. Returns the bytes freed.

        Killed in the middle, at most files without an entry are left, which the next opening sweeps.
        """
        gone: list[KeptBlob] = []
        with self._lock, refusals(self.root):
            with transaction(self._connection, durable=True):
                names: list[bytes] = []
                for blob in chosen:
                    if blob.partial:
                        gone += [blob] * _unlink_unlocked(self._partial / blob.sha256.hex())
                    elif _changed_ms(self._path(blob.sha256)) <= blob.used_ms:
                        gone.append(blob)
                        manifests = self._connection.execute(
                            "SELECT manifest FROM blob WHERE sha256 = ?", (blob.sha256,)
                        )
                        names += [blob.sha256, *(row[0] for row in manifests if row[0])]
                self._connection.executemany("DELETE FROM blob WHERE sha256 = ?", [(name,) for name in names])
            # In a second turn: a file may go only when the index is known not to name it, also after a power cut.
            with transaction(self._connection, durable=False):
                for name in names:
                    if not self.has(name):
                        self._path(name).unlink(missing_ok=True)
        return sum(blob.size for blob in gone)

    def _parts(self) -> list[KeptBlob]:
        if not self._partial.is_dir():
            return []
        names = []
        for path in self._partial.iterdir():
            with suppress(FileNotFoundError):
                status = path.stat()
                allocated = status.st_blocks * 512
                name = bytes.fromhex(path.name)
                names.append(KeptBlob(name, allocated, status.st_mtime_ns // 1_000_000, partial=True))
        return names

    def _path(self, sha256: bytes) -> Path:
        name = sha256.hex()
        return self._objects / name[:2] / name

    @contextmanager
    def _temporary_file(self) -> Iterator[tuple[BinaryIO, Path]]:
        """A file that no sweep takes for abandoned: it is locked from the moment that a sweep can see it."""
        with self._lock, transaction(self._connection, durable=False):
            descriptor, name = tempfile.mkstemp(dir=self._temporary)
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        path = Path(name)
        with os.fdopen(descriptor, "wb") as file:
            try:
                yield file, path
            finally:
                path.unlink(missing_ok=True)

    def _enter(self, temporary: Path, sha256: bytes, size: int, manifest: bytes | None, *, fetched: bool) -> None:
        """Rename and enter in one turn, so that no sweep meets a file under its name without an entry."""
        path = self._path(sha256)
        with self._lock, transaction(self._connection, durable=True):
            path.parent.mkdir(exist_ok=True)
            temporary.replace(path)
            for folder in (path.parent, self._objects):
                sync_path(folder)
            # What this node made stays its own, even when it comes again from elsewhere.
            keep = "ON CONFLICT DO UPDATE SET fetched = min(fetched, excluded.fetched)"
            self._connection.execute(f"INSERT INTO blob VALUES(?, ?, ?, ?) {keep}", (sha256, size, manifest, fetched))

    def _sweep(self) -> None:
        """Delete what was written and never entered. Files of processes that still write are locked, and stay."""
        with self._lock, transaction(self._connection, durable=False):
            entered = {row[0].hex() for row in self._connection.execute("SELECT sha256 FROM blob")}
            for path in self._objects.glob("*/*"):
                if path.name not in entered:
                    path.unlink()
            for path in self._temporary.iterdir():
                _unlink_unlocked(path)


def _write(file: BinaryIO, pieces: Iterable[bytes]) -> tuple[bytes, int, list[bytes]]:
    """Write the pieces; returns the hash of the whole, its size, and the hashes of its chunks."""
    whole, chunk, hashes, size = hashlib.sha256(), hashlib.sha256(), [], 0
    for piece in pieces:
        file.write(piece)
        whole.update(piece)
        rest = memoryview(piece)
        while rest:
            part = rest[: CHUNK_BYTES - size % CHUNK_BYTES]
            chunk.update(part)
            size += len(part)
            rest = rest[len(part) :]
            if size % CHUNK_BYTES == 0:
                hashes.append(chunk.digest())
                chunk = hashlib.sha256()
    if size % CHUNK_BYTES:
        hashes.append(chunk.digest())
    return whole.digest(), size, hashes


@lru_cache(maxsize=8)
def _manifest(raw: bytes) -> Manifest:
    return decode_manifest(raw)


def _changed_ms(path: Path) -> int:
    """When the file was written or read through the store; 0 when it is gone."""
    try:
        return path.stat().st_mtime_ns // 1_000_000
    except FileNotFoundError:
        return 0


def _unlink_unlocked(path: Path) -> bool:
    """Whether nobody held the file, and it is gone."""
    try:
        descriptor = os.open(path, os.O_RDWR)
    except FileNotFoundError:
        return True
    with closing(os.fdopen(descriptor, "rb")) as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        path.unlink(missing_ok=True)
        return True
