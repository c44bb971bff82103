"""What is judged of runs as rows, which of them are to be judged again, and by whose word they were judged."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import NamedTuple

from autoresearch.judging.states import Evidence, Judgement
from autoresearch.log.reader import COPIED, COUNTS, SUSPECT, Reader, in_parts, marks
from autoresearch.log.rows import FactRow, RunFacts
from autoresearch.log.settling import hold_places, note_author, note_like, note_unsettled, put_off
from autoresearch.words import RunState

_COLUMNS = (*Judgement._fields[:-1], *Evidence._fields)
_NUMBERS = len(Judgement._fields) - 2
_READ = f"""
SELECT record.id, {", ".join(f"standing.{column}" for column in _COLUMNS)}
FROM record CROSS JOIN standing ON standing.n = record.n WHERE record.id IN ({{}})
"""  # noqa: S608
_WRITE = "INSERT OR REPLACE INTO standing(n, {columns}, checkers, attested, compared) VALUES({values})"
_FACTS = f"""
SELECT record.n, record.id, record.author, record.seq, record.time, record.task, run.budget, run.source_digest,
    run.value, run.replicate, run.device, run.n IS NOT NULL AND {COUNTS}, {COPIED}, suspect.author IS NOT NULL
FROM record LEFT JOIN run ON run.n = record.n {SUSPECT} WHERE record.id IN ({{}}) AND +record.kind = 'run'
"""  # noqa: S608
_NEW = f"""
SELECT n, id, run.author, run.seq, time, task, budget, source_digest, value, replicate, device, {COUNTS}, {COPIED},
    suspect.author IS NOT NULL
