"""Writing a bundle: records in the order of reconciliation, each group of them followed by its blobs."""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from collections.abc import Sequence
from itertools import islice
from typing import BinaryIO, NamedTuple

from autoresearch.bundles.car import DAG_CBOR, RAW, write_block, write_header
from autoresearch.bundles.framing import GROUP_RECORDS, closing, opening
from autoresearch.bundles.references import Carried, blobs_of
from autoresearch.errors import AutoresearchError, NotFound
from autoresearch.log import CHUNK_BYTES, BlobStore, Log
from autoresearch.records import BlobRef, parse_stored

# Blobs written last are not written again; of those before a second copy does no harm.
_REMEMBERED = 65_536


class Written(NamedTuple):
    """What a bundle holds. ``missing``: blobs that records refer to and that are not here, or damaged."""

    records: int
    blobs: int
    missing: int


def write_bundle(
    log: Log, blobs: BlobStore, file: BinaryIO, *, task: bytes | None = None, carried: Carried = Carried.SOURCES
) -> Written:
    """Write all records, or those of one task (a digest) and those of none, with their blobs.

    Raises OSError when the file can't be written.
    """
    first = opening(log.network)
    write_header(file, hashlib.sha256(first).digest())
    write_block(file, DAG_CBOR, first)
    writer, pairs = _Writer(file, blobs, carried), log.records.iter_raw(task=task)
    while group := list(islice(pairs, GROUP_RECORDS)):
        writer.group(group)
    write_block(file, DAG_CBOR, closing(writer.records, writer.blobs))
    return Written(writer.records, writer.blobs, writer.missing)


class _Writer:
    """Writes groups to a file and counts."""

    def __init__(self, file: BinaryIO, blobs: BlobStore, carried: Carried) -> None:
        self._file = file
        self._store = blobs
        self._carried = carried
        self._remembered: OrderedDict[bytes, None] = OrderedDict()
        self.records = self.blobs = self.missing = 0

    def group(self, pairs: Sequence[tuple[bytes, bytes]]) -> None:
        """Some records with their signatures, then the blobs that they refer to."""
        for raw, signature in pairs:
            write_block(self._file, DAG_CBOR, raw)
            write_block(self._file, RAW, signature)
        self.records += len(pairs)
        if self._carried is Carried.NONE:
            return
        for pair in pairs:
            for blob in blobs_of(parse_stored(*pair), self._carried):
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
                write_block(self._file, RAW, manifest)
                while chunk := source.read(CHUNK_BYTES):
                    write_block(self._file, RAW, chunk)
            else:
                write_block(self._file, RAW, source.read())
        self.blobs += 1

    def _manifest(self, blob: BlobRef) -> bytes | None:
        """The manifest of a large blob. Raises NotFound, also when the record names another: nobody could check it."""
        found = self._store.find(blob.sha256)
        if found is None or (found.size > CHUNK_BYTES and found.manifest != blob.manifest):
            raise NotFound(f"The blob {blob.sha256.hex()} is not here.")
        return self._store.get(found.manifest) if found.manifest else None
