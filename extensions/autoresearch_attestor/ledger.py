"""What an attestor did, in ``local.sqlite``."""

from __future__ import annotations

from dataclasses import astuple
from pathlib import Path
from typing import NamedTuple

from autoresearch.log.local import LocalFile
from autoresearch.record.record import DAY_MS
from autoresearch_attestor.rules import Mailed, Pending

MAILED, ATTESTED, REFUSED, WITHDRAWN, ALLOWED = "mailed", "attested", "refused", "withdrawn", "allowed"
# Whoever asks in vain fills no disk; what was attested stays.
REFUSALS_KEPT = 10_000
# After so long nothing is counted by a mail any more.
MAILED_MS = 90 * DAY_MS


class Act(NamedTuple):
    """One thing it did. ``tag`` is empty when it did not come so far; ``domain`` is a tag too, or "big"."""

    time_ms: int
    what: str
    why: str
    root: bytes
    peer: str
    tag: bytes
    domain: str


class MailLedger(LocalFile):
    """What an attestor has mailed, attested, refused and taken back; what is pending survives a restart."""

    def __init__(self, path: Path) -> None:
        # A mail that went out and is not counted would be a mail too many.
        super().__init__(path, durable=True)

    def mailed(self, root: bytes, peer: str, tag: bytes, domain: str, *, now_ms: int) -> Mailed:
        """How many mails went out within 24 hours."""
        row = self.connection.execute(
            "SELECT count(*) FILTER (WHERE tag = ?), count(*) FILTER (WHERE domain = ?),"
            " count(*) FILTER (WHERE root = ? OR peer = ?), count(*) FROM act WHERE what = ? AND time_ms > ?",
            (tag, domain, root, peer, MAILED, now_ms - DAY_MS),
        ).fetchone()
        return Mailed(*row)

    def add(self, act: Act) -> int:
        """Note an act; returns its number."""
        cursor = self.connection.execute(
            "INSERT INTO act(time_ms, what, why, root, peer, tag, domain) VALUES (?, ?, ?, ?, ?, ?, ?)", act
        )
        number = cursor.lastrowid or 0
        if number % 100 == 0:
            self._forget(number, act.time_ms)
        return number

    def take_back(self, number: int) -> None:
        """A mail was not sent after all."""
        self.connection.execute("DELETE FROM act WHERE id = ?", (number,))

    def keep(self, pending: Pending) -> None:
        """Keep a challenge; older ones for the same participant and mailbox are void."""
        self.connection.execute("BEGIN")
        self.connection.execute("DELETE FROM challenge WHERE root = ? AND tag = ?", (pending.root, pending.tag))
        self.connection.execute(
            "INSERT INTO challenge VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
            astuple(pending),
        )
        self.connection.execute("COMMIT")

    def pending(self, token: bytes) -> Pending | None:
        """The challenge with this token."""
        row = self.connection.execute("SELECT * FROM challenge WHERE token = ?", (token,)).fetchone()
        return Pending(*row) if row else None

    def wrong(self, token: bytes) -> None:
        """A try was in vain; a challenge that is over stays over."""
        self.connection.execute("UPDATE challenge SET tries_left = tries_left - 1 WHERE token = ?", (token,))

    def end(self, token: bytes) -> bool:
        """A challenge is over; whether it was there."""
        return self.connection.execute("DELETE FROM challenge WHERE token = ?", (token,)).rowcount > 0

    def forget_late(self, now_ms: int) -> None:
        """Drop what can't be answered any more; kept a day longer, so that who comes late is told so."""
        self.connection.execute("DELETE FROM challenge WHERE expires_ms < ?", (now_ms - DAY_MS,))

    def bar(self, root: bytes, tag: bytes) -> None:
        """Attest a mailbox no more, for anybody: what was said of it and this participant was taken back."""
        self.connection.execute("INSERT OR IGNORE INTO barred VALUES (?, ?)", (tag, root))

    def is_barred(self, tag: bytes) -> bool:
        """Whether a mailbox is attested no more."""
        return self.connection.execute("SELECT 1 FROM barred WHERE tag = ? LIMIT 1", (tag,)).fetchone() is not None

    def allow(self, root: bytes) -> list[bytes]:
        """Attest a participant's mailboxes again; returns the tags of those that were not."""
        tags = [tag for (tag,) in self.connection.execute("SELECT tag FROM barred WHERE root = ?", (root,))]
        self.connection.executemany("DELETE FROM barred WHERE tag = ?", [(tag,) for tag in tags])
        return tags

    def acts(self, limit: int) -> list[Act]:
        """The newest acts, the newest first."""
        rows = self.connection.execute(
            "SELECT time_ms, what, why, root, peer, tag, domain FROM act ORDER BY id DESC LIMIT ?", (limit,)
        )
        return [Act(*row) for row in rows]

    def counts(self) -> dict[str, int]:
        """How many acts of each kind are noted."""
        return dict(self.connection.execute("SELECT what, count(*) FROM act GROUP BY what"))

    def _forget(self, number: int, now_ms: int) -> None:
        self.connection.execute("DELETE FROM act WHERE what = ? AND id <= ?", (REFUSED, number - REFUSALS_KEPT))
        self.connection.execute("DELETE FROM act WHERE what = ? AND time_ms < ?", (MAILED, now_ms - MAILED_MS))
