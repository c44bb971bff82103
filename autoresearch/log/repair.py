"""Damaged databases: what can still be read in them goes into new ones. The damaged file stays, under another name.

Of a log the records are taken, wherever in its bytes they stand. Each is checked as one that a peer sent, and
everything else is computed from them.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, replace
from functools import cache, partial
from itertools import islice
from pathlib import Path

from autoresearch.errors import Refused
from autoresearch.log.blobs import BlobStore, make_index
from autoresearch.log.connection import (
    FORMAT,
    open_database,
    own_authors,
    read_head,
    refusals,
    transaction,
    unread_changes,
)
from autoresearch.log.derive.storing import rebuild
from autoresearch.log.local import make_local
from autoresearch.log.log import Log
from autoresearch.log.rows import State
from autoresearch.log.salvage import salvage
from autoresearch.log.standing.hiding import hide
from autoresearch.log.tables.hidden import HiddenRow
from autoresearch.paths import Paths, sync_path
from autoresearch.record.record import Network, Refusal, admit
from autoresearch.trust.roster import Trust

_BATCH = 500
_NAMES = "SELECT type, name FROM sqlite_master"
# Records that are in a log were not early when they came.
_NO_CLOCK_MS = 2**53
_NOTHING = (
    "autoresearch node restore FILE puts a backup back; without one, move the file away: peers send what they have"
)
# Stands in the place of a file while its successor takes that place: no database, so that nobody begins an empty one.
_MARK = b"autoresearch node repair was interrupted: start it again\n"


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
    if not file.exists():
        return "it is gone"
    if not file.is_file():
        return "it is no file"
    if not file.stat().st_size:
        return "it is empty"
    try:
        with closing(sqlite3.connect(f"{file.absolute().as_uri()}?mode=ro", uri=True)) as connection:
            problems = [row for (row,) in connection.execute("PRAGMA integrity_check(3)")]
            lacks = lacking(file, connection)
            changes = unread_changes(file)
    except sqlite3.DatabaseError as error:
        return str(error)
    if problems != ["ok"]:
        return "; ".join(" ".join(str(row).split()) for row in problems)
    return lacks or changes


def lacking(file: Path, connection: sqlite3.Connection) -> str:
    """Which table or index a file of this version's format lacks."""
    make = {"log.sqlite": rebuild, "local.sqlite": make_local, "index.sqlite": make_index}.get(file.name)
    if make is None or connection.execute("PRAGMA user_version").fetchone()[0] != FORMAT:
        return ""
    lacks = _names(make) - set(connection.execute(_NAMES))
    return "; ".join(f"it lacks the {kind} {name}" for kind, name in sorted(lacks)[:3])


@cache
def _names(make: Callable[[sqlite3.Connection], None]) -> frozenset[tuple[str, str]]:
    with closing(sqlite3.connect(":memory:")) as empty:
        make(empty)
        return frozenset(empty.execute(_NAMES))


def wrong_record(log: Log) -> str:
    """The first record, by the order of time, that is no longer what its author signed; empty where all are.

    A record's id is the hash of its bytes, under which it has to be found.
    """
    for count, (raw, signature) in enumerate(log.records.iter_raw(), start=1):
        record = admit(raw, signature, log.network, now_ms=_NO_CLOCK_MS)
        if isinstance(record, Refusal):
            return f"record {count} in the order of time: {record.sentence}"
        if not log.records.has([record.id]):
            return f"record {count} in the order of time: its bytes are not those that its id names"
    return ""


def databases(paths: Paths) -> list[Path]:
    """The databases of the network in use, and of the home, that are there; a log that is gone too."""
    files = dict.fromkeys((paths.log, paths.blobs / "index.sqlite", paths.local, paths.home_local))
    is_gone = bool(own_authors(paths.log.parent / "heads")) and not os.path.lexists(paths.log)
    return [file for file in files if os.path.lexists(file) or (is_gone and file == paths.log)]


