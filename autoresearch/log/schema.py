"""Opening a connection to the tables of the log, at the version that this program knows."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from autoresearch.errors import Refused
from autoresearch.log.connection import connect, connect_read_only, refusals, transaction
from autoresearch.log.statements import STEPS
from autoresearch.records import Network

# Raised whenever a projection's meaning changes: the projections are then rebuilt from the records at the next opening.
PROJECTION_VERSION = 13

SCHEMA_VERSION = len(STEPS)


def open_database(path: Path, network: Network, *, read_only: bool) -> sqlite3.Connection:
    """A connection whose tables are there and up to date; of an empty log when nothing exists and it is read only.

    Raises Refused when the file was written by a newer version, belongs to another network, is none of ours, or is
    too old to read without writing.
    """
    if read_only and not path.exists():
        connection = _empty()
        read_only = False
    elif read_only:
        connection = connect_read_only(path)
    else:
        connection = connect(path)
    try:
        with refusals(path):
            _bring_up_to_date(connection, path, network, read_only=read_only)
    except BaseException:
        connection.close()
        raise
    return connection


def is_up_to_date(connection: sqlite3.Connection) -> bool:
    """Whether the tables were computed by the rules of this version."""
    found = connection.execute("SELECT value FROM meta WHERE key = 'projection_version'").fetchone()
    return found is None or found[0] == PROJECTION_VERSION


def _empty() -> sqlite3.Connection:
    """The tables in memory. Without sqlite-utils, which takes longer to import than all the rest."""
    connection = connect(None)
    for statement in (statement for step in STEPS for statement in step):
        connection.execute(statement)
    connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")
    return connection


def _bring_up_to_date(connection: sqlite3.Connection, path: Path, network: Network, *, read_only: bool) -> None:
    version = connection.execute("PRAGMA user_version").fetchone()[0]
    if version > SCHEMA_VERSION:
        raise Refused(
            f"The log {path} was written by a newer version of autoresearch.",
            hint="install that version or a later one",
        )
    if version < SCHEMA_VERSION:
        if read_only:
            raise Refused(f"The log {path} has to be brought up to date first.", hint="autoresearch up, once")
        from sqlite_utils import Database

        from autoresearch.log.migrations import migrations

        with transaction(connection, durable=True):
            migrations.apply(Database(connection))
    meta = dict(connection.execute("SELECT key, value FROM meta").fetchall())
    if meta.get("network", network.id) != network.id:
        raise Refused(
            f"The log {path} belongs to another network.",
            hint="its manifest was changed by hand: put it back, or join the other network: autoresearch network join",
        )
    if not read_only and "network" not in meta:
        connection.executemany(
            "INSERT OR IGNORE INTO meta VALUES(?, ?)",
            [("network", network.id), ("projection_version", PROJECTION_VERSION)],
        )
