"""A child process of the daemon: started, heard and watched over its link, started again with back-off, ended."""

from __future__ import annotations

import asyncio
import math
import os
import signal
import socket
import sys
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import psutil
import structlog

from autoresearch.errors import BadMessage
from autoresearch.link import READ_BYTES, LinkEnded, Messages, backoff, frame

Heard = TypeVar("Heard")
logger = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class ChildLimits:
    """What a child may do before it is replaced, and how soon it is.

    It must say something within ``start_seconds``, and then at least every ``silence_seconds``. It is looked at every
    ``look_seconds``: it may have ``memory_bytes`` of resident memory. It is taken for spinning when it uses
    ``spin_share`` of a processor for ``spin_seconds`` and moves less than ``spin_bytes`` meanwhile. The pause before a
    restart doubles from ``restart_seconds`` up to ``restart_seconds_max`` and starts over after ``healthy_seconds`` of
    health. One that is told to go, or closes its link, has ``grace_seconds``.
    """

    look_seconds: float = 1.0
    start_seconds: float = 60.0
    silence_seconds: float = 15.0
    memory_bytes: float = 512 << 20
    spin_share: float = 0.9
    spin_seconds: float = 60.0
    spin_bytes: int = 32 << 20
    restart_seconds: float = 1.0
    restart_seconds_max: float = 60.0
    healthy_seconds: float = 60.0
    grace_seconds: float = 5.0


