"""What changed in a log since it was looked at last, and what in it proves that somebody cheated or copied."""

from __future__ import annotations

from collections import defaultdict

from autoresearch.log.entries import Entries
from autoresearch.log.models import Alike, FraudRow, LikeRow

# A parent that is not about the run's task: the lineage is made up. Whether the run was withdrawn does not matter.
_LINEAGE = """
SELECT child.id, child.author, child.seq, child.time FROM {joined}
WHERE above.task IS NOT child.task AND {new}.n > ?1
"""
# CROSS JOIN: from the few new records to their like.
_CHILDREN = """lineage CROSS JOIN record AS child ON child.n = lineage.n
CROSS JOIN record AS above ON above.id = lineage.parent"""
_PARENTS = """record AS above CROSS JOIN lineage ON lineage.parent = above.id
CROSS JOIN record AS child ON child.n = lineage.n"""
_CHOSEN = "SELECT id, author, seq, time FROM fraud WHERE n > ?1"
_FRAUDS = " UNION ".join((_CHOSEN, _LINEAGE.format(joined=_CHILDREN, new="lineage")))
# Whole groups, not pairs: whoever publishes one thing a thousand times makes a thousand rows, not half a million. CROSS
# JOIN and INDEXED BY: from the few new runs to their like, never through all runs.
_ALIKE = """
SELECT run.{what}, run.time, run.id, run.author, run.task, run.source_digest, run.parent IS NOT NULL
FROM (
    SELECT DISTINCT new.task, new.{what} FROM run AS new WHERE new.n > ?1 AND {new} AND EXISTS(
        SELECT 1 FROM run AS other INDEXED BY {index}
        WHERE other.task = new.task AND other.{what} = new.{what} AND other.n <> new.n AND {other})
) AS shared CROSS JOIN run INDEXED BY {index} ON run.task = shared.task AND run.{what} = shared.{what} AND {run}
ORDER BY run.task, run.{what}, run.time, run.id
"""
# What was trained, and what is no repetition by its own word.
_CHECKPOINT = "{0}.status = 'ok' AND {0}.checkpoint IS NOT NULL"
_DISCOVERY = "{0}.status = 'ok' AND {0}.replicate = 0"
_LIKE = "SELECT time, id, author, task, source_digest, parent IS NOT NULL FROM run WHERE task = ? AND {} = ? AND {}"
# Runs that their authors took back, each with the commitments to measure it.
_TAKEN_BACK = """
SELECT DISTINCT record.id, commitment.author, commitment.time, commitment.seq FROM withdrawal
CROSS JOIN record ON record.id = withdrawal.target AND record.author = withdrawal.author AND record.kind = 'run'
CROSS JOIN commitment ON commitment.run = record.id AND commitment.output IS NOT NULL
"""


class Changes(Entries):
    """What a view that is kept between questions asks first."""

    def kinds_after(self, row: int) -> set[str]:
        """The kinds of the records stored after the one with this number."""
        # The plus sign keeps SQLite from walking through an index of all records.
        return {kind for (kind,) in self._rows("SELECT DISTINCT +kind FROM record WHERE n > ?", row)}

    def touched_after(self, row: int) -> set[bytes]:
        """The runs of which something was said, or committed to, after the record with this number, and their kin.

        What is measured of a run in pairs says something of its parent, and what its parent's number is of the run. So
        a run that came after what was said of it touches its parent too.
        """
        query = "SELECT run FROM verification WHERE n > ?1 UNION SELECT run FROM commitment WHERE n > ?1"
        said = {run for (run,) in self._rows(query, row)}
        above = "SELECT lineage.parent FROM lineage CROSS JOIN record ON record.n = lineage.n WHERE record.id = ?"
        kin = {found for run in said for (found,) in self._rows(above, run)}
        kin.update(found for run in said for found in self.children(run))
        kin.update(found for (found,) in self._rows("SELECT parent FROM lineage WHERE n > ?", row))
        return said | kin

    def children(self, run: bytes) -> list[bytes]:
        """The runs that name a run as their parent, in the order in which they came."""
        query = "SELECT record.id FROM lineage CROSS JOIN record ON record.n = lineage.n WHERE lineage.parent = ?"
        return [found for (found,) in self._rows(f"{query} ORDER BY lineage.n", run)]

    def frauds(self, *, after: int = 0) -> list[FraudRow]:
        """The records that prove fraud: seeds that somebody chose, a parent on another task."""
        found = [*self._rows(_FRAUDS, after)]
        if after:  # the parent may come after its child
            found += self._rows(_LINEAGE.format(joined=_PARENTS, new="above"), after)
        return [FraudRow(*row) for row in sorted(set(found))]

    def same_checkpoints(self, *, after: int = 0) -> Alike:
        """By task and checkpoint the runs that share one, the first first, where one was stored after a number."""
        return self._alike("checkpoint", "run_checkpoint", _CHECKPOINT, after)

    def same_discoveries(self, *, after: int = 0) -> Alike:
        """By task and program the same of runs that are no replicates."""
        return self._alike("source_digest", "run_program", _DISCOVERY, after)

    def _alike(self, what: str, index: str, condition: str, after: int) -> Alike:
        conditions = {name: condition.format(name) for name in ("new", "other", "run")}
        found: Alike = defaultdict(list)
        for key, *row in self._rows(_ALIKE.format(what=what, index=index, **conditions), after):
            like = LikeRow(*row)
            found[like.task, key].append(like)
        return dict(found)

    def taken_back(self) -> list[tuple[bytes, bytes, int, int]]:
        """The runs that were withdrawn with each commitment to measure them: run; its author, time and number."""
        return self._rows(_TAKEN_BACK)

    def like(self, row: LikeRow, *, checkpoint: bytes | None = None) -> list[LikeRow]:
        """The discoveries of a run's program on its task, or the runs there with a checkpoint where one is given."""
        what, shared, condition = "checkpoint", checkpoint, _CHECKPOINT
        if checkpoint is None:
            what, shared, condition = "source_digest", row.source_digest, _DISCOVERY
        found = self._rows(_LIKE.format(what, condition.format("run")), row.task, shared)
        return [LikeRow(*one) for one in found]

    def newest_ms(self) -> int:
        """The time of the newest record, Unix milliseconds; 0 without one."""
        return int(self._rows("SELECT coalesce(max(time), 0) FROM record")[0][0])

    def claimed(self, task: bytes, source_digest: bytes) -> list[tuple[bytes, int]]:
        """Who said when that it was trying a source."""
        return self._rows("SELECT author, time FROM claim WHERE task = ? AND source_digest = ?", task, source_digest)
