"""The daemon's local API, over its Unix socket. Knows requests, answers and errors; nothing of how they look.

It speaks as much HTTP as it needs: the standard library's client takes a tenth of the time of a command to load.
"""

from __future__ import annotations

import struct
import sys
import threading
from collections.abc import Callable, Collection, Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from pathlib import Path
from socket import AF_UNIX, SHUT_RDWR, SOCK_STREAM, SOL_SOCKET, socket
from typing import TYPE_CHECKING, TypeVar, cast

import msgspec

from autoresearch import errors
from autoresearch.ask.node import Event, Health
from autoresearch.ask.node_acts import Node
from autoresearch.ask.operation import EVENTS, JSON, USUAL_SECONDS, Operation, Text, operation_of
from autoresearch.ask.requests import DropRequest, EventsSince, ProposeRequest
from autoresearch.log.standing.answers import Answer, Failure
from autoresearch.text import one_line

if TYPE_CHECKING:
    from concurrent.futures import Future

A = TypeVar("A", bound="Answer | Text")
# Of the head of an answer.
_LINE_BYTES = 1 << 16
STALE = "stale"
# Where there is no SO_PEERCRED: macOS, sys/un.h.
_SOL_LOCAL, _LOCAL_PEERPID = 0, 2
RUN_ENDED = frozenset({"run_finished", "run_failed"})
# The daemon sends a comment every 15 s; three missed ones mean that it is gone.
STREAM_TIMEOUT_SECONDS = 45.0
# What is kept of earlier events comes at once.
REPLAY_SECONDS = 3.0
ERRORS: dict[int, type[errors.AutoresearchError]] = {
    error.exit_status: error
    for error in (errors.UsageError, errors.DaemonNotRunning, errors.NotFound, errors.Refused, errors.TimedOut)
}


class _Response:
    """An answer in HTTP/1.1, as it comes over a socket: its ``status``, then its body, whole or in lines."""

    def __init__(self, connection: socket) -> None:
        self._file = connection.makefile("rb")
        words = self._line().split(maxsplit=2)
        if len(words) < 2 or not words[0].startswith(b"HTTP/1.") or not words[1].isdigit():
            raise ConnectionError("the answer is no HTTP")
        self.status = int(words[1])
        self._left, self._is_chunked = -1, False  # -1: up to the end
        while line := self._line().strip():
            name, _, text = line.lower().partition(b":")
            if name == b"content-length":
                self._left = int(text)
            self._is_chunked |= name == b"transfer-encoding" and b"chunked" in text
        self._pieces = self._chunks() if self._is_chunked else iter(())
        self._rest = b""

    def _line(self) -> bytes:
        if (line := self._file.readline(_LINE_BYTES)).endswith(b"\n"):
            return line
        raise ConnectionError("the answer ended within a line")

    def _chunks(self) -> Iterator[bytes]:
        while size := int(self._line().partition(b";")[0], 16):
            piece = self._file.read(size)
            self._line()
            yield piece
        # what may follow the last chunk, nobody sends

    def read(self) -> bytes:
        """The whole body."""
        if self._is_chunked:
            return self._rest + b"".join(self._pieces)
        content = self._file.read(self._left)
        if len(content) < self._left:
            raise ConnectionError("the answer ended early")
        return content

    def readline(self) -> bytes:
        """The next line of a body that goes on; empty at its end."""
        if not self._is_chunked:
            return self._file.readline()
        while b"\n" not in self._rest and (piece := next(self._pieces, b"")):
            self._rest += piece
        line, newline, self._rest = self._rest.partition(b"\n")
        return line + newline


def _connected(path: Path, seconds: float) -> socket:
    """A connection to the daemon's socket. Raises DaemonNotRunning when nobody listens, TimeoutError."""
    connection = socket(AF_UNIX, SOCK_STREAM)
    connection.settimeout(seconds)
    try:
        connection.connect(str(path))
    except TimeoutError:
        connection.close()
        raise
    except OSError as error:
        connection.close()
        raise errors.not_running() from error
    return connection


