"""Reading the log: records by id, by prefix, newest first; heads, forks, and everything in the order of sync."""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from threading import RLock

from autoresearch.errors import AmbiguousId, NotFound
from autoresearch.log.connection import refusals
from autoresearch.log.derived_rows import merged_up_to
from autoresearch.log.models import Fork, Head, Revision
from autoresearch.records import Record, format_id, parse_stored, prefix_range, short_id

_PAGE = 500
_CANDIDATES = 10
# So many rows and records are kept in memory between snapshots; then all are read again.
_KEPT_MAX = 100_000
_RECORDS_MAX = 20_000
# What has more rows than this is read each time.
_KEPT_EACH = 2_000
_REVISION = "SELECT coalesce(max(n), 0), coalesce((SELECT value FROM meta WHERE key = 'drops'), 0) FROM record"
_NO_RECORD = "autoresearch log shows the newest; autoresearch peers, who may have others"


def _told_apart(ids: Sequence[bytes]) -> list[str]:
    """Ids as people type them, no longer than tells them apart."""
    length = len(short_id(ids[0]))
    while len({short_id(one, length) for one in ids}) < len(ids):
        length += 4
    return [short_id(one, length) for one in ids]


def in_parts(keys: Collection[bytes], most: int = _PAGE) -> Iterator[list[bytes]]:
    """Keys in parts as a query takes them: SQLite has no more than 32,766 values in one."""
    ordered = list(keys)
    for start in range(0, len(ordered), most):
        yield ordered[start : start + most]


def marks(keys: Collection[object]) -> str:
    """Placeholders for values, which may stand in a query more than once."""
    return ", ".join(f"?{number}" for number in range(1, len(keys) + 1))


