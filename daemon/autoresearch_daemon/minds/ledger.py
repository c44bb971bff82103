"""What models and commands were asked, how it went and what it cost: a small SQLite file that workers share."""

from __future__ import annotations

import sqlite3
from itertools import takewhile
from pathlib import Path
from types import TracebackType

import msgspec

from autoresearch.errors import AutoresearchError

DAY_MS = 24 * 3600 * 1000
# What is older than this says nothing about limits, and little about what is worth its cost.
KEPT_MS = 90 * DAY_MS
FIRST_PAUSE_MS, LONGEST_PAUSE_MS = 60_000, 3600_000

TABLE = """
CREATE TABLE IF NOT EXISTS asked(time_ms INTEGER NOT NULL, proposer TEXT NOT NULL, failure TEXT NOT NULL,
    tokens INTEGER NOT NULL, cost REAL NOT NULL, seconds REAL NOT NULL, retry_ms INTEGER NOT NULL);
CREATE INDEX IF NOT EXISTS asked_by_proposer ON asked(proposer, time_ms);
"""


class ModelFailed(AutoresearchError):
    """A model or a command gave no change. ``retry_seconds``: how long it wants to be left alone, as far as it says.

    ``tokens`` is what it counted all the same.
    """

    def __init__(self, sentence: str, *, hint: str = "", retry_seconds: float = 0.0, tokens: int = 0) -> None:
        super().__init__(sentence, hint=hint)
        self.retry_seconds = retry_seconds
        self.tokens = tokens


class Asked(msgspec.Struct, frozen=True, kw_only=True):
    """One attempt to get a change. ``failure`` is empty when it gave one; ``retry_ms``: not before this time again."""

    time_ms: int
    proposer: str
    failure: str = ""
    tokens: int = 0
    cost: float = 0.0
    seconds: float = 0.0
    retry_ms: int = 0


class Spent(msgspec.Struct, frozen=True, kw_only=True):
    """What a proposer was asked in a time, and what it cost."""

    starts: int = 0
    failures: int = 0
    tokens: int = 0
    cost: float = 0.0
    seconds: float = 0.0


class Ledger:
    """The file. Every method is one transaction."""

    def __init__(self, path: Path) -> None:
        self._connection = sqlite3.connect(path, isolation_level=None, timeout=10)
        self._connection.execute("PRAGMA journal_mode=WAL")
        self._connection.executescript(TABLE)

    def __enter__(self) -> Ledger:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._connection.close()

    def note(self, asked: Asked) -> None:
        """Keep one attempt."""
        row = (asked.time_ms, asked.proposer, asked.failure, asked.tokens, asked.cost, asked.seconds, asked.retry_ms)
        self._connection.execute("INSERT INTO asked VALUES (?, ?, ?, ?, ?, ?, ?)", row)
        self._connection.execute("DELETE FROM asked WHERE time_ms < ?", (asked.time_ms - KEPT_MS,))

    def spent(self, proposer: str, *, since_ms: int) -> Spent:
        """What a proposer cost from a time on."""
        row = self._connection.execute(
            "SELECT count(*), coalesce(sum(failure != ''), 0), coalesce(sum(tokens), 0), coalesce(sum(cost), 0), "
            "coalesce(sum(seconds), 0) FROM asked WHERE proposer = ? AND time_ms >= ?",
            (proposer, since_ms),
        ).fetchone()
        return Spent(**dict(zip(Spent.__struct_fields__, row, strict=True)))

    def last(self, proposer: str, *, limit: int = 8) -> list[Asked]:
        """The newest attempts of a proposer, the newest first."""
        rows = self._connection.execute(
            "SELECT * FROM asked WHERE proposer = ? ORDER BY time_ms DESC, rowid DESC LIMIT ?", (proposer, limit)
        )
        names = Asked.__struct_fields__
        return [Asked(**dict(zip(names, row, strict=True))) for row in rows]


def not_before_ms(newest_first: list[Asked]) -> int:
    """When a proposer may be asked again: at once after a success, later after each failure in a row. Pure."""
    failures = len(list(takewhile(lambda asked: asked.failure, newest_first)))
    if not failures:
        return 0
    last = newest_first[0]
    pause = min(LONGEST_PAUSE_MS, FIRST_PAUSE_MS << (failures - 1))
    return max(last.time_ms + pause, last.retry_ms)
