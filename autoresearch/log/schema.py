"""Opening a database of this node: the one check of its format, and bringing older tables to this version's.

A home has three kinds: the log (``schema.sql``), the index of the blobs, and what the node keeps for itself
(``local.sql``). All have one number of the format, in SQLite's ``user_version``.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

from autoresearch.errors import Refused
from autoresearch.log.connection import BACKUP, connect, connect_read_only, refusals, transaction

# Raised by 1 whenever a table changes, or what a table of the log means.
FORMAT = 14


def open_database(
    path: Path, make: Callable[[sqlite3.Connection], None], *, read_only: bool, damaged: str = BACKUP
) -> sqlite3.Connection:
    """A connection whose tables have the format of this version; empty ones in memory where nothing is to be read.

    ``make`` makes the tables, or makes older ones over; killed in the middle of it, the file is as before.
    ``damaged`` is what to do about a file that is.

    Raises Refused when the file was written by a newer version, is no database, or is too old to read without writing.
    """
    in_memory = read_only and not path.exists()
    with refusals(path, damaged), ExitStack() as opened:
        connection = connect(None) if in_memory else connect_read_only(path) if read_only else connect(path)
        opened.callback(connection.close)
        if not is_of_now(connection, path):
            if read_only and not in_memory:
                raise Refused(f"{path} has to be brought up to date first.", hint="autoresearch up, once")
            with transaction(connection, durable=True):
                if not is_of_now(connection, path):  # another process may have been faster
                    make(connection)
                    connection.execute(f"PRAGMA user_version = {FORMAT}")
        opened.pop_all()
    return connection


def is_of_now(connection: sqlite3.Connection, path: Path) -> bool:
    """Whether the file has the format of this version, and not an older one or none. Raises Refused for a newer one."""
    found: int = connection.execute("PRAGMA user_version").fetchone()[0]
    if found > FORMAT:
        raise Refused(
            f"{path} was written by a newer version of autoresearch, in format {found}; this one knows {FORMAT}.",
            hint="install that version or a later one, or set AUTORESEARCH_HOME to another folder",
        )
    return found == FORMAT


def make_tables(connection: sqlite3.Connection, file: str) -> None:
    """Execute a file of this folder, such as ``schema.sql``, in the caller's transaction."""
    for statement in Path(__file__).with_name(file).read_text("utf-8").split(";\n"):
        connection.execute(statement)
