"""Worker processes, one a device: as many as are wanted, each on a link. Decides nothing about work."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial

from autoresearch.run.sandbox.cards import PROCESSOR
from autoresearch_daemon.children import ChildLimits, ChildProcess, module_command
from autoresearch_daemon.workers import protocol

# A worker says "alive" every few seconds from a thread of its own. Its pauses grow until a run ends. The grace must fit
# into the ten seconds that the daemon's own stop has.
LIMITS = ChildLimits(
    look_seconds=15.0,
    silence_seconds=60.0,
    memory_bytes=math.inf,
    spin_seconds=math.inf,
    healthy_seconds=math.inf,
    grace_seconds=7.0,
)


@dataclass(eq=False)
class Pool:
    """Keeps as many worker processes as are wanted; ``on_message``, ``on_leaving`` and ``on_lost`` tell the node.

    ``on_message`` and ``on_lost`` are awaited one at a time, so that a worker is lost after what it said is dealt with.
    """

    devices: list[str]
    on_message: Callable[[str, protocol.FromWorker], Awaitable[None]]
    on_leaving: Callable[[str], None]
    on_lost: Callable[[str], Awaitable[None]]

    def __post_init__(self) -> None:
        self._children: dict[str, ChildProcess[protocol.FromWorker]] = {}
        self._turn = asyncio.Lock()

    def want(self, count: int) -> None:
        """Have so many processes: start missing ones, let surplus ones go after what they have in hand."""
        active = [child for child in self._children.values() if not child.quitting]
        for child in active[count:]:
            child.quit(protocol.Quit())
            self.on_leaving(child.name)
        for _ in range(len(active), count):
            self._launch()

    def send(self, worker: str, message: protocol.FromDaemon) -> None:
        """Send a message to a worker; lost when the worker is."""
        if child := self._children.get(worker):
            child.send(message)

    async def stop(self) -> None:
        """End all processes: ask, wait a little, kill. Afterwards none is left."""
        self.want(0)
        await asyncio.gather(*(child.stop() for child in self._children.values()))

    def renew(self) -> None:
        """Put new processes in the place of those on cards: after a sleep what they know of their card is old."""
        for name, child in self._children.items():
            if self._device(name) != PROCESSOR:
                child.kill("was ended after the machine's sleep")

    def pids(self) -> dict[str, int]:
        """The process id of each live worker."""
        return {child.name: child.pid for child in self._children.values() if child.pid}

    def _launch(self) -> None:
        number = next(n for n in range(1, len(self._children) + 2) if f"w{n}" not in self._children)
        name = f"w{number}"
        command = module_command("autoresearch_daemon.workers.assignment", name, self._device(name))
        child: ChildProcess[protocol.FromWorker] = ChildProcess(
            name,
            command,
            protocol.FromWorker,
            LIMITS,
            on_message=partial(self._deliver, name),
            on_lost=partial(self._lose, name),
        )
        self._children[name] = child
        child.start()

    def _device(self, worker: str) -> str:
        return self.devices[(int(worker[1:]) - 1) % len(self.devices)]

    async def _deliver(self, name: str, message: protocol.FromWorker) -> None:
        child = self._children[name]
        if isinstance(message, protocol.Ended):
            child.failures = 0
        is_news = not (isinstance(message, protocol.Alive) or (isinstance(message, protocol.Ready) and child.quitting))
        if is_news:
            async with self._turn:
                await self.on_message(name, message)

    async def _lose(self, name: str, _reason: str) -> None:
        if self._children[name].quitting:
            del self._children[name]
        async with self._turn:
            await self.on_lost(name)
