"""Reading the tables of the views: runs, claims, programs, tasks. The views are computed from these rows."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from autoresearch.log.derived_rows import RULES, rules_in
from autoresearch.log.models import (
    ClaimRow,
    CommitmentRow,
    HistoryRow,
    ProgramRow,
    SignedRun,
    StoredRun,
    TaskRow,
    VerificationRow,
)
from autoresearch.log.reading import Reader, in_parts, marks
from autoresearch.log.scoring import TaskRules
from autoresearch.records import Record, Run, Task, parse_stored
from autoresearch.words import STOPPED

# A claim says "until"; nobody can block a source for longer than this by saying more.
CLAIM_MAX_MS = 24 * 3_600_000

# So many records are looked through for a sample of runs.
_SAMPLED_MOST = 5_000

_FORKED = "EXISTS(SELECT 1 FROM suspect WHERE suspect.author = run.author AND suspect.seq <= run.seq)"
# A run that somebody stopped says nothing about its source: others may try it.
ENDED = f"run.status NOT IN ({', '.join(repr(status.value) for status in sorted(STOPPED))})"
_HISTORY = f"""
SELECT id, source_digest, genome, value, replicate, parent, base, status, author, budget, time, {_FORKED}, seq FROM run
"""  # noqa: S608
_PROGRAM = """
SELECT program.task, program.source_digest, program.budget, program.runs, program.mean, program.first,
       program.first_time, program.rank, run.author, run.title, run.parent, run.device
