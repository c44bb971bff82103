"""What changed in a log since it was looked at last, and what in it proves that somebody cheated or copied."""

from __future__ import annotations

from collections import defaultdict

from autoresearch.log.entries import Entries
from autoresearch.log.models import Alike, FraudRow, LikeRow, Said
from autoresearch.log.tables import COUNTS

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
# The runs whose verifications are others, or say something else: they came, or a commitment of a verifier did, or the
# run itself came after them, or its parent did.
_SAID = """
SELECT run FROM verification WHERE n > ?1
UNION SELECT run FROM commitment WHERE n > ?1 AND EXISTS(
    SELECT 1 FROM verification AS said WHERE said.run = commitment.run AND said.author = commitment.author)
UNION SELECT id FROM record WHERE n > ?1 AND EXISTS(SELECT 1 FROM verification WHERE run = record.id)
UNION SELECT child.id FROM record AS above CROSS JOIN lineage ON lineage.parent = above.id
CROSS JOIN record AS child ON child.n = lineage.n
WHERE above.n > ?1 AND EXISTS(SELECT 1 FROM verification WHERE run = child.id)
"""
# The tasks on which somebody ran a program again of which it had a measured run.
_MEASURED_TASKS = """
SELECT DISTINCT run.task FROM run NOT INDEXED CROSS JOIN entry ON entry.task = run.task
AND entry.source_digest = run.source_digest AND entry.budget = run.budget AND entry.author = run.author
WHERE run.n > ?1 AND entry.measured > 0
"""


class Changes(Entries):
    """What a view that is kept between questions asks first."""

    def kinds_after(self, row: int) -> set[str]:
        """The kinds of the records stored after the one with this number."""
        # The plus sign keeps SQLite from walking through an index of all records.
        return {kind for (kind,) in self._rows("SELECT DISTINCT +kind FROM record WHERE n > ?", row)}

    def said_after(self, row: int) -> Said:
        """The runs of which others' verifications say something else after the record with this number."""
        said = {run for (run,) in self._rows(_SAID, row)}
        above = "SELECT parent FROM lineage WHERE n = (SELECT n FROM record WHERE id = ?)"
        parents = {found for run in said for (found,) in self._rows(above, run)}
        children = {found for run in said for found in self.children(run)}
        of = "SELECT task FROM run WHERE n = (SELECT n FROM record WHERE id = ?)"
        tasks = {task for run in said for (task,) in self._rows(of, run)}
        return Said(said, parents, children, tasks | {task for (task,) in self._rows(_MEASURED_TASKS, row)})

    def programs_after(self, row: int) -> tuple[set[bytes], set[bytes]]:
        """The source digests of the runs that came after the record with this number, and of the claims."""
        ran = self._rows("SELECT DISTINCT source_digest FROM run WHERE n > ?", row)
        claimed = self._rows("SELECT DISTINCT source_digest FROM claim WHERE n > ?", row)
        return {digest for (digest,) in ran}, {digest for (digest,) in claimed}

    def counted_after(self, task: bytes, row: int) -> list[tuple[int, bytes, bytes]]:
        """Time, id and device of the runs of a task with a value that came after the record with this number."""
        query = f"SELECT time, id, author FROM run WHERE n > ? AND +task = ? AND {COUNTS}"  # noqa: S608
        return self._rows(query, row, task)

    def children(self, run: bytes) -> list[bytes]:
        """The runs that name a run as their parent, in the order in which they came."""
        query = "SELECT record.id FROM lineage CROSS JOIN record ON record.n = lineage.n WHERE lineage.parent = ?"
        return [found for (found,) in self._rows(f"{query} ORDER BY lineage.n", run)]

    def frauds(self, *, after: int = 0) -> list[FraudRow]:
        """The records that prove fraud: seeds that somebody chose, a parent on another task."""
        found = [*self._rows(_NEW_FRAUDS if after else _FRAUDS, after)]
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
        named = {"what": what, "index": index} | conditions
        shared = (_NEW_SHARED if after else _ANY_SHARED).format(**named)
        for key, *row in self._rows(_ALIKE.format(shared=shared, **named), after):
            like = LikeRow(*row)
            found[like.task, key].append(like)
        return {key: group for key, group in found.items() if len(group) > 1}

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
