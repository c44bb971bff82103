"""Records as they are signed: by id, by prefix, newest first, by author, in the order of sync.

Of one device also its last record, its forks and merges, and its claims.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from functools import lru_cache
from sqlite3 import Connection

from autoresearch.errors import AmbiguousId, NotFound, UsageError
from autoresearch.log.connection import ENDED, PAGE, VISIBLE, Reader, marks
from autoresearch.log.rows import ClaimRow, Fork, Head
from autoresearch.record.encoding import COMMON, format_id, prefix_range, short_id
from autoresearch.record.kinds import TASK_KINDS
from autoresearch.record.record import Record, parse_stored
from autoresearch.text import did_you_mean

_CANDIDATES = 10
# A mistyped id is compared with those of so many newest records, and is so like the one that is meant.
_NEAR_RECORDS, _LIKE = 1_000, 0.75
_SIGNED = "SELECT raw, signature FROM record WHERE id IN ({})"
# So many records stay parsed, by their bytes: a list that is asked for again, and what many verifications are about.
_parsed = lru_cache(2_000)(parse_stored)
_NO_RECORD = "autoresearch node records shows the newest; autoresearch network peers, who may have others"
# Kinds of records that say who is who. A withdrawal may take one of them back.
ABOUT_PEOPLE = ("identity", "attestation", "admission", "withdrawal")


def merged_up_to(connection: Connection, author: bytes) -> int:
    """The last sequence number of ``author`` that a merge by a root key, which delegated it, covers; 0 without one."""
    query = """
    SELECT max(record.seq) FROM merge JOIN record ON record.id = merge.head AND record.author = merge.device
    WHERE merge.device = ?1 AND merge.root IN (SELECT root FROM delegation WHERE device = ?1)
    """
    return int(connection.execute(query, (author,)).fetchone()[0] or 0)


class Records:
    """The table of all records."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader

    def find(self, record_id: bytes) -> Record | None:
        """The record with this id, or None."""
        rows = self._reader.once(_SIGNED.format("?"), record_id)
        return _parsed(*rows[0]) if rows else None

    def several(self, ids: Collection[bytes]) -> list[Record]:
        """Those of these records that are here, in no order."""
        return [_parsed(raw, signature) for raw, signature in self._reader.among(_SIGNED, ids)]

    def get(self, record_id: bytes) -> Record:
        """The record with this id. Raises NotFound."""
        record = self.find(record_id)
        if record is None:
            raise NotFound(f"There is no record {format_id(record_id)} here.", hint=_NO_RECORD)
        return record

    def resolve(self, prefix: str) -> bytes:
        """The one id whose text form begins with ``prefix``. Raises NotFound, AmbiguousId, UsageError."""
        try:
            low, high = prefix_range(prefix)
        except UsageError as error:
            raise UsageError(f"{error}", hint=self._near(prefix) or error.hint) from error
        rows = self._reader.rows(
            "SELECT id FROM record WHERE id BETWEEN ? AND ? ORDER BY id LIMIT ?", low, high, _CANDIDATES
        )
        if not rows:
            raise NotFound(f"There is no record {prefix} here.", hint=self._near(prefix) or _NO_RECORD)
        if len(rows) > 1:
            # Ids as people type them, no longer than tells them apart.
            ids = [bytes(row[0]) for row in rows]
            length = len(short_id(ids[0]))
            while len({short_id(record_id, length) for record_id in ids}) < len(ids):
                length += 4
            candidates = [short_id(record_id, length) for record_id in ids]
            raise AmbiguousId(f"{prefix} can mean several records.", candidates)
        return bytes(rows[0][0])

    def _near(self, prefix: str) -> str:
        """Which of the newest records a mistyped beginning may mean."""
        digits = prefix.strip().lower().removeprefix(COMMON)
        rows = self._reader.rows("SELECT id FROM record ORDER BY n DESC LIMIT ?", _NEAR_RECORDS)
        return did_you_mean(digits, [short_id(bytes(row[0]), len(digits)) for row in rows], _LIKE)

    def has(self, ids: Collection[bytes]) -> set[bytes]:
        """Those of ``ids`` that are here."""
        return {record for (record,) in self._reader.among("SELECT id FROM record WHERE id IN ({})", ids)}

    def newest(
        self,
        *,
        kind: str | None = None,
        task: bytes | None = None,
        author: bytes | None = None,
        since_ms: int | None = None,
        limit: int = 50,
        without: str | None = None,
        visible: bool = False,
    ) -> list[Record]:
        """The newest records first, by their own time; ``task`` is a task's digest, ``since_ms`` the earliest time.

        ``without`` leaves one kind out, ``visible`` what a person hides.
        """
        if task is not None and kind is None and author is None:
            # The index has a task's records by kind: the newest of each kind, and of these the newest.
            kinds = [task_kind for task_kind in TASK_KINDS if task_kind != without]
            several = [
                record
                for task_kind in kinds
                for record in self.newest(kind=task_kind, task=task, since_ms=since_ms, limit=limit, visible=visible)
            ]
            return sorted(several, key=lambda record: (record.time, record.id), reverse=True)[:limit]
        where, values = self._where(kind, task, author, since_ms, without, VISIBLE.format("record") if visible else "")
        query = f"SELECT raw, signature FROM record{where} ORDER BY time DESC, id DESC LIMIT ?"  # noqa: S608
        return [parse_stored(*row) for row in self._reader.rows(query, *values, limit)]

    def count_hidden(
        self, *, kind: str | None, task: bytes | None, author: bytes | None, since_ms: int, without: str | None
    ) -> int:
        """How many records since a time are hidden here."""
        where, values = self._where(kind, task, author, since_ms, without, f"NOT ({VISIBLE.format('record')})")
        return int(self._reader.rows(f"SELECT count(*) FROM record{where}", *values)[0][0])  # noqa: S608

    @staticmethod
    def _where(
        kind: str | None,
        task: bytes | None,
        author: bytes | None,
        since_ms: int | None,
        without: str | None,
        also: str,
    ) -> tuple[str, list[object]]:
        """Conditions on records as text, and their values."""
        # One author has far fewer records than there are of a kind or on a task: a plus sign says “no index here”.
        other = "" if author is None else "+"
        conditions = {
            f"{other}kind = ?": kind,
            f"{other}task = ?": task,
            "author = ?": author,
            "time >= ?": since_ms,
            "+kind != ?": without,
        }
        present = {condition: value for condition, value in conditions.items() if value is not None}
        texts = [*present, *filter(None, [also])]
        return (" WHERE " + " AND ".join(texts) if texts else ""), [*present.values()]

    def of_kinds(self, kinds: Sequence[str]) -> list[Record]:
        """All records of some kinds, in no order."""
        query = f"SELECT raw, signature FROM record WHERE kind IN ({marks(kinds)})"  # noqa: S608
        return [parse_stored(raw, signature) for raw, signature in self._reader.read(query, kinds)]

    def arrived(self, kind: str) -> Iterator[Record]:
        """All records of a kind in the order in which they came here."""
        for (number,) in self._reader.rows("SELECT n FROM record WHERE kind = ? ORDER BY +n", kind):
            for raw, signature in self._reader.rows("SELECT raw, signature FROM record WHERE n = ?", number):
                yield parse_stored(raw, signature)

    def by_author(self, author: bytes, *, after_seq: int = 0) -> Iterator[Record]:
        """The author's records in their own order, those after a sequence number."""
        query = """
        SELECT raw, signature, seq, id FROM record WHERE author = ? AND (seq, id) > (?, ?) ORDER BY seq, id LIMIT ?
        """
        seq, last = after_seq + 1, b""
        while page := self._reader.rows(query, author, seq, last, PAGE):
            yield from (parse_stored(raw, signature) for raw, signature, _, _ in page)
            seq, last = page[-1][2:]

    def count(self, kind: str | None = None, author: bytes | None = None) -> int:
        """How many records there are, of one kind or by one author."""
        if author is not None and kind is None:
            rows = self._reader.rows("SELECT count(*) FROM record WHERE author = ?", author)
        elif kind is not None and author is None:
            rows = self._reader.rows("SELECT count(*) FROM record WHERE kind = ?", kind)
        elif kind is None:
            rows = self._reader.rows("SELECT count(*) FROM record")
        else:
            rows = self._reader.rows("SELECT count(*) FROM record WHERE kind = ? AND author = ?", kind, author)
        return int(rows[0][0])

    def newest_ms(self) -> int:
        """The time of the newest record, Unix milliseconds; 0 without one."""
        return int(self._reader.once("SELECT coalesce(max(time), 0) FROM record")[0][0])

    def raw(self, ids: Collection[bytes]) -> list[tuple[bytes, bytes]]:
        """The bytes and signatures of those of ``ids`` that are here, in the order asked for."""
        pairs = []
        for record_id in ids:
            pairs += self._reader.rows("SELECT raw, signature FROM record WHERE id = ?", record_id)
        return pairs

    def iter_raw(self, task: bytes | None = None) -> Iterator[tuple[bytes, bytes]]:
        """The bytes and signature of all records by time and id, for export.

        With the digest of a task only those about it and those about none, such as identities and verifications.
        """
        time, last = 0, b""
        of_task, values = ("", ()) if task is None else ("AND (task = ? OR task IS NULL)", (task,))
        query = f"""
        SELECT time, id, raw, signature FROM record WHERE (time, id) > (?, ?) {of_task} ORDER BY time, id LIMIT ?
        """  # noqa: S608
        while page := self._reader.rows(query, time, last, *values, PAGE):
            yield from ((raw, signature) for _, _, raw, signature in page)
            time, last = page[-1][:2]

    def iter_keys(self, since_ms: int = 0) -> Iterator[tuple[int, bytes]]:
        """Time and id of all records from ``since_ms`` on, in that order: the order of reconciliation."""
        time, last = since_ms, b""
        query = "SELECT time, id FROM record WHERE (time, id) > (?, ?) ORDER BY time, id LIMIT ?"
        while page := self._reader.rows(query, time, last, PAGE * 20):
            yield from page
            time, last = page[-1]

    def last_row(self) -> int:
        """The number of the record stored last; 0 without one."""
        return int(self._reader.rows("SELECT coalesce(max(n), 0) FROM record")[0][0])

    def keys_after(self, row: int) -> list[tuple[int, bytes]]:
        """Time and id of the records stored after the one with this number."""
        return self._reader.rows("SELECT time, id FROM record WHERE n > ?", row)

    def is_withdrawn(self, record: Record) -> bool:
        """Whether its author took a record back."""
        query = "SELECT 1 FROM withdrawal WHERE target = ? AND author = ? LIMIT 1"
        return bool(self._reader.rows(query, record.id, record.author))

    def withdrawal(self, record: Record) -> Record | None:
        """The first record by which its author withdrew a record; None where it did not."""
        query = """
        SELECT record.raw, record.signature FROM withdrawal JOIN record ON record.n = withdrawal.n
        WHERE withdrawal.target = ? AND withdrawal.author = ? ORDER BY record.time, record.id LIMIT 1
        """
        rows = self._reader.rows(query, record.id, record.author)
        return parse_stored(*rows[0]) if rows else None


