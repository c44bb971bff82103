"""Blobs that travel with records: fetched when there is time, and kept within their quota.

What nobody has yet is tried again later. What others made and was unused longest is deleted, never what is pinned.
"""

from __future__ import annotations

import asyncio
import heapq
import shutil
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from itertools import islice
from time import monotonic

import structlog

from autoresearch.ask.acts.notebook import Notebook
from autoresearch.ask.node import StorageStatus
from autoresearch.errors import AutoresearchError, CannotRunHere, Refused
from autoresearch.log.blobs import BlobStore
from autoresearch.log.eviction import excess, victims
from autoresearch.log.log import Log
from autoresearch.log.standing.bases import buildable, contenders
from autoresearch.log.standing.context import trust_context
from autoresearch.record.kinds import BlobRef, Run, blobs_of
from autoresearch_daemon.events import now_ms
from autoresearch_daemon.peers.blob_fetching import Fetcher

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


LOOK_SECONDS = 60.0
# Nothing younger goes: its record may be on the way.
GRACE_MS = 10 * 60 * 1000
# The best of each task stay, of the tasks worked on here and of so many others, the first to be published.
BEST = 3
OTHER_TASKS = 32
# Deleted in one transaction.
BATCH = 256
# When nothing could be freed, it is not tried again at once.
FULL_SECONDS = 30.0


class Keeper:
    """The quota of one node. 0 bytes is no limit."""

    def __init__(
        self, notebook: Notebook, *, quota_bytes: int, minimum_free_bytes: Callable[[], int], grace_ms: int = GRACE_MS
    ) -> None:
        self._notebook = notebook
        self._blobs = notebook.blobs
        self._quota_bytes = quota_bytes
        self._minimum_free_bytes = minimum_free_bytes
        self._grace_ms = grace_ms
        self._held: Counter[bytes] = Counter()
        self._own: set[bytes] = set()
        self._own_tasks: set[bytes] = set()
        self._own_seq = 0
        self._used = self._blobs.used_bytes()
        self._full_until = 0.0
        self._turn = asyncio.Lock()

    @contextmanager
    def hold(self, *blobs: BlobRef) -> Iterator[None]:
        """Keep these as long as this lasts, also before they are here: what a verification needs, what is fetched."""
        names = [name for blob in blobs for name in (blob.sha256, blob.manifest) if name]
        self._held.update(names)
        try:
            yield
        finally:
            self._held.subtract(names)
            self._held += Counter()  # forget those at zero

    async def make_room(self, size: int) -> None:
        """Have room for ``size`` bytes more. Raises CannotRunHere when what is pinned leaves none."""
        async with self._turn:
            if self._excess(size):
                if monotonic() >= self._full_until:
                    await self._collect(size)
                if self._excess(size):
                    self._full_until = monotonic() + FULL_SECONDS
                    raise CannotRunHere(
                        f"there is no room for {size >> 20} MiB: blobs take {self._used >> 20} of"
                        f" {self._quota_bytes >> 20} MiB, and what is pinned or new stays",
                        hint="autoresearch node config set storage.blobs_mib N",
                    )
            self._used += max(0, size)

    async def keep(self) -> None:
        """Look every minute, until cancelled."""
        while True:
            try:
                async with self._turn:
                    await self._collect(0)
            except AutoresearchError as error:
                logger.warning("the blobs could not be tidied", reason=str(error))
            await asyncio.sleep(LOOK_SECONDS)

    def status(self) -> StorageStatus:
        """How much there is, and how much there may be."""
        return StorageStatus(blobs_bytes=self._used, quota_bytes=self._quota_bytes)

    def _excess(self, size: int) -> int:
        return excess(
            used_bytes=self._used,
            needed_bytes=size,
            quota_bytes=self._quota_bytes,
            free_bytes=shutil.disk_usage(self._blobs.root).free,
            minimum_free_bytes=self._minimum_free_bytes(),
        )

    async def _collect(self, size: int) -> None:
        """Count, and delete what has to go for ``size`` bytes more. Cheap unless something has to."""
        self._used = await asyncio.to_thread(self._blobs.used_bytes)
        if not (over := self._excess(size)):
            return
        held = set(self._held)
        freed = await asyncio.to_thread(self._delete, over, held)
        self._used = await asyncio.to_thread(self._blobs.used_bytes)
        if freed:
            logger.info("deleted blobs that nobody here needs", bytes=freed, kept_bytes=self._used)

    def _delete(self, over: int, held: set[bytes]) -> int:
        stored = self._blobs.stored()  # before the pins: what is entered meanwhile is no candidate
        chosen = victims(stored, self._pinned() | held, excess_bytes=over, before_ms=now_ms() - self._grace_ms)
        return sum(self._blobs.delete(chosen[start : start + BATCH]) for start in range(0, len(chosen), BATCH))

    def _pinned(self) -> set[bytes]:
        """Own records' blobs and those of the best. Reads with a connection of its own: the log's is for the loop."""
        log = self._notebook.log
        with Log.open(log.path, log.network, read_only=True, trust=log.trust) as reader:
            for record in reader.records.by_author(self._notebook.author, after_seq=self._own_seq):
                self._own_seq = record.seq
                self._own |= names_of(record.body)
                if isinstance(record.body, Run):
                    self._own_tasks.add(record.body.task)
            first = dict.fromkeys(row.digest for row in reader.tasks.all())
            others = [digest for digest in first if digest not in self._own_tasks][:OTHER_TASKS]
            pinned, context = set(self._own), trust_context(reader)
            for digest in (*self._own_tasks, *others):
                # What is built upon, and what others may verify next: nobody's claims push the confirmed ones out.
                built = islice(buildable(reader, digest, context), BEST)
                for placed in (*built, *contenders(reader, digest, context, limit=BEST)):
                    best = reader.records.find(placed.row.first)
                    pinned |= names_of(best.body) if best else set()
        return pinned


def names_of(body: object) -> set[bytes]:
    """The hashes of all blobs that a record names."""
    return {blob.sha256 for _, blob in blobs_of(body)}
