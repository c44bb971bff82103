"""Stores records of others, in a thread with a connection of its own; remembers those that are not stored.

What comes within a short time is one transaction. Not stored are records that are early by this clock, refused, or not
kept by this log.

Early records wait in memory until their time comes, and are offered to peers meanwhile, like all others; keys that are
not kept stay in the index: otherwise every exchange would bring them again. Most refusals follow from the bytes alone:
such a record is asked of nobody. A wrong signature says nothing of the bytes, which another peer may have with the
right one: such a record is not asked of the same peer again.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from typing import NamedTuple

from autoresearch.errors import AutoresearchError
from autoresearch.log.log import Log
from autoresearch.log.rows import IngestVerdict, State
from autoresearch_daemon.events import now_ms
from autoresearch_daemon.failures import STORING
from autoresearch_daemon.log_thread import Key, LogThread

# About 15 MB. Whoever offers more has the rest sent at each exchange, as fast as its turn allows.
KEYS_MAX = 100_000


class DroppedKeys:
    """The keys that were over a bound or a quota last. The oldest go when there is no room."""

    def __init__(self, most: int = KEYS_MAX) -> None:
        self._keys: dict[Key, None] = {}
        self._most = most

    def __len__(self) -> int:
        return len(self._keys)

    def keys(self) -> list[Key]:
        """All that are remembered."""
        return list(self._keys)

    def add(self, keys: Iterable[Key]) -> list[Key]:
        """Remember keys; returns those that had no room."""
        self._keys |= dict.fromkeys(keys)
        surplus = [key for key, _ in zip(self._keys, range(len(self._keys) - self._most), strict=False)]
        for key in surplus:
            del self._keys[key]
        return surplus

    def discard(self, keys: Iterable[Key]) -> None:
        """Forget those that are kept after all."""
        for key in keys:
            self._keys.pop(key, None)

    def clear(self) -> list[Key]:
        """Forget all, and return them: who is named now was perhaps not before."""
        keys, self._keys = list(self._keys), {}
        return keys


Pair = tuple[bytes, bytes]  # bytes, signature
# Honest clocks differ by minutes: few records wait, and not for long.
RECORDS_MAX = 1000


class EarlyRecords:
    """The early records, the first to come first. Those that are due last go when there is no room."""

    def __init__(self) -> None:
        self._pairs: dict[Key, Pair] = {}
        self._ids: dict[bytes, Pair] = {}

    def __len__(self) -> int:
        return len(self._pairs)

    def keys(self) -> list[Key]:
        """Time and id of all that wait."""
        return sorted(self._pairs)

    def add(self, key: Key, pair: Pair) -> list[Key]:
        """Let a record wait; returns what had no room, which may be the record itself."""
        self._pairs[key] = self._ids[key[1]] = pair
        surplus = sorted(self._pairs)[RECORDS_MAX:]
        for other in surplus:
            self._forget(other)
        return surplus

    def raw(self, ids: Collection[bytes]) -> list[Pair]:
        """The bytes and signatures of those of ``ids`` that wait here."""
        return [self._ids[record_id] for record_id in ids if record_id in self._ids]

    def due(self, until_ms: int) -> list[tuple[Key, Pair]]:
        """Take out those whose time is at most ``until_ms``."""
        ready = [(key, self._pairs[key]) for key in sorted(self._pairs) if key[0] <= until_ms]
        for key, _ in ready:
            self._forget(key)
        return ready

    def _forget(self, key: Key) -> None:
        del self._pairs[key], self._ids[key[1]]


# About 1.5 MB. Whoever offers more is asked for the rest at each exchange.
IDS_MAX = 10_000
EVERYBODY = ""


class RefusedRecords:
    """The ids that were refused last. The oldest go when there is no room."""

    def __init__(self, most: int = IDS_MAX) -> None:
        self._seen: dict[tuple[str, bytes], None] = {}
        self._most = most

    def add(self, peer: str, verdicts: Iterable[IngestVerdict]) -> None:
        """Remember those of a peer's records that were refused."""
        for verdict in verdicts:
            if verdict.state is State.REFUSED and verdict.refusal:
                of_whom = peer if verdict.refusal.code == "signature" else EVERYBODY
                self._seen[of_whom, verdict.id] = None
        surplus = len(self._seen) - self._most
        for entry in [entry for entry, _ in zip(self._seen, range(surplus), strict=False)]:
            del self._seen[entry]

    def of(self, peer: str) -> set[bytes]:
        """The ids that are not to be asked of a peer."""
        return {record_id for of_whom, record_id in self._seen if of_whom in (EVERYBODY, peer)}


Pairs = Sequence[tuple[bytes, bytes]]
# A transaction writes every page that it changes, so that large ones write less. More than these wait for no more.
BATCH_RECORDS = 4_000
# What an exchange brings waits so long for more of it, and no longer than until its end.
GATHER_SECONDS = 3.0


class Arrived(NamedTuple):
    """Records that a peer gave, and what became of each."""

    peer: str
    pairs: Pairs
    verdicts: list[IngestVerdict]


@dataclass(slots=True)
class _Batch:
    """Records that wait, by peer, for one transaction; ``done`` when they are stored."""

    arrivals: list[tuple[Pairs, str]] = field(default_factory=list)
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
        self._waiting.arrivals.append((pairs, peer))
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
            stored = await self._thread.run(partial(_ingested, arrivals=batch.arrivals))
            while stored:  # to free thousands of records at once would hold the loop up
                self._on_stored(stored.popleft())
                await asyncio.sleep(0)
            self._thread.failures.worked(STORING)
        except AutoresearchError as error:
            self._thread.failures.note(STORING, error)
            batch.error = error
        except Exception as error:  # noqa: BLE001 - a stranger's record must not end this loop for good
            self._thread.failures.note(STORING, error)
            batch.error = AutoresearchError("records of others could not be stored")
        finally:
            self._writing = None
            batch.done.set()


def _ingested(log: Log, *, arrivals: Sequence[tuple[Pairs, str]]) -> deque[Arrived]:
    verdicts = iter(log.writer.ingest([pair for pairs, _ in arrivals for pair in pairs], now_ms=now_ms()))
    return deque(Arrived(peer, pairs, list(islice(verdicts, len(pairs)))) for pairs, peer in arrivals)
