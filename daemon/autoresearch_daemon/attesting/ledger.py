"""What an attestor has mailed, attested, refused and taken back: a small SQLite file, without addresses and codes."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import NamedTuple

from autoresearch.attesting import Mailed, Pending
from autoresearch.records import DAY_MS

MAILED, ATTESTED, REFUSED, WITHDRAWN, ALLOWED = "mailed", "attested", "refused", "withdrawn", "allowed"
# Whoever asks in vain fills no disk; what was attested stays.
REFUSALS_KEPT = 10_000
# After so long nothing is counted by a mail any more.
MAILED_MS = 90 * DAY_MS

TABLES = """
CREATE TABLE IF NOT EXISTS pending(token BLOB PRIMARY KEY, statement BLOB NOT NULL, root BLOB NOT NULL,
    device BLOB NOT NULL, peer TEXT NOT NULL, tag BLOB NOT NULL, domain TEXT NOT NULL, expires_ms INTEGER NOT NULL,
    tries_left INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS act(id INTEGER PRIMARY KEY AUTOINCREMENT, time_ms INTEGER NOT NULL, what TEXT NOT NULL,
    why TEXT NOT NULL, root BLOB NOT NULL, peer TEXT NOT NULL, tag BLOB NOT NULL, domain TEXT NOT NULL);
CREATE INDEX IF NOT EXISTS act_by_time ON act(what, time_ms);
CREATE TABLE IF NOT EXISTS barred(tag BLOB NOT NULL, root BLOB NOT NULL, PRIMARY KEY(tag, root)) WITHOUT ROWID;
"""


class Act(NamedTuple):
    """One thing it did. ``tag`` is empty when it did not come so far; ``domain`` is a tag too, or "big"."""

    time_ms: int
    what: str
    why: str
    root: bytes
    peer: str
    tag: bytes
    domain: str


class Ledger:
    """The file. Every method is one transaction; what is pending and what was counted survives a restart."""

    def __init__(self, path: Path) -> None:
        self._connection = sqlite3.connect(path, isolation_level=None)
        self._connection.execute("PRAGMA journal_mode=WAL")
        # A mail that went out and is not counted would be a mail too many.
        self._connection.execute("PRAGMA synchronous=FULL")
        self._connection.executescript(TABLES)
        path.chmod(0o600)

    def close(self) -> None:
        """Close the file."""
        self._connection.close()

    def mailed(self, root: bytes, peer: str, tag: bytes, domain: str, *, now_ms: int) -> Mailed:
        """How many mails went out within 24 hours."""
        row = self._connection.execute(
            "SELECT count(*) FILTER (WHERE tag = ?), count(*) FILTER (WHERE domain = ?),"
            " count(*) FILTER (WHERE root = ? OR peer = ?), count(*) FROM act WHERE what = ? AND time_ms > ?",
            (tag, domain, root, peer, MAILED, now_ms - DAY_MS),
        ).fetchone()
        return Mailed(*row)

    def add(self, act: Act) -> int:
        """Note an act; returns its number."""
        cursor = self._connection.execute(
            "INSERT INTO act(time_ms, what, why, root, peer, tag, domain) VALUES (?, ?, ?, ?, ?, ?, ?)", act
        )
        number = cursor.lastrowid or 0
        if number % 100 == 0:
            self._forget(number, act.time_ms)
        return number

    def take_back(self, number: int) -> None:
        """A mail was not sent after all."""
        self._connection.execute("DELETE FROM act WHERE id = ?", (number,))

    def keep(self, pending: Pending) -> None:
        """Keep a challenge; older ones for the same participant and mailbox are void."""
        self._connection.execute("BEGIN")
        self._connection.execute("DELETE FROM pending WHERE root = ? AND tag = ?", (pending.root, pending.tag))
        self._connection.execute(
            "INSERT INTO pending VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (
                pending.token,
                pending.statement,
                pending.root,
                pending.device,
                pending.peer,
                pending.tag,
                pending.domain,
                pending.expires_ms,
                pending.tries_left,
            ),
        )
        self._connection.execute("COMMIT")

    def pending(self, token: bytes) -> Pending | None:
        """The challenge with this token."""
        row = self._connection.execute("SELECT * FROM pending WHERE token = ?", (token,)).fetchone()
        return Pending(*row) if row else None

    def wrong(self, token: bytes) -> None:
        """A try was in vain; a challenge that is over stays over."""
        self._connection.execute("UPDATE pending SET tries_left = tries_left - 1 WHERE token = ?", (token,))

    def end(self, token: bytes) -> bool:
        """A challenge is over; whether it was there."""
        return self._connection.execute("DELETE FROM pending WHERE token = ?", (token,)).rowcount > 0

    def forget_late(self, now_ms: int) -> None:
        """Drop what can't be answered any more; kept a day longer, so that who comes late is told so."""
        self._connection.execute("DELETE FROM pending WHERE expires_ms < ?", (now_ms - DAY_MS,))

    def bar(self, root: bytes, tag: bytes) -> None:
        """Attest a mailbox no more, for anybody: what was said of it and this participant was taken back."""
        self._connection.execute("INSERT OR IGNORE INTO barred VALUES (?, ?)", (tag, root))

    def is_barred(self, tag: bytes) -> bool:
        """Whether a mailbox is attested no more."""
        return self._connection.execute("SELECT 1 FROM barred WHERE tag = ? LIMIT 1", (tag,)).fetchone() is not None

    def allow(self, root: bytes) -> list[bytes]:
        """Attest a participant's mailboxes again; returns the tags of those that were not."""
        tags = [tag for (tag,) in self._connection.execute("SELECT tag FROM barred WHERE root = ?", (root,))]
        self._connection.executemany("DELETE FROM barred WHERE tag = ?", [(tag,) for tag in tags])
        return tags

    def acts(self, limit: int) -> list[Act]:
        """The newest acts, the newest first."""
        rows = self._connection.execute(
            "SELECT time_ms, what, why, root, peer, tag, domain FROM act ORDER BY id DESC LIMIT ?", (limit,)
        )
        return [Act(*row) for row in rows]

    def counts(self) -> dict[str, int]:
        """How many acts of each kind are noted."""
        return dict(self._connection.execute("SELECT what, count(*) FROM act GROUP BY what"))

    def _forget(self, number: int, now_ms: int) -> None:
        self._connection.execute("DELETE FROM act WHERE what = ? AND id <= ?", (REFUSED, number - REFUSALS_KEPT))
        self._connection.execute("DELETE FROM act WHERE what = ? AND time_ms < ?", (MAILED, now_ms - MAILED_MS))
