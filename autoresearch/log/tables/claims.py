"""Claims: which devices say that they try which program now."""

from __future__ import annotations

from autoresearch.log.models import ClaimRow
from autoresearch.log.reader import Reader
from autoresearch.log.tables.conditions import ENDED

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

    def is_tried(self, task: bytes, source_digest: bytes, replicate: int, *, but: bytes, now_ms: int) -> bool:
        """Whether an author other than ``but`` claims a source and replicate now, or ran it to its end."""
        query = f"SELECT 1 FROM run WHERE task = ? AND source_digest = ? AND replicate = ? AND author <> ? AND {ENDED}"  # noqa: S608
        return bool(self._reader.rows(query + " LIMIT 1", task, source_digest, replicate, but)) or any(
            (row.source_digest, row.replicate) == (source_digest, replicate) and row.author != but
            for row in self.open(task, now_ms=now_ms)
        )