class Client:
    """The daemon that listens on a socket. Methods raise DaemonNotRunning when none answers."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def ask(
        self, question: Callable[..., A], request: msgspec.Struct | None = None, *, seconds: float | None = None
    ) -> A:
        """The answer to a question, or what comes of an act of `Node`.

        It waits ``seconds``, else as long as that usually takes at most.
        """
        operation = operation_of(question)
        with self._response(operation, request, seconds or operation.seconds) as response:
            content = _checked(response)
        if issubclass(operation.answers, Text):
            return cast("A", operation.answers(content.decode()))
        return cast("A", _decode(content, operation.answers))

    def ready(self) -> Health:
        """Whether the daemon can do its work yet; not ready is an answer, not an error."""
        with self._response(operation_of(Node.ready), None, USUAL_SECONDS) as response:
            return _decode(_read(response), Health)

    def process(self) -> int | None:
        """The daemon's process id, as the kernel says it: whatever version it has, and also while it answers nobody.

        None where the kernel can't say it.
        """
        with suppress(TimeoutError), _connected(self._path, USUAL_SECONDS) as connection:
            if sys.platform == "linux":
                from socket import SO_PEERCRED

                pid, *_ = struct.unpack("3i", connection.getsockopt(SOL_SOCKET, SO_PEERCRED, 12))
                return pid or None  # 0: of a container beside this one
            return connection.getsockopt(_SOL_LOCAL, _LOCAL_PEERPID)
        return None

    def run(self, program: ProposeRequest) -> Event:
        """Have the daemon run a program once, and wait for the event that ends it, however it ends.

        Raises CannotRunHere where this machine can't begin it: it is taken back then.
        """
        name = self.ask(Node.propose, program).proposed[0]
        try:
            ended = self.ended(name)
        except errors.CannotRunHere:
            self.ask(Node.drop_proposal, DropRequest(name=name))
            raise
        assert ended is not None, "it waits for ever"
        return ended

    def check_can_begin(self, *names: str) -> None:
        """Raises CannotRunHere where this machine tried to begin each of some proposals, in vain.

        They stay in the queue, and are tried again at times.
        """
        waiting = [each for each in self.ask(Node.status).queue if each.name in names and each.obstacle]
        if len(waiting) == len(names):
            sentence, _, hint = waiting[0].obstacle.partition(" → ")
            raise errors.CannotRunHere(sentence, hint=hint)

    def ended(self, *names: str, seconds: float | None = None) -> Event | None:
        """The event that ended the first run of some proposals, or ends it within so many seconds; None: all go on.

        Its data has the ``folder`` that the run was proposed from, besides what it tells.

        Raises:
            NotFound: nothing of such a name waits or is in hand, and the events that are kept know of none.
            CannotRunHere: this machine tried to begin each of them, in vain.
            DaemonNotRunning: the daemon ends meanwhile.
        """
        status = self.ask(Node.status)
        open_ones = {*(each.name for each in status.queue), *(worker.proposal for worker in status.workers)}
        over = [name for name in names if name not in open_ones]
        self.check_can_begin(*names)
        from concurrent.futures import Future

        end: Future[Event] = Future()
        with self.events(since=0) as events:  # the thread ends with the stream: the daemon takes few listeners
            check = partial(self.check_can_begin, *names)
            arguments = (events, over or names, end, check)
            threading.Thread(target=_follow_to_end, args=arguments, daemon=True).start()
            try:
                return end.result(REPLAY_SECONDS if over else seconds)
            except TimeoutError:
                if not over:
                    return None
        reason = f"no proposal {one_line(over[0], 80)} waits, runs or has ended lately"
        raise errors.NotFound(reason, hint="autoresearch status, autoresearch run list")

    @contextmanager
    def events(
        self, *, since: int | None = None, quiet_seconds: float = STREAM_TIMEOUT_SECONDS
    ) -> Iterator[Iterator[Event]]:
        """Events as they happen, after those with a larger id than ``since``; subscribed when this is entered.

        TimedOut is raised when nothing, not even a sign of life, comes for ``quiet_seconds``.
        """
        with ExitStack() as stack:
            yield self._followed(stack, self._listen(stack, since, quiet_seconds), quiet_seconds)

    def _listen(self, stack: ExitStack, since: int | None, quiet_seconds: float) -> Iterator[Event]:
        response = stack.enter_context(self._response(EVENTS, EventsSince(since=since), quiet_seconds))
        if response.status != 200:
            _checked(response)
        return _events(response)

    def _followed(self, stack: ExitStack, events: Iterator[Event], quiet_seconds: float) -> Iterator[Event]:
        """The events; after falling behind (a terminal that was suspended) on from the last one seen."""
        last: int | None = None
        kind = ""
        while True:
            for event in events:
                last, kind = event.id or last, event.kind
                yield event
            if kind != STALE:
                return
            stack.close()
            events, kind = self._listen(stack, last, quiet_seconds), ""

    @contextmanager
    def _response(self, operation: Operation, request: msgspec.Struct | None, seconds: float) -> Iterator[_Response]:
        if request:
            operation.check(request)
        body = msgspec.json.encode(request) if request and operation.has_body else b""
        head = f"{operation.method} {operation.target(request)} HTTP/1.1\r\nHost: autoresearch\r\nConnection: close\r\n"
        if body or operation.method == "POST":
            head += f"Content-Type: {JSON}\r\nContent-Length: {len(body)}\r\n"
        with ExitStack() as stack:
            with _translated():
                connection = stack.enter_context(_connected(self._path, seconds))
                stack.callback(_hang_up, connection)
                connection.sendall(f"{head}\r\n".encode() + body)
                response = _Response(connection)
            yield response


def _hang_up(connection: socket) -> None:
    """End a connection for a thread that reads it, too."""
    with suppress(OSError):  # the daemon did
        connection.shutdown(SHUT_RDWR)


def _follow_to_end(
    events: Iterator[Event],
    names: Collection[str],
    end: Future[Event],
    check_can_begin: Callable[[], None],
) -> None:
    folders: dict[object, object] = {}
    try:
        for event in events:
            name = event.data.get("assignment")
            if event.kind == "worker":
                check_can_begin()
            if name not in names:
                continue
            folders.setdefault(name, event.data.get("folder", ""))
            if event.kind in RUN_ENDED:
                end.set_result(msgspec.structs.replace(event, data={**event.data, "folder": folders[name]}))
                return
        end.set_exception(errors.DaemonNotRunning("the daemon ended meanwhile", hint="autoresearch up"))
    except errors.AutoresearchError as error:
        end.set_exception(error)


@contextmanager
def _translated() -> Iterator[None]:
    """Turn the errors of sockets and HTTP into ours."""
    try:
        yield
    except TimeoutError as error:
        hint = "autoresearch node logs may say why; autoresearch down ends it"
        raise errors.TimedOut("the daemon does not answer", hint=hint) from error
    except (OSError, ValueError) as error:
        raise errors.DaemonNotRunning("the daemon ended meanwhile", hint="autoresearch up") from error


def _checked(response: _Response) -> bytes:
    """The body of an answer. Raises the error that the daemon answered with."""
    content = _read(response)
    if response.status == 200:
        return content
    try:
        failure = msgspec.json.decode(content, type=Failure)
    except msgspec.DecodeError as broken:
        raise errors.AutoresearchError(
            f"the daemon answered with HTTP {response.status}", hint="autoresearch node doctor"
        ) from broken
    error = ERRORS.get(failure.exit_status, errors.AutoresearchError)(failure.error, hint=failure.hint)
    error.exit_status = failure.exit_status  # also of a class that takes more than a sentence
    raise error


def _read(response: _Response) -> bytes:
    with _translated():
        return response.read()


def _decode(content: bytes, answer: type[A]) -> A:
    try:
        return msgspec.json.decode(content, type=answer)
    except msgspec.DecodeError as error:
        hint = "restart it: autoresearch down && autoresearch up"
        raise errors.AutoresearchError("the daemon answers as another version would", hint=hint) from error


def _events(response: _Response) -> Iterator[Event]:
    """The events in a stream of server-sent events: ``data:`` lines up to an empty one."""
    data: list[bytes] = []
    while line := _line(response):
        text = line.rstrip(b"\r\n")
        if text.startswith(b"data:"):
            data.append(text[5:].removeprefix(b" "))
        elif not text and data:
            yield msgspec.json.decode(b"\n".join(data), type=Event)
            data = []


def _line(response: _Response) -> bytes:
    with _translated():
        return response.readline()