class ChildProcess(Generic[Heard]):
    """One child, again and again until it is told to quit. The descriptor of its link is its last argument.

    ``on_message`` and ``on_lost``, which is told why, are awaited one at a time: a process is lost after what it said
    is dealt with. ``moved`` is how many bytes it moved, as far as its owner knows.
    """

    def __init__(
        self,
        name: str,
        command: Sequence[str],
        messages: Any,  # noqa: ANN401 - a union is no type to the checker
        limits: ChildLimits,
        *,
        on_message: Callable[[Heard], Awaitable[None]],
        on_lost: Callable[[str], Awaitable[None]],
    ) -> None:
        self.name = name
        self.failures = 0
        self.began = 0.0
        self.moved = 0
        self._command, self._kind, self._limits = command, messages, limits
        self._on_message, self._on_lost = on_message, on_lost
        self._process: asyncio.subprocess.Process | None = None
        self._heard: float | None = None
        self._verdict = ""
        self._samples: deque[tuple[float, float, int]] = deque()
        self._outbox: asyncio.Queue[bytes] | None = None
        self._farewell: object = None
        self._leaving = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Start it, also again after it was stopped; does not wait for it."""
        self._leaving.clear()
        self._farewell = None
        self._task = asyncio.create_task(self._keep())

    def send(self, message: object) -> None:
        """Send a message; lost when there is no process."""
        if self._outbox:
            self._outbox.put_nowait(frame(message))

    def quit(self, message: object) -> None:
        """Tell it to go, and start no other. One that is just being started is told as soon as it can hear."""
        self._leaving.set()
        self._farewell = message
        self.send(message)

    @property
    def quitting(self) -> bool:
        """Whether it was told to go."""
        return self._leaving.is_set()

    async def stop(self) -> None:
        """End what was told to quit: wait a little, kill. Afterwards it is gone."""
        if self._task is None:
            return
        await asyncio.wait([self._task], timeout=self._limits.grace_seconds)
        self.kill()
        if self._process:
            await self._process.wait()
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)

    def kill(self, verdict: str = "") -> None:
        """Kill the process and whatever it started in its session, if it still runs."""
        if self._process and self._process.returncode is None:
            self._verdict = self._verdict or verdict
            with suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)

    @property
    def pid(self) -> int | None:
        """The process id, if it runs."""
        return self._process.pid if self._process and self._process.returncode is None else None

    async def _keep(self) -> None:
        clock, limits = asyncio.get_running_loop().time, self._limits
        while not self.quitting:
            reason = await self._live()
            if self.quitting:
                break
            lasted = clock() - self.began
            self.failures = 1 if lasted >= limits.healthy_seconds else self.failures + 1
            about = {"reason": reason, "lasted_seconds": round(lasted, 1), "failures": self.failures}
            logger.warning("child process ended", name=self.name, **about)
            await self._on_lost(reason)
            pause = backoff(self.failures - 1, limits.restart_seconds, limits.restart_seconds_max)
            with suppress(TimeoutError):
                async with asyncio.timeout(pause):
                    await self._leaving.wait()
        await self._on_lost("was told to go")

    async def _live(self) -> str:
        """One process from its start to its end; why it ended."""
        loop = asyncio.get_running_loop()
        self._heard, self._verdict, self.began, self.moved = None, "", loop.time(), 0
        self._samples.clear()
        ours, theirs = socket.socketpair()
        with ours:
            ours.settimeout(0)
            try:
                with theirs:
                    self._process = process = await asyncio.create_subprocess_exec(
                        *self._command,
                        str(theirs.fileno()),
                        pass_fds=(theirs.fileno(),),
                        stdin=asyncio.subprocess.DEVNULL,
                        start_new_session=True,
                    )
            except OSError as error:
                return f"can't be started: {error.strerror}"
            self._outbox = asyncio.Queue()
            if self._farewell:
                self.send(self._farewell)
            tasks = [asyncio.create_task(part) for part in (self._hear(ours), self._send(ours, self._outbox))]
            try:
                await self._watch(process)
                # Whoever else holds the child's side, what it sent before its end is read, and then comes the end.
                with suppress(OSError):
                    ours.shutdown(socket.SHUT_RDWR)
                await tasks[0]
            finally:
                self._outbox = None
                for task in tasks:
                    task.cancel()
                await asyncio.gather(*tasks, return_exceptions=True)
        return self._verdict or f"ended with status {process.returncode}"

    async def _watch(self, process: asyncio.subprocess.Process) -> None:
        """Until the process ended, or was ended."""
        ended = asyncio.create_task(process.wait())
        try:
            while not (await asyncio.wait([ended], timeout=self._limits.look_seconds))[0]:
                if fault := self._silence() or self._overuse(process.pid):
                    self.kill(fault)
        finally:
            ended.cancel()

    def _silence(self) -> str:
        now = asyncio.get_running_loop().time()
        if self._heard is None:
            return "did not start in time" if now - self.began > self._limits.start_seconds else ""
        return "hung" if now - self._heard > self._limits.silence_seconds else ""

    def _overuse(self, pid: int) -> str:
        """What a running process takes too much of; empty when nothing."""
        now, limits, samples = asyncio.get_running_loop().time(), self._limits, self._samples
        try:
            process = psutil.Process(pid)
            memory, spent = process.memory_info().rss, sum(process.cpu_times()[:2])
        except psutil.Error:
            return ""  # it is just ending
        if memory > limits.memory_bytes:
            return f"used {memory >> 20} MiB of memory"
        if math.isinf(limits.spin_seconds):
            return ""
        samples.append((now, spent, self.moved))
        while len(samples) > 2 and now - samples[1][0] >= limits.spin_seconds:
            samples.popleft()
        then, spent_then, moved_then = samples[0]
        if now - then >= limits.spin_seconds and spent - spent_then >= limits.spin_share * (now - then):
            idle = self.moved - moved_then < limits.spin_bytes
            return "kept a processor busy without moving anything" if idle else ""
        return ""

    async def _hear(self, ours: socket.socket) -> None:
        """Deal with messages until the link ends. A process that goes on without one is ended."""
        loop, messages = asyncio.get_running_loop(), Messages[Heard](self._kind)
        try:
            while True:
                try:
                    data = await loop.sock_recv(ours, READ_BYTES)
                except ConnectionResetError:
                    data = b""
                for message in messages.feed(data):
                    self._heard = math.inf  # it is not silent while the daemon is slow
                    await self._on_message(message)
                    self._heard = loop.time()
        except LinkEnded:
            assert self._process
            with suppress(TimeoutError):
                async with asyncio.timeout(self._limits.grace_seconds):
                    await self._process.wait()
            self.kill("closed its link")
        except Exception as error:
            if isinstance(error, OSError):  # no descriptor is left, or the disk is full: a condition says so
                logger.warning("a message could not be handled", name=self.name, reason=error.strerror or str(error))
            elif not isinstance(error, BadMessage):
                logger.exception("a message of a child process could not be handled; it is replaced", name=self.name)
            self.kill("sent what the daemon could not handle")

    async def _send(self, ours: socket.socket, outbox: asyncio.Queue[bytes]) -> None:
        with suppress(OSError):  # it has ended; what it said before is still heard
            while True:
                await asyncio.get_running_loop().sock_sendall(ours, await outbox.get())


def module_command(module: str, *arguments: str) -> tuple[str, ...]:
    """The command that runs a module of this program; a file of the working folder takes the place of none (-P)."""
    return (sys.executable, "-P", "-m", module, *arguments)
