"""The daemon's side of the network (asyncio): records to and fro, sync streams, blobs, peers. Imports no libp2p."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Mapping, MutableMapping
from dataclasses import dataclass, field
from itertools import count
from typing import Any

import msgspec
import structlog

from autoresearch.errors import AutoresearchError, NotFound, Refused, TimedOut, UsageError
from autoresearch.record.record import Record
from autoresearch.words import NetworkState, network_reason
from autoresearch_daemon.children import ChildLimits, ChildProcess, module_command
from autoresearch_daemon.net import link, model

CALL_SECONDS = 20.0
BLOB_SECONDS = 75.0
QUESTION_SECONDS = 75.0
# Handlers of sync streams and blob requests that run at a time; the network process has its own, lower caps.
HANDLERS_MAX = 64


class Busy(Refused):
    """Not now; the same may work in a moment."""


ERRORS: dict[str, Callable[[str], AutoresearchError]] = {
    "usage": UsageError,
    "not found": NotFound,
    "refused": Refused,
    "busy": Busy,
    "timeout": TimedOut,
    "failed": AutoresearchError,
}

COMMAND = module_command("autoresearch_daemon.net.host.child")

logger = structlog.get_logger()


@dataclass(eq=False)
class SyncStream:
    """A bidirectional stream of frames to ``peer``: unsigned varint of the length, then the data (autoresearch.sync).

    Use ``async with`` or ``close``; one reader, any writers.
    """

    number: int
    peer: str
    tell: Callable[[link.FromDaemon], None]
    register: MutableMapping[int, SyncStream]

    def __post_init__(self) -> None:
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
        if len(frame) > model.FRAME_BYTES_MAX + model.FRAME_HEAD_BYTES_MAX:
            raise UsageError(f"a frame has at most {model.FRAME_BYTES_MAX} bytes, this one has {len(frame)}")
        await self._credit.acquire()
        if self._over:
            self._credit.release()
            raise AutoresearchError(f"the stream is over: {self._reason or 'the peer closed it'}")
        self.tell(link.Frame(stream=self.number, data=frame))

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
            self.tell(link.Took(stream=self.number, count=1))
        return frame

    async def close(self) -> None:
        """End the stream; what was sent before goes out."""
        self.abandon("")

    def abandon(self, reason: str) -> None:
        """Break the stream off, with a reason, or end it without one."""
        if self.register.pop(self.number, None) is not None and not self._over:
            self.tell(link.Close(stream=self.number, reason=reason))
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
                self.register.pop(self.number, None)
                self._end(message.reason)

    def _end(self, reason: str) -> None:
        if not self._over:
            self._over = True
            self._reason = reason
            self._frames.put_nowait(None)
            self._credit.release()  # whoever waits to send learns that it is over, and wakes the next


@dataclass(frozen=True, slots=True)
class Handlers:
    """What the network calls in the daemon.

    ``on_record(raw, signature, peer)``: an admitted record arrived; one at a time, the next waits until it returns.
    ``on_sync(stream)``: a peer opened a sync stream; it is closed when the handler returns.
    ``on_blob_request(name, offset, length)``: that part of a blob, shorter at its end; ``None``: not here. The name is
    its SHA-256, and behind it that of its manifest if it has one.
    ``questions``: what answers a peer, ``(peer, data)``, about each topic with the reply, or with ``None``.
    ``on_peers()``: a peer came or went. ``introduce(peer)``: what the device signs about this host's peer id.
    """

    on_record: Callable[[bytes, bytes, str], Awaitable[None]]
    on_sync: Callable[[SyncStream], Awaitable[None]]
    on_blob_request: Callable[[bytes, int, int], Awaitable[bytes | None]]
    on_peers: Callable[[], None] = lambda: None
    questions: Mapping[model.Topic, Callable[[str, bytes], Awaitable[bytes | None]]] = field(default_factory=dict)
    introduce: Callable[[str], bytes] | None = None


class NetworkClient:
    """The network as the daemon sees it. It may be away for a while: calls raise then, nothing hangs."""

    def __init__(
        self,
        options: model.HostOptions,
        handlers: Handlers,
        *,
        limits: ChildLimits | None = None,
        command: tuple[str, ...] = COMMAND,
    ) -> None:
        self._handlers, self._network_id = handlers, options.network.id
        self._child: ChildProcess[link.FromChild] = ChildProcess(
            "network",
            (*command, msgspec.json.encode(options).decode()),
            link.FromChild,
            limits or ChildLimits(),
            on_message=self._hear,
            on_lost=self._replaced,
        )
        self._enter(NetworkState.STOPPED)
        self._restarts = 0
        self._calls: dict[int, asyncio.Future[link.Done]] = {}
        self._numbers = count(1)
        self._streams: dict[int, SyncStream] = {}
        self._records: asyncio.Queue[link.Heard] = asyncio.Queue()
        self._up = asyncio.Event()
        self._ready = link.HostReady(peer="", addresses=())
        self._offer: link.Offer | None = None
        self._blobs = link.MoveBlobs()
        self._turn = asyncio.Lock()
        self._beat = link.Beat(peers=(), figures=model.Figures())
        self._tasks: set[asyncio.Task[None]] = set()

    # --- life ---

    def start(self) -> None:
        """Start the network process, unless it rests; does not wait until it is up."""
        self._spawn(self._take_records())
        if self._state != NetworkState.RESTING:
            self._enter(NetworkState.STARTING)
            self._child.start()

    async def rest(self, reason: str) -> None:
        """Have no network for as long as there is a reason; empty: start it again."""
        async with self._turn:
            if reason and self._state != NetworkState.RESTING:
                await self._end(NetworkState.RESTING, reason)
            elif reason:
                self._enter(NetworkState.RESTING, reason)
            elif self._state == NetworkState.RESTING:
                self._enter(NetworkState.STARTING)
                self._child.start()

    def move_blobs(self, why_not: str) -> None:
        """Fetch and serve blobs from now on; or not, and why."""
        if why_not != self._blobs.why_not:
            self._blobs = link.MoveBlobs(why_not=why_not)
            self._child.send(self._blobs)

    async def stop(self) -> None:
        """Close all connections and end the process; pending calls fail."""
        async with self._turn:
            await self._end(NetworkState.STOPPED)
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _end(self, state: NetworkState, what: str = "") -> None:
        self._child.quit(link.CloseHost())
        await self._child.stop()
        self._enter(state, what)
        self._lost("was stopped")

    def _enter(self, state: NetworkState, what: str = "") -> None:
        self._state, self._reason = state, network_reason(state, what)

    async def ready(self) -> None:
        """Wait until the network process is up."""
        await self._up.wait()

    # --- questions and wishes ---

    def offer(self, manifest: bytes) -> None:
        """Give peers who ask for the network these bytes from now on."""
        self._offer = link.Offer(manifest=manifest)
        self._child.send(self._offer)

    async def publish(self, record: Record) -> None:
        """Gossip a record. Best effort: peers that miss it get it by reconciliation. Raises AutoresearchError."""
        await self._call(lambda call: link.Publish(call=call, signature=record.signature, raw=record.raw))

    def peers(self) -> list[model.PeerInfo]:
        """Connected peers first, then those that were; none while the process is away."""
        return list(self._beat.peers)

    async def dial(self, address: str) -> None:
        """Connect to a multiaddr that ends in ``/p2p/PEER`` and stay connected. Raises AutoresearchError."""
        await self._call(lambda call: link.Dial(call=call, address=address))

    async def block(self, key: str, *, blocked: bool = True) -> None:
        """Refuse a peer id from now on, or no longer. Raises AutoresearchError."""
        await self._call(lambda call: link.BlockPeer(call=call, peer=key, blocked=blocked))

    async def shut_out(self, key: str, reason: str) -> None:
        """Refuse a peer id for a while. Raises AutoresearchError."""
        await self._call(lambda call: link.ShutOut(call=call, peer=key, reason=reason))

    async def open_sync(self, peer: str) -> SyncStream:
        """A new sync stream to a connected peer. Raises AutoresearchError."""
        done = await self._call(lambda call: link.OpenSync(call=call, peer=peer))
        if (stream := self._streams.get(done.stream)) is None:
            raise AutoresearchError("the stream ended before it began")
        return stream

    async def fetch_blob(self, peer: str, name: bytes, offset: int, length: int) -> bytes:
        """A part of a blob, at most 1 MiB, shorter where the blob ends. The caller checks the hash.

        ``name`` is the blob's SHA-256, and behind it that of its manifest if it has one.

        Raises:
            NotFound: the peer has it not.
            Busy: the peer, or the link to it, has too much to do now.
            TimedOut: it is silent.
            AutoresearchError: it could not be fetched.
        """
        if not 0 < length <= model.BLOB_PART_BYTES_MAX:
            raise UsageError(f"a part of a blob has 1 to {model.BLOB_PART_BYTES_MAX} bytes")
        done = await self._call(
            lambda call: link.FetchBlob(call=call, peer=peer, name=name, offset=offset, length=length),
            seconds=BLOB_SECONDS,
        )
        return done.data

    async def ask(self, peer: str, topic: model.Topic, data: bytes) -> bytes:
        """What a connected peer replies about something. Raises AutoresearchError, also when it is nothing."""
        done = await self._call(
            lambda call: link.AskPeer(call=call, peer=peer, topic=topic, data=data), seconds=QUESTION_SECONDS
        )
        return done.data

    def info(self) -> model.NetworkInfo:
        """How the network stands."""
        figures = self._beat.figures
        return model.NetworkInfo(
            state=self._state,
            reason=self._reason,
            peer=self._ready.peer,
            addresses=self._ready.addresses if self._state == NetworkState.RUNNING else (),
            connected=sum(peer.connected and peer.network in (b"", self._network_id) for peer in self._beat.peers),
            restarts=self._restarts,
            figures=figures,
            bytes_today=figures.day_bytes_in + figures.day_bytes_out,
            process=self._child.pid,
        )

    # --- the link ---

    async def _call(self, message: Callable[[int], link.FromDaemon], seconds: float = CALL_SECONDS) -> link.Done:
        if not self._up.is_set():
            raise AutoresearchError(f"no network: {self._reason}")
        if len(self._calls) >= link.CALLS_UNDER_WAY:
            raise Busy("the network process has too much to do")
        number = next(self._numbers)
        future: asyncio.Future[link.Done] = asyncio.get_running_loop().create_future()
        self._calls[number] = future
        try:
            self._child.send(message(number))
            async with asyncio.timeout(seconds):
                return await future
        except TimeoutError:
            raise TimedOut("the network did not answer in time") from None
        finally:
            del self._calls[number]
            if future.cancelled():
                self._child.send(link.CancelCall(call=number))

    async def _hear(self, message: link.FromChild) -> None:
        match message:
            case link.HostReady():
                self._ready = message
                self._enter(NetworkState.RUNNING)
                self._reason = message.note or self._reason
                if self._handlers.introduce:
                    self._child.send(link.Introduce(proof=self._handlers.introduce(message.peer)))
                if self._offer:  # the process knows what there was when the daemon started
                    self._child.send(self._offer)
                self._child.send(self._blobs)
                self._up.set()
            case link.Beat():
                self._child.moved = message.figures.bytes_in + message.figures.bytes_out
                changed = connected(message) != connected(self._beat)
                self._beat = message
                if changed:
                    self._handlers.on_peers()
            case link.Done() | link.CallFailed():
                self._hear_answer(message)
            case link.Heard():
                self._records.put_nowait(message)  # bounded: the process has credit for so many
            case link.Frame() | link.Took() | link.Close():
                if stream := self._streams.get(message.stream):
                    stream.hear(message)
            case link.Opened():
                self._serve(message.stream, self._run_sync(self._stream(message.stream, message.peer)))
            case link.BlobAsked():
                self._serve(None, self._answer_blob(message))
            case link.Asked():
                self._serve(None, self._answer_question(message))

    def _hear_answer(self, message: link.Done | link.CallFailed) -> None:
        call = self._calls.get(message.call)
        if isinstance(message, link.CallFailed):
            if call and not call.done():
                call.set_exception(ERRORS[message.kind](message.sentence))
            return
        if message.stream:
            # Here and not where the call waits: the stream's first frame may be the next message.
            stream = self._stream(message.stream, message.peer)
            if call is None or call.done():
                stream.abandon("nobody waits for it")
        if call and not call.done():
            call.set_result(message)

    async def _replaced(self, reason: str) -> None:
        if not self._child.quitting:
            self._restarts += 1
            self._enter(NetworkState.RESTARTING, reason)
            self._lost(reason)

    def _lost(self, reason: str) -> None:
        """The process is gone, and with it every stream and answer."""
        self._up.clear()
        self._beat = link.Beat(peers=(), figures=self._beat.figures)
        for call in self._calls.values():
            if not call.done():
                call.set_exception(AutoresearchError(f"no answer: the network process {reason}"))
        for stream in list(self._streams.values()):
            stream.hear(link.Close(stream=stream.number, reason=f"the network process {reason}"))
        self._streams.clear()
        self._handlers.on_peers()

    def _stream(self, number: int, peer: str) -> SyncStream:
        stream = self._streams[number] = SyncStream(number, peer, self._child.send, self._streams)
        return stream

    # --- handlers ---

    def _serve(self, stream: int | None, work: Coroutine[Any, Any, None]) -> None:
        if len(self._tasks) > HANDLERS_MAX:
            work.close()
            if stream is not None:
                self._streams.pop(stream).abandon("too much to do")
            return
        self._spawn(work)

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _take_records(self) -> None:
        while True:
            published = await self._records.get()
            try:
                await self._handlers.on_record(published.raw, published.signature, published.peer)
            except Exception:
                logger.exception("a record that was heard could not be handled")
            self._child.send(link.Took(stream=link.RECORDS, count=1))

    async def _run_sync(self, stream: SyncStream) -> None:
        try:
            await self._handlers.on_sync(stream)
        except AutoresearchError as error:
            stream.abandon(str(error))
        except Exception:
            logger.exception("a sync stream could not be handled", peer=stream.peer)
            stream.abandon("an error in the daemon")
        else:
            await stream.close()

    async def _answer_blob(self, request: link.BlobAsked) -> None:
        data = None
        try:
            data = await self._handlers.on_blob_request(request.name, request.offset, request.length)
        except AutoresearchError as error:
            logger.debug("blob not served", reason=str(error))
        except Exception:
            logger.exception("a blob request could not be handled")
        self._child.send(link.BlobPart(request=request.request, data=data))

    async def _answer_question(self, question: link.Asked) -> None:
        data = None
        try:
            if answer := self._handlers.questions.get(question.topic):
                data = await answer(question.peer, question.data)
        except Exception as error:  # noqa: BLE001 - whatever it is, the peer waits for a reply
            # Not with its traceback: that may hold what the peer sent, an address.
            logger.error("a reply failed", topic=question.topic, error=type(error).__name__)
        self._child.send(link.Reply(request=question.request, data=data))


def connected(beat: link.Beat) -> set[str]:
    """The connected peers of a beat."""
    return {peer.peer for peer in beat.peers if peer.connected}
