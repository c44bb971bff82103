"""Gets blobs from peers: what travels with records always, anything else when somebody asks for it."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterable

import structlog

from autoresearch.errors import AutoresearchError, NotFound, Refused, TimedOut
from autoresearch.log import CHUNK_BYTES, BlobStore, Manifest, PartialBlob, decode_manifest
from autoresearch.records import BlobRef
from autoresearch_daemon.chunks import Ask, Download
from autoresearch_daemon.net import Network

logger = structlog.get_logger()

# Sources and logs are small; what is larger is fetched when somebody asks for it.
CARRIED_BYTES = 4 << 20
WANTED_MAX = 100_000
# Blobs on their way at a time.
FETCHES_MAX = 4
# No task needs a larger one, and what a stranger's record says may be anything.
BLOB_BYTES_MAX = 4 << 30


class Fetcher:
    """Fetches blobs, checked chunk by chunk, from all connected peers at once."""

    def __init__(self, network: Network, blobs: BlobStore) -> None:
        self._network = network
        self._blobs = blobs
        self._wanted: deque[BlobRef] = deque(maxlen=WANTED_MAX)
        self._wants = asyncio.Event()
        self._places = asyncio.Semaphore(FETCHES_MAX)
        self._under_way: dict[bytes, asyncio.Task[None]] = {}

    def want(self, blobs: Iterable[BlobRef]) -> None:
        """Fetch these some time, if they are small: they are asked for again whenever a peer comes."""
        self._wanted.extend(blob for blob in blobs if blob.size <= CARRIED_BYTES)
        self._wants.set()

    def nudge(self) -> None:
        """Peers came: try again what nobody had."""
        self._wants.set()

    async def keep(self) -> None:
        """Fetch what is wanted, one after the other, until cancelled."""
        while True:
            self._wants.clear()
            for _ in range(len(self._wanted)):
                blob = self._wanted.popleft()
                try:
                    await self.fetch(blob)
                except AutoresearchError:
                    self._wanted.append(blob)
            await self._wants.wait()

    async def fetch(self, blob: BlobRef, seconds: float = 600.0) -> None:
        """Get a blob; when this returns it is in the store. Two who want the same share one fetch.

        Raises:
            NotFound: no connected peer has it.
            TimedOut: it did not come in time; what came of it is kept for the next time.
            Refused: it is too large, or its record names chunks that are not its own.
        """
        if self._blobs.has(blob.sha256):
            return
        task = self._under_way.get(blob.sha256)
        if task is None:
            task = self._under_way[blob.sha256] = asyncio.create_task(self._fetch(blob))
            task.add_done_callback(lambda _: self._under_way.pop(blob.sha256, None))
        try:
            async with asyncio.timeout(seconds):
                await asyncio.shield(task)
        except TimeoutError as error:
            raise TimedOut(f"the blob {short(blob)} is still on its way", hint="try again in a moment") from error

    async def stop(self) -> None:
        """End what is under way; chunks that arrived stay for the next start."""
        tasks = list(self._under_way.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    # --- parts ---

    async def _fetch(self, blob: BlobRef) -> None:
        async with self._places:
            manifest = await self._manifest(blob)
            partial = await asyncio.to_thread(PartialBlob, self._blobs, blob, manifest)
            await self._gather(blob, manifest, partial)
            await asyncio.to_thread(partial.join)
        logger.info("blob fetched", blob=blob.sha256.hex(), bytes=blob.size)

    async def _manifest(self, blob: BlobRef) -> Manifest:
        """The hashes of a blob's chunks; a small blob is its only chunk."""
        if blob.size > BLOB_BYTES_MAX:
            raise Refused(f"the blob {short(blob)} is said to have {blob.size} bytes; {BLOB_BYTES_MAX} are allowed")
        if blob.size <= CHUNK_BYTES:
            return Manifest(blob.size, CHUNK_BYTES, (blob.sha256,))
        if blob.manifest is None:
            raise Refused(f"the record of the blob {short(blob)} names no chunk manifest")
        if not self._blobs.has(blob.manifest):
            # Its size is not known before; no answer is longer than a chunk.
            alone = BlobRef(sha256=blob.manifest, size=CHUNK_BYTES)
            single = Manifest(CHUNK_BYTES, CHUNK_BYTES, (blob.manifest,))
            partial = await asyncio.to_thread(PartialBlob, self._blobs, alone, single)
            await self._gather(alone, single, partial)
            await asyncio.to_thread(partial.join)
        manifest = decode_manifest(await asyncio.to_thread(self._blobs.get, blob.manifest))
        if manifest.size != blob.size:
            raise Refused(f"the chunk manifest of the blob {short(blob)} is that of another one")
        return manifest

    async def _gather(self, blob: BlobRef, manifest: Manifest, partial: PartialBlob) -> None:
        """Ask all connected peers for chunks until all are on the disk."""
        download = Download(manifest, await asyncio.to_thread(partial.here))
        asking: set[asyncio.Task[None]] = set()
        try:
            while asking or not download.done:
                download.meet(peer.peer for peer in self._network.peers() if peer.connected)
                asking |= {asyncio.create_task(self._ask(blob, download, partial, ask)) for ask in download.asks()}
                if not asking:
                    raise NotFound(f"no connected peer has the blob {short(blob)}", hint="autoresearch peers")
                ended, asking = await asyncio.wait(asking, return_when=asyncio.FIRST_COMPLETED)
                for task in ended:
                    task.result()
        finally:
            for task in asking:
                task.cancel()
            await asyncio.gather(*asking, return_exceptions=True)

    async def _ask(self, blob: BlobRef, download: Download, partial: PartialBlob, ask: Ask) -> None:
        offset = ask.chunk * CHUNK_BYTES
        length = min(CHUNK_BYTES, max(1, blob.size - offset))
        try:
            data = await self._network.fetch_blob(ask.peer, blob.sha256, offset, length)
        except NotFound:
            download.failed(ask, lacks=True)
        except AutoresearchError as error:
            logger.debug("a peer did not give a chunk", peer=ask.peer, blob=short(blob), reason=str(error))
            download.failed(ask, lacks=False)
        else:
            if download.arrived(ask, data):
                await asyncio.to_thread(partial.put, ask.chunk, data)
            else:
                await self._drop_liar(ask.peer, blob)

    async def _drop_liar(self, peer: str, blob: BlobRef) -> None:
        reason = f"sent other bytes than those of the blob {short(blob)}"
        logger.warning("a peer sent wrong bytes; it is shut out for a while", peer=peer, blob=blob.sha256.hex())
        try:
            await self._network.shut_out(peer, reason)
        except AutoresearchError as error:
            logger.info("the peer could not be shut out", peer=peer, reason=str(error))


def short(blob: BlobRef) -> str:
    """The beginning of a blob's hash, for people."""
    return f"{blob.sha256.hex()[:12]}…"
