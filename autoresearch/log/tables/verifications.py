"""What others measured of runs, with their commitments; what may prove that somebody cheated or copied.

Also which records name a run, and in which order they came here.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection

from autoresearch.log.reader import Reader
from autoresearch.log.rows import Alike, CommitmentRow, FraudRow, HeardRow, LikeRow, MentionRow, VerificationRow
from autoresearch.log.tables.records import Records
from autoresearch.record.kinds import Run

_VERIFICATION = "id, run, stage, verdict, value, author, time, round, output, n FROM verification"
_VERIFICATIONS = f"SELECT {_VERIFICATION} WHERE run = ? ORDER BY time, id"
_VERIFICATIONS_WIDE = f"SELECT run, {_VERIFICATION} WHERE run IN ({{}}) ORDER BY time, id"
_COMMITMENT = "n, id, run, stage, round, digest, author, seq, time, output FROM commitment"
_COMMITMENTS = f"SELECT {_COMMITMENT} WHERE run = ? ORDER BY time, id"
_COMMITMENTS_WIDE = f"SELECT run, {_COMMITMENT} WHERE run IN ({{}}) ORDER BY time, id"
_PAIRED = """
SELECT record.id FROM lineage CROSS JOIN record ON record.n = lineage.n WHERE lineage.parent = ?
AND EXISTS(SELECT 1 FROM verification WHERE run = record.id AND stage = 'replicate') ORDER BY lineage.n
"""
_PAIRED_WIDE = _PAIRED.replace("SELECT record.id", "SELECT lineage.parent, record.id", 1).replace("= ?", "IN ({})", 1)


class Verifications:
    """Verifications and commitments, by the runs that they are about. Nobody can withdraw them."""

    def __init__(self, reader: Reader, records: Records) -> None:
        self._reader = reader
        self._records = records

    def of(self, run: bytes) -> list[VerificationRow]:
        """The measurements of a run by others, the oldest first."""
        return [VerificationRow(*row) for row in self._reader.rows(_VERIFICATIONS, run)]

    def commitments(self, run: bytes) -> list[CommitmentRow]:
        """What verifiers of a run committed themselves to, the oldest first; nobody can take it back."""
        return [CommitmentRow(*row) for row in self._reader.rows(_COMMITMENTS, run)]

    def paired_children(self, run: bytes) -> list[bytes]:
        """The runs that name a run as their parent and that somebody replicated, in the order in which they came."""
        return [found for (found,) in self._reader.rows(_PAIRED, run)]

    def read_rows_ahead(self, runs: Collection[bytes]) -> None:
        """Read at once, in this snapshot, the measurements of these runs."""
        self._reader.read_ahead(_VERIFICATIONS, _VERIFICATIONS_WIDE, runs)

    def read_ahead(self, runs: Collection[bytes]) -> None:
        """Read at once what it takes to judge these runs in this snapshot: what is said of them and of their kin."""
        if not self._reader.pinned:
            return
        self._reader.read_ahead(_PAIRED, _PAIRED_WIDE, runs)
        children = [child for run in runs for child in self.paired_children(run)]
        bodies = [record.body for record in self._records.find_ahead([*runs, *children])]
        parents = [body.parent for body in bodies if isinstance(body, Run) and body.parent]
        kin = [*runs, *children, *parents]
        self._reader.read_ahead(_VERIFICATIONS, _VERIFICATIONS_WIDE, kin)
        self._reader.read_ahead(_COMMITMENTS, _COMMITMENTS_WIDE, kin)
        self._records.find_ahead([*parents, *(row.id for run in kin for row in self.of(run))])

    def verified_and_parents(self) -> list[bytes]:
        """The ids of all runs that somebody verified, and of those that are named as the parent of one."""
        query = """
        SELECT run FROM verification UNION
        SELECT lineage.parent FROM (SELECT DISTINCT run FROM verification) AS said
        CROSS JOIN record ON record.id = said.run CROSS JOIN lineage ON lineage.n = record.n
        """
        return [row[0] for row in self._reader.rows(query)]


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
        rows = [*self._reader.rows(_NEW_FRAUDS if after else _FRAUDS, after)]
        if after:  # the parent may come after its child
            rows += self._reader.rows(_LINEAGE.format(joined=_PARENTS, new="above"), after)
        return [FraudRow(*row) for row in sorted(set(rows))]

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
        rows = self._reader.rows(_LIKE.format(what, condition.format("run")), row.task, shared)
        return [LikeRow(*one) for one in rows]

    def with_checkpoint(self, task: bytes, checkpoint: bytes) -> list[LikeRow]:
        """The runs on a task that left a checkpoint, in no order."""
        query = _LIKE.format("checkpoint", _CHECKPOINT.format("run"))
        return [LikeRow(*row) for row in self._reader.read(query, (task, checkpoint))]

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
        rows = self._reader.rows(f"{_HEARD} WHERE n = (SELECT n FROM record WHERE id = ?)", run)  # noqa: S608
        return HeardRow(*rows[0]) if rows else None

    def heard_like(self, row: HeardRow) -> list[HeardRow]:
        """The runs with the same program and budget, or the same checkpoint, as they came here; the run itself too."""
        query = f"{_HEARD} INDEXED BY %s WHERE task = ? AND %s = ? AND status = 'ok'"
        same = f"{query % ('run_program', 'source_digest')} AND budget = ?"
        rows = [*self._reader.rows(same, row.task, row.source_digest, row.budget)]
        if row.checkpoint is not None:
            rows += self._reader.rows(query % ("run_checkpoint", "checkpoint"), row.task, row.checkpoint)
        return sorted({HeardRow(*like) for like in rows})
