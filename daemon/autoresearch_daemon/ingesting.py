"""Stores records of others: what comes within a short time in one transaction, in the thread of the log."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from typing import NamedTuple

import structlog

from autoresearch.errors import AutoresearchError
from autoresearch.log import Log, Verdict
from autoresearch_daemon.clock import now_ms
from autoresearch_daemon.log_thread import LogThread

logger = structlog.get_logger()

Pairs = Sequence[tuple[bytes, bytes]]
# A transaction writes every page that it changes, so that large ones write less. More than these wait for no more.
BATCH_RECORDS = 4_000
# What an exchange brings waits so long for more of it, and no longer than until its end.
GATHER_SECONDS = 3.0


class Arrived(NamedTuple):
    """Records that a peer gave, and what became of each."""

    peer: str
    pairs: Pairs
    verdicts: list[Verdict]


@dataclass(slots=True)
class _Batch:
    """Records that wait, by peer, for one transaction; ``done`` when they are stored."""

    given: list[tuple[Pairs, str]] = field(default_factory=list)
    count: int = 0
    done: asyncio.Event = field(default_factory=asyncio.Event)
    error: AutoresearchError | None = None


class Ingester:
    """Takes records of others. ``on_stored(arrived)`` is told of each part of what was stored, after that.

    Nothing is lost when it ends before it stored what it has: later exchanges bring that again.
    """

    def __init__(self, thread: LogThread, on_stored: Callable[[Arrived], None]) -> None:
        self._thread = thread
        self._on_stored = on_stored
        self._waiting = _Batch()
        self._writing: _Batch | None = None
        self._due = asyncio.Event()
        self._timer: asyncio.TimerHandle | None = None
        self._room = asyncio.Event()
        self._room.set()

    async def keep(self) -> None:
        """Store what comes, until cancelled."""
        while True:
            await self._due.wait()
            await self._store()

    async def take(self, pairs: Pairs, peer: str) -> None:
        """Store records as soon as the thread is free; waits only while too many wait already."""
        await self._put(pairs, peer)
        if self._timer is None:
            self._due.set()

    async def gather(self, pairs: Pairs, peer: str) -> None:
        """Store records soon, together with those that come after them; waits only while too many wait already."""
        await self._put(pairs, peer)
        if self._timer is None and not self._due.is_set():
            self._timer = asyncio.get_running_loop().call_later(GATHER_SECONDS, self._due.set)

    async def store(self, pairs: Pairs, peer: str) -> None:
        """Have records stored. Raises AutoresearchError when they can't be written."""
        await self._put(pairs, peer)
        await self.settle()

    async def settle(self) -> None:
        """Until all that was given before is stored. Raises AutoresearchError when it could not be written."""
        batch = self._waiting if self._waiting.count else self._writing
        if batch is None:
            return
        self._due.set()
        await batch.done.wait()
        if batch.error:
            raise batch.error

    async def _put(self, pairs: Pairs, peer: str) -> None:
        await self._room.wait()
        self._waiting.given.append((pairs, peer))
        self._waiting.count += len(pairs)
        if self._waiting.count >= BATCH_RECORDS:
            self._room.clear()
            self._due.set()

    async def _store(self) -> None:
        batch = self._writing = self._waiting
        self._waiting = _Batch()
        self._due.clear()
        self._room.set()
        if self._timer:
            self._timer.cancel()
            self._timer = None
        try:
            stored = await self._thread.run(partial(_ingested, given=batch.given))
            while stored:  # to free thousands of records at once would hold the loop up
                self._on_stored(stored.popleft())
                await asyncio.sleep(0)
        except AutoresearchError as error:
            logger.warning("records of others could not be stored", count=batch.count, reason=str(error))
            batch.error = error
        except Exception:  # a stranger's record must not end this loop for good
            logger.exception("storing records of others failed")
            batch.error = AutoresearchError("records of others could not be stored")
        finally:
            self._writing = None
            batch.done.set()


def _ingested(log: Log, *, given: Sequence[tuple[Pairs, str]]) -> deque[Arrived]:
    verdicts = iter(log.writer.ingest([pair for pairs, _ in given for pair in pairs], now_ms=now_ms()))
    return deque(Arrived(peer, pairs, list(islice(verdicts, len(pairs)))) for pairs, peer in given)
