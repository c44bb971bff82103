"""A server of questions: one thread answers them, one at a time or several at once."""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable, Sequence
from typing import Any

import msgspec
import zmq

from autoresearch.errors import AutoresearchError, BadMessage, ServiceFailed
from autoresearch.messages import decode
from autoresearch.sanitise import one_line
from autoresearch.services.links.answers import failure_frames, value_frames
from autoresearch.services.links.keys import ServerKeys
from autoresearch.services.links.loop import Loop
from autoresearch.services.links.sockets import receive, send

Handle = Callable[[Any], object]
HandleMany = Callable[[list[Any]], Sequence[object]]
_logger = logging.getLogger(__name__)


class Counts(msgspec.Struct):
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
        self.counts = Counts()
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
    said = one_line(f"{type(error).__name__}: {error}", 300)
    return ServiceFailed(f"the server's callback raised {said}", hint="the server's log has the whole error")
