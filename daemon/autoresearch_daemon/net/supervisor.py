"""Keeps the network process alive: starts it, watches it over the link, replaces it, says why.

Also the daemon's end of a sync stream, frames in and out, bounded by credit (asyncio).
"""

from __future__ import annotations

import asyncio
import os
import secrets
import signal
import sys
from collections import deque
from collections.abc import Callable, MutableMapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import msgspec
import psutil
import structlog
import zmq
import zmq.asyncio

from autoresearch.errors import AutoresearchError, UsageError
from autoresearch.words import NetworkState, network_reason
from autoresearch_daemon.net import link
from autoresearch_daemon.net.model import FRAME_BYTES_MAX, FRAME_HEAD_BYTES_MAX, HostOptions


class SyncStream:
    """A bidirectional stream of frames to ``peer``: unsigned varint of the length, then the data (autoresearch.sync).

    Use ``async with`` or ``close``; one reader, any writers.
    """

    def __init__(
        self,
        number: int,
        peer: str,
        tell: Callable[[link.FromDaemon], None],
        register: MutableMapping[int, SyncStream],
    ) -> None:
        self.number = number
        self.peer = peer
        self._tell = tell
        self._register = register
        self._frames: asyncio.Queue[bytes | None] = asyncio.Queue()
        self._credit = asyncio.Semaphore(link.FRAMES_UNDER_WAY)
        self._over = False
        self._reason = ""

    async def __aenter__(self) -> SyncStream:
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: object, trace: object) -> None:
        if kind is None:
            await self.close()
        else:
            self.abandon("broken off")

    async def send(self, frame: bytes) -> None:
        """Send a frame, with its length in front; waits while the peer is slow.

        Raises:
            AutoresearchError: the stream is over.
        """
        if len(frame) > FRAME_BYTES_MAX + FRAME_HEAD_BYTES_MAX:
            raise UsageError(f"a frame has at most {FRAME_BYTES_MAX} bytes, this one has {len(frame)}")
        await self._credit.acquire()
        if self._over:
            self._credit.release()
            raise AutoresearchError(f"the stream is over: {self._reason or 'the peer closed it'}")
        self._tell(link.Frame(stream=self.number, data=frame))

    async def receive(self) -> bytes | None:
        """The next frame with its length in front, ``None`` at the end.

        Raises:
            AutoresearchError: the stream broke.
        """
        frame = None if self._over and self._frames.empty() else await self._frames.get()
        if frame is None:
            if self._reason:
                raise AutoresearchError(f"the stream broke: {self._reason}")
            return None
        if not self._over:
            self._tell(link.Took(stream=self.number, count=1))
        return frame

    async def close(self) -> None:
        """End the stream; what was sent before goes out."""
        self.abandon("")

    def abandon(self, reason: str) -> None:
        """Break the stream off, with a reason, or end it without one."""
        if self._register.pop(self.number, None) is not None and not self._over:
            self._tell(link.Close(stream=self.number, reason=reason))
        self._end(reason)

    def hear(self, message: link.Frame | link.Took | link.Close) -> None:
        """What the network process says of this stream."""
        match message:
            case link.Frame():
                self._frames.put_nowait(message.data)
            case link.Took():
                for _ in range(message.count):
                    self._credit.release()
            case link.Close():
                self._register.pop(self.number, None)
                self._end(message.reason)

    def _end(self, reason: str) -> None:
        if not self._over:
            self._over = True
            self._reason = reason
            self._frames.put_nowait(None)
            self._credit.release()  # whoever waits to send learns that it is over, and wakes the next


MODULE = "autoresearch_daemon.net.host.child"

logger = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class Limits:
    """What the network process may do before it is replaced.

    ``memory_bytes`` is resident memory, looked at every ``look_seconds``; ``address_bytes`` the kernel's hard limit on
    address space. It is taken for spinning when it uses ``spin_share`` of a processor for ``spin_seconds`` and moves
    less than ``spin_bytes`` meanwhile. The pause before a restart doubles from ``restart_seconds`` up to
    ``restart_seconds_max`` and starts over after ``healthy_seconds`` of health.
    """

    memory_bytes: int = 512 << 20
    address_bytes: int = 1536 << 20
    look_seconds: float = 1.0
    start_seconds: float = 60.0
    silence_seconds: float = 15.0
    spin_share: float = 0.9
    spin_seconds: float = 60.0
    spin_bytes: int = 32 << 20
    restart_seconds: float = 1.0
    restart_seconds_max: float = 60.0
    healthy_seconds: float = 60.0
    grace_seconds: float = 5.0


@dataclass(slots=True)
class _Life:
    """One process."""

    name: str
    process: asyncio.subprocess.Process
    began: float
    heard: float
    ready: bool = False
    moved: int = 0
    verdict: str = ""
    samples: deque[tuple[float, float, int]] = field(default_factory=deque)


