"""What happens here, told to everybody who listens: the API's streams, the log file. Slow listeners are let go."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager

import structlog

from autoresearch.api import Event
from autoresearch_daemon.local_state import LocalState

logger = structlog.get_logger()

# A listener that is this many events behind is disconnected with a "stale" event; it may come back with its last id.
LISTENER_QUEUE = 256


class Events:
    """Keeps events and hands them to listeners."""

    def __init__(self, local: LocalState) -> None:
        self._local = local
        self._listeners: set[asyncio.Queue[Event]] = set()

    def tell(self, kind: str, text: str, time_ms: int, /, **data: object) -> Event:
        """Something happened: keep it and tell everybody."""
        logger.info(kind, text=text)
        event = self._local.add_event(kind, time_ms, text, data)
        self._send(event)
        return event

    def pass_on(self, kind: str, text: str, time_ms: int, /, **data: object) -> None:
        """Tell everybody who listens now, and keep nothing: progress."""
        if self._listeners:
            self._send(Event(id=0, kind=kind, time_ms=time_ms, text=text, data=data))

    def since(self, number: int) -> list[Event] | None:
        """Kept events after that id; ``None`` when some of them are gone."""
        return self._local.events_since(number)

    @contextmanager
    def subscribe(self) -> Iterator[asyncio.Queue[Event]]:
        """A queue of all events from now on."""
        queue: asyncio.Queue[Event] = asyncio.Queue(LISTENER_QUEUE)
        self._listeners.add(queue)
        try:
            yield queue
        finally:
            self._listeners.discard(queue)

    def _send(self, event: Event) -> None:
        for queue in list(self._listeners):
            if queue.full():
                # Emptied: what is dropped must not be skipped by the cursor of what comes after it.
                self._listeners.discard(queue)
                while not queue.empty():
                    queue.get_nowait()
                queue.put_nowait(Event(id=event.id, kind="stale", time_ms=event.time_ms, text="too slow to follow"))
            else:
                queue.put_nowait(event)
