"""Where a question is answered: the log and the blobs of a machine, whose it is, what a person chose on it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from autoresearch.ask.lookup import FoundTask
    from autoresearch.log.blobs import BlobStore
    from autoresearch.log.log import Log


@dataclass(frozen=True, slots=True)
class Desk:
    """The log and the blobs, opened to read, and the clock (Unix milliseconds).

    ``me`` is the key of this device and ``seed`` its secret half, None where this machine has none. ``choices`` is the
    file of what a person chose here. ``named`` is the task that is meant where a question names none.
    """

    log: Log
    blobs: BlobStore
    me: bytes | None
    seed: bytes | None
    choices: Path
    now_ms: Callable[[], int]
    named: str = ""

    def starred(self) -> frozenset[bytes]:
        """The records that are starred on this machine."""
        from autoresearch.log.local import Choice, chosen

        return chosen(self.choices, Choice.STARRED)

    def archived(self) -> frozenset[bytes]:
        """The tasks that are archived on this machine."""
        from autoresearch.log.local import Choice, chosen

        return chosen(self.choices, Choice.ARCHIVED)

    def task(self, reference: str | None = None) -> FoundTask:
        """A task by name or digest; without one, the task that this machine, or else anybody, worked on last.

        Raises NotFound, AmbiguousId.
        """
        from autoresearch.ask.lookup import find_task

        return find_task(self.log, reference or self.named or None, author=self.me, archived=self.archived())

    def record(self, reference: str, task: str | None = None) -> bytes:
        """The id of the record that is meant: an id, a unique beginning of one, ``@``, ``@mine``, ``@~1``.

        ``task`` is what ``@`` and ``@mine`` are about. Raises NotFound, AmbiguousId, UsageError.
        """
        from autoresearch.ask.runs.boards import resolve_reference

        # An id means the same whatever the task is.
        is_of_task = reference.lstrip().startswith(("@", "#"))
        about = self.task(task) if task or (is_of_task and self.named) else None
        archived = self.archived() if is_of_task and about is None else frozenset()
        return resolve_reference(self.log, reference, task=about, author=self.me, archived=archived)