class Supervisor:
    """The process and the link to it. ``on_message`` gets its messages, ``on_lost`` why it ended.

    ``command`` is what is started, with the link's arguments after it; the default is the network process.
    """

    def __init__(
        self,
        options: HostOptions,
        socket: Path,
        limits: Limits,
        *,
        on_message: Callable[[link.FromChild], None],
        on_lost: Callable[[str], None],
        command: tuple[str, ...] = (sys.executable, "-P", "-m", MODULE),
    ) -> None:
        self.state = NetworkState.STOPPED
        self.reason = network_reason(NetworkState.STOPPED)
        self.restarts = 0
        self._options = options
        self._socket, self._address = socket, f"ipc://{socket}"
        self._limits = limits
        self._on_message = on_message
        self._on_lost = on_lost
        self._command = command
        self._context = zmq.asyncio.Context()
        self._router: zmq.asyncio.Socket = self._context.socket(zmq.ROUTER)
        for option in (zmq.LINGER, zmq.SNDHWM, zmq.RCVHWM):
            self._router.setsockopt(option, 0)
        self._outbox: asyncio.Queue[tuple[str, link.FromDaemon]] = asyncio.Queue()
        self._life: _Life | None = None
        self._tasks: list[asyncio.Task[None]] = []
        self._stopping = False

    async def start(self) -> None:
        """Open the link and start the process; does not wait for it."""
        self._socket.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._router.bind(self._address)
        self._enter(NetworkState.STARTING)
        self._tasks = [asyncio.create_task(part) for part in (self._receive(), self._send(), self._keep())]

    async def stop(self) -> None:
        """End the process: ask, wait a little, kill. Afterwards none is left."""
        self._stopping = True
        self.send(link.Quit())
        life = self._life
        if life:
            with suppress(TimeoutError):
                async with asyncio.timeout(self._limits.grace_seconds):
                    await life.process.wait()
            kill(life.process)
            await life.process.wait()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._router.close()
        self._context.term()
        self._socket.unlink(missing_ok=True)
        self._enter(NetworkState.STOPPED)

    def send(self, message: link.FromDaemon) -> None:
        """Send to the process; lost when there is none."""
        if self._life:
            self._outbox.put_nowait((self._life.name, message))

    @property
    def pid(self) -> int | None:
        """The process id, if it runs."""
        return self._life.process.pid if self._life and self._life.process.returncode is None else None

    # --- parts ---

    def _enter(self, state: NetworkState, what: str = "") -> None:
        self.state, self.reason = state, network_reason(state, what)

    async def _keep(self) -> None:
        failures = 0
        while not self._stopping:
            began = asyncio.get_running_loop().time()
            self._life = await self._launch(began)
            if self._stopping:
                return
            reason = await self._watch(self._life)
            if self._stopping:
                return
            lasted = asyncio.get_running_loop().time() - began
            failures = 1 if lasted >= self._limits.healthy_seconds else failures + 1
            self.restarts += 1
            self._enter(NetworkState.RESTARTING, reason)
            logger.warning("network process ended", reason=reason, lasted_seconds=round(lasted, 1), failures=failures)
            self._life = None
            self._on_lost(reason)
            pause = self._limits.restart_seconds * 2 ** min(failures - 1, 16)
            await asyncio.sleep(min(self._limits.restart_seconds_max, pause))

    async def _launch(self, now: float) -> _Life:
        # A new name for each process: what an earlier one still had under way is not heard any more.
        name = f"net-{secrets.token_hex(8)}"
        process = await asyncio.create_subprocess_exec(
            *self._command,
            *("--link", self._address, "--name", name, "--parent", str(os.getpid())),
            *("--memory", str(self._limits.address_bytes)),
            *("--options", msgspec.json.encode(self._options).decode()),
            stdin=asyncio.subprocess.PIPE,  # its end tells the process that the daemon is gone
            start_new_session=True,
        )
        return _Life(name, process, began=now, heard=now)

    async def _watch(self, life: _Life) -> str:
        """Why the process ended, or was ended."""
        ended = asyncio.create_task(life.process.wait())
        try:
            while not ended.done():
                await asyncio.wait([ended], timeout=self._limits.look_seconds)
                if not ended.done() and (verdict := life.verdict or self._judge(life)):
                    kill(life.process)
                    await ended
                    return verdict
            return f"ended with status {life.process.returncode}"
        finally:
            ended.cancel()

    def _judge(self, life: _Life) -> str:
        """What is wrong with a running process; empty when nothing is."""
        now = asyncio.get_running_loop().time()
        limits = self._limits
        if not life.ready:
            return "did not start in time" if now - life.began > limits.start_seconds else ""
        if now - life.heard > limits.silence_seconds:
            return "hung"
        try:
            process = psutil.Process(life.process.pid)
            memory = process.memory_info().rss
            spent = sum(process.cpu_times()[:2])
        except psutil.Error:
            return ""  # it is just ending
        if memory > limits.memory_bytes:
            return f"used {memory >> 20} MiB of memory"
        life.samples.append((now, spent, life.moved))
        while len(life.samples) > 2 and now - life.samples[1][0] >= limits.spin_seconds:
            life.samples.popleft()
        then, spent_then, moved_then = life.samples[0]
        if now - then >= limits.spin_seconds and spent - spent_then >= limits.spin_share * (now - then):
            idle = life.moved - moved_then < limits.spin_bytes
            return "kept a processor busy without moving anything" if idle else ""
        return ""

    async def _receive(self) -> None:
        while True:
            name, payload = (await self._router.recv_multipart())[:2]
            life = self._life
            if life is None or name != life.name.encode():
                continue
            life.heard = asyncio.get_running_loop().time()
            try:
                message = link.decode_from_child(payload)
                if isinstance(message, link.Ready):
                    life.ready = True
                    self._enter(NetworkState.RUNNING)
                    self.reason = message.note or self.reason
                elif isinstance(message, link.Beat):
                    life.moved = message.figures.bytes_in + message.figures.bytes_out
                self._on_message(message)
            except Exception:
                logger.exception("a message of the network process could not be handled; it is replaced")
                life.verdict = "sent what the daemon could not handle"

    async def _send(self) -> None:
        while True:
            name, message = await self._outbox.get()
            if self._life and self._life.name == name:
                await self._router.send_multipart([name.encode(), link.encode(message)])


def kill(process: asyncio.subprocess.Process) -> None:
    """Kill the process and whatever it started, if it still runs."""
    if process.returncode is None:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