FROM run {SUSPECT} WHERE n > ? AND NOT EXISTS(SELECT 1 FROM unsettled WHERE unsettled.n = run.n)
"""  # noqa: S608
_HEARD = """
SELECT run FROM verification WHERE run IN ({0}) UNION SELECT lineage.parent FROM lineage
CROSS JOIN record AS child ON child.n = lineage.n CROSS JOIN verification ON verification.run = child.id
WHERE lineage.parent IN ({0})
"""
_UNSETTLED = """
SELECT record.id FROM unsettled CROSS JOIN record ON record.n = unsettled.n ORDER BY unsettled.n DESC LIMIT ?
"""
_WEIGHED = """
INSERT OR REPLACE INTO meta SELECT 'weighed', coalesce((SELECT value FROM meta WHERE key = 'people'), 0)
"""


# In place of a key: whether trust names anybody.
EVERYBODY = b""


class Settled(NamedTuple):
    """What is judged of the run in record ``n``, and what it says of participants.

    ``checkers`` attested participants published a measurement of it. ``attested``: its author was when it signed.
    ``compared``: its value may be compared with others.
    """

    n: int
    found: Judgement
    facts: Sequence[FactRow]
    checkers: int
    attested: bool
    compared: bool


class Weights(NamedTuple):
    """Whose verifications count: by key a digest of all that decides it, and from when on there are how many voters."""

    keys: dict[bytes, bytes]
    voters: list[tuple[int, int]]


class Standings:
    """Rows that follow from records and a trust list. They change without a record: nothing here is kept in memory.

    What writes is called in :meth:`Writer.settling`.
    """

    def __init__(self, reader: Reader) -> None:
        self._reader = reader

    def of(self, runs: Collection[bytes]) -> dict[bytes, Judgement]:
        """What is judged of those of these that are runs."""
        return {
            run: Judgement._make((RunState(state), *values[:_NUMBERS], Evidence._make(values[_NUMBERS:])))
            for part in in_parts(runs)
            for run, state, *values in self._reader.read(_READ.format(marks(part)), part)
        }

    def facts(self, runs: Collection[bytes]) -> list[RunFacts]:
        """What records say of those of these that are runs, in no order."""
        found = (row for part in in_parts(runs) for row in self._reader.read(_FACTS.format(marks(part)), part))
        return [RunFacts(*row) for row in found]

    def new_runs(self, after: int) -> list[RunFacts]:
        """The same of the runs after the record with a number that are not noted as unsettled."""
        return [RunFacts(*row) for row in self._reader.read(_NEW, (after,))]

    def write(self, rows: Sequence[Settled]) -> None:
        """Settle runs."""
        connection = self._reader.connection
        statement = _WRITE.format(columns=", ".join(_COLUMNS), values=", ".join("?" * (len(_COLUMNS) + 4)))
        values = [(n, *found[:-1], *found.evidence, *flags) for n, found, _, *flags in rows]
        connection.executemany(statement, values)
        numbers = [row[:1] for row in rows]
        connection.executemany("DELETE FROM unsettled WHERE n = ?", numbers)

    def heard(self, runs: Collection[bytes]) -> set[bytes]:
        """Those of these runs that somebody verified, or a run that names one as its parent."""
        return {run for part in in_parts(runs) for (run,) in self._reader.read(_HEARD.format(marks(part)), part)}

    def put_off(self, after: int) -> None:
        """Note that all runs after the record with a number are to be judged."""
        put_off(self._reader.connection, after)

    def hold_places(self, after: int) -> None:
        """Have rows of those runs after the record with a number that are to be judged: as just reported."""
        hold_places(self._reader.connection, after)

    def forget(self, runs: Iterable[bytes]) -> None:
        """Take runs off the list of those that are to be judged again."""
        delete = "DELETE FROM unsettled WHERE n = (SELECT n FROM record WHERE id = ?)"
        self._reader.connection.executemany(delete, [(run,) for run in runs])

    def unsettled(self, limit: int) -> list[bytes]:
        """Runs that are to be judged again, the newest first."""
        return [run for (run,) in self._reader.read(_UNSETTLED, (limit,))]

    def count_unsettled(self) -> int:
        """How many runs are to be judged again, programs of devices ranked again, and originals found again."""
        query = """
        SELECT (SELECT count(*) FROM unsettled) + (SELECT count(*) FROM unranked) + (SELECT count(*) FROM unmatched)
        """
        return int(self._reader.read(query, ())[0][0])

    def weighed_by(self) -> tuple[bytes | None, bool]:
        """The digest of the trust list that the runs were judged by, and whether who is who is as it was then.

        None where none was settled ever.
        """
        query = "SELECT key, value FROM meta WHERE key IN ('people', 'weighed', 'trusted')"
        meta = dict(self._reader.read(query, ()))
        return meta.get("trusted"), meta.get("people", 0) == meta.get("weighed")

    def weights(self) -> Weights:
        """By whose word the runs were judged."""
        keys = self._reader.read("SELECT key, digest FROM weight", ())
        return Weights(dict(keys), self._reader.read("SELECT time, voters FROM voter_count ORDER BY time", ()))

    def weigh(self, weights: Weights, trusted: bytes) -> Weights:
        """Note by whose word runs are judged from now on, and return by whose they were before."""
        connection, before = self._reader.connection, self.weights()
        gone = [(key,) for key in before.keys.keys() - weights.keys.keys()]
        changed = [(key, digest) for key, digest in weights.keys.items() if before.keys.get(key) != digest]
        connection.executemany("DELETE FROM weight WHERE key = ?", gone)
        connection.executemany("INSERT OR REPLACE INTO weight VALUES(?, ?)", changed)
        if before.voters != weights.voters:
            connection.execute("DELETE FROM voter_count")
            connection.executemany("INSERT INTO voter_count VALUES(?, ?)", weights.voters)
        connection.execute(_WEIGHED)
        connection.execute("INSERT OR REPLACE INTO meta VALUES('trusted', ?)", (trusted,))
        return before

    def unsettle(self, runs: set[bytes], authors: Iterable[bytes]) -> None:
        """Note that runs are to be judged again, all of these devices, and where several may have been the first."""
        connection = self._reader.connection
        note_unsettled(connection, runs)
        for author in authors:
            note_author(connection, author)
        note_like(connection)

    def of_keys(self, keys: Collection[bytes]) -> set[bytes]:
        """The runs that these devices verified, and of theirs those that others verified, or ran as a parent."""
        runs = set[bytes]()
        for part in in_parts(keys):
            query = f"""
            SELECT run FROM verification WHERE author IN ({marks(part)})
            UNION SELECT id FROM record WHERE kind = 'run' AND author IN ({marks(part)}) AND (
                EXISTS(SELECT 1 FROM verification WHERE run = record.id)
                OR EXISTS(SELECT 1 FROM lineage CROSS JOIN record AS child ON child.n = lineage.n
                    CROSS JOIN verification ON verification.run = child.id WHERE lineage.parent = record.id))
            """  # noqa: S608
            runs.update(run for (run,) in self._reader.read(query, part))
        return runs

    def verified_in(self, start_ms: float, end_ms: float) -> set[bytes]:
        """The verified runs from one time on, and before another."""
        query = """
        SELECT DISTINCT run FROM verification CROSS JOIN record ON record.id = verification.run
        WHERE record.time >= ? AND record.time < ?
        """
        return {run for (run,) in self._reader.read(query, (start_ms, end_ms))}