class Devices:
    """The logs of single devices, by the keys that sign."""

    def __init__(self, reader: Reader, records: Records) -> None:
        self._reader = reader
        self._records = records

    def all(self) -> list[bytes]:
        """The keys that signed records, in their order."""
        # From key to key by the index: SELECT DISTINCT would read it whole.
        query = """
        WITH RECURSIVE everybody(key) AS (
            SELECT min(author) FROM record
            UNION ALL SELECT (SELECT min(author) FROM record WHERE author > key) FROM everybody WHERE key IS NOT NULL
        ) SELECT key FROM everybody WHERE key IS NOT NULL
        """
        return [row[0] for row in self._reader.rows(query)]

    def beside(self, key: bytes) -> list[bytes]:
        """The keys that signed records next to one in their order: the one before it and the one after it."""
        query = """
        SELECT (SELECT max(author) FROM record WHERE author < ?1), (SELECT min(author) FROM record WHERE author > ?1)
        """
        return [neighbour for neighbour in self._reader.read(query, (key,))[0] if neighbour is not None]

    def head(self, author: bytes) -> Head | None:
        """The author's last record: the largest sequence number, and the smallest id where a fork has several."""
        rows = self._reader.rows("SELECT seq, id FROM record WHERE author = ? ORDER BY seq DESC, id LIMIT 1", author)
        return Head(*rows[0]) if rows else None

    def branches(self, author: bytes, *, since_seq: int) -> list[Head]:
        """The last record of each branch of an author's history since a sequence number, the longest branch first."""
        records = list(self._records.by_author(author, after_seq=since_seq - 1))
        followed = {record.prev for record in records}
        ends = [Head(record.seq, record.id) for record in records if record.id not in followed]
        return sorted(ends, key=lambda end: (-end.seq, end.id))

    def forks(self, author: bytes | None = None) -> list[Fork]:
        """All places where an author signed two records with one sequence number."""
        where, values = ("WHERE author = ?", (author,)) if author is not None else ("", ())
        with self._reader.lock:
            places = self._reader.rows(f"SELECT author, seq FROM fork {where} ORDER BY author, seq", *values)  # noqa: S608
            merged = {forked: merged_up_to(self._reader.connection, forked) for forked, _ in places}
            return [Fork(who, seq, self._ids_at(who, seq), seq <= merged[who]) for who, seq in places]

    def merges(self, author: bytes) -> list[bytes]:
        """The records by which a root key that delegated this device ended forks of it, the newest first."""
        query = """
        SELECT DISTINCT record.id, record.time FROM merge CROSS JOIN record ON record.n = merge.n
        WHERE merge.device = ?1 AND merge.root IN (SELECT root FROM delegation WHERE device = ?1)
        ORDER BY record.time DESC, record.id DESC
        """
        return [record_id for record_id, _ in self._reader.rows(query, author)]

    def forked(self, record: Record) -> bool:
        """Whether an unmerged fork of its author is at or before this record: it counts once others verified it."""
        rows = self._reader.rows("SELECT 1 FROM suspect WHERE author = ? AND seq <= ?", record.author, record.seq)
        return bool(rows)

    def _ids_at(self, author: bytes, seq: int) -> tuple[bytes, ...]:
        rows = self._reader.rows("SELECT id FROM record WHERE author = ? AND seq = ? ORDER BY id", author, seq)
        return tuple(row[0] for row in rows)


