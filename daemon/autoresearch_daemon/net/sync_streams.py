"""One sync stream inside the network process: frames go to and fro between peer and daemon against credit (trio)."""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import suppress

import trio

from autoresearch_daemon.net import link
from autoresearch_daemon.net.streams import FrameStream, StreamBroken


class Carried:
    """A stream with a number. ``send`` takes messages for the daemon."""

    def __init__(self, number: int, stream: FrameStream, send: Callable[[link.FromChild], None]) -> None:
        self.number = number
        self._stream = stream
        self._tell = send
        self._credit = trio.Semaphore(link.FRAMES_UNDER_WAY)
        # Bounded by the daemon's credit, which only grows when a frame has left this channel.
        self._push, self._pull = trio.open_memory_channel[bytes](math.inf)
        self._reason = ""

    async def run(self) -> None:
        """Until either side ends the stream; the daemon hears how."""
        regular = False
        try:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self._to_peer, nursery.cancel_scope)
                nursery.start_soon(self._from_peer, nursery.cancel_scope)
            regular = not self._reason
        finally:
            await (self._stream.close() if regular else self._stream.reset())
            self._tell(link.Close(stream=self.number, reason=self._reason))

    def hear(self, message: link.Frame | link.Took | link.Close) -> None:
        """What the daemon says of this stream."""
        match message:
            case link.Frame():
                # When the stream is over the daemon is being told so.
                with suppress(trio.BrokenResourceError, trio.ClosedResourceError):
                    self._push.send_nowait(message.data)
            case link.Took():
                for _ in range(message.count):
                    self._credit.release()
            case link.Close():
                # What was sent before goes out first.
                self._reason = message.reason
                self._push.close()

    async def _to_peer(self, scope: trio.CancelScope) -> None:
        try:
            async with self._pull:
                async for data in self._pull:
                    await self._stream.send_wire(data)
                    self._tell(link.Took(stream=self.number, count=1))
        except StreamBroken as error:
            self._reason = self._reason or str(error)
        scope.cancel()

    async def _from_peer(self, scope: trio.CancelScope) -> None:
        try:
            while True:
                await self._credit.acquire()
                data = await self._stream.receive_wire()
                if data is None:
                    break
                self._tell(link.Frame(stream=self.number, data=data))
        except StreamBroken as error:
            self._reason = self._reason or str(error)
        scope.cancel()
