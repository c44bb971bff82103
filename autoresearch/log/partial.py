"""A blob that is on its way: its chunks as they arrive, on the disk, so that a cut or a crash loses none of them."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator

from autoresearch.errors import Refused
from autoresearch.log.blobs import BlobStore
from autoresearch.log.connection import refusals
from autoresearch.log.manifest import Manifest
from autoresearch.records import BlobRef


class PartialBlob:
    """The chunks of one blob that are here already. One process at a time gathers a blob."""

    def __init__(self, store: BlobStore, blob: BlobRef, manifest: Manifest) -> None:
        self._store, self._blob, self._manifest = store, blob, manifest
        self._folder = store.root / "partial" / blob.sha256.hex()
        with refusals(self._folder):
            self._folder.mkdir(parents=True, exist_ok=True)

    def here(self) -> set[int]:
        """The numbers of the chunks that are here; what the disk has spoiled is thrown away."""
        found = set()
        with refusals(self._folder):
            for path in self._folder.iterdir():
                index = int(path.name) if path.name.isdigit() else len(self._manifest.hashes)
                if self._manifest.fits(index, path.read_bytes()):
                    found.add(index)
                else:
                    path.unlink()
        return found

    def put(self, index: int, data: bytes) -> None:
        """Keep a chunk that fits. Raises Refused when it can't be written."""
        path = self._folder / str(index)
        temporary = path.with_suffix(".new")
        with refusals(self._folder), temporary.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
            temporary.replace(path)

    def join(self) -> BlobRef:
        """Make the blob of its chunks, all of which are here, and keep it in the store.

        Raises:
            Refused: the chunks together are not the blob that was wanted: whoever named them was wrong.
        """
        found = self._store.put_stream(self._chunks(), fetched=True)
        self.discard()
        if found.sha256 != self._blob.sha256:
            self._store.delete(found.sha256)
            raise Refused(f"the chunks of the blob {self._blob.sha256.hex()[:12]}… make another blob")
        return found

    def discard(self) -> None:
        """Throw the chunks away."""
        shutil.rmtree(self._folder, ignore_errors=True)

    def _chunks(self) -> Iterator[bytes]:
        for index in range(len(self._manifest.hashes)):
            data = (self._folder / str(index)).read_bytes()
            if not self._manifest.fits(index, data):
                raise Refused(f"a chunk of the blob {self._blob.sha256.hex()[:12]}… was changed on the disk")
            yield data
