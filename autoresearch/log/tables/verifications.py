"""What others measured of runs, with their commitments; what may prove that somebody cheated or copied.

Also which records name a run, and in which order they came here.
"""

from __future__ import annotations

from collections.abc import Collection

from autoresearch.log.connection import RUN_COLUMNS, SUSPECT, Reader
from autoresearch.log.rows import (
    CommitmentRow,
    Copy,
    FraudRow,
    LikeRow,
    MentionRow,
    RunFacts,
    Shared,
    VerificationRow,
)

_VERIFICATIONS = """
SELECT id, run, stage, verdict, value, author, time, round, output, n FROM verification WHERE run = ? ORDER BY time, id
"""
_COMMITMENTS = """
SELECT n, id, run, stage, round, digest, author, seq, time, output FROM commitment WHERE run = ? ORDER BY time, id
"""
_PAIRED = """
SELECT record.id FROM lineage CROSS JOIN record ON record.n = lineage.n WHERE lineage.parent = ?
AND EXISTS(SELECT 1 FROM verification WHERE run = record.id AND stage = 'replicate') ORDER BY lineage.n
"""


class Verifications:
    """Verifications and commitments, by the runs that they are about. Nobody can withdraw them."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader

    def of(self, run: bytes) -> list[VerificationRow]:
        """The measurements of a run by others, the oldest first."""
        return [VerificationRow(*row) for row in self._reader.once(_VERIFICATIONS, run)]

    def commitments(self, run: bytes) -> list[CommitmentRow]:
        """What verifiers of a run committed themselves to, the oldest first; nobody can take it back."""
        return [CommitmentRow(*row) for row in self._reader.once(_COMMITMENTS, run)]

    def newest_commitments(self, limit: int) -> list[tuple[bytes, int, bytes, str, int]]:
        """Device, time, run, stage and round of the commitments that came last, on all runs, the last first."""
        columns = "author, time, run, stage, round"
        query = f"SELECT {columns} FROM commitment WHERE output IS NOT NULL ORDER BY n DESC LIMIT ?"  # noqa: S608
        return self._reader.rows(query, limit)

    def paired_children(self, run: bytes) -> list[bytes]:
        """The runs that name a run as their parent and that somebody replicated, in the order in which they came."""
        return [child for (child,) in self._reader.once(_PAIRED, run)]


_FRAUDS = """
SELECT id, author, seq, time FROM fraud UNION SELECT id, author, seq, time FROM record WHERE n IN (SELECT n FROM stray)
"""
# What was trained, and what is no repetition by its own word.
_CHECKPOINT, _DISCOVERY = "run.checkpoint = ?2", "run.source_digest = ?2 AND run.replicate = 0"
_LIKE = """
SELECT run.time, run.id, run.author, run.source_digest, run.parent IS NOT NULL, run.n FROM {} AS run
WHERE run.task = ?1 AND {}
"""
_COPIES = """
SELECT record.id, copy.voter, record.time, copy.original, min(copy.model) FROM copy
CROSS JOIN record ON record.n = copy.n WHERE copy.marked AND {} GROUP BY copy.n
"""
# First the run that had its checkpoint; of a withdrawn run only what it copied as a discovery.
_ORIGINALS = """
SELECT record.id, copy.original FROM record CROSS JOIN copy ON copy.n = record.n WHERE record.id IN ({})
AND (copy.marked OR copy.model AND EXISTS(SELECT 1 FROM run WHERE run.n = copy.n))
ORDER BY copy.model AND EXISTS(SELECT 1 FROM run WHERE run.n = copy.n), NOT copy.model
"""


class Evidence:
    """Records that prove fraud, and runs that share a program or a checkpoint."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader

    def frauds(self) -> list[FraudRow]:
        """The records that prove fraud: seeds that somebody chose, a parent on another task."""
        return [FraudRow(*row) for row in sorted(self._reader.read(_FRAUDS, ()))]

    def has_chosen_seed(self, record_id: bytes) -> bool:
        """Whether the seed of a run, or the seeds of a verification, differ from those that follow."""
        query = "SELECT 1 FROM fraud WHERE n = (SELECT n FROM record WHERE id = ?)"
        return bool(self._reader.rows(query, record_id))

    def discoveries(self, group: Shared) -> list[LikeRow]:
        """The runs with a program that are no repetitions, in no order."""
        rows = self._reader.read(f"{_LIKE.format('run', _DISCOVERY)} AND run.status = 'ok'", group)
        return [LikeRow(*row) for row in rows]

    def with_checkpoint(self, group: Shared) -> list[LikeRow]:
        """The runs that left a checkpoint, in no order."""
        rows = self._reader.read(f"{_LIKE.format('run', _CHECKPOINT)} AND run.status = 'ok'", group)
        return [LikeRow(*row) for row in rows]

    def withdrawn(self, group: Shared, *, model: bool) -> list[LikeRow]:
        """The same of the runs that their authors withdrew: those with this checkpoint, or with this program."""
        rows = self._reader.read(_LIKE.format("withdrawn_run", _CHECKPOINT if model else _DISCOVERY), group)
        return [LikeRow(*row) for row in rows]

    def copies(self, voters: Collection[bytes] | None = None) -> list[Copy]:
        """The runs of these voters, or of all, that were published as a discovery although others had them."""
        if voters is None:
            return [Copy(*row[:-1]) for row in self._reader.read(_COPIES.format("true"), ())]
        return [Copy(*row[:-1]) for row in self._reader.among(_COPIES.format("copy.voter IN ({})"), voters)]

    def originals(self, runs: Collection[bytes]) -> dict[bytes, bytes]:
        """Those of these runs that are copies, each with the run that had its checkpoint or program before."""
        return dict(self._reader.among(_ORIGINALS, runs))

    def count_like(self, group: Shared) -> int:
        """How many runs have a program or a checkpoint."""
        query = """
        SELECT (SELECT count(*) FROM run WHERE task = ?1 AND source_digest = ?2)
        + (SELECT count(*) FROM run WHERE task = ?1 AND checkpoint = ?2)
        """
        return int(self._reader.read(query, group)[0][0])


