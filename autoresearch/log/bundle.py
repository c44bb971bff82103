"""Bundles. Writing one: records in the order of reconciliation, each group followed by its blobs.

Reading one: records are admitted as if a peer had sent them, blobs are taken when such a record names them.
"""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import BinaryIO, NamedTuple

from autoresearch.errors import AutoresearchError, NotFound, Refused
from autoresearch.log import bundle_format
from autoresearch.log.blobs import BlobStore
from autoresearch.log.chunks import CHUNK_BYTES, decode_manifest
from autoresearch.log.log import Log
from autoresearch.log.rows import State
from autoresearch.record.kinds import BlobRef
from autoresearch.record.record import parse_stored

# Blobs written last are not written again; of those before a second copy does no harm.
_REMEMBERED = 65_536


class BundleContents(NamedTuple):
    """What a bundle holds. ``missing``: blobs that records refer to and that are not here, or damaged."""

    records: int
    blobs: int
    missing: int


def write_bundle(
    log: Log,
    blobs: BlobStore,
    file: BinaryIO,
    *,
    task: bytes | None = None,
    carried: bundle_format.BundledBlobs = bundle_format.BundledBlobs.SOURCES,
) -> BundleContents:
    """Write all records, or those of one task (a digest) and those of none, with their blobs.

    Raises OSError when the file can't be written.
    """
    first = bundle_format.opening(log.network)
    bundle_format.write_header(file, hashlib.sha256(first).digest())
    bundle_format.write_block(file, bundle_format.DAG_CBOR, first)
    writer, pairs = _Writer(file, blobs, carried), log.records.iter_raw(task=task)
    while group := list(islice(pairs, bundle_format.GROUP_RECORDS)):
        writer.group(group)
    bundle_format.write_block(file, bundle_format.DAG_CBOR, bundle_format.closing(writer.records, writer.blobs))
    return BundleContents(writer.records, writer.blobs, writer.missing)


class _Writer:
    """Writes groups to a file and counts."""

    def __init__(self, file: BinaryIO, blobs: BlobStore, carried: bundle_format.BundledBlobs) -> None:
        self._file = file
        self._store = blobs
        self._carried = carried
        self._remembered: OrderedDict[bytes, None] = OrderedDict()
        self.records = self.blobs = self.missing = 0

    def group(self, pairs: Sequence[tuple[bytes, bytes]]) -> None:
        """Some records with their signatures, then the blobs that they refer to."""
        for raw, signature in pairs:
            bundle_format.write_block(self._file, bundle_format.DAG_CBOR, raw)
            bundle_format.write_block(self._file, bundle_format.RAW, signature)
        self.records += len(pairs)
        if self._carried is bundle_format.BundledBlobs.NONE:
            return
        for pair in pairs:
            for blob in bundle_format.blobs_of(parse_stored(*pair), self._carried):
                if self._is_news(blob.sha256):
                    self._blob(blob)

    def _is_news(self, sha256: bytes) -> bool:
        news = sha256 not in self._remembered
        self._remembered[sha256] = None
        self._remembered.move_to_end(sha256)
        if len(self._remembered) > _REMEMBERED:
            self._remembered.popitem(last=False)
        return news

    def _blob(self, blob: BlobRef) -> None:
        try:
            manifest = self._manifest(blob)
            # Checked whole before a byte of it is written.
            source = self._store.open(blob.sha256)
        except AutoresearchError:
            self.missing += 1
            return
        with source:
            if manifest is not None:
                bundle_format.write_block(self._file, bundle_format.RAW, manifest)
                while chunk := source.read(CHUNK_BYTES):
                    bundle_format.write_block(self._file, bundle_format.RAW, chunk)
            else:
                bundle_format.write_block(self._file, bundle_format.RAW, source.read())
        self.blobs += 1

    def _manifest(self, blob: BlobRef) -> bytes | None:
        """The manifest of a large blob. Raises NotFound, also when the record names another: nobody could check it."""
        entry = self._store.find(blob.sha256)
        if entry is None or (entry.size > CHUNK_BYTES and entry.manifest != blob.manifest):
            raise NotFound(f"The blob {blob.sha256.hex()} is not here.")
        return self._store.get(entry.manifest) if entry.manifest else None


Pair = tuple[bytes, bytes]
OTHER_NETWORK_HINT = (
    "autoresearch network use NAME, or autoresearch network join INVITE where it is not here yet, then import it there;"
    " your own runs move to a network that you join with --bring"
)


@dataclass(slots=True)
class Imported:
    """What became of a bundle so far. ``early``: ahead of the clock here; ``over_quota``: more than peers keep.

    ``blobs`` are those that were not here before. ``reason`` says why the first refused record was refused.
    """

    new: int = 0
    present: int = 0
    refused: int = 0
    early: int = 0
    over_quota: int = 0
    blobs: int = 0
    reason: str = ""


def is_bundle(path: Path) -> bool:
    """Whether the file begins as a bundle does. Raises OSError."""
    with path.open("rb") as file:
        return file.read(len(bundle_format.HEADER_PREFIX)) == bundle_format.HEADER_PREFIX


