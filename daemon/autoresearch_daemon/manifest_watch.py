"""Follows the manifest in the data folder: whom its file trusts counts here as soon as the file says so."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import structlog

from autoresearch.api import TrustAnswer
from autoresearch.errors import AutoresearchError
from autoresearch.notebook import Notebook
from autoresearch_daemon.clock import now_ms
from autoresearch_daemon.events import Events

logger = structlog.get_logger()

Stamp = tuple[int, int, int]


class ManifestWatch:
    """Whom this node trusts. ``changed()`` is called when that is not who it was."""

    def __init__(self, notebook: Notebook, events: Events, file: Path, *, changed: Callable[[], None]) -> None:
        self._notebook = notebook
        self._events = events
        self._file = file
        self._changed = changed
        self._seen = stamp(file)
        self.problem = ""  # why the file is not followed, for people

    def look(self) -> None:
        """Notice that somebody edited the file; quick when nobody did."""
        if stamp(self._file) != self._seen:
            with suppress(AutoresearchError):  # a warning says so
                self.take()

    def take(self) -> TrustAnswer:
        """Trust whom the file trusts. Raises UsageError when it is damaged, Refused when it is another network's."""
        self._seen = stamp(self._file)
        try:
            changed = self._notebook.take_trust()
        except AutoresearchError as error:
            logger.warning("the network's file is not followed", reason=str(error))
            self.problem = f"the network's file is not followed: {error}"
            raise
        self.problem = ""
        trust = self._notebook.log.trust
        answer = TrustAnswer(
            changed=changed,
            attestors=sorted(key.hex() for key in trust.attestors),
            needed=trust.needed,
            participants=sorted(key.hex() for key in trust.participants),
            founders=sorted(key.hex() for key in trust.founders),
        )
        if changed:
            counts = {"attestors": trust.attestors, "founders": trust.founders, "participants": trust.participants}
            named = ", ".join(f"{name} {len(keys)}" for name, keys in counts.items())
            self._events.tell("trust", f"this node trusts others than before: {named}", now_ms())
            self._changed()
        return answer


def stamp(file: Path) -> Stamp | None:
    """What tells one state of a file from another; None when there is no such file."""
    try:
        status = file.stat()
    except OSError:
        return None
    return status.st_ino, status.st_mtime_ns, status.st_size
