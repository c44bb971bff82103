"""The network process: a libp2p host (trio) that hears and tells the daemon over their link.

Of a sync stream, frames go to and fro between peer and daemon against credit.
"""

from __future__ import annotations

import logging
import math
import resource
import signal
import socket
import sys
from collections.abc import Callable
from contextlib import suppress
from itertools import count

import msgspec
import trio

from autoresearch.link import READ_BYTES, LinkEnded, Messages, frame, keep_link
from autoresearch.text import sanitised
from autoresearch_daemon.net import link
from autoresearch_daemon.net.host.dialling import Unreachable
from autoresearch_daemon.net.host.host import Host, HostRefused
from autoresearch_daemon.net.host.serving import BlobNotHere, PeerBusy
from autoresearch_daemon.net.host.streams import FrameStream, StreamBroken
from autoresearch_daemon.net.model import HostOptions, Topic


class SanitisedFormatter(logging.Formatter):
    """Lines of a child process, which go where the daemon's output goes."""

    def format(self, record: logging.LogRecord) -> str:
        """The line; several only where there is a traceback."""
        return sanitised(super().format(record), lines=bool(record.exc_info))


class NumberedStream:
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


# The kernel's hard limit on address space.
ADDRESS_BYTES = 1536 << 20
BLOB_SECONDS = 30.0
QUESTION_SECONDS = 50.0

KINDS: dict[type[Exception], link.Kind] = {
    ValueError: "usage",
    BlobNotHere: "not found",
    HostRefused: "refused",
    PeerBusy: "busy",
    trio.TooSlowError: "timeout",
}
EXPECTED = (*KINDS, Unreachable, StreamBroken)

logger = logging.getLogger(__name__)


