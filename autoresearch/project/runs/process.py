"""Starts a project's own process, hears what it tells, and has it stop.

Ctrl-C is a question that a loop asks in the main thread; the second one raises KeyboardInterrupt.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType, TracebackType
from typing import Any

from autoresearch.errors import AutoresearchError
from autoresearch.link import Link, LinkEnded, start_linked
from autoresearch.project.child.messages import (
    ActOrder,
    AnyOrder,
    Checked,
    Done,
    Failed,
    Figures,
    Message,
    Order,
    Played,
    Served,
    ServeOrder,
    Serving,
    Stop,
)
from autoresearch.run.sandbox.layout import Interpreter
from autoresearch.text import one_line


class RunStopped(AutoresearchError):
    """A run was stopped before it was done. Nothing is kept."""

    exit_status = 130


class Interrupted:
    """While it is entered the first Ctrl-C sets ``asked`` and calls nothing. In other threads it does nothing."""

    def __init__(self) -> None:
        self.asked = False
        self._before: Any = None

    def __enter__(self) -> Interrupted:
        if threading.current_thread() is threading.main_thread():
            self._before = signal.signal(signal.SIGINT, self._ask)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._before is not None:
            signal.signal(signal.SIGINT, self._before)

    def _ask(self, number: int, frame: FrameType | None) -> None:
        signal.signal(signal.SIGINT, self._before)
        self.asked = True
        del number, frame


# A file of the working folder takes the place of no module (-P); the package is found where this one was.
_START = (
    "import sys; sys.path.append(sys.argv[1]); "
    "from autoresearch.project.child.child import main; main(int(sys.argv[2]))"
)
_ROOT = Path(__file__).parents[3]


def do_run(order: Order, log: Path, on_figures: Callable[[Figures], None], python: Interpreter | None = None) -> Done:
    """Do a run in a process of its own, of another Python if one is given.

    Ctrl-C asks it to stop and keep what it learned; a second one kills it.

    Raises:
        AutoresearchError: a component is missing or wrong, raised an error, or ended the process.
        KeyboardInterrupt: it was killed by a second Ctrl-C; nothing is kept.
    """
    for message in _messages(order, log, python):
        if isinstance(message, Figures):
            on_figures(message)
        elif isinstance(message, Done):
            return message
    raise ended(log)


def check_components(order: Order, log: Path, python: Interpreter | None = None) -> list[Checked]:
    """Load every component of a project in a process of its own. Raises AutoresearchError when that ends early."""
    checks = [message for message in _messages(order, log, python) if isinstance(message, Checked)]
    if len(checks) < len(order.project.all()):
        raise ended(log)
    return checks


def serve(order: ServeOrder, log: Path, python: Interpreter | None = None) -> Iterator[Serving | Served | Done]:
    """Serve a component in a process of its own until Ctrl-C, and tell how it does; last that it is done.

    A second Ctrl-C kills it.

    Raises:
        AutoresearchError: the component is missing or wrong, raised an error, or ended the process.
    """
    for message in _messages(order, log, python):
        if isinstance(message, Serving | Served | Done):
            yield message
        if isinstance(message, Done):
            return
    raise ended(log)


def act(order: ActOrder, log: Path, python: Interpreter | None = None) -> Iterator[Played | Done]:
    """Play for a learner in a process of its own until it is done or Ctrl-C; a second Ctrl-C kills it.

    Raises:
        AutoresearchError: no learner answers, a component is missing or raised an error, or ended the process.
    """
    for message in _messages(order, log, python):
        if isinstance(message, Played | Done):
            yield message
        if isinstance(message, Done):
            return
    raise ended(log)


class Child:
    """A project's own process, at work on an order. It ends with the thread that made it."""

    def __init__(self, order: AnyOrder, log: Path, python: Interpreter | None = None) -> None:
        self.log = log
        # One thread for each run unless the person says otherwise: small networks are slower with more.
        environment = {"OMP_NUM_THREADS": "1", **os.environ}
        with log.open("wb") as output:
            self._process, descriptor = start_linked(
                [str(python.executable) if python else sys.executable, "-P", "-c", _START, str(_ROOT)],
                stdout=output,
                stderr=output,
                env=environment,
                start_new_session=True,  # Ctrl-C reaches this process alone, which passes it on
            )
        self._link: Link[Message] = Link(descriptor, descriptor, Message)
        self._give(order)

    def stop(self) -> None:
        """Ask it to stop."""
        self._give(Stop())

    def messages(self) -> Iterator[Message]:
        """What it tells, until it ends. Raises AutoresearchError where it failed."""
        for message in self._link:
            if isinstance(message, Failed):
                raise _failure(message, self.log)
            yield message

    def close(self) -> None:
        """End it at once."""
        self._process.kill()
        self._process.wait()
        self._link.close()

    def _give(self, message: AnyOrder | Stop) -> None:
        with suppress(LinkEnded):  # what it said last is in its log
            self._link.send(message)


def _messages(order: AnyOrder, log: Path, python: Interpreter | None) -> Iterator[Message]:
    """What the process tells, until it ends."""
    child = Child(order, log, python)
    try:
        with stop_asked(child.stop):
            yield from child.messages()
    finally:
        child.close()


@contextmanager
def stop_asked(stop: Callable[[], None]) -> Iterator[None]:
    """Have the first Ctrl-C or SIGTERM ask processes to stop, and the second end them at once."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def ask(number: int, frame: FrameType | None) -> None:
        restore()
        stop()
        del number, frame

    def restore() -> None:
        for each, handler in before.items():
            signal.signal(each, handler)

    before = {each: signal.signal(each, ask) for each in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        restore()


def _failure(message: Failed, log: Path) -> AutoresearchError:
    error = AutoresearchError(one_line(message.error, 400), hint=message.hint or f"its messages are in {log}")
    error.exit_status = message.exit_status
    return error


def ended(log: Path) -> AutoresearchError:
    """The error where a process ended without a word."""
    lines = log.read_text("utf-8", errors="replace").strip().splitlines() if log.exists() else []
    last = f": {one_line(lines[-1], 200)}" if lines else ""
    return AutoresearchError(f"the project's process ended before the run was done{last}", hint=f"see {log}")
