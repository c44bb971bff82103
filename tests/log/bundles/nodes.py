"""Logs with blobs, as the ends of a bundle's journey."""

import random
from contextlib import contextmanager

import msgspec

from autoresearch.log.blobs import BlobStore
from autoresearch.log.bundle import Imported, import_bundle, write_bundle
from autoresearch.log.chunks import CHUNK_BYTES
from autoresearch.log.log import Log
from tests.record.making import NETWORK, NOW_MS, key, pairs, run_body, sealed

AHEAD_MS = 3_600_000


class Node:
    """A log and a blob store."""

    def __init__(self, log, blobs):
        self.log, self.blobs = log, blobs
        self._refs = {}

    def write(self, path, **options):
        with path.open("wb") as file:
            return write_bundle(self.log, self.blobs, file, **options)

    def take(self, path, *, now_ms=NOW_MS):
        """Import; returns what became of it, and what was raised."""
        imported = Imported()
        with path.open("rb") as file:
            try:
                import_bundle(file, self.log, self.blobs, imported, now_ms=now_ms)
            except Exception as error:  # noqa: BLE001 - the test looks at it
                return imported, error
        return imported, None

    def ids(self):
        return {record_id for _, record_id in self.log.records.iter_keys()}

    def run(self, number, *, source=b"", log=None, checkpoint=None, **fields):
        """Store a run with these files; returns its record."""
        refs = {name: self._put(data) for name, data in (("log", log), ("checkpoint", checkpoint)) if data}
        body = run_body(float(number), source=b"%d" % number, **refs)
        body = msgspec.structs.replace(body, source=self._put(source))
        record = sealed(key(1), body, seq=number, **fields)
        self.log.writer.ingest(pairs([record]), now_ms=NOW_MS + AHEAD_MS)
        return record

    def _put(self, data):
        """Writing is forced to the disk each time, and there is no need to."""
        if data not in self._refs:
            self._refs[data] = self.blobs.put(data)
        return self._refs[data]


@contextmanager
def node(folder, network=NETWORK):
    with Log.open(folder / "log.sqlite", network) as log, BlobStore(folder / "blobs") as blobs:
        yield Node(log, blobs)


def files_of(record):
    body = record.body
    return [ref.sha256 for ref in (body.source, body.log, body.checkpoint) if ref]


BIG = random.Random(1).randbytes(2 * CHUNK_BYTES + 5)
