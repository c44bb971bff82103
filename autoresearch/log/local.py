"""What this node keeps for itself, in ``local.sqlite``: a connection to it, and its parts that many use.

Those are what a person chose (starred runs, archived tasks), what models and commands cost, and what an attestor did.
Also bringing a whole home to the format of this version, before a process that writes opens any of it.
"""

from __future__ import annotations

import sqlite3
from contextlib import closing
from dataclasses import astuple
from enum import StrEnum
from itertools import takewhile
from pathlib import Path
from typing import NamedTuple, Self

import msgspec

from autoresearch.errors import AutoresearchError
from autoresearch.link import backoff
from autoresearch.log.blobs import make_index
from autoresearch.log.connection import connect_read_only, is_of_now, make_tables, open_database, refusals, transaction
from autoresearch.log.derive.storing import rebuild
from autoresearch.paths import NETWORKS, Paths
from autoresearch.record.record import DAY_MS
from autoresearch.trust.attestor import Mailed, Pending

_OF_NETWORK = ("value", "in_hand", "proposal", "unrevealed", "event", "challenge", "act", "barred")


def make_local(connection: sqlite3.Connection) -> None:
    """Make the tables of ``local.sqlite``, or those that a file of an older format lacks."""
    make_tables(connection, "local.sql")