def import_bundle(file: BinaryIO, log: Log, blobs: BlobStore, imported: Imported, *, now_ms: int) -> None:
    """Take in a bundle. ``imported`` is kept up to date, so that it holds whatever was done when this raises.

    Raises:
        BrokenBundle: the file is no bundle, or stops being one; what came before is stored.
        Refused: it is of another network, or nothing can be written.
    """
    root = bundle_format.read_header(file)
    sections = bundle_format.read_blocks(file)
    first = next(sections, None)
    if first is None or first.codec != bundle_format.DAG_CBOR or first.sha256 != root or not first.intact:
        raise bundle_format.BrokenBundle("its first block is not the one that its header names")
    head = bundle_format.read_opening(first.data)
    if head.network != log.network.id:
        raise Refused(
            f"the bundle is of the network “{head.name}” ({head.network.hex()}),"
            f" and this node is in “{log.network.name}” ({log.network.id.hex()})",
            hint=OTHER_NETWORK_HINT,
        )
    _Import(log, blobs, imported, now_ms).run(sections)


@dataclass(slots=True)
class _Import:
    """The state while blocks go by: records of the group that are not stored yet, and blobs that may follow it."""

    log: Log
    store: BlobStore
    imported: Imported
    now_ms: int
    waiting: list[Pair] = field(default_factory=list)
    small: dict[bytes, BlobRef] = field(default_factory=dict)
    large: dict[bytes, BlobRef] = field(default_factory=dict)
    record: bundle_format.Block | None = None
    # A block that was taken for a chunk and is none.
    returned: bundle_format.Block | None = None
    records: int = 0

    def run(self, blocks: Iterator[bundle_format.Block]) -> None:
        """Go through all blocks; whatever ends it, what was read until then is stored."""
        try:
            while block := self.returned or next(blocks, None):
                self.returned = None
                self._take(block, blocks)
        finally:
            self._flush()
        end = bundle_format.read_closing(self.record.data) if self.record else None
        if end is None or end.records != self.records:
            raise bundle_format.BrokenBundle("its end is missing")

    def _take(self, block: bundle_format.Block, rest: Iterator[bundle_format.Block]) -> None:
        if block.codec == bundle_format.DAG_CBOR:
            if self.record is not None:
                raise bundle_format.BrokenBundle("a record has no signature")
            self.record = block
        elif self.record is not None:
            self._signed(self.record, block)
            self.record = None
        else:
            self._flush()
            self._blob(block, rest)

    def _signed(self, record: bundle_format.Block, signature: bundle_format.Block) -> None:
        self.records += 1
        if not (record.intact and signature.intact):
            self._refuse("its bytes were damaged")
            return
        if not self.waiting:
            self.small, self.large = {}, {}
        self.waiting.append((record.data, signature.data))
        if len(self.waiting) == bundle_format.GROUP_RECORDS:
            self._flush()

    def _refuse(self, reason: str) -> None:
        self.imported.refused += 1
        self.imported.reason = self.imported.reason or reason

    def _flush(self) -> None:
        """Store the records that wait, and note what blobs they refer to."""
        pairs, self.waiting = self.waiting, []
        if not pairs:
            return
        for pair, verdict in zip(pairs, self.log.writer.ingest(pairs, now_ms=self.now_ms), strict=True):
            match verdict.state:
                case State.STORED:
                    self.imported.new += 1
                case State.DUPLICATE:
                    self.imported.present += 1
                case State.EARLY:
                    self.imported.early += 1
                    continue
                case State.OVER_QUOTA:
                    self.imported.over_quota += 1
                    continue
                case _:
                    self._refuse(verdict.refusal.sentence if verdict.refusal else "")
                    continue
            for blob in bundle_format.blobs_of(parse_stored(*pair), bundle_format.BundledBlobs.ALL):
                self.small[blob.sha256] = blob
                if blob.manifest:
                    self.large[blob.manifest] = blob

    def _blob(self, block: bundle_format.Block, rest: Iterator[bundle_format.Block]) -> None:
        """Keep a blob that a record of the group refers to; the blocks of any other are passed over."""
        if not block.intact:
            return
        large = self.large.pop(block.sha256, None)
        if large is not None and not self.store.has(large.sha256):
            self._chunks(large, block.data, rest)
        elif self.small.pop(block.sha256, None) and not self.store.has(block.sha256):
            self.store.put_stream([block.data], fetched=True)
            self.imported.blobs += 1

    def _chunks(self, blob: BlobRef, manifest: bytes, rest: Iterator[bundle_format.Block]) -> None:
        try:
            hashes = decode_manifest(manifest).hashes
        except Refused:  # whoever signed the record named something else
            return
        try:
            self.store.put_stream(self._checked(blob, hashes, rest), fetched=True)
        except _Spoiled:
            return
        self.imported.blobs += 1

    def _checked(self, blob: BlobRef, hashes: Sequence[bytes], rest: Iterator[bundle_format.Block]) -> Iterator[bytes]:
        """The chunks of a blob. Raises _Spoiled, before the last one is through, when they are not those."""
        whole = hashlib.sha256()
        for expected in hashes:
            block = next(rest, None)
            if block is None or not block.intact or block.sha256 != expected:
                self.returned = block
                raise _Spoiled
            whole.update(block.data)
            yield block.data
        if whole.digest() != blob.sha256:
            raise _Spoiled


class _Spoiled(Exception):
    """The chunks are not those of the blob."""
