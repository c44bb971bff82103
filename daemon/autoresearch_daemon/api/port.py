"""What the HTTP API needs of the node. Knows neither HTTP nor how the node does it."""

from __future__ import annotations

import asyncio
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Protocol

from autoresearch.api import Event, Health, StatusAnswer
from autoresearch.log import BlobStore, Log
from autoresearch.records import BlobRef


class NodePort(Protocol):
    """The node as the API sees it. The errors of its methods are those of `autoresearch.errors`.

    It has, besides these, a method for each operation that neither reads the log nor writes to the connection itself:
    of the operation's name, taking what it takes (nothing where that is nothing), at once or awaited.
    """

    @property
    def log(self) -> Log:
        """The log, for reading."""
        ...

    @property
    def blobs(self) -> BlobStore:
        """The blobs, for reading."""
        ...

    @property
    def choices(self) -> Path:
        """The file of what a person chose here."""
        ...

    def author(self) -> bytes:
        """The public key of this device."""
        ...

    def status(self) -> StatusAnswer:
        """What the node does, and why."""
        ...

    def ready(self) -> Health:
        """``status`` is "ready", or "not ready" with the reason."""
        ...

    async def fetch_blob(self, blob: BlobRef, seconds: float) -> None:
        """Get a blob from other nodes. Raises NotFound when nobody has it, TimedOut when it takes too long."""
        ...

    def events_since(self, event_id: int) -> list[Event] | None:
        """The kept events with a larger id, oldest first; None when some of them are no longer kept."""
        ...

    def subscribe(self) -> AbstractContextManager[asyncio.Queue[Event]]:
        """A bounded queue of events from now on; a reader that falls behind gets one of kind ``stale``, then none."""
        ...
