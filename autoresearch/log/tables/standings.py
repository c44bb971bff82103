"""What is judged of runs as rows, which of them are to be judged again, and by whose word they were judged.

Also what settled runs say of participants, as rows and as their sums; and how many runs each device has.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping
from typing import NamedTuple

from autoresearch.judging.states import Judgement, VerifierCounts
from autoresearch.log.connection import COPIED, COUNTS, RUN_COLUMNS, SUSPECT, Reader, in_parts
from autoresearch.log.rows import CreditRow, RunFacts
from autoresearch.words import RunState

COLUMNS = (*Judgement._fields[:-1], *VerifierCounts._fields)
_NUMBERS = len(Judgement._fields) - 2
_READ = f"""
SELECT record.id, {", ".join(f"standing.{column}" for column in COLUMNS)}
FROM record CROSS JOIN standing ON standing.n = record.n WHERE record.id IN ({{}})
"""  # noqa: S608
# Of a run that was withdrawn there is its record alone.
_FACTS = f"""
SELECT record.n, record.id, record.author, record.seq, record.time, record.task, run.budget, run.source_digest,
    run.seedless, run.value, run.replicate, run.device, run.checkpoint, run.n IS NOT NULL AND {COUNTS}, {COPIED},
    suspect.author IS NOT NULL
FROM record LEFT JOIN run ON run.n = record.n {SUSPECT} WHERE record.n IN ({{}}) AND +record.kind = 'run'
"""  # noqa: S608
_NEW = f"""
SELECT {RUN_COLUMNS} FROM run {SUSPECT} WHERE run.n > ? AND NOT EXISTS(
    SELECT 1 FROM todo WHERE step = 'verdicts' AND key = run.n)
"""  # noqa: S608
_VERIFIED = """
SELECT run FROM verification WHERE run IN ({0}) UNION SELECT lineage.parent FROM lineage
CROSS JOIN record AS child ON child.n = lineage.n CROSS JOIN verification ON verification.run = child.id
WHERE lineage.parent IN ({0})
"""
_DECIDED = """
SELECT id, state FROM run CROSS JOIN standing ON standing.n = run.n
WHERE author = ? AND state != 'reported' ORDER BY seq DESC LIMIT ?
"""

# In place of a key: whether trust names anybody.
EVERYBODY = b""


class JudgedRun(NamedTuple):
    """What is judged of the run in record ``n``.

    ``checkers`` attested participants published a measurement of it. ``attested``: its author was when it signed.
    ``compared``: its value may be compared with others. ``disbelief`` is why its value is not believed, if so.
    """

    n: int
    judgement: Judgement
    checkers: int
    attested: bool
    compared: bool
    disbelief: str = ""


class Weights(NamedTuple):
    """Whose verifications count: by key a digest of all that decides it, and from when on there are how many voters."""

    keys: dict[bytes, bytes]
    voters: list[tuple[int, int]]


class Standings:
    """Rows that follow from records and a trust list. They change without a record: none is kept in memory."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader

    def of(self, runs: Collection[bytes]) -> dict[bytes, Judgement]:
        """What is judged of those of these that are runs."""
        return {
            run: Judgement._make((RunState(state), *values[:_NUMBERS], VerifierCounts._make(values[_NUMBERS:])))
            for run, state, *values in self._reader.among(_READ, runs)
        }

    def best_confirmed(self, task: bytes, hardware: str) -> float | None:
        """The best value of the confirmed runs of attested participants on a task; smaller is better."""
        query = """
        SELECT listing.sure FROM listing CROSS JOIN standing ON standing.n = listing.n AND standing.attested
        WHERE listing.task = ? AND listing.hardware = ? AND listing.sure IS NOT NULL ORDER BY listing.sure LIMIT 1
        """
        return next((value for (value,) in self._reader.read(query, (task, hardware))), None)

    def facts(self, numbers: Collection[int]) -> list[RunFacts]:
        """What records say of those of these that are runs, by their numbers."""
        return [RunFacts(*row) for row in self._reader.among(_FACTS, numbers)]

    def new_runs(self, after: int) -> list[RunFacts]:
        """The same of the runs after the record with a number that are not to be judged again."""
        return [RunFacts(*row) for row in self._reader.read(_NEW, (after,))]

    def verified(self, runs: Collection[bytes]) -> set[bytes]:
        """Those of these runs that somebody verified, or a run that names one as its parent."""
        return {run for (run,) in self._reader.among(_VERIFIED, runs)}

    def decided(self, author: bytes, limit: int = 1000) -> dict[bytes, RunState]:
        """The states of a device's newest runs on which verifiers decided something."""
        return {run: RunState(state) for run, state in self._reader.read(_DECIDED, (author, limit))}

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

    def of_keys(self, keys: Collection[bytes]) -> set[bytes]:
        """The runs that these devices verified, and of theirs those that others verified, or ran as a parent."""
        query = """
        SELECT run FROM verification WHERE author IN ({0})
        UNION SELECT id FROM record WHERE kind = 'run' AND author IN ({0}) AND (
            EXISTS(SELECT 1 FROM verification WHERE run = record.id)
            OR EXISTS(SELECT 1 FROM lineage CROSS JOIN record AS child ON child.n = lineage.n
                CROSS JOIN verification ON verification.run = child.id WHERE lineage.parent = record.id))
        """
        return {run for (run,) in self._reader.among(query, keys)}

    def verified_in(self, start_ms: float, end_ms: float) -> set[bytes]:
        """The verified runs from one time on, and before another."""
        query = """
        SELECT DISTINCT run FROM verification CROSS JOIN record ON record.id = verification.run
        WHERE record.time >= ? AND record.time < ?
        """
        return {run for (run,) in self._reader.read(query, (start_ms, end_ms))}