class Child:
    """The daemon's wishes become calls of the host; what the host hears becomes messages."""

    def __init__(self, stream: trio.SocketStream, options: HostOptions) -> None:
        self._stream = stream
        # Bounded by credit, see autoresearch_daemon.net.link.
        self._outbox, self._outgoing = trio.open_memory_channel[bytes](math.inf)
        self._options = options
        self._calls: dict[int, trio.CancelScope] = {}
        self._streams: dict[int, NumberedStream] = {}
        self._numbers = count(1)
        self._asked: dict[int, tuple[trio.Event, list[bytes | None]]] = {}
        self._under_way = 0
        self._changed = trio.Event()

    async def serve(self) -> None:
        """Until the daemon says quit or is gone."""
        async with trio.open_nursery() as nursery, Host(self._options, self).run() as host:
            nursery.start_soon(self._send)
            note = "" if host.listen == list(self._options.listen) else f"listening on {', '.join(host.listen)}"
            self.send(link.HostReady(peer=host.peer, addresses=tuple(host.addresses()), note=note))
            nursery.start_soon(self._beat, host)
            async with trio.open_nursery() as calls:
                await self._obey(host, calls)
                calls.cancel_scope.cancel()
            nursery.cancel_scope.cancel()

    def send(self, message: link.FromChild) -> None:
        """Queue a message. What may be under way is bounded by credit, so the link itself never refuses."""
        self._outbox.send_nowait(frame(message))

    # --- what the host calls ---

    def on_record(self, raw: bytes, signature: bytes, peer: str) -> bool:
        """Pass a record on, unless the daemon has too many to take already."""
        if self._under_way >= link.RECORDS_UNDER_WAY:
            return False
        self._under_way += 1
        self.send(link.Heard(raw=raw, signature=signature, peer=peer))
        return True

    async def on_sync(self, stream: FrameStream) -> None:
        """Carry a stream that a peer opened."""
        number = next(self._numbers)
        carried = self._streams[number] = NumberedStream(number, stream, self.send)
        self.send(link.Opened(stream=number, peer=stream.peer))
        await self._carry(carried)

    async def on_blob(self, peer: str, name: bytes, offset: int, length: int) -> bytes | None:
        """Ask the daemon for a part of a blob."""
        data = await self._ask(
            BLOB_SECONDS,
            lambda number: link.BlobAsked(request=number, peer=peer, name=name, offset=offset, length=length),
        )
        return None if data is None else data[:length]

    async def on_question(self, peer: str, topic: Topic, data: bytes) -> bytes | None:
        """Have the daemon answer a peer."""
        return await self._ask(
            QUESTION_SECONDS, lambda number: link.Asked(request=number, peer=peer, topic=topic, data=data)
        )

    async def _ask(self, seconds: float, message: Callable[[int], link.FromChild]) -> bytes | None:
        """Ask the daemon and wait for its answer, but not for ever."""
        number = next(self._numbers)
        answered, box = self._asked[number] = trio.Event(), []
        try:
            self.send(message(number))
            with trio.move_on_after(seconds):
                await answered.wait()
            return box[0] if box else None
        finally:
            del self._asked[number]

    def on_change(self) -> None:
        """Tell of peers that came or went at once."""
        self._changed.set()

    # --- parts ---

    async def _beat(self, host: Host) -> None:
        while True:
            self.send(link.Beat(peers=tuple(host.peers()), figures=host.figures()))
            self._changed = trio.Event()
            with trio.move_on_after(link.BEAT_SECONDS):
                await self._changed.wait()
                await trio.sleep(link.BEAT_SECONDS / 20)  # changes come in flocks

    async def _send(self) -> None:
        with suppress(trio.BrokenResourceError):  # the daemon is gone
            async for data in self._outgoing:
                await self._stream.send_all(data)

    async def _obey(self, host: Host, nursery: trio.Nursery) -> None:
        messages = Messages[link.FromDaemon](link.FromDaemon)
        with suppress(LinkEnded, trio.BrokenResourceError):
            while True:
                for message in messages.feed(await self._stream.receive_some(READ_BYTES)):
                    if isinstance(message, link.CloseHost):
                        return
                    self._hear(message, host, nursery)
                    await trio.lowlevel.checkpoint()

    def _hear(self, message: link.FromDaemon, host: Host, nursery: trio.Nursery) -> None:
        match message:
            case link.CancelCall():
                if scope := self._calls.get(message.call):
                    scope.cancel()
            case link.BlobPart() | link.Reply():
                if waiting := self._asked.get(message.request):
                    waiting[1].append(message.data)
                    waiting[0].set()
            case link.Took(stream=link.RECORDS):
                # Records that an earlier process passed on may be taken only now.
                self._under_way = max(0, self._under_way - message.count)
            case link.Frame() | link.Took() | link.Close():
                if carried := self._streams.get(message.stream):
                    carried.hear(message)
            case link.Introduce():
                host.introduce(message.proof)
            case link.Offer():
                host.offer(message.manifest)
            case link.MoveBlobs():
                host.meters.blobs_rest = message.why_not
            case link.Call():
                nursery.start_soon(self._answer, message, host, nursery)
            case link.CloseHost():
                return

    async def _answer(self, message: link.Call, host: Host, nursery: trio.Nursery) -> None:
        with trio.CancelScope() as scope:
            self._calls[message.call] = scope
            try:
                self.send(await self._do(message, host, nursery))
            except Exception as error:
                if not isinstance(error, EXPECTED):
                    logger.exception("a call failed in an unexpected way")
                kind = KINDS.get(type(error), "failed")
                self.send(link.CallFailed(call=message.call, kind=kind, sentence=str(error) or "it took too long"))
            finally:
                del self._calls[message.call]

    async def _do(self, message: link.Call, host: Host, nursery: trio.Nursery) -> link.Done:
        match message:
            case link.Publish():
                await host.publish(message.raw, message.signature)
            case link.Dial():
                await host.dial(message.address)
            case link.BlockPeer():
                host.block(message.peer, blocked=message.blocked)
            case link.ShutOut():
                host.shut_out(message.peer, message.reason)
            case link.FetchBlob():
                data = await host.fetch_blob(message.peer, message.name, message.offset, message.length)
                return link.Done(call=message.call, data=data)
            case link.AskPeer():
                return link.Done(call=message.call, data=await host.ask(message.peer, message.topic, message.data))
            case link.OpenSync():
                stream = await host.open_sync(message.peer)
                number = next(self._numbers)
                carried = self._streams[number] = NumberedStream(number, stream, self.send)
                nursery.start_soon(self._carry, carried)
                return link.Done(call=message.call, stream=number, peer=stream.peer)
        return link.Done(call=message.call)

    async def _carry(self, carried: NumberedStream) -> None:
        try:
            await carried.run()
        finally:
            del self._streams[carried.number]


async def serve(descriptor: int, options: HostOptions) -> None:
    """Be the network process on the link of this descriptor."""
    async with trio.SocketStream(trio.socket.from_stdlib_socket(socket.socket(fileno=descriptor))) as stream:
        await Child(stream, options).serve()


def main() -> None:
    """Entry of the process; started by the daemon only."""
    options, text = sys.argv[1:]
    descriptor = keep_link(int(text))
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)  # Ctrl-C in the terminal is the daemon's to handle
    with suppress(ValueError, OSError):  # a stricter limit is set already
        resource.setrlimit(resource.RLIMIT_AS, (ADDRESS_BYTES, ADDRESS_BYTES))
    lines = logging.StreamHandler()
    lines.setFormatter(SanitisedFormatter("network process: %(name)s: %(message)s"))
    logging.basicConfig(level=logging.WARNING, handlers=[lines])
    trio.run(serve, descriptor, msgspec.json.decode(options, type=HostOptions))


if __name__ == "__main__":
    main()
