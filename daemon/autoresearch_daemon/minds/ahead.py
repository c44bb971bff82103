"""The next change of a model or a command, made while a run trains: a worker does not wait for a slow mind."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Hashable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field

from autoresearch.run.experiment import Plan

# A mind that takes less than this, or this share of a run, is waited for: so it knows how the run before ended.
QUICK_SECONDS = 5.0
QUICK_SHARE = 0.1
# How often a worker that waits for a mind looks whether the daemon wants it to stop.
_LOOK_SECONDS = 0.2

# What makes a change, given a way to know that nobody wants it any more: its plan, or why there is none.
Think = Callable[[Callable[[], bool]], Plan | str]


@dataclass(frozen=True, slots=True)
class _Thought:
    """One change in the making. ``about`` says for what: a change for something else is not wanted."""

    about: Hashable
    made: Future[Plan | str]
    unwanted: threading.Event = field(default_factory=threading.Event)


class Mind:
    """What a worker's mind is at, kept from one assignment to the next. Used by one thread at a time."""

    def __init__(self) -> None:
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="mind")
        self._thought: _Thought | None = None
        self._mind_seconds = self._run_seconds = 0.0

    @property
    def is_slow(self) -> bool:
        """Whether its last change took long, also beside the last run."""
        return self._run_seconds > 0 and self._mind_seconds > max(QUICK_SECONDS, QUICK_SHARE * self._run_seconds)

    def change(
        self, about: Hashable, think: Think, *, patient: bool, cancelled: Callable[[], bool]
    ) -> Plan | str | None:
        """The change that was made ahead, or is made now; None where a slow mind is still at it.

        What is begun here is waited for, and with ``patient`` what was begun before, too. ``cancelled`` ends it: then
        there is an empty reason. Raises what ``think`` raises.
        """
        was_begun = self._thought is not None and self._thought.about == about
        thought = self._begin(about, think)
        while not thought.made.done():
            if cancelled():
                self.stop()
                return ""
            if was_begun and self.is_slow and not patient:
                return None
            wait([thought.made], _LOOK_SECONDS)
        self._thought = None
        return thought.made.result()

    def think_ahead(self, about: Hashable, think: Think) -> None:
        """Begin with the next change, where the mind is slow."""
        if self.is_slow:
            self._begin(about, think)

    def note_run(self, seconds: float) -> None:
        """A run took so long."""
        self._run_seconds = seconds

    def stop(self) -> None:
        """End what it is at, and wait for the end."""
        if self._thought is not None:
            self._thought.unwanted.set()
            wait([self._thought.made])
            self._thought = None

    def _begin(self, about: Hashable, think: Think) -> _Thought:
        if self._thought is None or self._thought.about != about:
            self.stop()
            unwanted = threading.Event()
            self._thought = _Thought(about, self._thread.submit(self._timed, think, unwanted), unwanted)
        return self._thought

    def _timed(self, think: Think, unwanted: threading.Event) -> Plan | str:
        began = time.monotonic()
        try:
            return think(unwanted.is_set)
        finally:
            self._mind_seconds = time.monotonic() - began
