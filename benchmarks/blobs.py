"""How fast a large blob comes from one peer and from three: whole network processes on loopback, as daemons have them.

Every peer is a network process of its own with libp2p, Noise and Yamux; the chunks are checked on arrival, written to
the disk, and the whole is hashed and forced to the disk before the clock stops.
"""

from __future__ import annotations

import asyncio
import logging
import os
import tempfile
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from pathlib import Path

import psutil
import structlog
from autoresearch_daemon.net.model import HostOptions
from autoresearch_daemon.net.network import Handlers, NetworkClient, SyncStream
from autoresearch_daemon.peers.blob_fetching import Fetcher, serve_part

from autoresearch.log.blobs import BlobStore
from autoresearch.record.kinds import BlobRef
from autoresearch.record.record import Network

COMPARED = "the same bytes hashed twice and written to the disk, without a network (`local`)"
BYTES, QUICK_BYTES = 64 << 20, 8 << 20
PEERS = (1, 3)
ROUNDS, QUICK_ROUNDS = 3, 1
MB = 1e6


class Room:
    """A disk without end."""

    async def make_room(self, size: int) -> None:
        """Nothing to do."""

    @contextmanager
    def hold(self, *blobs: BlobRef) -> Iterator[None]:  # noqa: ARG002
        """Nothing to do."""
        yield


def measure(*, quick: bool) -> dict[str, float]:
    """Megabytes (10^6 bytes) a second, the best of some rounds; processor seconds of all processes for a gigabyte."""
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.ERROR))
    size, rounds = (QUICK_BYTES, QUICK_ROUNDS) if quick else (BYTES, ROUNDS)
    figures: dict[str, float] = {}
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        data = os.urandom(size)
        with BlobStore(place / "theirs") as theirs:
            blob = theirs.put(data)
            for peers in PEERS:
                took = [asyncio.run(fetch(place / f"{peers}-{turn}", theirs, blob, peers)) for turn in range(rounds)]
                seconds, processor = min(took)
                figures[f"mb_per_second_{peers}"] = size / MB / seconds
                figures[f"cpu_seconds_per_gb_{peers}"] = processor / size * 1e9
        figures["local_mb_per_second"] = size / MB / locally(place / "local", data)
    return {"mb_per_second": figures[f"mb_per_second_{PEERS[0]}"]} | figures


async def fetch(folder: Path, theirs: BlobStore, blob: BlobRef, peers: int) -> tuple[float, float]:
    """Wall seconds of one fetch, and the processor seconds of this process and its children meanwhile."""
    for name in ("asking", *map(str, range(peers))):
        await asyncio.to_thread((folder / name).mkdir, parents=True)
    async with AsyncExitStack() as stack:
        asking = await stack.enter_async_context(node(folder / "asking", None))
        others = [await stack.enter_async_context(node(folder / str(n), theirs)) for n in range(peers)]
        for other in others:
            await asking.dial(other.info().addresses[0])
        while sum(peer.connected for peer in asking.peers()) < peers:  # noqa: ASYNC110
            await asyncio.sleep(0.05)
        with BlobStore(folder / "ours") as ours:
            before, began = processor_seconds(), time.monotonic()
            await Fetcher(asking, ours, Room()).fetch(blob, 120)
            return time.monotonic() - began, processor_seconds() - before


@asynccontextmanager
async def node(folder: Path, store: BlobStore | None) -> AsyncIterator[NetworkClient]:
    """A network that serves a store and dials nobody by itself."""

    async def on_record(raw: bytes, signature: bytes, peer: str) -> None:
        """No records here."""

    async def on_sync(stream: SyncStream) -> None:
        """No exchange here."""

    async def on_blob(name: bytes, offset: int, length: int) -> bytes | None:
        return await serve_part(store, name, offset, length) if store else None

    options = HostOptions(
        folder=str(folder),
        network=Network(name="benchmark"),
        listen=("/ip4/127.0.0.1/tcp/0",),
        lan=False,
        peers_wanted=0,
        health_seconds=300.0,
    )
    made = NetworkClient(options, Handlers(on_record=on_record, on_sync=on_sync, on_blob_request=on_blob))
    made.start()
    try:
        await made.ready()
        yield made
    finally:
        await made.stop()


def processor_seconds() -> float:
    """What this process and its children have used."""
    here = psutil.Process()
    times = [process.cpu_times() for process in (here, *here.children(recursive=True))]
    return sum(used.user + used.system for used in times)


def locally(folder: Path, data: bytes) -> float:
    """Seconds to put the same bytes into a store."""
    with BlobStore(folder) as store:
        began = time.monotonic()
        store.put(data)
        return time.monotonic() - began