class Reader:
    """The reading half of the log. One connection, used by one thread at a time."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._lock = RLock()
        self._pinned: Revision | None = None
        self._kept_at: Revision | None = None
        self._kept: dict[tuple[object, ...], list[tuple]] = {}  # type: ignore[type-arg]
        self._kept_rows = 0
        self._records: dict[bytes, Record] = {}
        self._data_version = self._rows("PRAGMA data_version")[0][0]

    def _rows(self, query: str, *values: object) -> list[tuple]:  # type: ignore[type-arg]
        """What a query finds; in a snapshot it is made once for a revision."""
        with self._lock:
            found = self._kept.get((query, values)) if self._pinned else None
            if found is None:
                found = self._read(query, values)
                if self._pinned:
                    self._keep(query, values, found)
            return found

    def _keep(self, query: str, values: tuple[object, ...], found: list[tuple]) -> None:  # type: ignore[type-arg]
        if self._kept_rows > _KEPT_MAX:
            self._kept.clear()
            self._kept_rows = 0
        if len(found) <= _KEPT_EACH:
            self._kept[query, values] = found
            self._kept_rows += 1 + len(found)

    def _read_ahead(self, query: str, wide: str, keys: Iterable[bytes]) -> None:
        """Have ready what ``query`` finds for each of many keys: ``wide`` gives these rows after their keys."""
        wanted = [key for key in dict.fromkeys(keys) if (query, (key,)) not in self._kept]
        for part in in_parts(wanted):
            rows: dict[bytes, list[tuple]] = {key: [] for key in part}  # type: ignore[type-arg]
            for key, *row in self._read(wide.format(marks(part)), part):
                rows[key].append(tuple(row))
            for key, found in rows.items():
                self._keep(query, (key,), found)

    def _read(self, query: str, values: Sequence[object]) -> list[tuple]:  # type: ignore[type-arg]
        with refusals(None):
            return self._connection.execute(query, values).fetchall()

    @contextmanager
    def snapshot(self) -> Iterator[Revision]:
        """A consistent read view: all that is read in it is of one revision. Nothing can be written in it.

        Other threads wait until it ends. One within another is part of it.
        """
        with self._lock:
            if self._pinned is not None:
                yield self._pinned
                return
            with refusals(None):
                self._connection.execute("BEGIN")
            try:
                self._pinned = Revision(*self._read(_REVISION, ())[0])
                self._forget(self._pinned)
                yield self._pinned
            finally:
                self._pinned = None
                self._connection.execute("ROLLBACK")

    def revision(self) -> Revision:
        """How far the log has come: the same as before means that it holds the same. In a snapshot that of this."""
        with self._lock:
            return self._pinned or Revision(*self._read(_REVISION, ())[0])

    def _forget(self, revision: Revision) -> None:
        """Forget the rows that were kept at another revision; records stay what they are until some are dropped."""
        if self._kept_at != revision:
            self._kept.clear()
            self._kept_rows = 0
        if self._kept_at is None or self._kept_at.drops != revision.drops:
            self._records.clear()
        self._kept_at = revision

    def find(self, record_id: bytes) -> Record | None:
        """The record with this id, or None."""
        with self._lock:
            record = self._records.get(record_id) if self._pinned else None
            if record is None:
                found = self._read("SELECT raw, signature FROM record WHERE id = ?", (record_id,))
                record = parse_stored(*found[0]) if found else None
                if self._pinned and record:
                    self._keep_record(record)
            return record

    def _keep_record(self, record: Record) -> None:
        if len(self._records) >= _RECORDS_MAX:
            self._records.clear()
        self._records[record.id] = record

    def _find_ahead(self, ids: Iterable[bytes]) -> list[Record]:
        """Those of these records that are here; they are ready in this snapshot."""
        wanted = dict.fromkeys(ids)
        found = [self._records[one] for one in wanted if one in self._records]
        for part in in_parts([one for one in wanted if one not in self._records]):
            rows = self._read(f"SELECT raw, signature FROM record WHERE id IN ({marks(part)})", part)  # noqa: S608
            found += [parse_stored(raw, signature) for raw, signature in rows]
        for record in found:
            self._keep_record(record)
        return found

    def get(self, record_id: bytes) -> Record:
        """The record with this id. Raises NotFound."""
        record = self.find(record_id)
        if record is None:
            raise NotFound(f"There is no record {format_id(record_id)} here.", hint=_NO_RECORD)
        return record

    def resolve(self, prefix: str) -> bytes:
        """The one id whose text form begins with ``prefix``. Raises NotFound, AmbiguousId, UsageError."""
        low, high = prefix_range(prefix)
        found = self._rows("SELECT id FROM record WHERE id BETWEEN ? AND ? ORDER BY id LIMIT ?", low, high, _CANDIDATES)
        if not found:
            raise NotFound(f"There is no record {prefix} here.", hint=_NO_RECORD)
        if len(found) > 1:
            candidates = _told_apart([bytes(row[0]) for row in found])
            raise AmbiguousId(f"{prefix} can mean several records.", candidates)
        return bytes(found[0][0])

    def has(self, ids: Collection[bytes]) -> set[bytes]:
        """Those of ``ids`` that are here."""
        there = set[bytes]()
        for part in in_parts(ids):
            there.update(row[0] for row in self._rows(f"SELECT id FROM record WHERE id IN ({marks(part)})", *part))  # noqa: S608
        return there

    def records(
        self,
        *,
        kind: str | None = None,
        task: bytes | None = None,
        author: bytes | None = None,
        since_ms: int | None = None,
        limit: int = 50,
        without: str | None = None,
    ) -> list[Record]:
        """The newest records first, by their own time; ``task`` is a task's digest, ``since_ms`` the earliest time.

        ``without`` leaves one kind out.
        """
        # One author has far fewer records than there are of a kind or on a task: a plus sign says “no index here”.
        other = "" if author is None else "+"
        conditions = {
            f"{other}kind = ?": kind,
            f"{other}task = ?": task,
            "author = ?": author,
            "time >= ?": since_ms,
            "+kind != ?": without,
        }
        given = {condition: value for condition, value in conditions.items() if value is not None}
        where = " WHERE " + " AND ".join(given) if given else ""
        query = f"SELECT raw, signature FROM record{where} ORDER BY time DESC, id DESC LIMIT ?"  # noqa: S608
        return [parse_stored(*row) for row in self._rows(query, *given.values(), limit)]

    def of_kinds(self, kinds: Sequence[str]) -> list[Record]:
        """All records of some kinds, in no order."""
        query = f"SELECT raw, signature FROM record WHERE kind IN ({marks(kinds)})"  # noqa: S608
        return [parse_stored(raw, signature) for raw, signature in self._read(query, kinds)]

    def arrived(self, kind: str) -> Iterator[Record]:
        """All records of a kind in the order in which they came here."""
        for (number,) in self._rows("SELECT n FROM record WHERE kind = ? ORDER BY +n", kind):
            for raw, signature in self._rows("SELECT raw, signature FROM record WHERE n = ?", number):
                yield parse_stored(raw, signature)

    def by_author(self, author: bytes, *, after_seq: int = 0) -> Iterator[Record]:
        """The author's records in their own order, those after a sequence number."""
        query = """
        SELECT raw, signature, seq, id FROM record WHERE author = ? AND (seq, id) > (?, ?) ORDER BY seq, id LIMIT ?
        """
        seq, last = after_seq + 1, b""
        while page := self._rows(query, author, seq, last, _PAGE):
            yield from (parse_stored(raw, signature) for raw, signature, _, _ in page)
            seq, last = page[-1][2:]

    def count(self, kind: str | None = None, author: bytes | None = None) -> int:
        """How many records there are, of one kind or by one author."""
        if author is not None and kind is None:
            rows = self._rows("SELECT count(*) FROM record WHERE author = ?", author)
        elif kind is not None and author is None:
            rows = self._rows("SELECT count(*) FROM record WHERE kind = ?", kind)
        elif kind is None:
            rows = self._rows("SELECT count(*) FROM record")
        else:
            rows = self._rows("SELECT count(*) FROM record WHERE kind = ? AND author = ?", kind, author)
        return int(rows[0][0])

    def everybody(self) -> list[bytes]:
        """The keys that signed records, in their order."""
        # From key to key by the index: SELECT DISTINCT would read it whole.
        query = """
        WITH RECURSIVE everybody(key) AS (
            SELECT min(author) FROM record
            UNION ALL SELECT (SELECT min(author) FROM record WHERE author > key) FROM everybody WHERE key IS NOT NULL
        ) SELECT key FROM everybody WHERE key IS NOT NULL
        """
        return [row[0] for row in self._rows(query)]

    def head(self, author: bytes) -> Head | None:
        """The author's last record: the largest sequence number, and the smallest id where a fork has several."""
        found = self._rows("SELECT seq, id FROM record WHERE author = ? ORDER BY seq DESC, id LIMIT 1", author)
        return Head(*found[0]) if found else None

    def branches(self, author: bytes, *, since_seq: int) -> list[Head]:
        """The last record of each branch of an author's history since a sequence number, the longest branch first."""
        found = list(self.by_author(author, after_seq=since_seq - 1))
        followed = {record.prev for record in found}
        ends = [Head(record.seq, record.id) for record in found if record.id not in followed]
        return sorted(ends, key=lambda end: (-end.seq, end.id))

    def forks(self, author: bytes | None = None) -> list[Fork]:
        """All places where an author signed two records with one sequence number."""
        where, values = ("WHERE author = ?", (author,)) if author is not None else ("", ())
        with self._lock:
            places = self._rows(f"SELECT author, seq FROM fork {where} ORDER BY author, seq", *values)  # noqa: S608
            merged = {forked: merged_up_to(self._connection, forked) for forked, _ in places}
            return [Fork(who, seq, self._ids_at(who, seq), seq <= merged[who]) for who, seq in places]

    def merges(self, author: bytes) -> list[bytes]:
        """The records by which a root key that delegated this device ended forks of it, the newest first."""
        query = """
        SELECT DISTINCT record.id, record.time FROM merge CROSS JOIN record ON record.n = merge.n
        WHERE merge.device = ?1 AND merge.root IN (SELECT root FROM delegation WHERE device = ?1)
        ORDER BY record.time DESC, record.id DESC
        """
        return [record_id for record_id, _ in self._rows(query, author)]

    def _ids_at(self, author: bytes, seq: int) -> tuple[bytes, ...]:
        rows = self._rows("SELECT id FROM record WHERE author = ? AND seq = ? ORDER BY id", author, seq)
        return tuple(row[0] for row in rows)

    def forked(self, record: Record) -> bool:
        """Whether an unmerged fork of its author is at or before this record: it counts once others verified it."""
        found = self._rows("SELECT 1 FROM suspect WHERE author = ? AND seq <= ?", record.author, record.seq)
        return bool(found)

    def raw(self, ids: Collection[bytes]) -> list[tuple[bytes, bytes]]:
        """The bytes and signatures of those of ``ids`` that are here, in the order asked for."""
        pairs = []
        for record_id in ids:
            pairs += self._rows("SELECT raw, signature FROM record WHERE id = ?", record_id)
        return pairs

    def iter_keys(self, since_ms: int = 0) -> Iterator[tuple[int, bytes]]:
        """Time and id of all records from ``since_ms`` on, in that order: the order of reconciliation."""
        time, last = since_ms, b""
        query = "SELECT time, id FROM record WHERE (time, id) > (?, ?) ORDER BY time, id LIMIT ?"
        while page := self._rows(query, time, last, _PAGE * 20):
            yield from page
            time, last = page[-1]

    def changed_elsewhere(self) -> bool:
        """Whether another process has changed the log since this was asked last."""
        version = self._rows("PRAGMA data_version")[0][0]
        before, self._data_version = self._data_version, version
        return bool(version != before)

    def last_row(self) -> int:
        """The number of the record stored last; 0 without one."""
        return int(self._rows("SELECT coalesce(max(n), 0) FROM record")[0][0])

    def keys_after(self, row: int) -> list[tuple[int, bytes]]:
        """Time and id of the records stored after the one with this number."""
        return self._rows("SELECT time, id FROM record WHERE n > ?", row)

    def iter_raw(self, task: bytes | None = None) -> Iterator[tuple[bytes, bytes]]:
        """The bytes and signature of all records by time and id, for export.

        With the digest of a task only those about it and those about none, such as identities and verifications.
        """
        time, last = 0, b""
        of_task, values = ("", ()) if task is None else ("AND (task = ? OR task IS NULL)", (task,))
        query = f"""
        SELECT time, id, raw, signature FROM record WHERE (time, id) > (?, ?) {of_task} ORDER BY time, id LIMIT ?
        """  # noqa: S608
        while page := self._rows(query, time, last, *values, _PAGE):
            yield from ((raw, signature) for _, _, raw, signature in page)
            time, last = page[-1][:2]
