"""The daemon's local API, over its Unix socket. Knows requests, answers and errors; nothing of how they look.

HTTP comes from the standard library: it loads in a tenth of the time that a command takes, and this needs no more.
"""

from __future__ import annotations

import struct
import sys
import threading
from collections.abc import Callable, Collection, Iterator
from concurrent.futures import Future
from contextlib import ExitStack, closing, contextmanager, suppress
from http.client import HTTPConnection, HTTPException, HTTPResponse
from pathlib import Path
from socket import AF_UNIX, SOCK_STREAM, SOL_SOCKET, socket
from typing import TypeVar, cast

import msgspec

from autoresearch import errors
from autoresearch.ask.node import Event, Health
from autoresearch.ask.node_acts import Node
from autoresearch.ask.operation import EVENTS, JSON, USUAL_SECONDS, Operation, Text, operation_of
from autoresearch.ask.requests import EventsSince, ProposeRequest
from autoresearch.log.standing.answers import Answer, Failure
from autoresearch.text import one_line

A = TypeVar("A", bound="Answer | Text")
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


class _Connection(HTTPConnection):
    """HTTP over a Unix socket."""

    def __init__(self, path: Path, seconds: float) -> None:
        super().__init__("autoresearch", timeout=seconds)
        self._path = path

    def connect(self) -> None:
        """Raises DaemonNotRunning when nobody listens."""
        self.sock = socket(AF_UNIX, SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        try:
            self.sock.connect(str(self._path))
        except TimeoutError:
            raise
        except OSError as error:
            raise errors.not_running() from error


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
        connection = _Connection(self._path, USUAL_SECONDS)
        with closing(connection), suppress(TimeoutError):
            connection.connect()
            if sys.platform == "linux":
                from socket import SO_PEERCRED

                pid, *_ = struct.unpack("3i", connection.sock.getsockopt(SOL_SOCKET, SO_PEERCRED, 12))
                return pid or None  # 0: of a container beside this one
            return connection.sock.getsockopt(_SOL_LOCAL, _LOCAL_PEERPID)
        return None

    def run(self, program: ProposeRequest) -> Event:
        """Have the daemon run a program once, and wait for the event that ends it, however it ends."""
        ended = self.ended(self.ask(Node.propose, program).proposed[0])
        assert ended is not None, "it waits for ever"
        return ended

    def ended(self, *names: str, seconds: float | None = None) -> Event | None:
        """The event that ended the first run of some proposals, or ends it within so many seconds; None: all go on.

        Its data has the ``folder`` that the run was proposed from, besides what it tells.

        Raises:
            NotFound: nothing of such a name waits or is in hand, and the events that are kept know of none.
            DaemonNotRunning: the daemon ends meanwhile.
        """
        status = self.ask(Node.status)
        open_ones = {*(each.name for each in status.queue), *(worker.proposal for worker in status.workers)}
        over = [name for name in names if name not in open_ones]
        end: Future[Event] = Future()
        threading.Thread(target=self._follow_to_end, args=(over or names, end), daemon=True).start()
        try:
            return end.result(REPLAY_SECONDS if over else seconds)
        except TimeoutError:
            if not over:
                return None
        reason = f"no proposal {one_line(over[0], 80)} waits, runs or has ended lately"
        raise errors.NotFound(reason, hint="autoresearch status, autoresearch run list")

    def _follow_to_end(self, names: Collection[str], end: Future[Event]) -> None:
        folders: dict[object, object] = {}
        try:
            with self.events(since=0) as events:
                for event in events:
                    name = event.data.get("assignment")
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
    def _response(self, operation: Operation, request: msgspec.Struct | None, seconds: float) -> Iterator[HTTPResponse]:
        if request:
            operation.check(request)
        body = msgspec.json.encode(request) if request and operation.has_body else None
        headers = {"Content-Type": JSON} if body else {}
        connection = _Connection(self._path, seconds)
        try:
            with _translated():
                connection.request(operation.method, operation.target(request), body, headers)
                response = connection.getresponse()
            yield response
        finally:
            connection.close()


@contextmanager
def _translated() -> Iterator[None]:
    """Turn the errors of sockets and HTTP into ours."""
    try:
        yield
    except TimeoutError as error:
        hint = "autoresearch node logs may say why; autoresearch down ends it"
        raise errors.TimedOut("the daemon does not answer", hint=hint) from error
    except (HTTPException, OSError) as error:
        raise errors.DaemonNotRunning("the daemon ended meanwhile", hint="autoresearch up") from error


def _checked(response: HTTPResponse) -> bytes:
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


def _read(response: HTTPResponse) -> bytes:
    with _translated():
        return response.read()


def _decode(content: bytes, answer: type[A]) -> A:
    try:
        return msgspec.json.decode(content, type=answer)
    except msgspec.DecodeError as error:
        hint = "restart it: autoresearch down && autoresearch up"
        raise errors.AutoresearchError("the daemon answers as another version would", hint=hint) from error


def _events(response: HTTPResponse) -> Iterator[Event]:
    """The events in a stream of server-sent events: ``data:`` lines up to an empty one."""
    data: list[bytes] = []
    while line := _line(response):
        text = line.rstrip(b"\r\n")
        if text.startswith(b"data:"):
            data.append(text[5:].removeprefix(b" "))
        elif not text and data:
            yield msgspec.json.decode(b"\n".join(data), type=Event)
            data = []


def _line(response: HTTPResponse) -> bytes:
    with _translated():
        return response.readline()
