"""Files of one process: SQLite connections, their transactions, their errors as sentences.

Also writing that survives a power cut; the lock of a device key; the head file that names a device's last record. Two
processes that sign with one key would spend a sequence number twice. So would whoever puts back an old copy of the
database, were the head file not beside it, and look like a liar.

A :class:`Reader` is one connection to the log: queries, snapshots, and parts of queries that several tables share.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
import struct
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from threading import RLock
from typing import Any, TypeVar

from filelock import FileLock, Timeout

from autoresearch.errors import Locked, Refused
from autoresearch.log.rows import Head, Revision
from autoresearch.paths import sync_path, write_refusals
from autoresearch.words import STOPPED

Item = TypeVar("Item")


@contextmanager
def lock_device(path: Path) -> Iterator[None]:
    """Hold the device key in the file ``path`` for this process. The kernel lets go when the process ends, however.

    Raises Locked when another process holds it, Refused when the folder can't be written.
    """
    lock = FileLock(path.with_name(path.name + ".lock"), timeout=0, mode=0o600)
    with write_refusals():
        try:
            lock.acquire()
        except Timeout as error:
            raise Locked(
                f"Another process works with the key {path}.",
                hint="wait until it has ended, then type this again",
            ) from error
    try:
        yield
    finally:
        lock.release()


BUSY_MS = 30_000
# Of a new file; one that is there keeps its own. A page of 4 KiB holds two records of the usual size and is a quarter
# empty, one of 8 KiB holds five. Larger pages save no more, but a record that comes alone writes more of them.
_PAGE_BYTES = 8192
# With less SQLite can't begin: its log of changes and the index of that take so much.
_NO_ROOM_BYTES = 1 << 16
REPAIR = "autoresearch down && autoresearch node repair: it keeps what can be read"
_DOCTOR = "autoresearch node doctor checks disk space and permissions"


def connect(path: Path | None) -> sqlite3.Connection:
    """A connection that may write, in write-ahead mode, creating the file; in memory without ``path``."""
    if path is not None:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    # The callers hold a lock of their own, so that one connection may serve several threads in turn.
    connection = sqlite3.connect(path or ":memory:", isolation_level=None, check_same_thread=False)
    try:
        connection.execute(f"PRAGMA busy_timeout = {BUSY_MS}")
        connection.execute(f"PRAGMA page_size = {_PAGE_BYTES}")
        _write_ahead(connection)
    except BaseException:
        connection.close()
        raise
    return connection


def connect_read_only(path: Path) -> sqlite3.Connection:
    """A connection that only reads, also while another process writes."""
    uri = path.absolute().as_uri()
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
    with refusals(connection):
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
def refusals(where: Path | sqlite3.Connection, damaged: str = REPAIR) -> Iterator[None]:
    """Turn SQLite's and the system's errors into sentences. ``damaged`` is what to do about a file that is."""
    place: object = where
    try:
        yield
    except sqlite3.Error as error:
        if isinstance(where, sqlite3.Connection):
            place = next((name for *_, name in where.execute("PRAGMA database_list") if name), "the database")
        name = getattr(error, "sqlite_errorname", "") or ""
        if name.startswith("SQLITE_READONLY"):
            raise Refused(f"{place} is read only.", hint=_DOCTOR) from error
        # Without room for the file that connections share, SQLite speaks of its input and output.
        no_room = name.startswith("SQLITE_IOERR") and _is_full(str(place))
        if no_room or name.startswith("SQLITE_FULL"):
            raise Refused(
                f"The disk is full; nothing was written to {place}.", hint="make room and try again"
            ) from error
        if name.startswith("SQLITE_BUSY"):
            raise Refused(f"Another process is writing to {place}.", hint="try again in a moment") from error
        if name.startswith(("SQLITE_NOTADB", "SQLITE_CORRUPT")):
            raise Refused(f"{place} is damaged, or is no database.", hint=damaged) from error
        if isinstance(error, sqlite3.OperationalError):
            raise Refused(f"{place} can't be used: {error}.", hint=_DOCTOR) from error
        raise
    except OSError as error:
        raise Refused(f"{place} can't be used: {error.strerror or error}.", hint=_DOCTOR) from error


def _is_full(file: str) -> bool:
    try:
        return shutil.disk_usage(os.path.dirname(file)).free < _NO_ROOM_BYTES  # noqa: PTH120
    except OSError:
        return False


# What SQLite says of values; all its other errors are of the file, the disk or the machine.
_OF_VALUES = ("SQLITE_ERROR", "SQLITE_TOOBIG", "SQLITE_CONSTRAINT", "SQLITE_MISMATCH", "SQLITE_RANGE")


def is_by_values(error: Exception) -> bool:
    """Whether what was to be stored made a transaction fail, and not the state of the disk or the file."""
    cause = error.__cause__ if isinstance(error, Refused) else error
    if isinstance(cause, sqlite3.Error):
        return getattr(cause, "sqlite_errorname", "").startswith(_OF_VALUES)
    return not isinstance(cause, Refused | OSError | MemoryError | None)


def store_by_halves(
    items: Sequence[Item], store: Callable[[Sequence[Item]], object]
) -> Iterator[tuple[Item, Exception]]:
    """Store what strangers wrote, all but what can't be: each of these is returned with the reason. None costs another.

    ``store`` is all or nothing. What raises is stored by halves. Raises what is not the fault of any of the items, see
    :func:`is_by_values`; what was stored until then stays.
    """
    if not items:
        return
    try:
        store(items)
    except Exception as error:
        if not is_by_values(error):
            raise
        if len(items) == 1:
            store([])  # where not even nothing can be stored, it is not the fault of this one
            yield items[0], error
            return
        middle = len(items) // 2
        for half in (items[:middle], items[middle:]):
            yield from store_by_halves(half, store)


_WAL_HEADER, _FRAME_HEADER = 32, 24


def unread_changes(path: Path) -> str:
    """Whether the write-ahead log of an open file has changes after the place where SQLite stops to read it, in words.

    SQLite ends at the first frame with a wrong checksum, such as one that a power cut left half written. A frame after
    it that ends a change shows damage: what is written next would take its place. Nobody may write meanwhile.
    See https://www.sqlite.org/walformat.html.
    """
    wal, index = (path.with_name(path.name + end) for end in ("-wal", "-shm"))
    if not (wal.exists() and index.exists() and wal.stat().st_size > _WAL_HEADER + _FRAME_HEADER):
        return ""
    with index.open("rb") as shared:
        page_bytes, last, salts = struct.unpack("=14xHI12x8s", shared.read(40))
    if salts == bytes(8):
        return f"the beginning of {wal} is damaged"
    page_bytes = 65_536 if page_bytes == 1 else page_bytes
    with wal.open("rb") as frames:
        frames.seek(_WAL_HEADER + last * (_FRAME_HEADER + page_bytes))
        while len(frame := frames.read(_FRAME_HEADER)) == _FRAME_HEADER:
            if frame[8:16] == salts and frame[4:8] != bytes(4):
                return f"{wal} is damaged after its frame {last}"
            frames.seek(page_bytes, os.SEEK_CUR)
    return ""


def refuse_unread_changes(path: Path) -> None:
    """Refuse to write a file of whose changes SQLite would overwrite some that it can't read. Raises Refused."""
    _refuse_changes_alone(path, REPAIR)
    if not path.exists():
        return
    with refusals(path), closing(connect_read_only(path)):
        changes = unread_changes(path)
    if changes:
        raise Refused(f"{changes[0].upper()}{changes[1:]}.", hint=REPAIR)


