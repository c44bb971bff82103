"""Frames over a libp2p stream (trio): bounded, with a deadline for each, patient with a slow reader."""

from __future__ import annotations

from collections.abc import Callable

import trio
from libp2p.abc import INetStream

from autoresearch_daemon.net.framing import FrameError, first_frame, frame
from autoresearch_daemon.net.guards import dispose, quietly
from autoresearch_daemon.net.model import FRAME_BYTES_MAX

# A frame that has begun must be complete within this, however slowly it drips.
FRAME_SECONDS = 30.0
# A stream on which nothing is said for so long is closed.
IDLE_SECONDS = 120.0
# How long a reader may leave its window full. libp2p itself gives up after 5 seconds.
STALL_SECONDS = 60.0
STALL_POLL_SECONDS = 0.01
# What libp2p puts into one Yamux frame, whose head has 12 bytes; more would make a second, tiny one.
WRITE_BYTES = 64 * 1024 - 12
READ_BYTES = 64 * 1024


class StreamBroken(Exception):
    """The stream ended in the middle, or the other side does not keep to the protocol."""


class FrameStream:
    """One stream as a sequence of frames. ``on_bytes`` gets the size of what arrives, returns seconds to wait."""

    def __init__(
        self,
        stream: INetStream,
        peer: str,
        *,
        bytes_max: int = FRAME_BYTES_MAX,
        on_bytes: Callable[[int], float] | None = None,
    ) -> None:
        self.peer = peer
        self._stream = stream
        self._bytes_max = bytes_max
        self._on_bytes = on_bytes
        self._buffer = bytearray()
        self._sending = trio.Lock()

    async def send(self, data: bytes) -> None:
        """Send one frame. Raises StreamBroken, also when the other side reads nothing for a minute."""
        await self.send_wire(frame(data))

    async def send_wire(self, framed: bytes) -> None:
        """Send bytes that are frames already. Raises StreamBroken."""
        async with self._sending:
            wire = memoryview(framed)
            while wire:
                room = await self._room()
                try:
                    await self._stream.write(bytes(wire[:room]))
                except Exception as error:
                    raise StreamBroken("the stream is closed") from error
                wire = wire[room:]

    async def _room(self) -> int:
        """How many bytes may be written at once. One writer at a time, so that the window can only grow meanwhile."""
        muxed = self._stream.muxed_stream  # type: ignore[attr-defined]
        with trio.move_on_after(STALL_SECONDS):
            while muxed.send_window <= 0 and not muxed.closed:  # noqa: ASYNC110 - libp2p has no event for it
                await trio.sleep(STALL_POLL_SECONDS)
            return max(1, min(int(muxed.send_window), WRITE_BYTES))
        raise StreamBroken("the other side does not read")

    async def receive(self) -> bytes | None:
        """The data of the next frame, or ``None`` at the end. Raises StreamBroken."""
        if (place := await self._complete()) is None:
            return None
        start, end = place
        data = bytes(self._buffer[start:end])
        del self._buffer[:end]
        return data

    async def receive_wire(self) -> bytes | None:
        """The next frame as it travels, with its length in front. Raises StreamBroken."""
        if (place := await self._complete()) is None:
            return None
        framed = bytes(self._buffer[: place[1]])
        del self._buffer[: place[1]]
        return framed

    async def _complete(self) -> tuple[int, int] | None:
        """Read until there is a complete frame; where it is."""
        deadline = trio.current_time() + (FRAME_SECONDS if self._buffer else IDLE_SECONDS)
        while (place := self._first()) is None:
            began = bool(self._buffer)
            with trio.CancelScope(deadline=deadline) as scope:
                chunk = await self._read()
            if scope.cancelled_caught:
                raise StreamBroken("a frame came too slowly" if began else "nothing was said for too long")
            if not chunk:
                if began:
                    raise StreamBroken("the stream ended inside a frame")
                return None
            self._buffer += chunk
            if not began:
                deadline = trio.current_time() + FRAME_SECONDS
            if self._on_bytes and (seconds := self._on_bytes(len(chunk))):
                await trio.sleep(seconds)
                deadline += seconds
        return place

    def _first(self) -> tuple[int, int] | None:
        try:
            return first_frame(self._buffer, self._bytes_max)
        except FrameError as error:
            raise StreamBroken(str(error)) from error

    async def _read(self) -> bytes:
        from libp2p.network.stream.exceptions import StreamEOF

        try:
            return await self._stream.read(READ_BYTES)
        except StreamEOF as error:
            # libp2p reports a reset stream and a lost connection as a regular end: half a blob would look whole.
            muxed = self._stream.muxed_stream  # type: ignore[attr-defined]
            if (muxed.reset_received and not muxed.recv_closed) or muxed.conn.event_shutting_down.is_set():
                raise StreamBroken("the stream was reset") from error
            return b""
        except Exception as error:
            raise StreamBroken("the stream was reset") from error

    async def close(self) -> None:
        """End the stream; what was sent arrives."""
        await quietly(self._stream.close)
        await dispose(self._stream)

    async def reset(self) -> None:
        """Break the stream off."""
        await quietly(self._stream.reset)
        await dispose(self._stream)
