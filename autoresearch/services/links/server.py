"""A server of questions: one thread touches its sockets and answers, one question at a time or several at once.

Also other threads ring a bell inside the process. With keys, ZeroMQ asks in the process which clients may speak, by ZAP
(rfc.zeromq.org/27).
"""

from __future__ import annotations

import logging
import math
import secrets
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

import msgspec
import zmq

from autoresearch.errors import AutoresearchError, BadMessage, ServiceFailed
from autoresearch.services.links.client import failure_frames, value_frames
from autoresearch.services.links.sockets import ServerKeys, Socket, bound, receive, send
from autoresearch.services.messages import decode
from autoresearch.text import one_line

_ENDPOINT = "inproc://zeromq.zap.01"  # where ZeroMQ asks, one for each context
_VERSION = b"1.0"


class Guard:
    """A thread that admits clients by their public keys. Make it before the server's socket is bound."""

    def __init__(self, context: zmq.Context[zmq.Socket[bytes]], keys: ServerKeys) -> None:
        self._context, self._keys = context, keys
        self._requests: zmq.Socket[bytes] = context.socket(zmq.REP)
        self._requests.setsockopt(zmq.LINGER, 0)
        self._requests.bind(_ENDPOINT)
        self._thread = threading.Thread(target=self._run, name="admission of clients", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """End the thread and close its socket."""
        with self._context.socket(zmq.REQ) as bell:
            bell.connect(_ENDPOINT)
            bell.send(b"")
            bell.recv()
        self._thread.join()

    def _run(self) -> None:
        with self._requests:
            while True:
                request = self._requests.recv_multipart()
                if request == [b""]:
                    self._requests.send(b"")
                    return
                self._requests.send_multipart(self._reply(request))

    def _reply(self, request: list[bytes]) -> list[bytes]:
        match request:
            case [version, number, _, _, _, b"CURVE", key] if version == _VERSION:
                is_client = self._keys.accept(key)
                return [
                    _VERSION,
                    number,
                    b"200" if is_client else b"400",
                    b"" if is_client else b"unknown key",
                    b"",
                    b"",
                ]
        return [_VERSION, request[1] if len(request) > 1 else b"", b"400", b"keys are needed", b"", b""]


_logger = logging.getLogger(__name__)


class Loop:
    """Binds at once, so that ``port`` is known and clients can connect; answers from ``start`` to ``stop``.

    Raises:
        Refused: the address is open to other machines, and there are no keys; or the port is taken.
    """

    def __init__(self, port: int, address: str, keys: ServerKeys | None) -> None:
        self.port = port
        self._address, self._keys = address, keys
        self._lock = threading.Lock()  # guards the bell, and who opens and closes
        self._thread: int | None = None
        self._ended = threading.Event()
        self._stopping = False
        self._open()

    def _open(self) -> None:
        self._context: zmq.Context[Socket] = zmq.Context()
        self._guard = Guard(self._context, self._keys) if self._keys is not None else None
        try:
            self._router, self.port = bound(self._context, self._address, self.port, self._keys)
        except BaseException:
            self._end_context()
            raise
        # The bell is a peer whose name nobody can guess: so the thread waits for one socket alone, which is fastest.
        self._bell_name = b"\x01" + secrets.token_bytes(16)
        self._router.bind("inproc://bell")
        self._bell: Socket | None = self._context.socket(zmq.DEALER)
        self._bell.setsockopt(zmq.LINGER, 0)
        self._bell.setsockopt(zmq.IDENTITY, self._bell_name)
        self._bell.connect("inproc://bell")

    def start(self, threaded: bool = False) -> None:  # noqa: FBT001, FBT002 - the call that agentlace's programs make
        """Answer until ``stop``: in this thread, or with ``threaded`` in one of its own. Does nothing where it runs."""
        with self._lock:
            if self._thread is not None:
                return
            if self._bell is None:
                self._open()
            self._stopping = False
            self._ended.clear()
            self._thread = -1
        if threaded:
            threading.Thread(target=self._run, name=f"service on port {self.port}", daemon=True).start()
        else:
            self._run()

    def stop(self, timeout_s: float = 5.0) -> bool:
        """End it, and wait until its port is free: whether it is. A callback that takes longer is not waited for.

        Safe from every thread, also within a callback, and any number of times.
        """
        with self._lock:
            self._stopping = True
            if self._thread is None:
                self._close()
                return True
            own = self._thread == threading.get_ident()
        self._ring()
        return not own and self._ended.wait(timeout_s)

    def _ring(self) -> None:
        """Wake the thread: it comes back from waiting without a request."""
        with self._lock:
            if self._bell is not None:
                with suppress(zmq.Again):  # it rang so often that the thread cannot miss it
                    self._bell.send(b"", zmq.NOBLOCK)

    def _run(self) -> None:
        with self._lock:
            self._thread = threading.get_ident()
        try:
            while not self._stopping:
                try:
                    self._step()
                except zmq.ZMQError:
                    raise
                except Exception:
                    _logger.exception("the service on port %d could not deal with a message", self.port)
        except zmq.ZMQError:
            _logger.exception("the service on port %d ended", self.port)
        finally:
            with self._lock:
                self._close()
                self._thread = None
            self._ended.set()

    def _step(self) -> None:
        """Wait for a request or the bell, and deal with it."""
        raise NotImplementedError

    def _close(self) -> None:
        """Free the port; the lock is held. Does nothing the second time."""
        if self._bell is None:
            return
        self._bell.close()
        self._bell = None
        self._router.close()
        self._end_context()

    def _end_context(self) -> None:
        if self._guard is not None:
            self._guard.stop()
        self._context.term()


Handle = Callable[[Any], object]
HandleMany = Callable[[list[Any]], Sequence[object]]


class ServerCounts(msgspec.Struct):
    """What a server did since it was made. ``batches`` are calls of the callback; the largest had so many questions."""

    answered: int = 0
    failed: int = 0
    malformed: int = 0
    batches: int = 0
    largest_batch: int = 0


class RequestServer(Loop):
    """Answers each question with ``handle(value)``, in one thread. It survives whatever comes and whatever is raised.

    What the callback raises goes to the client that asked: an AutoresearchError as it is, others as ServiceFailed.

    Raises:
        Refused: the address is open to other machines, and there are no keys; or the port is taken.
    """

    def __init__(
        self, handle: Handle, port: int = 0, address: str = "127.0.0.1", keys: ServerKeys | None = None
    ) -> None:
        self.counts = ServerCounts()
        self._handle = handle
        self._batching: Batching | None = None
        super().__init__(port, address, keys)

    @classmethod
    def batching(
        cls,
        handle_many: HandleMany,
        port: int = 0,
        address: str = "127.0.0.1",
        keys: ServerKeys | None = None,
        *,
        max_batch: int = 32,
        max_wait_ms: float = 2.0,
    ) -> RequestServer:
        """A server whose callback answers several questions at once: ``handle_many(values)`` in the same order.

        It is called with ``max_batch`` questions, or with those that came within ``max_wait_ms`` of the first one.
        An exception among the answers goes to the client of that question alone.
        """
        server = cls(lambda value: handle_many([value])[0], port, address, keys)
        server._batching = Batching(handle_many, max(1, max_batch), max_wait_ms / 1000)
        return server

    def _step(self) -> None:
        first = self._take()
        if first is None:
            return
        if self._batching is None:
            client, question = first
            self.counts.batches += 1
            self.counts.largest_batch = 1
            self._send(client, _answer_of(self._handle, question))
        else:
            self._answer_several([first], self._batching)

    def _answer_several(self, waiting: list[tuple[bytes, Any]], batching: Batching) -> None:
        until = time.monotonic() + batching.max_wait_s
        while len(waiting) < batching.max_batch and not self._stopping:
            if not self._router.poll(max(0, math.ceil(1000 * (until - time.monotonic())))):
                break
            further = self._take()
            waiting += [] if further is None else [further]
        self.counts.batches += 1
        self.counts.largest_batch = max(self.counts.largest_batch, len(waiting))
        answers = _answer_of(batching.answers, [value for _, value in waiting])
        for number, (client, _) in enumerate(waiting):
            self._send(client, answers[number] if isinstance(answers, list) else answers)

    def _take(self) -> tuple[bytes, Any] | None:
        """The next question and its client; none for the bell and for a malformed one, which is answered at once."""
        client = self._router.recv()
        try:
            frames = receive(self._router)
            return None if client == self._bell_name else (client, decode(frames))
        except BadMessage as error:
            self.counts.malformed += 1
            self._send(client, error)
        return None

    def _send(self, client: bytes, answer: object) -> None:
        """Send an answer; a client that is gone, or takes nothing, gets none."""
        try:
            if isinstance(answer, BaseException):
                frames = failure_frames(answer if isinstance(answer, AutoresearchError) else _failed(answer))
                self.counts.failed += 1
            else:
                frames = value_frames(answer)
                self.counts.answered += 1
        except BadMessage as error:
            frames = failure_frames(ServiceFailed(f"the server's answer: {error}", hint=error.hint))
            self.counts.failed += 1
        # Copied: the callback's arrays may change as soon as the next question is answered.
        self._router.send(client, zmq.SNDMORE)
        send(self._router, frames)


class Batching(msgspec.Struct, frozen=True):
    """How a server answers several questions at once."""

    handle_many: HandleMany
    max_batch: int
    max_wait_s: float

    def answers(self, values: list[Any]) -> list[object]:
        """An answer to each. Raises ServiceFailed where there are more or fewer."""
        answers = list(self.handle_many(values))
        if len(answers) != len(values):
            raise ServiceFailed(f"the server's callback gave {len(answers)} answers to {len(values)} questions")
        return answers


def _answer_of(handle: Handle, value: object) -> object:
    """What the callback answers, or the error that it raised."""
    try:
        return handle(value)
    except AutoresearchError as error:
        return error
    except Exception as error:  # noqa: BLE001 - the next client shall find a server
        return _failed(error)


def _failed(error: BaseException) -> ServiceFailed:
    _logger.warning("a service's callback raised an error", exc_info=error)
    sentence = one_line(f"{type(error).__name__}: {error}", 300)
    return ServiceFailed(f"the server's callback raised {sentence}", hint="the server's log has the whole error")
