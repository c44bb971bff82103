"""Which blobs go when there are too many, or too little room. Pure."""

from __future__ import annotations

from collections.abc import Container, Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class KeptBlob:
    """A blob on the disk: how many bytes go with it, and when it came or was last read here, in Unix milliseconds.

    ``fetched``: others made it; ``partial``: chunks of one that was not fetched to its end.
    """

    sha256: bytes
    size: int
    used_ms: int
    fetched: bool = True
    partial: bool = False


def victims(
    blobs: Iterable[KeptBlob], pinned: Container[bytes], *, excess_bytes: int, before_ms: int
) -> list[KeptBlob]:
    """Blobs to delete so that ``excess_bytes`` less are kept, or as many as may go.

    Never one that this node made, that is pinned, or was used at ``before_ms`` or later. Abandoned parts go first, then
    what was unused longest.
    """
    chosen: list[KeptBlob] = []
    free = [blob for blob in blobs if blob.fetched and blob.sha256 not in pinned and blob.used_ms < before_ms]
    for blob in sorted(free, key=lambda blob: (not blob.partial, blob.used_ms, blob.sha256)):
        if excess_bytes <= 0:
            break
        chosen.append(blob)
        excess_bytes -= blob.size
    return chosen


def excess(*, used_bytes: int, needed_bytes: int, quota_bytes: int, free_bytes: int, minimum_free_bytes: int) -> int:
    """How many bytes have to go so that ``needed_bytes`` more fit; 0 when they do.

    ``quota_bytes`` 0 is no limit. A disk with less than ``minimum_free_bytes`` free is made free up to there. When
    something has to go, a tenth of the quota goes with it, so that the next blob need not wait for the same again.
    """
    over_quota = used_bytes + needed_bytes - quota_bytes if quota_bytes else 0
    over_disk = needed_bytes + minimum_free_bytes - free_bytes
    over = max(over_quota, over_disk)
    return over + quota_bytes // 10 if over > 0 else 0
