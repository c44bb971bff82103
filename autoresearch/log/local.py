"""What this node keeps for itself, in ``local.sqlite``: a connection to it, and its parts that many use.

Those are what a person chose (starred runs, archived tasks), and what models and commands cost.
Also bringing a whole home to the format of this version, before a process that writes opens any of it.
"""

from __future__ import annotations

import sqlite3
from contextlib import closing
from enum import StrEnum
from itertools import takewhile
from pathlib import Path
from typing import Self

import msgspec

from autoresearch.errors import AutoresearchError
from autoresearch.link import backoff
from autoresearch.log.blobs import make_index
from autoresearch.log.connection import connect_read_only, is_of_now, make_tables, open_database, refusals, transaction
from autoresearch.log.derive.storing import rebuild
from autoresearch.paths import NETWORKS, Paths
from autoresearch.record.record import DAY_MS

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

    def note(self, call: ModelCall, setup: str) -> None:
        """Keep one attempt of a proposer that was set up so: what others said before does not hold for it."""
        if setup != self._setup(call.proposer)[0]:
            row = (f"setup {call.proposer}", msgspec.json.encode((setup, call.time_ms)))
            self.connection.execute("INSERT OR REPLACE INTO value(name, json) VALUES (?, ?)", row)
        self.connection.execute("INSERT INTO model_call VALUES (?, ?, ?, ?, ?, ?, ?)", msgspec.structs.astuple(call))
        self.connection.execute("DELETE FROM model_call WHERE time_ms < ?", (call.time_ms - KEPT_MS,))

    def spent(self, proposer: str, *, since_ms: int) -> ModelCost:
        """What a proposer cost from a time on."""
        row = self.connection.execute(
            "SELECT count(*), coalesce(sum(failure != ''), 0), coalesce(sum(tokens), 0), coalesce(sum(cost), 0), "
            "coalesce(sum(seconds), 0) FROM model_call WHERE proposer = ? AND time_ms >= ?",
            (proposer, since_ms),
        ).fetchone()
        return ModelCost(**dict(zip(ModelCost.__struct_fields__, row, strict=True)))

    def last(self, proposer: str, setup: str, *, limit: int = 8) -> list[ModelCall]:
        """The newest attempts of a proposer that was set up so, the newest first."""
        last_setup, since_ms = self._setup(proposer)
        if setup != last_setup:
            return []
        rows = self.connection.execute(
            "SELECT * FROM model_call WHERE proposer = ? AND time_ms >= ? ORDER BY time_ms DESC, rowid DESC LIMIT ?",
            (proposer, since_ms, limit),
        )
        names = ModelCall.__struct_fields__
        return [ModelCall(**dict(zip(names, row, strict=True))) for row in rows]

    def _setup(self, proposer: str) -> tuple[str, int]:
        row = self.connection.execute("SELECT json FROM value WHERE name = ?", (f"setup {proposer}",)).fetchone()
        return msgspec.json.decode(row[0], type=tuple[str, int]) if row else ("", 0)

    def plan(self, task: bytes, proposer: str) -> str:
        """What a proposer wrote down for itself after its last change of a task, or an empty text."""
        row = self.connection.execute("SELECT json FROM value WHERE name = ?", (_plan_name(task, proposer),)).fetchone()
        return msgspec.json.decode(row[0], type=str) if row else ""

    def keep_plan(self, task: bytes, proposer: str, plan: str) -> None:
        """Keep what it wrote down, in place of what it wrote before."""
        row = (_plan_name(task, proposer), msgspec.json.encode(plan))
        self.connection.execute("INSERT OR REPLACE INTO value(name, json) VALUES (?, ?)", row)


def _plan_name(task: bytes, proposer: str) -> str:
    return f"plan {task.hex()} {proposer}"


def not_before_ms(newest_first: list[ModelCall]) -> int:
    """When a proposer may be asked again: at once after a success, later after each failure in a row. Pure."""
    failures = len(list(takewhile(lambda call: call.failure, newest_first)))
    if not failures:
        return 0
    last = newest_first[0]
    pause = int(backoff(failures - 1, FIRST_PAUSE_MS, LONGEST_PAUSE_MS))
    return max(last.time_ms + pause, last.retry_ms)


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
