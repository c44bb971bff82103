"""Ctrl-C as a question that a loop asks, in the main thread; the second one raises KeyboardInterrupt."""

from __future__ import annotations

import signal
import threading
from types import FrameType, TracebackType
from typing import Any

from autoresearch.errors import AutoresearchError


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
