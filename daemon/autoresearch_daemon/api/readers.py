"""What the reading addresses read: the log and the blobs, opened a second time, read only, for threads of their own.

A question about many thousand runs takes tens of milliseconds. The event loop must not wait for it, and the daemon's
own connection must not be held by it: in write-ahead mode a second connection reads while the first one writes.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from aiohttp import web

from autoresearch.choices import Choice, chosen
from autoresearch.log import BlobStore, Log
from autoresearch_daemon.api.port import NodePort

# Questions about the log take turns. What reads blobs (the difference of two sources) leaves a thread for the others.
READERS = 2


@dataclass(frozen=True, slots=True)
class Readers:
    """The log and the blobs for reading, from any thread, the key of this device, and what a person chose here."""

    log: Log
    blobs: BlobStore
    author: bytes
    choices: Path

    def starred(self) -> frozenset[bytes]:
        """The records that are starred here."""
        return chosen(self.choices, Choice.STARRED)

    def archived(self) -> frozenset[bytes]:
        """The tasks that are archived here."""
        return chosen(self.choices, Choice.ARCHIVED)


NODE: web.AppKey[NodePort] = web.AppKey("node")
SHELF = web.AppKey("shelf", Readers)
THREADS = web.AppKey("threads", Executor)


def readers(app: web.Application) -> Readers:
    """The shelf as the node reads it now: whom it trusts may have changed."""
    found = app[SHELF]
    found.log.trust = app[NODE].log.trust
    return found


async def open_readers(app: web.Application) -> AsyncIterator[None]:
    """Open the shelf when the application starts, close it when it ends."""
    node = app[NODE]
    with (
        Log.open(node.log.path, node.log.network, read_only=True, trust=node.log.trust) as log,
        BlobStore(node.blobs.root, read_only=True) as blobs,
        ThreadPoolExecutor(READERS, thread_name_prefix="api-reader") as threads,
    ):
        app[SHELF] = Readers(log, blobs, node.author(), node.choices)
        app[THREADS] = threads
        yield
        threads.shutdown(cancel_futures=True)
