"""Worker processes: started, watched over a ZeroMQ link, restarted with back-off, ended. Decides nothing about work."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path

import structlog
import zmq
import zmq.asyncio

from autoresearch_daemon.workers import protocol

# A worker says "alive" every few seconds from a thread of its own; silent for this long it hangs.
SILENCE_SECONDS = 60.0
# A worker that is told to go must be gone within this; the daemon's own stop must fit into ten seconds.
GRACE_SECONDS = 7.0
RESTART_SECONDS_FIRST = 1.0
RESTART_SECONDS_MAX = 60.0

logger = structlog.get_logger()


@dataclass(slots=True)
class Child:
    """One worker process."""

    name: str
    device: str
    process: asyncio.subprocess.Process | None = None
    heard: float = 0.0
    quitting: bool = False
    failures: int = 0
    task: asyncio.Task[None] | None = field(default=None, repr=False)


class Pool:
    """Keeps as many worker processes as are wanted; ``on_message``, ``on_leaving`` and ``on_lost`` tell the node.

    ``on_message`` and ``on_lost`` are awaited one at a time, so that a worker is lost after what it said is dealt with.
    """

    def __init__(
        self,
        socket: Path,
        devices: list[str],
        *,
        on_message: Callable[[str, protocol.FromWorker], Awaitable[None]],
        on_leaving: Callable[[str], None],
        on_lost: Callable[[str], Awaitable[None]],
    ) -> None:
        self._socket, self._address = socket, f"ipc://{socket}"
        self._devices = devices
        self._on_message = on_message
        self._on_leaving = on_leaving
        self._on_lost = on_lost
        self._children: dict[str, Child] = {}
        self._turn = asyncio.Lock()
        self._context = zmq.asyncio.Context()
        self._router: zmq.asyncio.Socket = self._context.socket(zmq.ROUTER)
        self._router.setsockopt(zmq.LINGER, 0)
        self._outbox: asyncio.Queue[tuple[str, protocol.FromDaemon]] = asyncio.Queue()
        self._tasks: list[asyncio.Task[None]] = []

    async def start(self) -> None:
        """Open the link. Processes are started when they are wanted."""
        self._socket.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._router.bind(self._address)
        self._tasks = [asyncio.create_task(part) for part in (self._receive(), self._send(), self._watch())]

    def want(self, count: int) -> None:
        """Have so many processes: start missing ones, let surplus ones go after what they have in hand."""
        active = [child for child in self._children.values() if not child.quitting]
        for child in active[count:]:
            child.quitting = True
            self.send(child.name, protocol.Quit())
            self._on_leaving(child.name)
        for _ in range(len(active), count):
            self._launch()

    def send(self, worker: str, message: protocol.FromDaemon) -> None:
        """Send a message to a worker; lost when the worker is."""
        self._outbox.put_nowait((worker, message))

    async def stop(self) -> None:
        """End all processes: ask, wait a little, kill. Afterwards none is left."""
        self.want(0)
        waits = [child.task for child in self._children.values() if child.task]
        if waits:
            await asyncio.wait(waits, timeout=GRACE_SECONDS)
        for child in list(self._children.values()):
            kill_group(child)
        for task in [*waits, *self._tasks]:
            task.cancel()
        await asyncio.gather(*waits, *self._tasks, return_exceptions=True)
        self._router.close()
        self._context.term()
        self._socket.unlink(missing_ok=True)

    def pids(self) -> dict[str, int]:
        """The process id of each live worker."""
        return {c.name: c.process.pid for c in self._children.values() if c.process and c.process.returncode is None}

    # --- parts ---

    def _launch(self) -> None:
        used = set(self._children)
        number = next(n for n in range(1, len(used) + 2) if f"w{n}" not in used)
        device = self._devices[(number - 1) % len(self._devices)]
        child = Child(f"w{number}", device)
        self._children[child.name] = child
        child.task = asyncio.create_task(self._keep(child))

    async def _keep(self, child: Child) -> None:
        """Run one worker, again and again until it is told to quit."""
        while not child.quitting:
            child.heard = asyncio.get_running_loop().time()
            child.process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-P", "-m", "autoresearch_daemon.workers.assignment"),
                *(
                    "--link",
                    self._address,
                    "--name",
                    child.name,
                    "--device",
                    child.device,
                    "--parent",
                    str(os.getpid()),
                ),
                stdin=asyncio.subprocess.DEVNULL,
                start_new_session=True,
            )
            status = await child.process.wait()
            if child.quitting:
                break
            child.failures += 1
            logger.warning("worker ended", worker=child.name, status=status, failures=child.failures)
            await self._lose(child)
            await asyncio.sleep(min(RESTART_SECONDS_MAX, RESTART_SECONDS_FIRST * 2 ** (child.failures - 1)))
        self._children.pop(child.name, None)
        await self._lose(child)

    async def _lose(self, child: Child) -> None:
        async with self._turn:
            await self._on_lost(child.name)

    async def _receive(self) -> None:
        while True:
            name, payload = (await self._router.recv_multipart())[:2]
            child = self._children.get(name.decode())
            if child is None:
                continue
            child.heard = asyncio.get_running_loop().time()
            try:
                async with self._turn:
                    await self._deliver(child, protocol.decode_from_worker(payload))
            except Exception:
                logger.exception("a message of a worker could not be handled; the worker is ended", worker=child.name)
                kill_group(child)

    async def _deliver(self, child: Child, message: protocol.FromWorker) -> None:
        if isinstance(message, protocol.Ended):
            child.failures = 0
        if child.quitting and isinstance(message, protocol.Ready):
            self.send(child.name, protocol.Quit())  # it was told before it could hear
        elif not isinstance(message, protocol.Alive):
            await self._on_message(child.name, message)

    async def _send(self) -> None:
        while True:
            worker, message = await self._outbox.get()
            await self._router.send_multipart([worker.encode(), protocol.encode(message)])

    async def _watch(self) -> None:
        while True:
            await asyncio.sleep(SILENCE_SECONDS / 4)
            now = asyncio.get_running_loop().time()
            for child in self._children.values():
                if now - child.heard > SILENCE_SECONDS:
                    logger.warning("worker hangs, killing it", worker=child.name)
                    kill_group(child)


def kill_group(child: Child) -> None:
    """Kill a worker and everything it started in its session."""
    if child.process and child.process.returncode is None:
        try:
            os.killpg(child.process.pid, signal.SIGKILL)
        except ProcessLookupError:
            return
