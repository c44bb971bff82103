"""A client that asks a server and waits for its answer."""

from __future__ import annotations

import threading
import time
from contextlib import suppress
from types import TracebackType
from typing import Any, Self

import zmq
from zmq.utils.monitor import recv_monitor_message

from autoresearch.errors import NoAnswer, ServiceError, ServiceRefused
from autoresearch.messages import encode
from autoresearch.sanitise import one_line
from autoresearch.services.links.answers import read_answer
from autoresearch.services.links.keys import ClientKeys
from autoresearch.services.links.sockets import Socket, connected, receive, send

_EVENTS = (
    zmq.EVENT_HANDSHAKE_SUCCEEDED
    | zmq.EVENT_HANDSHAKE_FAILED_AUTH
    | zmq.EVENT_HANDSHAKE_FAILED_PROTOCOL
    | zmq.EVENT_HANDSHAKE_FAILED_NO_DETAIL
    | zmq.EVENT_DISCONNECTED
    | zmq.EVENT_CLOSED  # nobody listens there
)
# So long a client waits for a connection, to tell a server that is busy from none.
_LOOK_MS = 200


class RequestClient:
    """Asks one server; several threads may, one question at a time. ``timeout_ms`` holds for each question.

    A question is sent at most once: one without an answer may have been dealt with or not.
    """

    def __init__(self, address: str, port: int, timeout_ms: float = 800, keys: ClientKeys | None = None) -> None:
        self.timeout_ms = timeout_ms
        self._address, self._port, self._keys = address, port, keys
        self._lock = threading.Lock()
        self._socket: Socket | None = None
        self._monitor: Socket | None = None
        self._patience_ms = -1

    def ask(self, value: object) -> Any:  # noqa: ANN401 - a message may hold anything
        """The server's answer to a value.

        Raises:
            NoAnswer: no server is there, or it took longer than ``timeout_ms``.
            ServiceRefused: the server says no, or does not accept this client's key.
            ServiceFailed: the server's callback raised an error.
            BadMessage: the value cannot be sent, or the answer is none.
        """
        frames = encode(value)
        patience_ms = self.timeout_ms
        if not self._lock.acquire(blocking=False):
            patience_ms = self._wait_for_turn()
        try:
            answer = self._exchange(frames, round(patience_ms))
        except (
            BaseException
        ):  # also a key that a person pressed: the answer to this question must not be the next one's
            self._drop()
            raise
        finally:
            self._lock.release()
        return read_answer(answer)

    def _wait_for_turn(self) -> float:
        """Wait for another thread's question, and return the milliseconds that are left."""
        began = time.monotonic()
        if not self._lock.acquire(timeout=self.timeout_ms / 1000):
            raise NoAnswer(f"another thread waits for {self._place}", hint="give each thread a client of its own")
        return max(0.0, self.timeout_ms - 1000 * (time.monotonic() - began))

    def close(self) -> None:
        """End the connection; the next question opens it again."""
        with self._lock:
            self._drop()

    reset_socket = close

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _exchange(self, frames: list[bytes | memoryview], patience_ms: int) -> list[bytes | memoryview]:
        try:
            socket = self._socket or self._open()[0]
            if patience_ms != self._patience_ms:
                # Sending waits too: a server that refused this client's key took the connection away.
                socket.setsockopt(zmq.SNDTIMEO, patience_ms)
                socket.setsockopt(zmq.RCVTIMEO, patience_ms)
                self._patience_ms = patience_ms
            # Copied: after a time-out the caller may change its arrays while ZeroMQ still sends.
            send(socket, frames)
            answer = receive(socket)
        except zmq.Again:
            raise self._why() from None
        except zmq.ZMQError as error:  # this machine has no room for a socket, for example
            raise NoAnswer(f"{self._place} cannot be asked: {error.strerror}") from error
        self._unwatch()
        return answer

    def _open(self) -> tuple[Socket, Socket]:
        """A new connection, and what hears of it."""
        self._socket = connected(self._address, self._port, self._keys, monitored=_EVENTS)
        self._monitor = self._socket.get_monitor_socket(_EVENTS)
        return self._socket, self._monitor

    def _unwatch(self) -> None:
        """Hear no more of the connection.

        ZeroMQ waits for who hears of one too seldom, and all clients of the process wait with it.
        """
        if self._socket is not None and self._monitor is not None:
            self._socket.disable_monitor()
            self._monitor.close(linger=0)
            self._monitor = None

    def _why(self) -> ServiceError:
        """What became of a question without an answer, by what ZeroMQ says of the connection."""
        events: list[int] = []
        with suppress(zmq.ZMQError):
            if self._monitor is None:  # this connection has answered before: look whether there is still a server
                self._drop()
                self._open()[1].poll(_LOOK_MS)
            while self._monitor is not None:
                events.append(recv_monitor_message(self._monitor, zmq.NOBLOCK)["event"])
        if zmq.EVENT_HANDSHAKE_FAILED_AUTH in events:
            return ServiceRefused(
                f"{self._place} does not accept this client's key", hint="give the server this client's public key"
            )
        if events[-1:] == [zmq.EVENT_HANDSHAKE_SUCCEEDED]:
            return NoAnswer(
                f"{self._place} did not answer within {self.timeout_ms:g} ms",
                hint="its callback may take longer: raise timeout_ms",
            )
        # Once is also what a server leaves that ends while a client connects.
        broken = events.count(zmq.EVENT_HANDSHAKE_FAILED_NO_DETAIL) > 1
        if broken or zmq.EVENT_HANDSHAKE_FAILED_PROTOCOL in events:
            return ServiceRefused(
                f"{self._place} has other keys, or none",
                hint="either both sides have keys or none; compare the server's public key",
            )
        return NoAnswer(f"no server at {self._place}", hint="start it; compare address and port")

    @property
    def _place(self) -> str:
        return f"{one_line(self._address, 80)} port {self._port}"

    def _drop(self) -> None:
        """Close the socket with what waits in it. The next question makes a new one."""
        if self._socket is not None:
            self._unwatch()
            self._socket.close()
            self._socket = None
            self._patience_ms = -1