def _refuse_changes_alone(path: Path, damaged: str) -> None:
    """SQLite deletes the write-ahead log of a file that is empty or gone, also where it opens that only to read."""
    wal = path.with_name(path.name + "-wal")
    is_written = path.exists() and path.stat().st_size
    if not is_written and wal.exists() and wal.stat().st_size:
        raise Refused(f"{path} is {'empty' if path.exists() else 'gone'}, and {wal} is not.", hint=damaged)


TURN_S = 30.0
KEY_BYTES = 32


@contextmanager
def appending(folder: Path, author: bytes) -> Iterator[None]:
    """Take turns with other processes that append with this key, so that the file always names the last of them."""
    lock = FileLock(folder / f"{author.hex()}.lock", timeout=TURN_S)
    with write_refusals(folder):
        folder.mkdir(parents=True, exist_ok=True)
        try:
            lock.acquire()
        except Timeout as error:
            raise Refused("Another process is appending with this key.", hint="try again in a moment") from error
    try:
        yield
    finally:
        lock.release()


def own_authors(folder: Path) -> frozenset[bytes]:
    """The keys that appended records here."""
    names = (path.name for path in folder.iterdir()) if folder.is_dir() else ()
    return frozenset(bytes.fromhex(name) for name in names if len(name) == 2 * KEY_BYTES)


