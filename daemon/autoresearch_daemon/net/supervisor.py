"""Keeps the network process alive: what it may use, in what state it is, and why.

Also the daemon's end of a sync stream, frames in and out, bounded by credit (asyncio).
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, MutableMapping
from dataclasses import dataclass

import msgspec
import psutil

from autoresearch.errors import AutoresearchError, UsageError
from autoresearch.words import NetworkState, network_reason
from autoresearch_daemon.children import ChildProcess, Patience, module_command
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


COMMAND = module_command("autoresearch_daemon.net.host.child")


@dataclass(frozen=True, slots=True)
class Limits(Patience):
    """What the network process may do before it is replaced.

    ``memory_bytes`` is resident memory, looked at every ``look_seconds``; ``address_bytes`` the kernel's hard limit on
    address space. It is taken for spinning when it uses ``spin_share`` of a processor for ``spin_seconds`` and moves
    less than ``spin_bytes`` meanwhile.
    """

    memory_bytes: int = 512 << 20
    address_bytes: int = 1536 << 20
    spin_share: float = 0.9
    spin_seconds: float = 60.0
    spin_bytes: int = 32 << 20


class Supervisor:
    """The process and the link to it. ``on_message`` gets its messages, ``on_lost`` why it ended.

    ``command`` is what is started, with the host's options and the link after it; the default is the network process.
    """

    def __init__(
        self,
        options: HostOptions,
        limits: Limits,
        *,
        on_message: Callable[[link.FromChild], None],
        on_lost: Callable[[str], None],
        command: tuple[str, ...] = COMMAND,
    ) -> None:
        self.state = NetworkState.STOPPED
        self.reason = network_reason(NetworkState.STOPPED)
        self.restarts = 0
        self._limits = limits
        self._on_message = on_message
        self._on_lost = on_lost
        self._child: ChildProcess[link.FromChild] = ChildProcess(
            "network",
            (*command, str(limits.address_bytes), msgspec.json.encode(options).decode()),
            link.FromChild,
            limits,
            on_message=self._hear,
            on_lost=self._lose,
            fault=self._fault,
        )
        self.send = self._child.send
        self._moved = 0
        self._samples: deque[tuple[float, float, int]] = deque()

    def start(self) -> None:
        """Start the process; does not wait for it."""
        self._enter(NetworkState.STARTING)
        self._child.start()

    async def stop(self) -> None:
        """End the process: ask, wait a little, kill. Afterwards none is left."""
        self._child.quit(link.Quit())
        await self._child.stop()
        self._enter(NetworkState.STOPPED)

    @property
    def pid(self) -> int | None:
        """The process id, if it runs."""
        return self._child.pid

    def _enter(self, state: NetworkState, what: str = "") -> None:
        self.state, self.reason = state, network_reason(state, what)

    async def _hear(self, message: link.FromChild) -> None:
        if isinstance(message, link.Ready):
            self._enter(NetworkState.RUNNING)
            self.reason = message.note or self.reason
        elif isinstance(message, link.Beat):
            self._moved = message.figures.bytes_in + message.figures.bytes_out
        self._on_message(message)

    async def _lose(self, reason: str) -> None:
        if not self._child.quitting:
            self.restarts += 1
            self._moved = 0
            self._samples.clear()
            self._enter(NetworkState.RESTARTING, reason)
            self._on_lost(reason)

    def _fault(self) -> str:
        """What is wrong with the running process; empty when nothing is, or it is just starting."""
        if self.state != NetworkState.RUNNING:
            return ""
        now, limits = asyncio.get_running_loop().time(), self._limits
        try:
            process = psutil.Process(self.pid)
            memory = process.memory_info().rss
            spent = sum(process.cpu_times()[:2])
        except psutil.Error:
            return ""  # it is just ending
        if memory > limits.memory_bytes:
            return f"used {memory >> 20} MiB of memory"
        samples = self._samples
        samples.append((now, spent, self._moved))
        while len(samples) > 2 and now - samples[1][0] >= limits.spin_seconds:
            samples.popleft()
        then, spent_then, moved_then = samples[0]
        if now - then >= limits.spin_seconds and spent - spent_then >= limits.spin_share * (now - then):
            idle = self._moved - moved_then < limits.spin_bytes
            return "kept a processor busy without moving anything" if idle else ""
        return ""