_NAMED = """
SELECT said.run, said.author, said.seq, said.time, said.built, max(said.time, coalesce(dated_back.latest, 0)) FROM (
    SELECT mention.run, record.author, record.seq, record.time, 0 AS built, record.n
    FROM mention CROSS JOIN record ON record.n = mention.n WHERE mention.run IN ({0})
    UNION ALL SELECT lineage.parent, record.author, record.seq, record.time, 1, record.n
    FROM lineage CROSS JOIN record ON record.n = lineage.n WHERE lineage.parent IN ({0})
    UNION ALL SELECT run, author, seq, time, 0, n FROM commitment WHERE run IN ({0}) AND output IS NOT NULL
) AS said LEFT JOIN suspect ON suspect.author = said.author AND suspect.seq <= said.seq
LEFT JOIN dated_back ON dated_back.n = said.n
WHERE suspect.author IS NULL
"""
_RUNS = f"SELECT {RUN_COLUMNS} FROM run {{}} {SUSPECT}"  # noqa: S608
# As far back as runs are looked through, whoever wrote them.
_NEWEST_MOST = 20_000


class Mentions:
    """What records say of other devices' runs."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader

    def of(self, runs: Collection[bytes]) -> list[MentionRow]:
        """The records that name runs; not those of a device behind an unmerged fork, whose order means nothing."""
        return [MentionRow(*row) for row in self._reader.among(_NAMED, runs)]

    def runs_that_link(self, record_id: bytes) -> list[bytes]:
        """The runs that link a record and don't build on it, in the order of their ids."""
        query = """
        SELECT run.id FROM mention CROSS JOIN run ON run.n = mention.n WHERE mention.run = ? ORDER BY run.id
        """
        return [run for (run,) in self._reader.rows(query, record_id)]

    def has_named(self, device: bytes, run: bytes) -> bool:
        """Whether a device's runs name a run already."""
        query = """
        SELECT 1 FROM mention CROSS JOIN record ON record.n = mention.n WHERE mention.run = ?1 AND record.author = ?2
        UNION ALL SELECT 1 FROM lineage CROSS JOIN record ON record.n = lineage.n
        WHERE lineage.parent = ?1 AND record.author = ?2 LIMIT 1
        """
        return bool(self._reader.rows(query, run, device))

    def newest_of_others(self, task: bytes, device: bytes, among: Collection[bytes], *, limit: int) -> list[RunFacts]:
        """Runs on a task by some devices that came after this device's last one, those that came last first."""
        own = "SELECT n FROM run WHERE author = ? AND +task = ? ORDER BY seq DESC LIMIT 1"
        last = self._reader.rows(own, device, task)
        query = f"{_RUNS} WHERE run.n > ? AND +run.task = ? AND run.status = 'ok' ORDER BY run.n DESC LIMIT ?"
        rows = self._reader.rows(query.format(""), last[0][0] if last else 0, task, _NEWEST_MOST)
        return [run for row in rows if (run := RunFacts(*row)).author in among][:limit]

    def run(self, run: bytes) -> RunFacts | None:
        """A run that was taken in and not taken back, or None."""
        rows = self._reader.rows(f"{_RUNS.format('')} WHERE run.n = (SELECT n FROM record WHERE id = ?)", run)  # noqa: S608
        return RunFacts(*rows[0]) if rows else None

    def like(self, run: RunFacts) -> list[RunFacts]:
        """The runs with the same program and budget, or the same checkpoint, as they came; the run itself too."""
        query = f"{_RUNS} WHERE run.task = ? AND run.%s = ? AND run.status = 'ok'"
        same = f"{query % 'source_digest'} AND run.budget = ?".format("INDEXED BY run_program")
        rows = [*self._reader.rows(same, run.task, run.source_digest, run.budget)]
        if run.checkpoint is not None:
            same = (query % "checkpoint").format("INDEXED BY run_checkpoint")
            rows += self._reader.rows(same, run.task, run.checkpoint)
        return sorted({RunFacts(*row) for row in rows}, key=lambda row: row.n)
