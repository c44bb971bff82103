"""Starts a project's own process, hears what it tells, and has it stop."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType

from autoresearch.errors import AutoresearchError
from autoresearch.link import Link, LinkEnded, start_linked
from autoresearch.project.child.messages import (
    AnyOrder,
    Checked,
    Done,
    Failed,
    Message,
    Order,
    Stop,
)
from autoresearch.run.sandbox.layout import Interpreter
from autoresearch.text import one_line


class RunStopped(AutoresearchError):
    """A run was stopped before it was done. Nothing is kept."""

    exit_status = 130


# A file of the working folder takes the place of no module (-P); the package is found where this one was.
_START = (
    "import sys; sys.path.append(sys.argv[1]); "
    "from autoresearch.project.child.child import main; main(int(sys.argv[2]))"
)
_ROOT = Path(__file__).parents[3]


def told(order: AnyOrder, log: Path, python: Interpreter | None = None) -> Iterator[Message]:
    """What a project's own process, of another Python if one is given, tells of an order until that is done.

    Of a run, a service or an actor the last is ``Done``; of a check there is one ``Checked`` for each component. Ctrl-C
    asks it to stop and keep what it learned; a second one kills it.

    Raises:
        AutoresearchError: a component is missing or wrong, raised an error, or ended the process.
        KeyboardInterrupt: it was killed by a second Ctrl-C; nothing is kept.
    """
    child, checked = Child(order, log, python), 0
    try:
        with stop_asked(child.stop):
            for message in child.messages():
                checked += isinstance(message, Checked)
                yield message
                if isinstance(message, Done):
                    return
    finally:
        child.close()
    is_check = isinstance(order, Order) and not order.episodes
    if not is_check or checked < len(order.project.all()):
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
                raise failure_of(message, self.log)
            yield message

    def close(self) -> None:
        """End it at once."""
        self._process.kill()
        self._process.wait()
        self._link.close()

    def _give(self, message: AnyOrder | Stop) -> None:
        with suppress(LinkEnded):  # what it said last is in its log
            self._link.send(message)


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


def failure_of(message: Failed, log: Path) -> AutoresearchError:
    """The error that a process, maybe a stranger's, tells of."""
    error = AutoresearchError(one_line(message.error, 400), hint=one_line(message.hint, 200) or f"see {log}")
    error.exit_status = message.exit_status if 0 < message.exit_status < 128 else 1
    return error


def ended(log: Path) -> AutoresearchError:
    """The error where a process ended without a word."""
    lines = log.read_text("utf-8", errors="replace").strip().splitlines() if log.exists() else []
    last = f": {one_line(lines[-1], 200)}" if lines else ""
    return AutoresearchError(f"the project's process ended before the run was done{last}", hint=f"see {log}")