def repair(paths: Paths, network: Network, trust: Trust) -> list[Repaired]:
    """Make those databases anew that are damaged. Nothing else may have them open.

    Raises Refused when nothing can be read from one, it is in use, or the disk is full.
    """
    copies: dict[Path, Callable[[Sequence[Path], Path], tuple[int, int]]] = {
        paths.log: partial(_copy_records, network=network, trust=trust),
        paths.local: _copy_rows,
        paths.home_local: _copy_rows,
    }
    done = [
        _replace(file, copies.get(file, _leave_all))
        for file in databases(paths)
        if damage(file) or (file == paths.log and _has_wrong_record(file, network))
    ]
    with refusals(paths.blobs), BlobStore(paths.blobs) as blobs:  # an index that is gone is made from the files
        return [
            replace(database, rows=len(list(blobs.stored()))) if database.file.parent == paths.blobs else database
            for database in done
        ]


def _has_wrong_record(file: Path, network: Network) -> bool:
    with suppress(Refused), Log.open(file, network, read_only=True) as log:
        return bool(wrong_record(log))
    return False  # of another version or network: no damage


def _replace(file: Path, copy: Callable[[Sequence[Path], Path], tuple[int, int]]) -> Repaired:
    """Have ``copy`` fill a new file and put it in the place of the old one, which is kept under another name.

    Killed at any moment, the old bytes are there under one name or both, and the same begun again reads them.
    """
    place, file = file, file.resolve()  # of a link, what it leads to
    new, mark = (file.with_name(file.name + end) for end in (".new", ".mark"))
    with refusals(file):
        for end in ("", "-wal", "-shm"):
            new.with_name(new.name + end).unlink(missing_ok=True)
        earlier = sorted(file.parent.glob(f"{file.name}.damaged-*"))
        wal = file.with_name(f"{file.name}-wal")
        sources = [path for path in (file, wal, *earlier) if path.is_file()]
        rows, lost = copy(sources, new)
        aside = _keep_aside(file, wal, [path for path in earlier if not path.name.endswith("-wal")])
        # A new file beside an old write-ahead log would be mixed with it: first nothing that can be opened is there.
        mark.write_bytes(_MARK)
        sync_path(mark)
        mark.replace(file)
        sync_path(file.parent)
        for end in ("-wal", "-shm"):
            file.with_name(file.name + end).unlink(missing_ok=True)
        sync_path(file.parent)
        if new.exists():
            sync_path(new)
            new.replace(file)
        else:
            file.unlink()
        sync_path(file.parent)
    return Repaired(place, rows, lost, aside)


def _keep_aside(file: Path, wal: Path, earlier: Sequence[Path]) -> Path:
    """Give a damaged file and its write-ahead log one more name: that of a repair that was interrupted, if there is."""
    is_mark = file.is_file() and file.stat().st_size == len(_MARK) and file.read_bytes() == _MARK
    if earlier and (is_mark or not file.exists()):
        return max(earlier, key=lambda path: path.stat().st_mtime_ns)
    for path in earlier:
        if file.is_file() and path.samefile(file):
            return path
    numbered = (file.with_name(f"{file.name}.damaged-{number}") for number in range(1, 1000))
    aside = next(name for name in numbered if not os.path.lexists(name) and not os.path.lexists(f"{name}-wal"))
    if wal.is_file() and wal.stat().st_size:
        _one_more_name(wal, aside.with_name(f"{aside.name}-wal"))
    if file.is_dir():
        file.rename(aside)
    elif file.exists():
        _one_more_name(file, aside)
    sync_path(file.parent)
    return aside if os.path.lexists(aside) else aside.with_name(f"{aside.name}-wal")


def _one_more_name(path: Path, name: Path) -> None:
    try:
        os.link(path, name)
    except OSError:  # some file systems have no such names
        shutil.copy2(path, name)
        sync_path(name)


