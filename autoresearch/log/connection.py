"""SQLite connections: how they are opened, transactions, and SQLite's errors as sentences."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from autoresearch.errors import Refused

BUSY_MS = 30_000
_DOCTOR = "autoresearch doctor checks disk space and permissions"


def connect(path: Path | None) -> sqlite3.Connection:
    """A connection that may write, in write-ahead mode, creating the file; in memory without ``path``."""
    with refusals(path):
        if path is not None:
            path.parent.mkdir(parents=True, exist_ok=True)
        # The callers hold a lock of their own, so that one connection may serve several threads in turn.
        connection = sqlite3.connect(path or ":memory:", isolation_level=None, check_same_thread=False)
        try:
            connection.execute(f"PRAGMA busy_timeout = {BUSY_MS}")
            _write_ahead(connection)
            connection.execute("PRAGMA cache_size = -65536")
            # 64 MiB instead of 4: while a node catches up, the same pages of the indexes change again and again.
            connection.execute("PRAGMA wal_autocheckpoint = 16000")
        except BaseException:
            connection.close()
            raise
    return connection


def connect_read_only(path: Path) -> sqlite3.Connection:
    """A connection that only reads, also while another process writes."""
    uri = path.absolute().as_uri()
    with refusals(path):
        connection = sqlite3.connect(f"{uri}?mode=ro", uri=True, isolation_level=None, check_same_thread=False)
        connection.execute(f"PRAGMA busy_timeout = {BUSY_MS}")
        try:
            connection.execute("PRAGMA user_version").fetchone()
        except sqlite3.OperationalError:
            # Write-ahead mode needs a writable folder even to read. Without a log of changes beside it nobody writes.
            connection.close()
            wal = path.with_name(path.name + "-wal")
            if wal.exists() and wal.stat().st_size:
                raise
            uri = f"{uri}?mode=ro&immutable=1"
            connection = sqlite3.connect(uri, uri=True, isolation_level=None, check_same_thread=False)
    return connection


def _write_ahead(connection: sqlite3.Connection) -> None:
    """Enter write-ahead mode. SQLite gives up at once when another process does so at the same time: try again."""
    give_up = time.monotonic() + BUSY_MS / 1000
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
        except sqlite3.OperationalError as error:
            if error.sqlite_errorname != "SQLITE_BUSY" or time.monotonic() > give_up:
                raise
            time.sleep(0.01)
        else:
            return


@contextmanager
def transaction(connection: sqlite3.Connection, *, durable: bool) -> Iterator[None]:
    """All or nothing. ``durable``: it is on the disk, not only in the kernel's cache, before this returns.

    Raises Refused when the file is read only, the disk is full, or another process holds the lock for too long.
    """
    with refusals(None):
        connection.execute(f"PRAGMA synchronous = {'FULL' if durable else 'NORMAL'}")
        connection.execute("BEGIN IMMEDIATE")
        try:
            yield
            connection.execute("COMMIT")
        except BaseException:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            raise


@contextmanager
def refusals(path: Path | None) -> Iterator[None]:
    """Turn SQLite's and the system's errors into sentences."""
    place = str(path) if path else "The database"
    try:
        yield
    except sqlite3.Error as error:
        name = getattr(error, "sqlite_errorname", "") or ""
        if name.startswith("SQLITE_READONLY"):
            raise Refused(f"{place} is read only.", hint=_DOCTOR) from error
        if name.startswith("SQLITE_FULL"):
            raise Refused("The disk is full; nothing was written.", hint="make room and try again") from error
        if name.startswith("SQLITE_BUSY"):
            raise Refused("Another process is writing to the database.", hint="try again in a moment") from error
        if name.startswith(("SQLITE_NOTADB", "SQLITE_CORRUPT")):
            raise Refused(f"{place} is damaged, or is no database.", hint="restore it from a backup") from error
        if isinstance(error, sqlite3.OperationalError):
            raise Refused(f"{place} can't be used: {error}.", hint=_DOCTOR) from error
        raise
    except OSError as error:
        raise Refused(f"{place} can't be used: {error.strerror or error}.", hint=_DOCTOR) from error
