"""Who named which run when, and what came here in which order: what shows that a run was there at a time."""

from __future__ import annotations

from collections.abc import Collection

from autoresearch.log.changes import Changes
from autoresearch.log.verdicts import HeardRow, SightingRow

_NAMED = """
SELECT said.author, said.seq, said.time, said.built FROM (
    SELECT record.author, record.seq, record.time, 0 AS built
    FROM sighting CROSS JOIN record ON record.n = sighting.n WHERE sighting.run = ?1
    UNION ALL SELECT record.author, record.seq, record.time, 1
    FROM lineage CROSS JOIN record ON record.n = lineage.n WHERE lineage.parent = ?1
    UNION ALL SELECT author, seq, time, 0 FROM commitment WHERE run = ?1 AND output IS NOT NULL
) AS said LEFT JOIN suspect ON suspect.author = said.author AND suspect.seq <= said.seq
WHERE suspect.author IS NULL
"""
_HEARD = "SELECT n, id, task, author, time, source_digest, checkpoint FROM run"
# As far back as runs are looked through, whoever wrote them.
_HEARD_MOST = 20_000


class Sightings(Changes):
    """The reading half of the log for what records say of each other's time."""

    def sightings(self, run: bytes) -> list[SightingRow]:
        """The records that name a run; not those of a device behind an unmerged fork, whose order means nothing."""
        rows = self._rows(_NAMED, run)
        return [SightingRow(author, seq, time_ms, bool(built)) for author, seq, time_ms, built in rows]

    def has_named(self, device: bytes, run: bytes) -> bool:
        """Whether a device's runs name a run already."""
        query = """
        SELECT 1 FROM sighting CROSS JOIN record ON record.n = sighting.n WHERE sighting.run = ?1 AND record.author = ?2
        UNION ALL SELECT 1 FROM lineage CROSS JOIN record ON record.n = lineage.n
        WHERE lineage.parent = ?1 AND record.author = ?2 LIMIT 1
        """
        return bool(self._rows(query, run, device))

    def times_of(self, device: bytes, after: int = 0) -> list[tuple[int, int]]:
        """Number and time of a device's records in its own order, of those after a number."""
        return self._rows("SELECT seq, time FROM record WHERE author = ? AND seq > ? ORDER BY seq, time", device, after)

    def places_after(self, row: int) -> list[tuple[bytes, int]]:
        """By whom records were stored after the one with this number, and the first of each in its own order."""
        return self._rows("SELECT author, min(seq) FROM record WHERE n > ? GROUP BY author", row)

    def heard(self, task: bytes, device: bytes, among: Collection[bytes], *, limit: int) -> list[HeardRow]:
        """Runs on a task by some devices that came here after this device's last one, those that came last first."""
        own = "SELECT n FROM run WHERE author = ? AND +task = ? ORDER BY seq DESC LIMIT 1"
        found = self._rows(own, device, task)
        query = f"{_HEARD} WHERE n > ? AND +task = ? AND status = 'ok' ORDER BY n DESC LIMIT ?"
        rows = self._rows(query, found[0][0] if found else 0, task, _HEARD_MOST)
        return [HeardRow(*row) for row in rows if row[3] in among][:limit]

    def heard_run(self, run: bytes) -> HeardRow | None:
        """A run that was taken in and not taken back, or None."""
        found = self._rows(f"{_HEARD} WHERE n = (SELECT n FROM record WHERE id = ?)", run)  # noqa: S608
        return HeardRow(*found[0]) if found else None

    def heard_like(self, row: HeardRow) -> list[HeardRow]:
        """The runs with the same program or the same checkpoint, as they came here; the run itself is among them."""
        query = f"{_HEARD} INDEXED BY %s WHERE task = ? AND %s = ? AND status = 'ok'"
        found = self._rows(query % ("run_subject", "source_digest"), row.task, row.source_digest)
        if row.checkpoint is not None:
            found += self._rows(query % ("run_checkpoint", "checkpoint"), row.task, row.checkpoint)
        return sorted({HeardRow(*like) for like in found})
