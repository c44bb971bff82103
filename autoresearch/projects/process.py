"""Starts a project's own process, hears what it tells, and has it stop."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType
from typing import IO

import msgspec

from autoresearch.errors import AutoresearchError
from autoresearch.projects.messages import Checked, Done, Failed, Figures, Message, Order, decode_message, encode
from autoresearch.sanitise import one_line

# A file of the working folder takes the place of no module (-P); the package is found where this one was.
_START = (
    "import sys; sys.path.append(sys.argv[1]); from autoresearch.projects.child import main; main(int(sys.argv[2]))"
)
_ROOT = Path(__file__).parents[2]


def do_run(order: Order, log: Path, on_figures: Callable[[Figures], None]) -> Done:
    """Do a run in a process of its own. Ctrl-C asks it to stop and keep what it learned; a second one kills it.

    Raises:
        AutoresearchError: a component is missing or wrong, raised an error, or ended the process.
        KeyboardInterrupt: it was killed by a second Ctrl-C; nothing is kept.
    """
    for message in _messages(order, log):
        if isinstance(message, Figures):
            on_figures(message)
        elif isinstance(message, Done):
            return message
    raise _ended(log)


def check_components(order: Order, log: Path) -> list[Checked]:
    """Load every component of a project in a process of its own. Raises AutoresearchError when that ends early."""
    found = [message for message in _messages(order, log) if isinstance(message, Checked)]
    if len(found) < len(order.project.all()):
        raise _ended(log)
    return found


def _messages(order: Order, log: Path) -> Iterator[Message]:
    """What the process tells, until it ends."""
    read, write = os.pipe()
    # One thread for each run unless the person says otherwise: small networks are slower with more.
    environment = {"OMP_NUM_THREADS": "1", **os.environ}
    with log.open("wb") as said, os.fdopen(read, "rb") as told:
        child = subprocess.Popen(
            [sys.executable, "-P", "-c", _START, str(_ROOT), str(write)],
            stdin=subprocess.PIPE,
            stdout=said,
            stderr=said,
            pass_fds=(write,),
            env=environment,
            start_new_session=True,  # Ctrl-C reaches this process alone, which passes it on
        )
        os.close(write)
        assert child.stdin is not None
        try:
            child.stdin.write(encode(order))
            child.stdin.flush()
            with _stop_asked(child.stdin):
                for line in told:
                    try:
                        message = decode_message(line)
                    except msgspec.DecodeError:
                        continue
                    if isinstance(message, Failed):
                        raise _failure(message, log)
                    yield message
        except BrokenPipeError:
            pass  # it has ended; what it said last is in its log
        finally:
            child.kill()
            child.wait()
            child.stdin.close()


@contextmanager
def _stop_asked(given: IO[bytes]) -> Iterator[None]:
    """Have the first Ctrl-C ask the process to stop, and the second raise KeyboardInterrupt here."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def ask(number: int, frame: FrameType | None) -> None:
        signal.signal(signal.SIGINT, before)
        with suppress(OSError):
            given.write(b"stop\n")
            given.flush()
        del number, frame

    before = signal.signal(signal.SIGINT, ask)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _failure(message: Failed, log: Path) -> AutoresearchError:
    error = AutoresearchError(one_line(message.error, 400), hint=message.hint or f"its messages are in {log}")
    error.exit_status = message.exit_status
    return error


def _ended(log: Path) -> AutoresearchError:
    lines = log.read_text("utf-8", errors="replace").strip().splitlines() if log.exists() else []
    last = f": {one_line(lines[-1], 200)}" if lines else ""
    return AutoresearchError(f"the project's process ended before the run was done{last}", hint=f"see {log}")
