"""Keeps the blobs below a limit: throws away what came from others, was not used for longest, and is not pinned."""

from __future__ import annotations

import shutil
import time
from collections.abc import Set

from autoresearch.log.blobs import BlobStore

# What is over the limit is brought down to this share of it, so that not every new blob costs another one.
KEPT_SHARE = 0.9
# Chunks of a blob that nobody went on with for so long are thrown away.
PARTIAL_SECONDS = 7 * 86_400


def collect_blobs(store: BlobStore, limit_bytes: int, pinned: Set[bytes] = frozenset()) -> int:
    """Throw blobs away until all fit under ``limit_bytes``; returns how many bytes were freed.

    What this node made itself and what is ``pinned`` stays, with its chunk manifest, even when it does not fit.
    """
    _forget_partial(store)
    if store.size() <= limit_bytes:
        return 0
    entries = store.entries()
    kept = {name for e in entries if not e.fetched or e.sha256 in pinned for name in (e.sha256, e.manifest)}
    manifests = {entry.manifest for entry in entries}
    loose = [entry for entry in entries if entry.sha256 not in kept and entry.sha256 not in manifests]
    over, freed = store.size() - int(limit_bytes * KEPT_SHARE), 0
    for entry in sorted(loose, key=lambda entry: (entry.used, entry.sha256)):
        if freed >= over:
            break
        for name in (entry.sha256, entry.manifest):
            if name is not None and name not in kept:
                store.delete(name)
        freed += entry.size
    return freed


def _forget_partial(store: BlobStore) -> None:
    oldest = time.time() - PARTIAL_SECONDS
    for folder in (store.root / "partial").glob("*"):
        if folder.stat().st_mtime < oldest:
            shutil.rmtree(folder, ignore_errors=True)
