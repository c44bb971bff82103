"""Blobs that travel with records, fetched when there is time: tried again later when nobody has them yet."""

from __future__ import annotations

import asyncio
import heapq
from collections.abc import Iterable
from contextlib import suppress
from time import monotonic

import structlog

from autoresearch.errors import AutoresearchError, Refused
from autoresearch.log import BlobStore
from autoresearch.records import BlobRef
from autoresearch_daemon.fetching import Fetcher

logger = structlog.get_logger()

# Sources and logs are small; what is larger is fetched when somebody asks for it.
WANTED_BYTES = 4 << 20
WANTED_MAX = 100_000
# One place is left free for what a person or a verification asks for.
AT_ONCE = 3
SECONDS = 60.0
# A blob that nobody has is asked for again after two seconds, because the peer that its record came from may just be
# fetching it; then after four, eight, and in the end, after hours, only when somebody wants it.
RETRY_SECONDS = 2.0
TRIES = 13


class Prefetch:
    """What shall be here. ``keep`` fetches it until it is cancelled."""

    def __init__(self, fetcher: Fetcher, blobs: BlobStore) -> None:
        self._fetcher = fetcher
        self._blobs = blobs
        self._wanted: dict[bytes, tuple[BlobRef, int]] = {}
        self._due: list[tuple[float, bytes]] = []
        self._news = asyncio.Event()

    def want(self, blobs: Iterable[BlobRef]) -> None:
        """Fetch these when there is time, but no large ones."""
        for blob in blobs:
            if blob.size <= WANTED_BYTES and blob.sha256 not in self._wanted and len(self._wanted) < WANTED_MAX:
                self._wanted[blob.sha256] = (blob, 0)
                heapq.heappush(self._due, (0.0, blob.sha256))
        self._news.set()

    def retry(self) -> None:
        """A peer came: it may have what the others had not."""
        self._due = [(0.0, sha256) for sha256 in self._wanted]
        self._news.set()

    async def keep(self) -> None:
        """Fetch what is due, a few at a time."""
        while True:
            self._news.clear()
            while batch := self._take():
                await asyncio.gather(*(self._fetch(blob, tries) for blob, tries in batch))
            with suppress(TimeoutError):
                async with asyncio.timeout(max(0.0, self._due[0][0] - monotonic()) if self._due else None):
                    await self._news.wait()

    def _take(self) -> list[tuple[BlobRef, int]]:
        batch: list[tuple[BlobRef, int]] = []
        while self._due and self._due[0][0] <= monotonic() and len(batch) < AT_ONCE:
            _, sha256 = heapq.heappop(self._due)
            if sha256 in self._wanted and all(sha256 != blob.sha256 for blob, _ in batch):
                batch.append(self._wanted[sha256])
        return batch

    async def _fetch(self, blob: BlobRef, tries: int) -> None:
        try:
            await self._fetcher.fetch(blob, SECONDS)
        except Refused as error:  # it will not do later either
            logger.info("a blob is not fetched", blob=blob.sha256.hex(), reason=str(error))
        except AutoresearchError:
            if tries < TRIES:
                self._wanted[blob.sha256] = (blob, tries + 1)
                heapq.heappush(self._due, (monotonic() + RETRY_SECONDS * 2**tries, blob.sha256))
                return
        del self._wanted[blob.sha256]
