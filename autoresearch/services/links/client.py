"""A client that asks a server and waits for its answer: a value, or an error by its name, sentence and hint.

On a failure, programs written for agentlace get None, others typed errors. Client and server must have been given the
same configuration. Ports are not compared: a forwarded port is another one, and the system may choose them.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from types import TracebackType
from typing import Any, Literal, Self

import zmq
from zmq.utils.monitor import recv_monitor_message

from autoresearch import errors
from autoresearch.errors import AutoresearchError, BadMessage, NoAnswer, ServiceError, ServiceRefused, UsageError
from autoresearch.services.links.sockets import ClientKeys, Socket, connected, receive, send
from autoresearch.services.messages import decode, encode
from autoresearch.text import one_line

_VALUE, _ERROR = b"\x00", b"\x01"
_SENTENCE = 500
# Errors that keep their class over the wire; another one arrives as ServiceFailed.
_NAMED = {kind.__name__: kind for kind in (errors.NoAnswer, errors.ServiceRefused, errors.BadMessage)}


def value_frames(value: object) -> list[bytes | memoryview]:
    """The frames of an answer. Raises BadMessage where it cannot be sent."""
    frames = encode(value)
    frames[0] = _VALUE + frames[0]
    return frames


def failure_frames(error: AutoresearchError) -> list[bytes | memoryview]:
    """The frames that raise this error at the client."""
    return [_ERROR + encode([type(error).__name__, str(error)[:_SENTENCE], error.hint[:_SENTENCE]])[0]]


def read_answer(frames: Sequence[bytes | memoryview]) -> Any:  # noqa: ANN401 - a message may hold anything
    """The value of an answer.

    Raises:
        ServiceError: the server answered with an error, or with something that is no answer.
    """
    head = frames[0]
    if head[:1] == _VALUE:
        return decode([memoryview(head)[1:], *frames[1:]])
    match decode([head[1:]]) if head[:1] == _ERROR else None:
        case [str() as name, str() as sentence, str() as hint]:
            kind = _NAMED.get(name, errors.ServiceFailed)
            raise kind(one_line(sentence, _SENTENCE), hint=one_line(hint, _SENTENCE))
    raise BadMessage("what the server answered is no answer", hint="is it another program's port?")


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

    reset_socket = close  # agentlace's name

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


Errors = Literal["none", "raise"]


class Caller:
    """Asks a server. A failure is None, with ``last_error`` saying why; or it is raised, with ``errors="raise"``."""

    def __init__(self, address: str, port: int, *, timeout_ms: float, keys: ClientKeys | None, errors: Errors) -> None:
        if errors not in {"none", "raise"}:
            raise UsageError(f"errors={errors!r} is neither 'none' nor 'raise'")
        self.link = RequestClient(address, port, timeout_ms, keys)
        self.last_error: ServiceError | None = None
        self._errors = errors

    def ask(self, question: object) -> Any:  # noqa: ANN401 - an answer may hold anything
        """The answer, or None where there is none and failures are not raised."""
        self.last_error = None
        try:
            return self.link.ask(question)
        except ServiceError as error:
            self.failed(error)
        return None

    def failed(self, error: ServiceError) -> None:
        """Remember a failure, or raise it."""
        self.last_error = error
        if self._errors == "raise":
            raise error

    def first_answer(self, question: object, *, wait: bool) -> Any:  # noqa: ANN401 - an answer may hold anything
        """The answer to a client's first question; with ``wait`` as soon as there is a server.

        Raises:
            ServiceError: there is no answer.
        """
        while True:
            try:
                return self.link.ask(question)
            except NoAnswer:
                if not wait:
                    self.link.close()
                    raise
            except ServiceError:
                self.link.close()
                raise

    def close(self) -> None:
        """End the connection."""
        self.link.close()


def check_same(own: Mapping[str, object], others: object) -> None:
    """Compare what must agree.

    Raises:
        ServiceRefused: the server has another configuration; the sentence says what differs.
    """
    if not isinstance(others, dict):
        raise ServiceRefused("this server is of another kind", hint="compare the port")
    for name, value in own.items():
        if (other := others.get(name)) != value:
            raise ServiceRefused(
                f"{name} is {one_line(repr(value), 100)} here and {one_line(repr(other), 100)} at the server",
                hint="give both sides the same config",
            )
