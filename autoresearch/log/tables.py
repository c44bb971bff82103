"""Reading the tables of the views: runs, claims, subjects, tasks. The views are computed from these rows."""

from __future__ import annotations

from collections.abc import Collection

from autoresearch.log.reading import Reader
from autoresearch.log.scoring import TaskRules
from autoresearch.log.settle import rules_of
from autoresearch.log.verdicts import (
    ClaimRow,
    CommitmentRow,
    HistoryRow,
    StoredRun,
    SubjectRow,
    TaskRow,
    VerificationRow,
)
from autoresearch.records import Record, parse_stored
from autoresearch.words import STOPPED

# A claim says "until"; nobody can block a source for longer than this by saying more.
CLAIM_MAX_MS = 24 * 3_600_000

_FORKED = "EXISTS(SELECT 1 FROM suspect WHERE suspect.author = run.author AND suspect.seq <= run.seq)"
# A run that somebody stopped says nothing about its source: others may try it.
_ENDED = f"run.status NOT IN ({', '.join(repr(status.value) for status in sorted(STOPPED))})"
_SUBJECT = """
SELECT subject.task, subject.source_digest, subject.budget, subject.runs, subject.mean, subject.first,
       subject.first_time, subject.rank, run.author, run.title, run.parent, run.device
FROM subject JOIN record ON record.id = subject.first JOIN run ON run.n = record.n
"""
NOT_SUSPECT = "LEFT JOIN suspect ON suspect.author = run.author AND suspect.seq <= run.seq"
COUNTS = "run.status = 'ok' AND run.value IS NOT NULL AND suspect.author IS NULL"
_TASK = "SELECT id, digest, name, author, time, direction, noise, budget FROM task"


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
        query = f"""
        SELECT id, source_digest, genome, value, replicate, parent, base, status, author, budget, time, {_FORKED}
        FROM run WHERE task = ? ORDER BY time, id
        """  # noqa: S608
        return [HistoryRow(*row) for row in self._rows(query, task)]

    def claims(self, task: bytes, *, now_ms: int) -> list[ClaimRow]:
        """Claims on a task that hold now: not expired, nobody ran that to its end, and who claimed it did not stop."""
        query = f"""
        SELECT id, task, source_digest, replicate, author, time, until, title FROM claim
        WHERE task = ? AND until > ? AND time > ? AND NOT EXISTS(
            SELECT 1 FROM run WHERE run.task = claim.task AND run.source_digest = claim.source_digest
            AND run.replicate = claim.replicate
            AND ({_ENDED} OR run.author = claim.author AND run.time >= claim.time))
        ORDER BY time, id
        """  # noqa: S608
        return [ClaimRow(*row) for row in self._rows(query, task, now_ms, now_ms - CLAIM_MAX_MS)]

    def is_tried(self, task: bytes, source_digest: bytes, replicate: int, *, but: bytes, now_ms: int) -> bool:
        """Whether an author other than ``but`` claims a source and replicate now, or ran it to its end."""
        query = f"SELECT 1 FROM run WHERE task = ? AND source_digest = ? AND replicate = ? AND author <> ? AND {_ENDED}"  # noqa: S608
        return bool(self._rows(query + " LIMIT 1", task, source_digest, replicate, but)) or any(
            (row.source_digest, row.replicate) == (source_digest, replicate) and row.author != but
            for row in self.claims(task, now_ms=now_ms)
        )

    def ranked(self, task: bytes, *, limit: int = 50, skip: int = 0) -> list[SubjectRow]:
        """The best subjects of a task first, past ``skip``: those with the full budget whose runs count."""
        query = f"{_SUBJECT} WHERE subject.task = ? AND subject.rank IS NOT NULL"
        order = " ORDER BY subject.rank, subject.first_time, subject.first LIMIT ? OFFSET ?"
        return [SubjectRow(*row) for row in self._rows(query + order, task, limit, skip)]

    def subject(self, task: bytes, source_digest: bytes, budget: float) -> SubjectRow | None:
        """The subject of a source with a budget, or None when no run of it counts."""
        query = f"{_SUBJECT} WHERE subject.task = ? AND subject.source_digest = ? AND subject.budget = ?"
        found = self._rows(query, task, source_digest, budget)
        return SubjectRow(*found[0]) if found else None

    def tasks(self) -> list[TaskRow]:
        """All publications of tasks, the oldest first. One task may be published by several."""
        return [TaskRow(*row) for row in self._rows(f"{_TASK} ORDER BY time, id")]

    def task(self, digest: bytes) -> TaskRow | None:
        """The first publication of the task with this digest, or None."""
        found = self._rows(f"{_TASK} WHERE digest = ? ORDER BY time, id LIMIT 1", digest)
        return TaskRow(*found[0]) if found else None

    def hardware(self, task: bytes) -> list[tuple[str, bytes, int]]:
        """On which hardware the ranked subjects of a task were first run, by whom, and how many."""
        query = """
        SELECT run.device, run.author, count(*) FROM subject JOIN record ON record.id = subject.first
        JOIN run ON run.n = record.n WHERE subject.task = ? AND subject.rank IS NOT NULL GROUP BY run.device, run.author
        """
        return self._rows(query, task)

    def rules(self, digest: bytes) -> TaskRules | None:
        """The direction, noise and full budget of a task, also of one whose record was withdrawn; None when unknown."""
        with self._lock:
            return rules_of(self._connection, digest)

    def verifications(self, run: bytes) -> list[VerificationRow]:
        """The measurements of a run by others, the oldest first."""
        query = """
        SELECT id, run, stage, verdict, value, author, time, round, output, n FROM verification
        WHERE run = ? ORDER BY time, id
        """
        return [VerificationRow(*row) for row in self._rows(query, run)]

    def is_withdrawn(self, record: Record) -> bool:
        """Whether its author took a record back."""
        query = "SELECT 1 FROM withdrawal WHERE target = ? AND author = ? LIMIT 1"
        return bool(self._rows(query, record.id, record.author))

    def commitments(self, run: bytes) -> list[CommitmentRow]:
        """What verifiers of a run committed themselves to, the oldest first; nobody can take it back."""
        query = """
        SELECT n, id, run, stage, round, digest, author, seq, time, output FROM commitment WHERE run = ?
        ORDER BY time, id
        """
        return [CommitmentRow(*row) for row in self._rows(query, run)]

    def verified(self) -> list[bytes]:
        """The ids of all runs that somebody verified, on whatever task, whether or not they are here."""
        return [row[0] for row in self._rows("SELECT DISTINCT run FROM verification ORDER BY run")]

    def endings(self, task: bytes, after: int, last: int) -> list[tuple[str, bytes, int]]:
        """How runs on a task ended, by which device, how many: of the records stored after one, up to the last."""
        # By number: the changes alone are looked at, not all runs on the task.
        query = "SELECT status, author, count(*) FROM run WHERE +task = ? AND n > ? AND n <= ? GROUP BY status, author"
        return list(self._rows(query, task, after, last))

    def subjects(self, task: bytes) -> int:
        """How many subjects of a task are ranked."""
        query = "SELECT count(*) FROM subject WHERE task = ? AND rank IS NOT NULL"
        return int(self._rows(query, task)[0][0])

    def verified_with(self, devices: Collection[bytes]) -> list[bytes]:
        """The ids of all runs that these devices verified, and of theirs that somebody verified."""
        keys = list(devices)
        marks = ", ".join("?" * len(keys))
        query = f"""
        SELECT run FROM verification WHERE author IN ({marks}) UNION
        SELECT verification.run FROM verification CROSS JOIN record ON record.id = verification.run
        WHERE record.author IN ({marks}) ORDER BY 1
        """  # noqa: S608
        return [row[0] for row in self._rows(query, *keys, *keys)]

    def runs_by_author(self) -> list[tuple[bytes, int, int, int]]:
        """All devices with runs: the device, how many runs, how many of them ended well, and the time of the last."""
        query = "SELECT author, count(*), sum(status = 'ok'), max(time) FROM run GROUP BY author"
        return [(author, runs, ok, last) for author, runs, ok, last in self._rows(query)]