# A run with the task's whole budget has so many.
WORK_UNITS = 2**30
# An improvement is kept in at most so many bits. Scales are so many bits apart: it has no fewer than 28.
_GAIN_BITS, _SCALE_BITS = 44, 16
_SUMS = "SELECT voter, root, task, what, scale, facts, ms, implausible, work, gain, gains FROM credit"
_NEWEST = """
SELECT fact.time, said.id FROM fact CROSS JOIN record AS said ON said.n = fact.said
WHERE fact.root = ?1 AND (?2 IS NULL OR fact.task = ?2) AND {} ORDER BY fact.time DESC LIMIT ?3
"""
_IN_A_ROW = """
WITH asked(voter, wrong_ms) AS (VALUES {}),
last(voter, wrong_ms) AS MATERIALIZED (SELECT voter, max(wrong_ms, coalesce((
    SELECT max(time) FROM fact WHERE fact.voter = asked.voter AND outcome = -1 AND outcome <> 0), -1)) FROM asked)
SELECT voter, (
    SELECT count(*) FROM fact WHERE fact.voter = last.voter AND outcome = 1 AND outcome <> 0 AND time > wrong_ms)
FROM last
"""
_AGAINST = """
SELECT fact.n, run.id, run.author, said.id, fact.what, fact.time FROM fact
CROSS JOIN record AS run ON run.n = fact.n CROSS JOIN record AS said ON said.n = fact.said
WHERE fact.what IN ('disputed', 'refuted', 'rubber stamp')
"""


class VoterSum(NamedTuple):
    """The facts of a voter of one kind: how many, and by how many of them it was right or wrong."""

    voter: bytes
    what: str
    facts: int
    right: int
    wrong: int


class AgainstRow(NamedTuple):
    """A run that is disputed or refuted, or a verification that passed a refuted one.

    ``author`` is the device of the run, ``signed`` the record of the participant that it speaks against.
    """

    n: int
    run: bytes
    author: bytes
    signed: bytes
    what: str
    time: int


