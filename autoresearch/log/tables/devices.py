"""What the log says of one device: its last record, forks and merges, its claims."""

from __future__ import annotations

from autoresearch.log.reader import ENDED, Reader
from autoresearch.log.rows import ClaimRow, Fork, Head
from autoresearch.log.settling import merged_up_to
from autoresearch.log.tables.records import Records
from autoresearch.record.record import Record


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
        return [found for found in self._reader.read(query, (key,))[0] if found is not None]

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

    def open(self, task: bytes, *, now_ms: int) -> list[ClaimRow]:
        """Claims on a task that hold now: not expired, nobody ran that to its end, and who claimed it did not stop."""
        query = f"""
        SELECT id, task, source_digest, replicate, author, time, until, title FROM claim
        WHERE task = ? AND until > ? AND time > ? AND NOT EXISTS(
            SELECT 1 FROM run WHERE run.task = claim.task AND run.source_digest = claim.source_digest
            AND run.replicate = claim.replicate
            AND ({ENDED} OR run.author = claim.author AND run.time >= claim.time))
        ORDER BY time, id
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