FROM program JOIN record ON record.id = program.first JOIN run ON run.n = record.n
"""
# With this join ``suspect.author`` is there for a run after a fork of its author that no merge ended.
SUSPECT = "LEFT JOIN suspect ON suspect.author = run.author AND suspect.seq <= run.seq"
COUNTS = "run.status = 'ok' AND run.value IS NOT NULL"
_TASK = "SELECT id, digest, name, author, time, direction, noise, budget FROM task"
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


class Tables(Reader):
    """The reading half of the log for the views. Withdrawn records are in none of these rows."""

    def runs(self, task: bytes, *, limit: int = 50, author: bytes | None = None) -> list[StoredRun]:
        """The newest runs on a task, whole."""
        # The plus sign keeps SQLite from walking through everyone's runs on the task.
        condition = "run.task = ?" if author is None else "+run.task = ? AND run.author = ?"
        values = [task] if author is None else [task, author]
        query = f"""
        SELECT record.raw, record.signature, {_FORKED} FROM run JOIN record ON record.n = run.n
        WHERE {condition} ORDER BY run.time DESC, run.id DESC LIMIT ?
        """  # noqa: S608
        rows = self._rows(query, *values, limit)
        return [StoredRun(parse_stored(raw, signature), bool(forked)) for raw, signature, forked in rows]

    def history(self, task: bytes) -> list[HistoryRow]:
        """All runs on a task, compact, the oldest first."""
        return [HistoryRow(*row) for row in self._rows(f"{_HISTORY} WHERE task = ? ORDER BY time, id", task)]

    def history_of(self, runs: Collection[bytes]) -> list[HistoryRow]:
        """The same of some runs, in no order."""
        there = "WHERE n IN (SELECT n FROM record WHERE id IN ({}))"
        parts = ((f"{_HISTORY} {there.format(marks(part))}", part) for part in in_parts(runs))
        return [HistoryRow(*row) for query, part in parts for row in self._read(query, part)]

    def signed_runs(self, task: bytes) -> list[SignedRun]:
        """All runs that were published on a task, withdrawn ones too, the oldest first."""
        query = """
        SELECT id, author, time, seq,
               EXISTS(SELECT 1 FROM withdrawal WHERE target = record.id AND withdrawal.author = record.author)
        FROM record WHERE task = ? AND kind = 'run' ORDER BY time, id
        """
        rows = self._read(query, (task,))
        return [SignedRun(run, author, time, seq, bool(withdrawn)) for run, author, time, seq, withdrawn in rows]

    def runs_of_programs(self, task: bytes, digests: Collection[bytes]) -> list[tuple[bytes, int, int, bytes, bytes]]:
        """Source digest, replicate, time, id and device of all runs of some programs on a task."""
        query = "SELECT source_digest, replicate, time, id, author FROM run WHERE task = ?1 AND source_digest IN ({})"
        found: list[tuple[bytes, int, int, bytes, bytes]] = []
        for part in in_parts(digests):
            found += self._read(query.format(", ".join(["?"] * len(part))), (task, *part))
        return found

    def runs_by_id(self, task: bytes) -> list[tuple[int, bytes, bytes]]:
        """Time, id and device of the runs on a task that ended, of those among the first records by id.

        An id is a hash, so that these are as good as drawn at random.
        """
        query = f"""
        SELECT run.time, run.id, run.author FROM (SELECT n FROM record ORDER BY id LIMIT ?) AS some
        CROSS JOIN run ON run.n = some.n WHERE run.task = ? AND {ENDED}
        """  # noqa: S608
        return self._rows(query, _SAMPLED_MOST, task)

    def has_more_runs(self, task: bytes, than: int) -> bool:
        """Whether a task has more runs than so many."""
        return bool(self._rows("SELECT 1 FROM run WHERE task = ? LIMIT 1 OFFSET ?", task, than))

    def claims(self, task: bytes, *, now_ms: int) -> list[ClaimRow]:
        """Claims on a task that hold now: not expired, nobody ran that to its end, and who claimed it did not stop."""
        query = f"""
        SELECT id, task, source_digest, replicate, author, time, until, title FROM claim
        WHERE task = ? AND until > ? AND time > ? AND NOT EXISTS(
            SELECT 1 FROM run WHERE run.task = claim.task AND run.source_digest = claim.source_digest
            AND run.replicate = claim.replicate
            AND ({ENDED} OR run.author = claim.author AND run.time >= claim.time))
        ORDER BY time, id
        """  # noqa: S608
        return [ClaimRow(*row) for row in self._rows(query, task, now_ms, now_ms - CLAIM_MAX_MS)]

    def is_tried(self, task: bytes, source_digest: bytes, replicate: int, *, but: bytes, now_ms: int) -> bool:
        """Whether an author other than ``but`` claims a source and replicate now, or ran it to its end."""
        query = f"SELECT 1 FROM run WHERE task = ? AND source_digest = ? AND replicate = ? AND author <> ? AND {ENDED}"  # noqa: S608
        return bool(self._rows(query + " LIMIT 1", task, source_digest, replicate, but)) or any(
            (row.source_digest, row.replicate) == (source_digest, replicate) and row.author != but
            for row in self.claims(task, now_ms=now_ms)
        )

    def ranked(self, task: bytes, *, limit: int = 50, skip: int = 0) -> list[ProgramRow]:
        """The best programs of a task first, past ``skip``: those with the full budget whose runs count."""
        query = f"{_PROGRAM} WHERE program.task = ? AND program.rank IS NOT NULL"
        order = " ORDER BY program.rank, program.first_time, program.first LIMIT ? OFFSET ?"
        return [ProgramRow(*row) for row in self._rows(query + order, task, limit, skip)]

    def program(self, task: bytes, source_digest: bytes, budget: float) -> ProgramRow | None:
        """The program of a source with a budget, or None when no run of it counts."""
        query = f"{_PROGRAM} WHERE program.task = ? AND program.source_digest = ? AND program.budget = ?"
        found = self._rows(query, task, source_digest, budget)
        return ProgramRow(*found[0]) if found else None

    def tasks(self) -> list[TaskRow]:
        """All publications of tasks, the oldest first. One task may be published by several."""
        return [TaskRow(*row) for row in self._rows(f"{_TASK} ORDER BY time, id")]

    def task(self, digest: bytes) -> TaskRow | None:
        """The first publication of the task with this digest, or None."""
        found = self._rows(f"{_TASK} WHERE digest = ? ORDER BY time, id LIMIT 1", digest)
        return TaskRow(*found[0]) if found else None

    def definition(self, task: bytes) -> Mapping[str, object] | None:
        """The definition of a task, or None when nobody published it."""
        query = """
        SELECT record.raw, record.signature FROM task JOIN record ON record.n = task.n WHERE task.digest = ?
        ORDER BY task.time, task.id LIMIT 1
        """
        found = self._rows(query, task)
        body = parse_stored(*found[0]).body if found else None
        return body.definition if isinstance(body, Task) else None

    def hardware(self, task: bytes) -> list[tuple[str, bytes, int]]:
        """On which hardware the ranked programs of a task were first run, by whom, and how many."""
        query = """
        SELECT run.device, run.author, count(*) FROM program JOIN record ON record.id = program.first
        JOIN run ON run.n = record.n WHERE program.task = ? AND program.rank IS NOT NULL GROUP BY run.device, run.author
        """
        return self._rows(query, task)

    def rules(self, digest: bytes) -> TaskRules | None:
        """The direction, noise and full budget of a task, also of one whose record was withdrawn; None when unknown."""
        found = self._rows(RULES, digest)
        return rules_in(found[0]) if found else None

    def sign(self, digest: bytes) -> float:
        """The factor that makes smaller values of a task better; 1 for an unknown task."""
        rules = self.rules(digest)
        return rules.sign if rules else 1.0

    def verifications(self, run: bytes) -> list[VerificationRow]:
        """The measurements of a run by others, the oldest first."""
        return [VerificationRow(*row) for row in self._rows(_VERIFICATIONS, run)]

    def is_withdrawn(self, record: Record) -> bool:
        """Whether its author took a record back."""
        query = "SELECT 1 FROM withdrawal WHERE target = ? AND author = ? LIMIT 1"
        return bool(self._rows(query, record.id, record.author))

    def withdrawal(self, record: Record) -> Record | None:
        """The first record by which its author withdrew a record; None where it did not."""
        query = """
        SELECT record.raw, record.signature FROM withdrawal JOIN record ON record.n = withdrawal.n
        WHERE withdrawal.target = ? AND withdrawal.author = ? ORDER BY record.time, record.id LIMIT 1
        """
        found = self._rows(query, record.id, record.author)
        return parse_stored(*found[0]) if found else None

    def commitments(self, run: bytes) -> list[CommitmentRow]:
        """What verifiers of a run committed themselves to, the oldest first; nobody can take it back."""
        return [CommitmentRow(*row) for row in self._rows(_COMMITMENTS, run)]

    def paired_children(self, run: bytes) -> list[bytes]:
        """The runs that name a run as their parent and that somebody replicated, in the order in which they came."""
        return [found for (found,) in self._rows(_PAIRED, run)]

    def read_ahead(self, runs: Collection[bytes]) -> None:
        """Read at once what it takes to judge these runs in this snapshot: what is said of them and of their kin."""
        if not self._pinned:
            return
        self._read_ahead(_PAIRED, _PAIRED_WIDE, runs)
        children = [child for run in runs for child in self.paired_children(run)]
        bodies = [record.body for record in self._find_ahead([*runs, *children])]
        parents = [body.parent for body in bodies if isinstance(body, Run) and body.parent]
        kin = [*runs, *children, *parents]
        self._read_ahead(_VERIFICATIONS, _VERIFICATIONS_WIDE, kin)
        self._read_ahead(_COMMITMENTS, _COMMITMENTS_WIDE, kin)
        self._find_ahead([*parents, *(row.id for run in kin for row in self.verifications(run))])

    def verified(self) -> list[bytes]:
        """The ids of all runs that somebody verified, on whatever task, whether or not they are here."""
        return [row[0] for row in self._rows("SELECT DISTINCT run FROM verification ORDER BY run")]

    def verified_and_parents(self) -> list[bytes]:
        """The ids of all runs that somebody verified, and of those that are named as the parent of one."""
        query = """
        SELECT run FROM verification UNION
        SELECT lineage.parent FROM (SELECT DISTINCT run FROM verification) AS said
        CROSS JOIN record ON record.id = said.run CROSS JOIN lineage ON lineage.n = record.n
        """
        return [row[0] for row in self._rows(query)]

    def endings(self, task: bytes, after: int, last: int) -> list[tuple[str, bytes, int]]:
        """How runs on a task ended, by which device, how many: of the records stored after one, up to the last."""
        # By number: the changes alone are looked at, not all runs on the task.
        query = "SELECT status, author, count(*) FROM run WHERE +task = ? AND n > ? AND n <= ? GROUP BY status, author"
        return list(self._rows(query, task, after, last))

    def programs(self, task: bytes) -> int:
        """How many programs of a task are ranked."""
        query = "SELECT count(*) FROM program WHERE task = ? AND rank IS NOT NULL"
        return int(self._rows(query, task)[0][0])

    def verified_with(self, devices: Collection[bytes]) -> list[bytes]:
        """The ids of all runs that these devices verified, and of theirs that somebody verified."""
        keys = list(devices)
        query = f"""
        SELECT run FROM verification WHERE author IN ({marks(keys)}) UNION
        SELECT verification.run FROM verification CROSS JOIN record ON record.id = verification.run
        WHERE record.author IN ({marks(keys)}) ORDER BY 1
        """  # noqa: S608
        return [row[0] for row in self._rows(query, *keys)]

    def runs_by_author(self, task: bytes | None = None) -> list[tuple[bytes, int, int, int]]:
        """All devices with runs (on one task): the device, how many runs, how many ended well, the time of the last."""
        query = (
            "SELECT author, count(*), sum(status = 'ok'), max(time) FROM run WHERE ?1 IS NULL OR task = ?1 GROUP BY 1"
        )
        return [(author, runs, ok, last) for author, runs, ok, last in self._rows(query, task)]
