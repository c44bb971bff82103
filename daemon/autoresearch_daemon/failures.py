"""What a running node fails to do: since when, how often, and why. It is said until it works again.

A full disk, a database that is locked or damaged, an error that nobody foresaw: none of them ends the daemon.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import structlog

from autoresearch.ask.acts.notebook import clock_ms
from autoresearch.ask.health import warning
from autoresearch.ask.node import Check
from autoresearch.errors import AutoresearchError
from autoresearch.text import clock, counted
from autoresearch.words import Part

logger = structlog.get_logger()

STORING = "storing records of others"
JUDGING = "judging runs"
ACCEPTING = "accepting connections"
LOOKING = "looking after this node"
DECIDING = "deciding what is next"
GAUGING = "reading the machine's gauges"
KEEPING = "keeping what happens in local.sqlite"


@dataclass(slots=True)
class _Failure:
    since_ms: int
    count: int = 0
    sentence: str = ""


class Failures:
    """The failures of a process by what it tried, such as "storing records of others"."""

    def __init__(self) -> None:
        self._failures: dict[str, _Failure] = {}

    def note(self, what: str, error: Exception) -> None:
        """It failed. The daemon's log has each reason once, and not for each record that a full disk can't take."""
        failure = self._failures.setdefault(what, _Failure(clock_ms()))
        sentence = _sentence(error)
        if failure.sentence != sentence:
            is_foreseen = isinstance(error, AutoresearchError | OSError | sqlite3.Error)
            logger.warning(f"{what} failed", reason=sentence, exc_info=None if is_foreseen else error)
        failure.count, failure.sentence = failure.count + 1, sentence

    def worked(self, what: str) -> None:
        """It works again."""
        self._failures.pop(what, None)

    @contextmanager
    def watched(self, what: str) -> Iterator[None]:
        """Note whether the body fails; nothing is raised from it, so that what goes on beside it goes on."""
        try:
            yield
        except Exception as error:  # noqa: BLE001 - whatever it is, the loop around it must not end for good
            self.note(what, error)
        else:
            self.worked(what)

    def conditions(self) -> list[Check]:
        """What fails now."""
        return [
            warning(
                Part.FAILING, f"{what} failed {counted(it.count, 'time')} since {clock(it.since_ms)}: {it.sentence}"
            )
            for what, it in self._failures.items()
        ]


def _sentence(error: Exception) -> str:
    """What happened and what to do, in one line."""
    if isinstance(error, AutoresearchError):
        return f"{str(error).rstrip('.')} → {error.hint or 'autoresearch node logs'}"
    if isinstance(error, OSError):
        return f"{error.strerror or error} → autoresearch node doctor"
    if isinstance(error, sqlite3.Error):
        return f"{error} → autoresearch node doctor log"
    return f"a fault of autoresearch, {type(error).__name__} → autoresearch node logs shows where; please report it"
