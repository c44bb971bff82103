"""What an export of an extension returns, and the interface of one that is brought up to date."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, runtime_checkable

from autoresearch.ask.desk import Desk
from autoresearch.errors import Refused
from autoresearch.log.standing.answers import Answer


@dataclass(frozen=True, slots=True)
class ExportResult:
    """How many runs it wrote, and the commands that read its folder."""

    runs: int
    next_steps: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class UpdateResult:
    """What an update did: ``answer`` as JSON, ``lines`` for a person. ``changed``: it wrote something.

    ``refusal``: why a part stays as it was. ``next_steps`` are printed after a single update.
    """

    answer: Answer
    lines: Sequence[str]
    changed: bool
    refusal: Refused | None = None
    next_steps: Sequence[str] = ()


@runtime_checkable
class UpdatedExport(Protocol):
    """An export of one task that is brought up to date in its place, once or as records come (``--follow``)."""

    def task(self, place: Path) -> bytes | None:
        """The digest of the task that ``place`` has; None where nothing is yet. Raises Refused for other files."""

    def update(self, desk: Desk, task: bytes, place: Path) -> UpdateResult:
        """Make ``place``, or add what is new to it. It leaves a valid place whenever it is stopped.

        A MissingBlob that it raises is fetched from peers, and it is called again.
        """
