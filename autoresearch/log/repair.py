"""Damaged databases: what can still be read in them goes into new ones. The damaged file stays, under another name.

Of a log the records are taken, each checked as one that a peer sent, and everything else is computed from them.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from dataclasses import dataclass, replace
from functools import partial
from os import link
from pathlib import Path

from autoresearch.errors import Refused
from autoresearch.log.blobs import BlobStore
from autoresearch.log.connection import open_database, refusals, sync_folder, transaction
from autoresearch.log.local import make_local
from autoresearch.log.log import Log
from autoresearch.log.rows import State
from autoresearch.log.standing.hiding import hide
from autoresearch.log.tables.hidden import HiddenRow
from autoresearch.paths import Paths
from autoresearch.record.record import Network
from autoresearch.trust.roster import Trust

_BATCH = 500
_NOTHING = (
    "autoresearch node restore FILE puts a backup back; without one, move the file away: peers send what they have"
)


@dataclass(frozen=True, slots=True)
class Repaired:
    """A database that was made anew: how many of its rows could be read, and how many are lost.

    ``rows`` are a log's records, the index's files, or all that ``local.sqlite`` holds. ``lost`` counts the records
    that had a number and can't be read, or are no longer what their author signed.
    """

    file: Path
    rows: int
    lost: int
    kept_as: Path


def damage(file: Path) -> str:
    """What is wrong inside a database, in SQLite's words; empty when nothing is. Reads all of it.

    See https://www.sqlite.org/pragma.html#pragma_integrity_check.
    """
    try:
        with closing(sqlite3.connect(f"{file.absolute().as_uri()}?mode=ro", uri=True)) as connection:
            found = [row for (row,) in connection.execute("PRAGMA integrity_check(3)")]
    except sqlite3.DatabaseError as error:
        return str(error)
    return "" if found == ["ok"] else "; ".join(" ".join(str(row).split()) for row in found)


def databases(paths: Paths) -> list[Path]:
    """The databases of the network in use, and of the home, that are there."""
    files = dict.fromkeys((paths.log, paths.blobs / "index.sqlite", paths.local, paths.home_local))
    return [file for file in files if file.exists()]


def repair(paths: Paths, network: Network, trust: Trust, now_ms: int) -> list[Repaired]:
    """Make those databases anew that are damaged. Nothing else may have them open.

    Raises Refused when nothing can be read from one, it is in use, or the disk is full.
    """
    copies: dict[Path, Callable[[Path, Path], tuple[int, int]]] = {
        paths.log: partial(_copy_records, network=network, trust=trust, now_ms=now_ms),
        paths.local: _copy_rows,
        paths.home_local: _copy_rows,
    }
    done = [_replace(file, copies.get(file, _leave_all)) for file in databases(paths) if damage(file)]
    with refusals(paths.blobs), BlobStore(paths.blobs) as blobs:  # an index that is gone is made from the files
        return [replace(one, rows=len(list(blobs.kept()))) if one.file.parent == paths.blobs else one for one in done]


def _replace(file: Path, copy: Callable[[Path, Path], tuple[int, int]]) -> Repaired:
    """Have ``copy`` fill a new file and put it in the place of the old one. After a kill one of the two is there."""
    new = file.with_name(f"{file.name}.new")
    numbered = (file.with_name(f"{file.name}.damaged-{number}") for number in range(1, 1000))
    kept_as = next(name for name in numbered if not name.exists())
    with refusals(file):
        for end in ("", "-wal", "-shm"):
            new.with_name(new.name + end).unlink(missing_ok=True)
        with suppress(sqlite3.DatabaseError), closing(sqlite3.connect(file)) as connection:
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        rows, lost = copy(file, new)
        link(file, kept_as)
        if new.exists():
            new.replace(file)
        else:
            file.unlink()
        for end in ("-wal", "-shm"):
            file.with_name(file.name + end).unlink(missing_ok=True)
        sync_folder(file.parent)
    return Repaired(file, rows, lost, kept_as)


def _copy_records(old: Path, new: Path, *, network: Network, trust: Trust, now_ms: int) -> tuple[int, int]:
    rows = lost = 0
    with closing(sqlite3.connect(old)) as damaged, Log.open(new, network, trust=trust) as log:
        with suppress(sqlite3.DatabaseError):  # a log of before has no such table
            rows_hidden = damaged.execute("SELECT thing, origin, reason, time FROM hide").fetchall()
            hide(log, [HiddenRow(*row) for row in rows_hidden])
        last = _last_number(damaged)
        for start in range(0, last, _BATCH):
            pairs, missing = _read(damaged, start, min(start + _BATCH, last))
            verdicts = log.writer.ingest(pairs, now_ms=now_ms)
            refused = sum(verdict.state is State.REFUSED for verdict in verdicts)
            rows, lost = rows + len(pairs) - refused, lost + missing + refused
    if not rows:
        raise Refused(f"No record could be read from {old}.", hint=_NOTHING)
    return rows, lost


def _last_number(damaged: sqlite3.Connection) -> int:
    """The largest number of a record, by the table or by whichever of its indexes can be read."""
    by_index = ("record_time WHERE time > 0", "record_id WHERE id > x''", "record_kind_time WHERE kind > ''")
    for source in ("record", *(f"record INDEXED BY {index}" for index in by_index)):
        with suppress(sqlite3.DatabaseError):
            found: int | None = damaged.execute(f"SELECT max(n) FROM {source}").fetchone()[0]  # noqa: S608
            return found or 0
    return 0


def _read(damaged: sqlite3.Connection, after: int, last: int) -> tuple[list[tuple[bytes, bytes]], int]:
    """The records with numbers above ``after`` up to ``last``, and how many numbers can't be read."""
    query = "SELECT raw, signature FROM record WHERE n > ? AND n <= ? ORDER BY n"
    try:
        return damaged.execute(query, (after, last)).fetchall(), 0
    except sqlite3.DatabaseError:
        if last - after == 1:
            return [], 1
    middle = (after + last) // 2
    (first, lost), (second, more) = _read(damaged, after, middle), _read(damaged, middle, last)
    return first + second, lost + more


def _copy_rows(old: Path, new: Path) -> tuple[int, int]:
    """What can be read of each table of ``local.sqlite``, from its beginning and from its end."""
    count = 0
    with closing(open_database(new, make_local, read_only=False)) as made, closing(sqlite3.connect(old)) as damaged:
        tables = [name for (name,) in made.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()]
        for table in tables:
            columns = [name for _, name, *_ in made.execute(f"PRAGMA table_info({table})").fetchall()]
            marks, key = ", ".join("?" * len(columns)), columns[0]
            for order in ("ASC", "DESC"):
                query = f"SELECT {', '.join(columns)} FROM {table} ORDER BY {key} {order}"  # noqa: S608
                with transaction(made, durable=True), suppress(sqlite3.DatabaseError):
                    for row in _rows(damaged, query):
                        made.execute(f"INSERT OR IGNORE INTO {table} VALUES ({marks})", row)  # noqa: S608
            count += made.execute(f"SELECT count(*) FROM {table}").fetchone()[0]  # noqa: S608
    new.chmod(0o600)
    return count, 0


def _rows(damaged: sqlite3.Connection, query: str) -> Iterator[tuple[object, ...]]:
    yield from damaged.execute(query)


def _leave_all(_old: Path, _new: Path) -> tuple[int, int]:
    return 0, 0
