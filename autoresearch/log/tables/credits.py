"""What settled runs say of participants, as rows and as their sums; and how many runs each device has."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import NamedTuple

from autoresearch.log.reader import Reader, in_parts, marks
from autoresearch.log.rows import CreditRow, FactRow
from autoresearch.log.tables.standings import Settled

# A run with the task's whole budget has so many.
WORK_UNITS = 2**30
# An improvement is kept in at most so many bits. Scales are so many bits apart: it has no fewer than 28.
_GAIN_BITS, _SCALE_BITS = 44, 16
# No run or verification counts for more time than about 35 years, so that sums stay whole numbers.
_MOST_MS = 2**40

_INSERT = """
INSERT INTO fact SELECT ?1, n, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13 FROM record WHERE id = ?2
"""
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
    """Rows that follow from standings, and change with them. Those of a run that is to be judged again stay till then.

    What writes is called in :meth:`Writer.settling`.
    """

    def __init__(self, reader: Reader) -> None:
        self._reader = reader

    def write(self, settled: Sequence[Settled]) -> None:
        """Note what runs say, in place of what they said before."""
        self.forget([run.n for run in settled])
        self._reader.connection.executemany(_INSERT, [(run.n, *_stored(row)) for run in settled for row in run.facts])

    def forget(self, runs: Sequence[int]) -> None:
        """These runs, by the numbers of their records, say nothing any more."""
        self._reader.connection.executemany("DELETE FROM fact WHERE n = ?", [(n,) for n in runs])

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
        for part in in_parts(voters):
            yield from map(VoterSum._make, self._reader.read(query.format(f" WHERE voter IN ({marks(part)})"), part))

    def newest(self, root: bytes, what: str, task: bytes | None, limit: int) -> list[tuple[int, bytes]]:
        """Time and record of the newest facts of a root key of a kind."""
        return self._reader.read(_NEWEST.format("fact.what = ?4"), (root, task, limit, what))

    def implausible(self, root: bytes, task: bytes | None, limit: int) -> list[tuple[int, bytes]]:
        """The same of its runs that cannot have spent what they state."""
        return self._reader.read(_NEWEST.format("fact.implausible <> 0"), (root, task, limit))

    def in_a_row(self, wrong_ms: Mapping[bytes, int]) -> dict[bytes, int]:
        """By how many facts each of these voters was right since it was wrong: by a fact, or at the time given."""
        found: dict[bytes, int] = {}
        for part in in_parts(wrong_ms):
            query = _IN_A_ROW.format(", ".join(["(?, ?)"] * len(part)))
            found |= self._reader.read(query, [value for voter in part for value in (voter, wrong_ms[voter])])
        return found

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


def _stored(row: FactRow) -> tuple[object, ...]:
    gain, scale = (None, 0) if row.gain is None else fixed_point(row.gain)
    *first, outcome, ms, implausible, work, _ = row
    return (*first, outcome, min(ms, _MOST_MS), implausible, round(work * WORK_UNITS), gain, scale)
