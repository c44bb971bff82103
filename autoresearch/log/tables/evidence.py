"""What in a log proves that somebody cheated, or may show that somebody copied."""

from __future__ import annotations

from collections import defaultdict

from autoresearch.log.models import Alike, FraudRow, LikeRow
from autoresearch.log.reader import Reader

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
_NEW_FRAUDS = " UNION ".join((_CHOSEN, _LINEAGE.format(joined=_CHILDREN, new="lineage")))
_FRAUDS = " UNION ".join((_CHOSEN, "SELECT id, author, seq, time FROM record WHERE n IN (SELECT n FROM stray)"))
# Whole groups, not pairs: whoever publishes one thing a thousand times makes a thousand rows, not half a million. CROSS
# JOIN and INDEXED BY: from the few new runs to their like, never through all runs.
_ALIKE = """
SELECT run.{what}, run.time, run.id, run.author, run.task, run.source_digest, run.parent IS NOT NULL
FROM ({shared}) AS shared
CROSS JOIN run INDEXED BY {index} ON run.task = shared.task AND run.{what} = shared.{what} AND {run}
ORDER BY run.task, run.{what}, run.time, run.id
"""
# What some run shares: of the whole log, by the index alone; of what came, by number and not through the index.
_ANY_SHARED = """
SELECT task, {what} FROM run INDEXED BY {index} WHERE n > ?1 AND {what} IS NOT NULL
GROUP BY task, {what} HAVING count(*) > 1
"""
_NEW_SHARED = """
SELECT DISTINCT new.task, new.{what} FROM run AS new NOT INDEXED WHERE new.n > ?1 AND {new} AND EXISTS(
    SELECT 1 FROM run AS other INDEXED BY {index}
    WHERE other.task = new.task AND other.{what} = new.{what} AND other.n <> new.n AND {other})
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


class Evidence:
    """Records that prove fraud, and runs that share a program or a checkpoint."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader

    def frauds(self, *, after: int = 0) -> list[FraudRow]:
        """The records that prove fraud: seeds that somebody chose, a parent on another task."""
        found = [*self._reader.rows(_NEW_FRAUDS if after else _FRAUDS, after)]
        if after:  # the parent may come after its child
            found += self._reader.rows(_LINEAGE.format(joined=_PARENTS, new="above"), after)
        return [FraudRow(*row) for row in sorted(set(found))]

    def has_chosen_seed(self, record_id: bytes) -> bool:
        """Whether the seed of a run, or the seeds of a verification, differ from those that follow."""
        query = "SELECT 1 FROM fraud WHERE n = (SELECT n FROM record WHERE id = ?)"
        return bool(self._reader.rows(query, record_id))

    def same_checkpoints(self, *, after: int = 0) -> Alike:
        """By task and checkpoint the runs that share one, the first first, where one was stored after a number."""
        return self._alike("checkpoint", "run_checkpoint", _CHECKPOINT, after)

    def same_discoveries(self, *, after: int = 0) -> Alike:
        """By task and program the same of runs that are no replicates."""
        return self._alike("source_digest", "run_program", _DISCOVERY, after)

    def like(self, row: LikeRow, *, checkpoint: bytes | None = None) -> list[LikeRow]:
        """The discoveries of a run's program on its task, or the runs there with a checkpoint where one is given."""
        what, shared, condition = "checkpoint", checkpoint, _CHECKPOINT
        if checkpoint is None:
            what, shared, condition = "source_digest", row.source_digest, _DISCOVERY
        found = self._reader.rows(_LIKE.format(what, condition.format("run")), row.task, shared)
        return [LikeRow(*one) for one in found]

    def taken_back(self) -> list[tuple[bytes, bytes, int, int]]:
        """The runs that were withdrawn with each commitment to measure them: run; its author, time and number."""
        return self._reader.rows(_TAKEN_BACK)

    def _alike(self, what: str, index: str, condition: str, after: int) -> Alike:
        conditions = {name: condition.format(name) for name in ("new", "other", "run")}
        found: Alike = defaultdict(list)
        named = {"what": what, "index": index} | conditions
        shared = (_NEW_SHARED if after else _ANY_SHARED).format(**named)
        for key, *row in self._reader.rows(_ALIKE.format(shared=shared, **named), after):
            like = LikeRow(*row)
            found[like.task, key].append(like)
        return {key: group for key, group in found.items() if len(group) > 1}
