"""The daemon's end of a sync stream (asyncio): frames in, frames out, bounded by credit."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, MutableMapping

from autoresearch.errors import AutoresearchError, UsageError
from autoresearch_daemon.net import link
from autoresearch_daemon.net.model import FRAME_BYTES_MAX, FRAME_HEAD_BYTES_MAX


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
