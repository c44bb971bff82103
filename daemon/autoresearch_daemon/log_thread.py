"""The thread with the daemon's second connection to the log: what writes much runs there, one after another."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Protocol, TypeVar

from autoresearch.ask.acts.notebook import Notebook
from autoresearch.log.log import Log
from autoresearch.record.record import Record
from autoresearch_daemon.failures import Failures

Key = tuple[int, bytes]  # time in ms, id
Result = TypeVar("Result")
# The loop hears of so many keys at a time and turns to others in between.
KEYS_AT_ONCE = 250


class LogExecutor(Protocol):
    """Where functions of the log are run."""

    async def run(self, work: Callable[[Log], Result]) -> Result:
        """What ``work`` returns, given the log."""


class LogThread:
    """Runs functions of the log one after another. Between processes and connections SQLite has writers take turns.

    ``log`` is the loop's own connection, whose trust is taken over. ``on_change(came, went)`` is called on the loop
    with the keys that changed here, in parts, before :meth:`run` returns.
    """

    def __init__(self, log: Log) -> None:
        self._beside = log
        self._log = Log.open(log.path, log.network, trust=log.trust)
        self._log.writer.on_change = lambda came, went: self._changes.append((came, went))
        self._changes: list[tuple[list[Key], list[Key]]] = []
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="log")
        self.failures = Failures()
        self.on_change: Callable[[Sequence[Key], Sequence[Key]], None] | None = None

    async def run(self, work: Callable[[Log], Result]) -> Result:
        """What ``work`` returns, given the log. It may write; it must not touch anything of the loop."""
        try:
            return await asyncio.get_running_loop().run_in_executor(self._thread, self._work, work)
        finally:
            await self._tell()

    async def publish(self, notebook: Notebook, work: Callable[[Notebook], Result]) -> Result:
        """What ``work`` returns, given the notebook over the connection of this thread; announced on the loop."""
        published: list[Record] = []
        try:
            return await self.run(lambda log: work(notebook.beside(log, published.append)))
        finally:
            for record in published:
                notebook.announce(record)

    def close(self) -> None:
        """Wait for what is under way, drop the rest, close the connection."""
        self._thread.shutdown(cancel_futures=True)
        self._log.close()

    def _work(self, work: Callable[[Log], Result]) -> Result:
        self._log.trust = self._beside.trust
        return work(self._log)

    async def _tell(self) -> None:
        changes, self._changes = self._changes, []
        if self.on_change is None:
            return
        for came, went in changes:
            for start in range(0, len(came), KEYS_AT_ONCE):
                self.on_change(came[start : start + KEYS_AT_ONCE], [])
                await asyncio.sleep(0)
            if went:
                self.on_change([], went)