class Credits:
    """Rows that follow from standings, and change with them. Those of a run to be judged again stay till then."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader

    def sums(self, task: bytes | None = None) -> Iterator[CreditRow]:
        """The sums of the facts of all participants, on one task or on all, always in the same order."""
        rows = self._reader.read(f"{_SUMS} WHERE ?1 IS NULL OR task = ?1", (task,))
        for voter, root, on, what, scale, facts, ms, implausible, work, gain, gains in rows:
            share, summed = work / WORK_UNITS, plain_number(gain, scale)
            yield CreditRow(voter, root, on, what, facts, ms, implausible, share, summed, gains)

    def of_voters(self, voters: Collection[bytes] | None = None) -> Iterator[VoterSum]:
        """The facts of some voters or of all, by voter and kind."""
        query = "SELECT voter, what, sum(facts), sum(right), sum(wrong) FROM credit{} GROUP BY voter, what"
        if voters is None:
            yield from map(VoterSum._make, self._reader.read(query.format(""), ()))
            return
        yield from map(VoterSum._make, self._reader.among(query.format(" WHERE voter IN ({})"), voters))

    def newest(self, root: bytes, what: str, task: bytes | None, limit: int) -> list[tuple[int, bytes]]:
        """Time and record of the newest facts of a root key of a kind."""
        return self._reader.read(_NEWEST.format("fact.what = ?4"), (root, task, limit, what))

    def implausible(self, root: bytes, task: bytes | None, limit: int) -> list[tuple[int, bytes]]:
        """The same of its runs that cannot have spent what they state."""
        return self._reader.read(_NEWEST.format("fact.implausible <> 0"), (root, task, limit))

    def in_a_row(self, wrong_ms: Mapping[bytes, int]) -> dict[bytes, int]:
        """By how many facts each of these voters was right since it was wrong: by a fact, or at the time given."""
        counts: dict[bytes, int] = {}
        for part in in_parts(wrong_ms):
            query = _IN_A_ROW.format(", ".join(["(?, ?)"] * len(part)))
            counts |= self._reader.read(query, [value for voter in part for value in (voter, wrong_ms[voter])])
        return counts

    def marks(self, voter: bytes, limit: int) -> list[AgainstRow]:
        """The newest refuted runs of a voter, and its newest verifications that passed one."""
        query = f"{_AGAINST} AND fact.voter = ? AND fact.what <> 'disputed' ORDER BY fact.time DESC LIMIT ?"
        return [AgainstRow(*row) for row in self._reader.read(query, (voter, limit))]

    def doubted(self, run: bytes | None = None) -> list[AgainstRow]:
        """The disputed and the refuted runs, or this one, if it is one."""
        which = "?1 IS NULL" if run is None else "fact.n = (SELECT n FROM record WHERE id = ?1)"
        query = f"{_AGAINST} AND fact.said = fact.n AND {which}"
        return [AgainstRow(*row) for row in self._reader.read(query, (run,))]

    def evaluations_against(self, n: int) -> list[tuple[int, bytes]]:
        """Time and record of the evaluations that came to another value than the run with this number."""
        query = """
        SELECT fact.time, said.id FROM fact CROSS JOIN record AS said ON said.n = fact.said
        WHERE fact.n = ? AND fact.what IN ('fail', 'refutation') ORDER BY fact.time, said.id
        """
        return self._reader.read(query, (n,))

    def runs(self, task: bytes | None = None) -> list[tuple[bytes, int, int, int]]:
        """All devices with runs (on one task): the device, how many runs, how many ended well, the time of the last."""
        query = """
        SELECT author, sum(runs), sum(CASE status WHEN 'ok' THEN runs ELSE 0 END),
            (SELECT time FROM run WHERE run.author = tally.author ORDER BY seq DESC LIMIT 1)
        FROM tally WHERE ?1 IS NULL OR task = ?1 GROUP BY author
        """
        return self._reader.read(query, (task,))


def fixed_point(value: float) -> tuple[int, int]:
    """A number as a whole one and its scale: numbers of one scale are summed without an error.

    >>> fixed_point(0.0)
    (0, 0)
    """
    scale = -(-math.frexp(value)[1] // _SCALE_BITS)
    return round(math.ldexp(value, _GAIN_BITS - _SCALE_BITS * scale)), scale


def plain_number(whole: int, scale: int) -> float:
    """The number that :func:`fixed_point` made a whole one, or the sum of several of one scale."""
    return math.ldexp(whole, _SCALE_BITS * scale - _GAIN_BITS)
