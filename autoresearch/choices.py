"""What a person chose on this machine: starred runs, archived tasks. Published to nobody; works beside a daemon."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from enum import StrEnum
from pathlib import Path

from autoresearch.errors import UsageError

_TABLE = "CREATE TABLE IF NOT EXISTS choice(what TEXT, thing BLOB, PRIMARY KEY(what, thing)) WITHOUT ROWID"
_ADD = "INSERT OR IGNORE INTO choice VALUES (?, ?)"
_REMOVE = "DELETE FROM choice WHERE what = ? AND thing = ?"


class Choice(StrEnum):
    """What a record or a task was chosen as: the id of a record that is starred, the digest of an archived task."""

    STARRED = "starred"
    ARCHIVED = "archived"


def chosen(file: Path, choice: Choice) -> frozenset[bytes]:
    """All that was chosen so; nothing where there is no file. Raises UsageError when the file is damaged."""
    if not file.exists():
        return frozenset()
    with _opened(file) as connection:
        return frozenset(thing for (thing,) in connection.execute("SELECT thing FROM choice WHERE what = ?", (choice,)))


def choose(file: Path, choice: Choice, thing: bytes, *, wanted: bool = True) -> bool:
    """Choose something, or with ``wanted`` false no longer; whether that changed anything.

    Raises:
        UsageError: the file is damaged or can't be written.
    """
    with _opened(file) as connection:
        return connection.execute(_ADD if wanted else _REMOVE, (choice, thing)).rowcount > 0


@contextmanager
def _opened(file: Path) -> Iterator[sqlite3.Connection]:
    try:
        file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        with closing(sqlite3.connect(file, isolation_level=None)) as connection:
            connection.execute(_TABLE)
            yield connection
    except (sqlite3.Error, OSError) as error:
        hint = "move it away; it holds your stars and which tasks you archived"
        raise UsageError(f"{file} can't be used: {error}", hint=hint) from error
