"""Frames over a libp2p stream (trio): an unsigned varint (multiformats) with the length, then that many bytes.

Bounded, with a deadline for each, patient with a slow reader. Bytes are counted by peer and day, and token buckets say
how long a fast peer waits; nobody is cut off.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

import trio
from libp2p.abc import INetConn, INetStream
from libp2p.network.swarm import Swarm

from autoresearch.record.record import DAY_MS
from autoresearch_daemon.net.host.guards import GuardedYamux, dispose, quietly
from autoresearch_daemon.net.model import FRAME_BYTES_MAX, AddressBook, Figures
from autoresearch_daemon.net.model import FRAME_HEAD_BYTES_MAX as VARINT_BYTES_MAX


class FrameError(Exception):
    """The other side does not keep to the framing."""


def frame(data: bytes) -> bytes:
    """``data`` with its length in front."""
    return varint(len(data)) + data


def varint(number: int) -> bytes:
    """Seven bits a byte, least significant first, the top bit set on all but the last."""
    out = bytearray()
    while number >= 0x80:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)


def first_frame(buffer: bytearray, bytes_max: int) -> tuple[int, int] | None:
    """Where the data of the first frame in ``buffer`` begins and ends; ``None`` when it is not complete yet.

    Raises:
        FrameError: the length is over ``bytes_max`` or not spelled in the shortest way.
    """
    length = 0
    for position, byte in enumerate(buffer[:VARINT_BYTES_MAX]):
        length |= (byte & 0x7F) << 7 * position
        if byte < 0x80:
            break
    else:
        if len(buffer) >= VARINT_BYTES_MAX:
            raise FrameError("a frame's length has too many bytes")
        return None
    if position and byte == 0:
        raise FrameError("a frame's length is not spelled in the shortest way")
    if length > bytes_max:
        raise FrameError(f"a frame of {length} bytes; at most {bytes_max} are allowed")
    start = position + 1
    return (start, start + length) if len(buffer) >= start + length else None


@dataclass(slots=True)
class TokenBucket:
    """``rate`` tokens a second, at most ``burst`` of them saved up. ``now`` is any monotonic clock in seconds."""

    rate: float
    burst: float
    now: float
    _level: float = field(init=False)

    def __post_init__(self) -> None:
        self._level = self.burst

    def take(self, amount: float, now: float) -> float:
        """Take tokens, on credit if there are none. Returns the seconds to wait before going on."""
        self._level = min(self.burst, self._level + (now - self.now) * self.rate) - amount
        self.now = now
        return max(0.0, -self._level / self.rate)


# Rates a second and bursts, for one peer. Gossip saturates far below; catching up goes over streams.
MESSAGES = (100.0, 400.0)
STREAMS = (20.0, 100.0)
# An exchange of records hashes the whole log once; an honest peer begins one a minute and one when it connects.
SESSIONS = (0.2, 30.0)
# An attestor is asked who it is, for a mail and with a code: a few times, once in half a year.
# A machine is asked for its services when a person asks.
QUESTIONS = (0.1, 30.0)
BYTES = (16.0 * 1024 * 1024, 64.0 * 1024 * 1024)
PEERS_REMEMBERED = 1024


@dataclass(slots=True)
class _Buckets:
    messages: TokenBucket
    streams: TokenBucket
    sessions: TokenBucket
    questions: TokenBucket
    bytes: TokenBucket


# The address book is a file: what moved today changes it so often.
NOTED_BYTES = 1 << 20


class Meters:
    """Counts and delays. ``day_bytes`` 0 is no limit. What moved today is kept in the address book over restarts."""

    def __init__(self, swarm: Swarm, now_ms: Callable[[], int], day_bytes: int, book: AddressBook) -> None:
        self._swarm = swarm
        self._now_ms = now_ms
        self._day_bytes = day_bytes
        self.blobs_rest = ""  # why the daemon wants none to move
        self._closed_in = 0
        self._closed_out = 0
        self._book = book
        self._day = now_ms() // DAY_MS
        self._day_start = (0, 0)
        self._earlier = (book.day_in, book.day_out) if book.day == self._day else (0, 0)  # before this start
        # By peer: what connections moved today that ended; by connection: what it had moved when the day began.
        self._closed_today: dict[str, tuple[int, int]] = {}
        self._begun: dict[INetConn, tuple[int, int]] = {}
        # Kept when a peer leaves, so that coming back fills no bucket; the oldest are forgotten.
        self._buckets: OrderedDict[str, _Buckets] = OrderedDict()

    def message_delay(self, peer: str, count: int) -> float:
        """Seconds to wait before reading more gossip of a peer."""
        return self._of(peer).messages.take(count, trio.current_time())

    def stream_delay(self, peer: str) -> float:
        """Seconds to wait before serving a new stream of a peer."""
        return self._of(peer).streams.take(1, trio.current_time())

    def session_delay(self, peer: str) -> float:
        """Seconds to wait before an exchange of records that a peer asks for."""
        return self._of(peer).sessions.take(1, trio.current_time())

    def question_delay(self, peer: str) -> float:
        """Seconds to wait before answering what a peer asks."""
        return self._of(peer).questions.take(1, trio.current_time())

    def byte_delay(self, peer: str, count: int) -> float:
        """Seconds to wait before reading more of a peer's frames."""
        return self._of(peer).bytes.take(count, trio.current_time())

    def closed(self, connection: INetConn) -> None:
        """Keep the counts of a connection that ended."""
        moved_in, moved_out = moved(connection)
        self._closed_in += moved_in
        self._closed_out += moved_out
        peer = str(connection.muxed_conn.peer_id)
        before, start = self._closed_today.get(peer, (0, 0)), self._begun.pop(connection, (0, 0))
        self._closed_today[peer] = (before[0] + moved_in - start[0], before[1] + moved_out - start[1])

    def totals(self) -> tuple[int, int]:
        """Bytes in and out since the start."""
        now = [moved(connection) for connection in self._swarm.get_connections()]
        return self._closed_in + sum(m[0] for m in now), self._closed_out + sum(m[1] for m in now)

    def today(self) -> tuple[int, int]:
        """Bytes in and out since midnight UTC."""
        total_in, total_out = self.totals()
        if (day := self._now_ms() // DAY_MS) != self._day:
            self._day, self._day_start, self._earlier = day, (total_in, total_out), (0, 0)
            self._closed_today = {}
            self._begun = {connection: moved(connection) for connection in self._swarm.get_connections()}
        day_in = self._earlier[0] + total_in - self._day_start[0]
        day_out = self._earlier[1] + total_out - self._day_start[1]
        book = self._book
        # The book is written whenever it has changed: not for each ping.
        if book.day != self._day or day_in + day_out - book.day_in - book.day_out >= NOTED_BYTES:
            self._note(day_in, day_out)
        return day_in, day_out

    def _note(self, day_in: int, day_out: int) -> None:
        self._book.day, self._book.day_in, self._book.day_out = self._day, day_in, day_out

    def end(self) -> None:
        """Note what moved today to the byte, before the book is written for the last time."""
        self._note(*self.today())

    def today_with(self, peer: str, connections: Iterable[INetConn]) -> tuple[int, int]:
        """Bytes in and out since midnight UTC to and from one peer; ``connections`` are those it has now."""
        total_in, total_out = self._closed_today.get(peer, (0, 0))
        for connection in connections:
            now, start = moved(connection), self._begun.get(connection, (0, 0))
            total_in, total_out = total_in + now[0] - start[0], total_out + now[1] - start[1]
        return total_in, total_out

    def why_no_blobs(self) -> str:
        """Why no blob moves now; empty: they do."""
        if self._day_bytes and sum(self.today()) >= self._day_bytes:
            return "today's bytes are used up"
        return self.blobs_rest

    def figures(self, **others: int) -> Figures:
        """The byte counts beside other counters."""
        total_in, total_out = self.totals()
        day_in, day_out = self.today()
        return Figures(bytes_in=total_in, bytes_out=total_out, day_bytes_in=day_in, day_bytes_out=day_out, **others)

    def _of(self, peer: str) -> _Buckets:
        if peer not in self._buckets:
            now = trio.current_time()
            self._buckets[peer] = _Buckets(
                *(TokenBucket(*rate, now) for rate in (MESSAGES, STREAMS, SESSIONS, QUESTIONS, BYTES)),
            )
            if len(self._buckets) > PEERS_REMEMBERED:
                self._buckets.popitem(last=False)
        self._buckets.move_to_end(peer)
        return self._buckets[peer]


def moved(connection: INetConn) -> tuple[int, int]:
    """Bytes in and out of one connection."""
    muxed = connection.muxed_conn
    return (muxed.bytes_in, muxed.bytes_out) if isinstance(muxed, GuardedYamux) else (0, 0)


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


@dataclass(eq=False)
class FrameStream:
    """One stream as a sequence of frames. ``on_bytes`` gets the size of what arrives, returns seconds to wait."""

    stream: INetStream
    peer: str
    bytes_max: int = FRAME_BYTES_MAX
    on_bytes: Callable[[int], float] | None = None

    def __post_init__(self) -> None:
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
                    await self.stream.write(bytes(wire[:room]))
                except Exception as error:
                    raise StreamBroken("the stream is closed") from error
                wire = wire[room:]

    async def _room(self) -> int:
        """How many bytes may be written at once. One writer at a time, so that the window can only grow meanwhile."""
        muxed = self.stream.muxed_stream  # type: ignore[attr-defined]
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
            if self.on_bytes and (seconds := self.on_bytes(len(chunk))):
                await trio.sleep(seconds)
                deadline += seconds
        return place

    def _first(self) -> tuple[int, int] | None:
        try:
            return first_frame(self._buffer, self.bytes_max)
        except FrameError as error:
            raise StreamBroken(str(error)) from error

    async def _read(self) -> bytes:
        from libp2p.network.stream.exceptions import StreamEOF

        try:
            return await self.stream.read(READ_BYTES)
        except StreamEOF as error:
            # libp2p reports a reset stream and a lost connection as a regular end: half a blob would look whole.
            muxed = self.stream.muxed_stream  # type: ignore[attr-defined]
            if (muxed.reset_received and not muxed.recv_closed) or muxed.conn.event_shutting_down.is_set():
                raise StreamBroken("the stream was reset") from error
            return b""
        except Exception as error:
            raise StreamBroken("the stream was reset") from error

    async def close(self) -> None:
        """End the stream; what was sent arrives."""
        await quietly(self.stream.close)
        await dispose(self.stream)

    async def reset(self) -> None:
        """Break the stream off."""
        await quietly(self.stream.reset)
        await dispose(self.stream)