class LocalFile:
    """A connection to ``local.sqlite``, as a context manager; workers and commands have theirs beside the daemon.

    Every method of a subclass is one transaction. ``durable``: on the disk, not only in the kernel's cache, after each.

    Raises Refused when the file was written by a newer version, is damaged, or can't be written.
    """

    def __init__(self, path: Path, *, read_only: bool = False, durable: bool = False) -> None:
        self.connection = open_database(path, make_local, read_only=read_only)
        if not read_only:
            self.connection.execute(f"PRAGMA synchronous = {'FULL' if durable else 'NORMAL'}")
            path.chmod(0o600)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the file."""
        self.connection.close()


def forget_local(file: Path) -> None:
    """Delete what the file holds of its network; what it holds of the home stays. Raises Refused."""
    with LocalFile(file) as local, transaction(local.connection, durable=True):
        for table in _OF_NETWORK:
            local.connection.execute(f"DELETE FROM {table}")  # noqa: S608


class Choice(StrEnum):
    """What a record or a task was chosen as: the id of a record that is starred, the digest of an archived task."""

    STARRED = "starred"
    ARCHIVED = "archived"


def chosen(file: Path, choice: Choice) -> frozenset[bytes]:
    """All that was chosen so; nothing where there is no file. Raises Refused."""
    with LocalFile(file, read_only=True) as local:
        rows = local.connection.execute("SELECT thing FROM choice WHERE what = ?", (choice,))
        return frozenset(thing for (thing,) in rows)


def choose(file: Path, choice: Choice, thing: bytes, *, chosen: bool = True) -> bool:
    """Choose something, or with ``chosen`` false no longer; whether that changed anything. Raises Refused."""
    add, remove = "INSERT OR IGNORE INTO choice VALUES (?, ?)", "DELETE FROM choice WHERE what = ? AND thing = ?"
    with LocalFile(file) as local, refusals(file):
        return local.connection.execute(add if chosen else remove, (choice, thing)).rowcount > 0


# What is older than this says nothing about limits, and little about what is worth its cost.
KEPT_MS = 90 * DAY_MS
FIRST_PAUSE_MS, LONGEST_PAUSE_MS = 60_000, 3600_000


class ModelFailure(AutoresearchError):
    """A model or a command gave no change. ``retry_seconds``: how long it wants to be left alone, as far as it says.

    ``tokens`` is what it counted all the same.
    """

    def __init__(self, sentence: str, *, hint: str = "", retry_seconds: float = 0.0, tokens: int = 0) -> None:
        super().__init__(sentence, hint=hint)
        self.retry_seconds = retry_seconds
        self.tokens = tokens


class ModelCall(msgspec.Struct, frozen=True, kw_only=True):
    """One attempt to get a change. ``failure`` is empty when it gave one; ``retry_ms``: not before this time again."""

    time_ms: int
    proposer: str
    failure: str = ""
    tokens: int = 0
    cost: float = 0.0
    seconds: float = 0.0
    retry_ms: int = 0


class ModelCost(msgspec.Struct, frozen=True, kw_only=True):
    """What a proposer was asked in a time, and what it cost."""

    starts: int = 0
    failures: int = 0
    tokens: int = 0
    cost: float = 0.0
    seconds: float = 0.0


class ModelLedger(LocalFile):
    """What models and commands were asked for, how it went and what it cost."""

    def note(self, call: ModelCall) -> None:
        """Keep one attempt."""
        row = (call.time_ms, call.proposer, call.failure, call.tokens, call.cost, call.seconds, call.retry_ms)
        self.connection.execute("INSERT INTO model_call VALUES (?, ?, ?, ?, ?, ?, ?)", row)
        self.connection.execute("DELETE FROM model_call WHERE time_ms < ?", (call.time_ms - KEPT_MS,))

    def spent(self, proposer: str, *, since_ms: int) -> ModelCost:
        """What a proposer cost from a time on."""
        row = self.connection.execute(
            "SELECT count(*), coalesce(sum(failure != ''), 0), coalesce(sum(tokens), 0), coalesce(sum(cost), 0), "
            "coalesce(sum(seconds), 0) FROM model_call WHERE proposer = ? AND time_ms >= ?",
            (proposer, since_ms),
        ).fetchone()
        return ModelCost(**dict(zip(ModelCost.__struct_fields__, row, strict=True)))

    def last(self, proposer: str, *, limit: int = 8) -> list[ModelCall]:
        """The newest attempts of a proposer, the newest first."""
        rows = self.connection.execute(
            "SELECT * FROM model_call WHERE proposer = ? ORDER BY time_ms DESC, rowid DESC LIMIT ?", (proposer, limit)
        )
        names = ModelCall.__struct_fields__
        return [ModelCall(**dict(zip(names, row, strict=True))) for row in rows]


def not_before_ms(newest_first: list[ModelCall]) -> int:
    """When a proposer may be asked again: at once after a success, later after each failure in a row. Pure."""
    failures = len(list(takewhile(lambda call: call.failure, newest_first)))
    if not failures:
        return 0
    last = newest_first[0]
    pause = int(backoff(failures - 1, FIRST_PAUSE_MS, LONGEST_PAUSE_MS))
    return max(last.time_ms + pause, last.retry_ms)


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
            self.connection.execute("DELETE FROM act WHERE what = ? AND id <= ?", (REFUSED, number - REFUSALS_KEPT))
            self.connection.execute("DELETE FROM act WHERE what = ? AND time_ms < ?", (MAILED, act.time_ms - MAILED_MS))
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


def bring_home(paths: Paths) -> None:
    """Check the format of all databases of a home, then make over those of before, in all its networks.

    The caller holds the home's device key. After a kill in the middle of it the next process goes on.

    Raises Refused when one was written by a newer version; nothing was changed then.
    """
    folders = {folder.name for root in (paths.data, paths.state) for folder in (root / NETWORKS).glob("*")}
    places = [paths.of_network(name) for name in ("", *sorted(folders))]
    databases = {place.local: make_local for place in places}
    databases |= {place.blobs / "index.sqlite": make_index for place in places}
    databases |= {place.log: rebuild for place in places}
    older = [file for file in databases if file.exists() and not _is_of_now(file)]
    for place in places:
        _copy_ledgers(place)
    for file in older:
        open_database(file, databases[file], read_only=False).close()


def _is_of_now(file: Path) -> bool:
    with refusals(file), closing(connect_read_only(file)) as connection:
        return is_of_now(connection, file)


def _copy_ledgers(place: Paths) -> None:
    """Move the rows of the small files that were before format 12 to ``local.sqlite``.

    It goes at the next change of the format, with its test.
    """
    calls = "model_call(rowid, time_ms, proposer, failure, tokens, cost, seconds, retry_ms) SELECT rowid, *"
    mails = {"pending": "challenge SELECT *", "act": "act SELECT *", "barred": "barred SELECT *"}
    files = {"choices": {"choice": "choice SELECT *"}, "proposers": {"asked": calls}, "attestor": mails}
    for name, tables in files.items():
        file = place.local.with_name(f"{name}.sqlite")
        if not file.exists():
            continue
        with refusals(file), LocalFile(place.local) as local:
            local.connection.execute("ATTACH ? AS old", (str(file),))
            old_tables = {row[0] for row in local.connection.execute("SELECT name FROM old.sqlite_master")}
            with transaction(local.connection, durable=True):
                for table in tables.keys() & old_tables:
                    # A second time, after a kill, it changes nothing.
                    local.connection.execute(f"INSERT OR IGNORE INTO main.{tables[table]} FROM old.{table}")
        for end in ("", "-wal", "-shm"):
            file.with_name(file.name + end).unlink(missing_ok=True)
