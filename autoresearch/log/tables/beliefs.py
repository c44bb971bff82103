"""What a person believes, what programs measure, and the values that programs print themselves."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import NamedTuple

from autoresearch.log.connection import Reader
from autoresearch.words import Disbelief

_BELIEVED = """
SELECT run, record.n, measuring.digest, printed.score FROM believed CROSS JOIN record ON record.id = believed.run
LEFT JOIN run ON run.n = record.n
LEFT JOIN measuring ON measuring.task = record.task AND measuring.source_digest = run.source_digest
LEFT JOIN printed ON printed.n = record.n WHERE record.task = ?
"""
# The values of the task's own program, else that of the first run.
_OF_BASELINE = """
SELECT printed.score FROM run CROSS JOIN printed ON printed.n = run.n
WHERE run.task = ? AND run.source_digest = ? AND printed.counts ORDER BY printed.score
"""
_FIRST = """
SELECT printed.score FROM run INDEXED BY run_task_time CROSS JOIN printed ON printed.n = run.n
WHERE run.task = ? AND printed.counts ORDER BY run.time, run.id LIMIT 1
"""
# Of the best runs of a task those of which it is not known how their programs measure.
_UNREAD = """
SELECT run.id, run.source_digest FROM (SELECT n FROM printed WHERE task = ?1 ORDER BY score LIMIT ?2) AS best
CROSS JOIN run ON run.n = best.n WHERE NOT EXISTS(
    SELECT 1 FROM measuring WHERE measuring.task = ?1 AND measuring.source_digest = run.source_digest)
"""


class BelievedRun(NamedTuple):
    """A run that a person believes: how it measures, where that is known, and its score, where it has one."""

    id: bytes
    n: int
    measuring: bytes | None
    score: float | None


class PrintedRow(NamedTuple):
    """The value of a run as a score, smaller is better; ``counts``: others that are as good are no jump."""

    n: int
    task: bytes
    score: float
    counts: bool


class Beliefs:
    """Rows by which it is decided whether a value that its program printed is believed.

    What writes is called in :meth:`Writer.settling`, or in the transaction that stores a record.
    """

    def __init__(self, reader: Reader) -> None:
        self._reader = reader

    def of(self, runs: Collection[bytes]) -> dict[bytes, Disbelief]:
        """Why those of these runs are not believed that are not."""
        query = """
        SELECT record.id, standing.disbelief FROM record CROSS JOIN standing ON standing.n = record.n
        WHERE record.id IN ({}) AND standing.disbelief <> ''
        """
        return {run: Disbelief(word) for run, word in self._reader.among(query, runs)}

    def believed(self, task: bytes) -> list[BelievedRun]:
        """The runs on a task that a person believes."""
        return [BelievedRun(*row) for row in self._reader.read(_BELIEVED, (task,))]

    def believe(self, run: bytes, *, believed: bool) -> bool:
        """Note that a person believes a run, or no longer does; whether that changed anything."""
        query = "INSERT OR IGNORE INTO believed VALUES(?)" if believed else "DELETE FROM believed WHERE run = ?"
        return self._reader.connection.execute(query, (run,)).rowcount > 0

    def measuring(self, task: bytes, programs: Collection[bytes]) -> dict[bytes, bytes]:
        """How those of these programs measure of which it is known, by source digest."""
        query = "SELECT source_digest, digest FROM measuring WHERE source_digest IN ({}) AND task = ?"
        return dict(self._reader.among(query, programs, task))

    def unread(self, task: bytes, most: int) -> dict[bytes, bytes]:
        """Runs among so many of the best whose programs measure in a way that is not known: by source digest."""
        return {digest: run for run, digest in self._reader.read(_UNREAD, (task, most))}

    def tasks(self) -> list[bytes]:
        """The tasks whose programs print their numbers, as far as one has a value."""
        return [task for (task,) in self._reader.read("SELECT task FROM reach", ())]

    def note_measuring(self, task: bytes, rows: Iterable[tuple[bytes, bytes]]) -> None:
        """Note how programs of a task measure, by source digest. Their runs are to be judged again."""
        connection = self._reader.connection
        noted = [(task, *row) for row in rows]
        connection.executemany("INSERT OR REPLACE INTO measuring VALUES(?, ?, ?)", noted)
        query = "INSERT OR IGNORE INTO todo SELECT 'verdicts', n FROM run WHERE task = ? AND source_digest = ?"
        connection.executemany(query, [row[:2] for row in noted])

    def unsettle(self, task: bytes, better: float, worse: float) -> None:
        """Note that the runs on a task with scores between two are to be judged again."""
        query = (
            "INSERT OR IGNORE INTO todo SELECT 'verdicts', n FROM printed WHERE task = ? AND score >= ? AND score <= ?"
        )
        self._reader.connection.execute(query, (task, better, worse))

    def unsettle_like(self, task: bytes, program: bytes, run: bytes) -> None:
        """Note that a run is to be judged again, with all on its task that measure as its program does."""
        connection = self._reader.connection
        query = """
        INSERT OR IGNORE INTO todo SELECT 'verdicts', run.n FROM measuring AS way
        CROSS JOIN measuring AS same ON same.task = way.task AND same.digest = way.digest
        CROSS JOIN run ON run.task = same.task AND run.source_digest = same.source_digest
        WHERE way.task = ? AND way.source_digest = ?
        """
        connection.execute(query, (task, program))
        connection.execute("INSERT OR IGNORE INTO todo SELECT 'verdicts', n FROM record WHERE id = ?", (run,))

    def disbelieved(self, task: bytes) -> set[bytes]:
        """The runs on a task that are not believed."""
        query = """
        SELECT run.id FROM printed CROSS JOIN standing ON standing.n = printed.n CROSS JOIN run ON run.n = printed.n
        WHERE printed.task = ? AND standing.disbelief <> ''
        """
        return {run for (run,) in self._reader.read(query, (task,))}

    def write(self, rows: Sequence[PrintedRow], gone: Sequence[int]) -> None:
        """Note the values of runs, in place of what they were before; those of runs that are ``gone`` go."""
        connection = self._reader.connection
        connection.executemany("INSERT OR REPLACE INTO printed VALUES(?, ?, ?, ?)", rows)
        connection.executemany("DELETE FROM printed WHERE n = ?", [(n,) for n in gone])

    def first(self, task: bytes, baseline: bytes | None) -> float | None:
        """The score that a task began with: of its own program, in the middle of several, else of the first run."""
        scores = [score for (score,) in self._reader.read(_OF_BASELINE, (task, baseline))] if baseline else []
        if scores:
            return float(scores[(len(scores) - 1) // 2])
        rows = self._reader.read(_FIRST, (task,))
        return float(rows[0][0]) if rows else None

    def best_from(self, task: bytes, score: float) -> float | None:
        """The best score of a task that counts, of those that are no better than this one."""
        query = "SELECT min(score) FROM printed WHERE task = ? AND score >= ? AND counts"
        best: float | None = self._reader.read(query, (task, score))[0][0]
        return best

    def reach(self, task: bytes) -> float | None:
        """The best score on a task that is believed; None where nothing is known of one."""
        rows = self._reader.read("SELECT score FROM reach WHERE task = ?", (task,))
        return float(rows[0][0]) if rows else None

    def set_reach(self, task: bytes, score: float | None) -> None:
        """Note the best score on a task that is believed."""
        connection = self._reader.connection
        if score is None:
            connection.execute("DELETE FROM reach WHERE task = ?", (task,))
        else:
            connection.execute("INSERT OR REPLACE INTO reach VALUES(?, ?)", (task, score))