# A claim says "until"; nobody can block a source for longer than this by saying more.
CLAIM_MAX_MS = 24 * 3_600_000


class Claims:
    """The claims that were not withdrawn."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader

    def open(self, task: bytes, *, now_ms: int, visible: bool = False) -> list[ClaimRow]:
        """Claims on a task that hold now: not expired, nobody ran that to its end, and who claimed it did not stop.

        ``visible``: without those that a person here hides.
        """
        query = f"""
        SELECT id, task, source_digest, replicate, author, time, until, title FROM claim
        WHERE task = ? AND until > ? AND time > ? AND NOT EXISTS(
            SELECT 1 FROM run WHERE run.task = claim.task AND run.source_digest = claim.source_digest
            AND run.replicate = claim.replicate
            AND ({ENDED} OR run.author = claim.author AND run.time >= claim.time))
        AND {VISIBLE.format("claim") if visible else "true"} ORDER BY time, id
        """  # noqa: S608
        return [ClaimRow(*row) for row in self._reader.rows(query, task, now_ms, now_ms - CLAIM_MAX_MS)]

    def claimed(self, task: bytes, source_digest: bytes) -> list[tuple[bytes, int]]:
        """Who said when that it was trying a source."""
        query = "SELECT author, time FROM claim WHERE task = ? AND source_digest = ?"
        return self._reader.rows(query, task, source_digest)

    def tried_by(self, task: bytes, source_digest: bytes, replicate: int, *, now_ms: int) -> set[bytes]:
        """The authors that claim a source and replicate now, or ran it to its end."""
        query = f"SELECT DISTINCT author FROM run WHERE task = ? AND source_digest = ? AND replicate = ? AND {ENDED}"  # noqa: S608
        return {author for (author,) in self._reader.rows(query, task, source_digest, replicate)} | {
            row.author
            for row in self.open(task, now_ms=now_ms)
            if (row.source_digest, row.replicate) == (source_digest, replicate)
        }