def read_head(folder: Path, author: bytes) -> Head | None:
    """What the file says, or None without a file. Raises Refused when it is damaged."""
    path = folder / author.hex()
    try:
        seq, record_id = path.read_text("ascii").split()
        return Head(int(seq), bytes.fromhex(record_id))
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise Refused(
            f"{path}, which names this device's last record, can't be read.",
            hint="when the log is known to be complete, delete that file",
        ) from error


def write_head(folder: Path, author: bytes, head: Head) -> None:
    """Name ``head``: on the disk before this returns, and never half written. Raises Refused."""
    path = folder / author.hex()
    temporary = path.with_suffix(".new")
    with write_refusals(f"The record is stored, but {path}"):
        with temporary.open("w", encoding="ascii") as file:
            file.write(f"{head.seq} {head.id.hex()}\n")
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
        sync_path(folder)


# Raised by 1 whenever a table changes, or what a table of the log means.
FORMAT = 22


def open_database(
    path: Path, make: Callable[[sqlite3.Connection], None], *, read_only: bool, damaged: str = REPAIR
) -> sqlite3.Connection:
    """A connection whose tables have the format of this version; empty ones in memory where nothing is to be read.

    ``make`` makes the tables, or makes older ones over; killed in the middle of it, the file is as before.
    ``damaged`` is what to do about a file that is.

    Raises Refused when the file was written by a newer version, is no database, or is too old to read without writing.
    """
    _refuse_changes_alone(path, damaged)
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
    written: int = connection.execute("PRAGMA user_version").fetchone()[0]
    if written > FORMAT:
        raise Refused(
            f"{path} was written by a newer version of autoresearch, in format {written}; this one knows {FORMAT}.",
            hint="install that version or a later one, or set AUTORESEARCH_HOME to another folder",
        )
    return written == FORMAT


def make_tables(connection: sqlite3.Connection, file: str) -> None:
    """Execute a file of this folder, such as ``schema.sql``, in the caller's transaction."""
    for statement in Path(__file__).with_name(file).read_text("utf-8").split(";\n"):
        connection.execute(statement)


# So many keys a query takes at once, and so many rows are read at once where there may be many.
PAGE = 500
_REVISION = """
SELECT coalesce(max(n), 0), coalesce((SELECT value FROM meta WHERE key = 'drops'), 0),
    coalesce((SELECT value FROM meta WHERE key = 'settled'), 0),
    coalesce((SELECT value FROM meta WHERE key = 'people'), 0),
    coalesce((SELECT value FROM meta WHERE key = 'tasks'), 0) FROM record
"""


def in_parts(keys: Collection[Item], most: int = PAGE) -> Iterator[list[Item]]:
    """Keys in parts as a query takes them: SQLite has no more than 32,766 values in one."""
    ordered = list(keys)
    for start in range(0, len(ordered), most):
        yield ordered[start : start + most]


def marks(keys: Collection[object]) -> str:
    """Placeholders for values, which may stand in a query more than once."""
    return ", ".join(f"?{number}" for number in range(1, len(keys) + 1))


