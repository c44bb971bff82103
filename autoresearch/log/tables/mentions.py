"""Which records name a run, and what came here in which order: what shows that a run was there at a time."""

from __future__ import annotations

from collections.abc import Collection

from autoresearch.log.models import HeardRow, MentionRow
from autoresearch.log.reader import Reader

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
_HEARD = "SELECT n, id, task, author, time, source_digest, checkpoint, budget FROM run"
# As far back as runs are looked through, whoever wrote them.
_HEARD_MOST = 20_000


class Mentions:
    """What records say of other devices' runs."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader

    def of(self, run: bytes) -> list[MentionRow]:
        """The records that name a run; not those of a device behind an unmerged fork, whose order means nothing."""
        rows = self._reader.rows(_NAMED, run)
        return [MentionRow(author, seq, time_ms, bool(built)) for author, seq, time_ms, built in rows]

    def runs_that_link(self, record_id: bytes) -> list[bytes]:
        """The runs that link a record and don't build on it, in the order of their ids."""
        query = """
        SELECT run.id FROM mention CROSS JOIN run ON run.n = mention.n WHERE mention.run = ? ORDER BY run.id
        """
        return [found for (found,) in self._reader.rows(query, record_id)]

    def read_ahead(self, runs: Collection[bytes]) -> None:
        """Read at once, in this snapshot, the records that name these runs."""
        self._reader.read_ahead(_NAMED, _NAMED_WIDE, runs)

    def has_named(self, device: bytes, run: bytes) -> bool:
        """Whether a device's runs name a run already."""
        query = """
        SELECT 1 FROM mention CROSS JOIN record ON record.n = mention.n WHERE mention.run = ?1 AND record.author = ?2
        UNION ALL SELECT 1 FROM lineage CROSS JOIN record ON record.n = lineage.n
        WHERE lineage.parent = ?1 AND record.author = ?2 LIMIT 1
        """
        return bool(self._reader.rows(query, run, device))

    def heard(self, task: bytes, device: bytes, among: Collection[bytes], *, limit: int) -> list[HeardRow]:
        """Runs on a task by some devices that came here after this device's last one, those that came last first."""
        own = "SELECT n FROM run WHERE author = ? AND +task = ? ORDER BY seq DESC LIMIT 1"
        found = self._reader.rows(own, device, task)
        query = f"{_HEARD} WHERE n > ? AND +task = ? AND status = 'ok' ORDER BY n DESC LIMIT ?"
        rows = self._reader.rows(query, found[0][0] if found else 0, task, _HEARD_MOST)
        return [HeardRow(*row) for row in rows if row[3] in among][:limit]

    def heard_run(self, run: bytes) -> HeardRow | None:
        """A run that was taken in and not taken back, or None."""
        found = self._reader.rows(f"{_HEARD} WHERE n = (SELECT n FROM record WHERE id = ?)", run)  # noqa: S608
        return HeardRow(*found[0]) if found else None

    def heard_like(self, row: HeardRow) -> list[HeardRow]:
        """The runs with the same program and budget, or the same checkpoint, as they came here; the run itself too."""
        query = f"{_HEARD} INDEXED BY %s WHERE task = ? AND %s = ? AND status = 'ok'"
        same = f"{query % ('run_program', 'source_digest')} AND budget = ?"
        found = [*self._reader.rows(same, row.task, row.source_digest, row.budget)]
        if row.checkpoint is not None:
            found += self._reader.rows(query % ("run_checkpoint", "checkpoint"), row.task, row.checkpoint)
        return sorted({HeardRow(*like) for like in found})
