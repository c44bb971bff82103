"""What changed in a log since it was looked at last, and what in it proves that somebody cheated or copied."""

from __future__ import annotations

from autoresearch.log.entries import Entries
from autoresearch.log.verdicts import CopyRow, Extent, FraudRow

_EXTENT = "SELECT coalesce(max(n), 0), coalesce((SELECT value FROM meta WHERE key = 'drops'), 0) FROM record"
# A parent that is not about the run's task: the lineage is made up. Whether the run was withdrawn does not matter.
_LINEAGE = """
SELECT child.id, child.author, child.seq, child.time FROM {joined}
WHERE above.task IS NOT child.task AND {new}.n > ?
"""
# CROSS JOIN: from the few new records to their like.
_CHILDREN = """lineage CROSS JOIN record AS child ON child.n = lineage.n
CROSS JOIN record AS above ON above.id = lineage.parent"""
_PARENTS = """record AS above CROSS JOIN lineage ON lineage.parent = above.id
CROSS JOIN record AS child ON child.n = lineage.n"""
_COPY = """
SELECT late.id, late.author, late.time, late.task, late.source_digest, early.id, early.author, early.time,
       early.source_digest
FROM run AS {new} CROSS JOIN run AS {other} INDEXED BY {index} ON early.task = late.task AND {same}
WHERE {new}.n > ? AND late.status = 'ok' AND early.status = 'ok'
  AND (early.time, early.id) < (late.time, late.id)
"""
_CHECKPOINT = "early.checkpoint = late.checkpoint AND early.checkpoint IS NOT NULL AND late.checkpoint IS NOT NULL"
# A run with a parent says “I changed this”; a replicate says that it repeats.
_DISCOVERY = """early.source_digest = late.source_digest AND early.replicate = 0
  AND late.replicate = 0 AND late.parent IS NOT NULL"""


class Changes(Entries):
    """What a view that is kept between questions asks first."""

    def extent(self) -> Extent:
        """How far the log has come: the same as before means that it holds the same."""
        return Extent(*self._rows(_EXTENT)[0])

    def kinds_after(self, row: int) -> set[str]:
        """The kinds of the records stored after the one with this number."""
        return {kind for (kind,) in self._rows("SELECT DISTINCT kind FROM record WHERE n > ?", row)}

    def verified_after(self, row: int) -> set[bytes]:
        """The runs of which something was said, or committed to, after the record with this number."""
        query = "SELECT run FROM verification WHERE n > ?1 UNION SELECT run FROM commitment WHERE n > ?1"
        return {run for (run,) in self._rows(query, row)}

    def frauds(self, *, after: int = 0) -> list[FraudRow]:
        """The records that prove fraud: seeds that somebody chose, a parent on another task."""
        found = self._rows("SELECT id, author, seq, time FROM fraud WHERE n > ?", after)
        found += self._rows(_LINEAGE.format(joined=_CHILDREN, new="lineage"), after)
        if after:  # the parent may come after its child
            found += self._rows(_LINEAGE.format(joined=_PARENTS, new="above"), after)
        return [FraudRow(*row) for row in sorted(set(found))]

    def same_checkpoints(self, *, after: int = 0) -> list[CopyRow]:
        """Runs with the checkpoint of an earlier one."""
        return self._copies(_CHECKPOINT, "run_checkpoint", after)

    def same_discoveries(self, *, after: int = 0) -> list[CopyRow]:
        """Runs that say that they change something, with the program of an earlier one."""
        return self._copies(_DISCOVERY, "run_subject", after)

    def _copies(self, same: str, index: str, after: int) -> list[CopyRow]:
        # CROSS JOIN and INDEXED BY: from the few new runs to their like, never through all pairs.
        rows = set(self._rows(_COPY.format(new="late", other="early", index=index, same=same), after))
        if after:  # the earlier one may come later
            rows |= set(self._rows(_COPY.format(new="early", other="late", index=index, same=same), after))
        return [CopyRow(*row) for row in sorted(rows)]

    def newest_ms(self) -> int:
        """The time of the newest record, Unix milliseconds; 0 without one."""
        return int(self._rows("SELECT coalesce(max(time), 0) FROM record")[0][0])

    def claimed(self, task: bytes, source_digest: bytes) -> list[tuple[bytes, int]]:
        """Who said when that it was trying a source."""
        return self._rows("SELECT author, time FROM claim WHERE task = ? AND source_digest = ?", task, source_digest)