class Reader:
    """Reads through one connection. Threads take turns by ``lock``, also to write through it.

    ``pinned`` is the revision of the snapshot that is open, None without one. ``failures`` counts the transactions
    that were undone: what was read in one holds no longer. ``hides``: what a person hides is left out of what is read,
    see :meth:`Hidden.included`.
    """

    def __init__(self, connection: sqlite3.Connection) -> None:
        self.connection = connection
        self.lock = RLock()
        self.pinned: Revision | None = None
        self._once: dict[tuple[object, ...], list[tuple[Any, ...]]] | None = None  # of a snapshot
        self.failures = 0
        self.hides = True
        self._data_version = self.rows("PRAGMA data_version")[0][0]

    def close(self) -> None:
        """Let go of the file."""
        with self.lock:
            self.connection.close()

    @contextmanager
    def snapshot(self) -> Iterator[Revision]:
        """A consistent read view: all that is read in it is of one revision. Nothing can be written in it.

        Other threads wait until it ends. One within another is part of it.
        """
        with self.lock:
            if self.pinned is not None:
                yield self.pinned
                return
            with refusals(self.connection):
                self.connection.execute("BEGIN")
            self._once = {}
            try:
                with self.pin() as revision:
                    yield revision
            finally:
                self._once = None
                self.connection.execute("ROLLBACK")

    @contextmanager
    def pin(self) -> Iterator[Revision]:
        """The same in a transaction that somebody else began and ends."""
        self.pinned = self._revision()
        try:
            yield self.pinned
        finally:
            self.pinned = None

    def revision(self) -> Revision:
        """How far the log has come: the same as before means that it holds the same. In a snapshot that of this."""
        with self.lock:
            return self.pinned or self._revision()

    def _revision(self) -> Revision:
        return Revision._make((*self.read(_REVISION, ())[0], self.failures))

    def changed_elsewhere(self) -> bool:
        """Whether another process has changed the log since this was asked last."""
        version = self.rows("PRAGMA data_version")[0][0]
        before, self._data_version = self._data_version, version
        return bool(version != before)

    def rows(self, query: str, *values: object) -> list[tuple]:  # type: ignore[type-arg]
        """What a query finds."""
        return self.read(query, values)

    def once(self, query: str, *values: object) -> list[tuple]:  # type: ignore[type-arg]
        """The same; in a snapshot it is read one time, however many parts of an answer ask for it."""
        with self.lock:
            if self._once is None:
                return self.rows(query, *values)
            key = (query, *values)
            if key not in self._once:
                self._once[key] = self.rows(query, *values)
            return self._once[key]

    def read(self, query: str, values: Sequence[object]) -> list[tuple]:  # type: ignore[type-arg]
        """The same, with the values in a sequence."""
        with self.lock:
            try:
                return self.connection.execute(query, values).fetchall()
            except (sqlite3.Error, OSError):
                with refusals(self.connection):  # only now: to enter it takes longer than many a query
                    raise

    def among(self, query: str, keys: Collection[Item], *values: object) -> Iterator[tuple]:  # type: ignore[type-arg]
        """What a query finds about any number of keys, which take the place of ``{}``; ``values`` come after them."""
        for part in in_parts(keys):
            yield from self.read(query.format(marks(part)), [*part, *values])


# A run that somebody stopped says nothing about its source: others may try it.
ENDED = f"run.status NOT IN ({', '.join(repr(status.value) for status in sorted(STOPPED))})"
# With this join ``suspect.author`` is there for a run after a fork of its author that no merge ended.
SUSPECT = "LEFT JOIN suspect ON suspect.author = run.author AND suspect.seq <= run.seq"
# Another participant published the checkpoint of a run before.
COPIED = "EXISTS(SELECT 1 FROM copy WHERE copy.n = run.n AND copy.model)"
COUNTS = "run.status = 'ok' AND run.value IS NOT NULL"
# The columns of a RunFacts, in this join.
RUN_COLUMNS = f"""
run.n, run.id, run.author, run.seq, run.time, run.task, run.budget, run.source_digest, run.seedless, run.value,
run.replicate, run.device, run.checkpoint, {COUNTS}, {COPIED}, suspect.author IS NOT NULL
"""
# Of a table with the columns author and n, under some name: a person here does not hide the record of its row.
VISIBLE = (
    "NOT EXISTS(SELECT 1 FROM hidden_author WHERE hidden_author.author = {0}.author)"
    " AND NOT EXISTS(SELECT 1 FROM hidden WHERE hidden.n = {0}.n)"
)
