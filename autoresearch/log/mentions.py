"""Who named which run when, and what came here in which order: what shows that a run was there at a time."""

from __future__ import annotations

from collections.abc import Collection

from autoresearch.log.changes import Changes
from autoresearch.log.models import HeardRow, MentionRow

_NAMED = """
SELECT said.author, said.seq, said.time, said.built FROM (
    SELECT record.author, record.seq, record.time, 0 AS built
    FROM mention CROSS JOIN record ON record.n = mention.n WHERE mention.run = ?1
    UNION ALL SELECT record.author, record.seq, record.time, 1
    FROM lineage CROSS JOIN record ON record.n = lineage.n WHERE lineage.parent = ?1
    UNION ALL SELECT author, seq, time, 0 FROM commitment WHERE run = ?1 AND output IS NOT NULL
) AS said LEFT JOIN suspect ON suspect.author = said.author AND suspect.seq <= said.seq
WHERE suspect.author IS NULL
"""
_NAMED_WIDE = """
SELECT said.run, said.author, said.seq, said.time, said.built FROM (
    SELECT mention.run, record.author, record.seq, record.time, 0 AS built
    FROM mention CROSS JOIN record ON record.n = mention.n WHERE mention.run IN ({0})
    UNION ALL SELECT lineage.parent, record.author, record.seq, record.time, 1
    FROM lineage CROSS JOIN record ON record.n = lineage.n WHERE lineage.parent IN ({0})
    UNION ALL SELECT run, author, seq, time, 0 FROM commitment WHERE run IN ({0}) AND output IS NOT NULL
) AS said LEFT JOIN suspect ON suspect.author = said.author AND suspect.seq <= said.seq
WHERE suspect.author IS NULL
"""
_TIMES = "SELECT seq, time FROM record WHERE author = ? ORDER BY seq, time"
_TIMES_AFTER = "SELECT seq, time FROM record WHERE author = ? AND seq > ? ORDER BY seq, time"
_TIMES_WIDE = "SELECT author, seq, time FROM record WHERE author IN ({}) ORDER BY author, seq, time"
_HEARD = "SELECT n, id, task, author, time, source_digest, checkpoint FROM run"
# As far back as runs are looked through, whoever wrote them.
_HEARD_MOST = 20_000


class Mentions(Changes):
    """The reading half of the log for what records say of each other's time."""

    def mentions(self, run: bytes) -> list[MentionRow]:
        """The records that name a run; not those of a device behind an unmerged fork, whose order means nothing."""
        rows = self._rows(_NAMED, run)
        return [MentionRow(author, seq, time_ms, bool(built)) for author, seq, time_ms, built in rows]

    def runs_that_link(self, record_id: bytes) -> list[bytes]:
        """The runs that link a record and don't build on it, in the order of their ids."""
        query = """
        SELECT run.id FROM mention CROSS JOIN run ON run.n = mention.n WHERE mention.run = ? ORDER BY run.id
        """
        return [found for (found,) in self._rows(query, record_id)]

    def read_mentions_ahead(self, runs: Collection[bytes]) -> None:
        """Read at once, in this snapshot, the records that name these runs."""
        if self._pinned:
            self._read_ahead(_NAMED, _NAMED_WIDE, runs)

    def read_times_ahead(self, devices: Collection[bytes]) -> None:
        """Read at once, in this snapshot, the times of these devices' records."""
        if self._pinned:
            self._read_ahead(_TIMES, _TIMES_WIDE, devices)

    def has_named(self, device: bytes, run: bytes) -> bool:
        """Whether a device's runs name a run already."""
        query = """
        SELECT 1 FROM mention CROSS JOIN record ON record.n = mention.n WHERE mention.run = ?1 AND record.author = ?2
        UNION ALL SELECT 1 FROM lineage CROSS JOIN record ON record.n = lineage.n
        WHERE lineage.parent = ?1 AND record.author = ?2 LIMIT 1
        """
        return bool(self._rows(query, run, device))

    def times_of(self, device: bytes, after: int = 0) -> list[tuple[int, int]]:
        """Number and time of a device's records in its own order, of those after a number."""
        found = self._rows(_TIMES, device) if not after else self._rows(_TIMES_AFTER, device, after)
        return [(seq, time_ms) for seq, time_ms in found]

    def places_after(self, row: int) -> list[tuple[bytes, int]]:
        """By whom records were stored after the one with this number, and the first of each in its own order."""
        return self._rows("SELECT author, min(seq) FROM record WHERE n > ? GROUP BY +author", row)

    def named_after(self, row: int) -> list[bytes]:
        """The runs that records stored after the one with this number name."""
        query = """
        SELECT run FROM mention WHERE n > ?1 UNION SELECT parent FROM lineage WHERE n > ?1
        UNION SELECT run FROM commitment WHERE n > ?1
        """
        return [run for (run,) in self._rows(query, row)]

    def has_forked(self, devices: Collection[bytes]) -> bool:
        """Whether any of these devices forked, merged or not."""
        forked = {device for (device,) in self._rows("SELECT DISTINCT author FROM fork")}
        return not forked.isdisjoint(devices)

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
        found = [*self._rows(query % ("run_program", "source_digest"), row.task, row.source_digest)]
        if row.checkpoint is not None:
            found += self._rows(query % ("run_checkpoint", "checkpoint"), row.task, row.checkpoint)
        return sorted({HeardRow(*like) for like in found})