def _copy_records(sources: Sequence[Path], new: Path, *, network: Network, trust: Trust) -> tuple[int, int]:
    numbers: set[int] = set()
    with Log.open(new, network, trust=trust) as log:
        # A page is looked for in the file that its row is in, and in that file's write-ahead log.
        for file in sources:
            beside = [path for path in sources if path.name == f"{file.name}-wal"]
            if file.name.endswith("-wal") and file.with_name(file.name.removesuffix("-wal")) in sources:
                continue
            rows = salvage([file, *beside], most_bytes=network.record_bytes)
            while batch := list(islice(rows, _BATCH)):
                verdicts = log.writer.ingest([(row.raw, row.signature) for row in batch], now_ms=_NO_CLOCK_MS)
                numbers.update(
                    row.number
                    for row, verdict in zip(batch, verdicts, strict=True)
                    if verdict.state is not State.REFUSED
                )
        count = log.records.count()
        heads = new.parent / "heads"
        signed = sum(head.seq for author in own_authors(heads) if (head := read_head(heads, author)))
        unsigned = signed - sum(log.records.count(author=author) for author in own_authors(heads))
        # Of an empty file SQLite would delete the write-ahead log.
        readable = [file for file in sources if not file.name.endswith("-wal") and file.stat().st_size]
        for file in readable:
            # What a person chose: runs that are believed, and what is hidden. It follows from no record.
            with closing(_connect(file)) as damaged:
                with log.writer.settling(), suppress(sqlite3.DatabaseError):
                    for row in _rows(damaged, "SELECT run FROM believed"):
                        log.reader.connection.execute("INSERT OR IGNORE INTO believed VALUES (?)", row)
                with suppress(sqlite3.DatabaseError):  # a log of before has no such table
                    listed = damaged.execute("SELECT thing, origin, reason, time FROM hide").fetchall()
                    hide(log, [HiddenRow(*row) for row in listed])
    if not count:
        raise Refused(f"No record could be read from {' or '.join(map(str, sources)) or new}.", hint=_NOTHING)
    total = next((number for file in readable[:1] if (number := _count(file))), max(numbers, default=0))
    return count, max(0, total - count, unsigned)


def _count(file: Path) -> int:
    """How many records a log has, by the table or by whichever of its indexes can be read; 0 where none can."""
    by_index = ("record_time WHERE time > 0", "record_id WHERE id > x''", "record_kind_time WHERE kind > ''")
    with closing(_connect(file)) as damaged:
        for source in ("record", *(f"record INDEXED BY {index}" for index in by_index)):
            with suppress(sqlite3.DatabaseError):
                number: int = damaged.execute(f"SELECT count(*) FROM {source}").fetchone()[0]  # noqa: S608
                return number
    return 0


def _connect(file: Path) -> sqlite3.Connection:
    """A connection that changes nothing in a damaged file."""
    return sqlite3.connect(f"{file.absolute().as_uri()}?mode=ro", uri=True)


def _copy_rows(sources: Sequence[Path], new: Path) -> tuple[int, int]:
    """What can be read of each table of ``local.sqlite``, from its beginning and from its end."""
    count = 0
    with closing(open_database(new, make_local, read_only=False)) as made:
        tables = [name for (name,) in made.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()]
        readable = [file for file in sources if not file.name.endswith("-wal") and file.stat().st_size]
        for file, table in ((file, table) for file in readable for table in tables):
            columns = [name for _, name, *_ in made.execute(f"PRAGMA table_info({table})").fetchall()]
            marks, key = ", ".join("?" * len(columns)), columns[0]
            for order in ("ASC", "DESC"):
                query = f"SELECT {', '.join(columns)} FROM {table} ORDER BY {key} {order}"  # noqa: S608
                with (
                    closing(_connect(file)) as damaged,
                    transaction(made, durable=True),
                    suppress(sqlite3.DatabaseError),
                ):
                    for row in _rows(damaged, query):
                        made.execute(f"INSERT OR IGNORE INTO {table} VALUES ({marks})", row)  # noqa: S608
        for table in tables:
            count += made.execute(f"SELECT count(*) FROM {table}").fetchone()[0]  # noqa: S608
    new.chmod(0o600)
    return count, 0


def _rows(damaged: sqlite3.Connection, query: str) -> Iterator[tuple[object, ...]]:
    yield from damaged.execute(query)


def _leave_all(_sources: Sequence[Path], _new: Path) -> tuple[int, int]:
    return 0, 0
