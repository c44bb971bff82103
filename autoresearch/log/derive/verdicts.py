"""Verdicts: what is judged of each run, a row of ``standing``, by the rules of :mod:`autoresearch.judging`.

New runs that nobody verified are judged together. A record that says something of few runs has them judged at once, the
others are noted in ``todo``; so is all that comes while rows follow from another trust list than a log has now.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache

from autoresearch.judging.states import Judgement
from autoresearch.log.derive.beliefs import with_beliefs
from autoresearch.log.derive.entries import add_new
from autoresearch.log.derive.step import Changes, Items, Step, done
from autoresearch.log.rows import EntryKey, RunFacts
from autoresearch.log.standing.cache import roster_of
from autoresearch.log.standing.precedence import Bans, bans
from autoresearch.log.standing.verification import checkers_of, judge_now
from autoresearch.log.tables.standings import COLUMNS, JudgedRun
from autoresearch.log.tables.tables import Tables
from autoresearch.trust.roster import Voter
from autoresearch.words import UPHELD, RunState

# Of the runs that somebody verified so many are judged in one transaction, unless time is over before.
_JUDGED = 50
_WRITE = (
    "INSERT OR REPLACE INTO standing(n, {columns}, checkers, attested, compared, disbelief) VALUES({values})".format(
        columns=", ".join(COLUMNS), values=", ".join("?" * (len(COLUMNS) + 5))
    )
)
# The runs of which verifications say something else since the record ?1: they came, or a commitment of a verifier did,
# or the run itself came after them, or its parent did.
_REVIEWED = """
SELECT run FROM verification WHERE n > ?1
UNION SELECT run FROM commitment WHERE n > ?1 AND EXISTS(
    SELECT 1 FROM verification AS word WHERE word.run = commitment.run AND word.author = commitment.author)
UNION SELECT id FROM record WHERE n > ?1 AND EXISTS(SELECT 1 FROM verification WHERE run = record.id)
UNION SELECT child.id FROM record AS above CROSS JOIN lineage ON lineage.parent = above.id
CROSS JOIN record AS child ON child.n = lineage.n
WHERE above.n > ?1 AND EXISTS(SELECT 1 FROM verification WHERE run = child.id)
"""
# What is measured of a run in pairs says something of its parent, and what its parent's number is of the run.
_KIN = """
SELECT lineage.parent FROM record CROSS JOIN lineage ON lineage.n = record.n WHERE record.id = ?1
UNION SELECT child.id FROM lineage CROSS JOIN record AS child ON child.n = lineage.n
WHERE lineage.parent = ?1 AND EXISTS(SELECT 1 FROM verification WHERE run = child.id)
"""


def change(connection: sqlite3.Connection, changes: Changes) -> None:
    """Note the runs of which others say something else, with those whose judgement follows from theirs."""
    if changes.after is not None:
        changes.reviewed.update(run for (run,) in connection.execute(_REVIEWED, (changes.after,)))
    note_runs(connection, changes.reviewed)


def note_query(connection: sqlite3.Connection, runs: str, values: tuple[object, ...]) -> None:
    """Note that the runs whose numbers a query finds are to be judged again."""
    connection.execute(f"INSERT OR IGNORE INTO todo SELECT 'verdicts', n FROM ({runs})", values)  # noqa: S608


def note_runs(connection: sqlite3.Connection, runs: set[bytes]) -> None:
    """Note that runs, by their ids, and those whose judgement follows from theirs are to be judged again."""
    insert = "INSERT OR IGNORE INTO todo SELECT 'verdicts', n FROM record WHERE id = ?"
    connection.executemany(insert, [(run,) for run in runs | kin_of(connection, runs)])


def kin_of(connection: sqlite3.Connection, runs: Iterable[bytes]) -> set[bytes]:
    """The runs whose judgement follows from that of others: their parents, and their verified children."""
    return {other for run in runs for (other,) in connection.execute(_KIN, (run,))}


def put_off(connection: sqlite3.Connection, after: int) -> None:
    """Note that all runs that were stored after the record with this number are to be judged."""
    note_query(connection, "SELECT n FROM record WHERE n > ? AND kind = 'run'", (after,))
    hold_places(connection, after)


def hold_places(connection: sqlite3.Connection, after: int) -> None:
    """Have rows of those runs after a record that are to be judged: until then they are just reported."""
    connection.execute(
        """INSERT OR IGNORE INTO standing(n, state) SELECT todo.key, 'reported'
        FROM todo CROSS JOIN record ON record.n = todo.key
        WHERE todo.step = 'verdicts' AND todo.key > ? AND record.kind = 'run'""",
        (after,),
    )


def arrive(log: Tables, after: int) -> Items:
    """Judge the runs that came after a record, but those that are noted."""
    return {"entries": _write_unverified(log, log.standings.new_runs(after))}


def derive(log: Tables, numbers: Sequence[int], end: float) -> Items:
    """Judge runs again: all that nobody verified, of the others a part, at least one."""
    runs = log.standings.facts(numbers)
    done(log.reader.connection, "verdicts", set(numbers) - {run.n for run in runs})
    verified = log.standings.verified([run.id for run in runs])
    unverified = [run for run in runs if run.id not in verified]
    devices = _write_unverified(log, unverified)
    some = [run for run in runs if run.id in verified][:_JUDGED]
    rows = []
    for run, row in zip(some, _judged(log, some, verified=True), strict=True):
        rows.append(row)
        if run.valued:
            devices.append(EntryKey(run.task, run.seedless, run.budget, run.author))
        if time.monotonic() > end:
            break
    some = some[: len(rows)]
    _write(log, with_beliefs(log, some, rows))
    credit: list[tuple[int, bytes | None, Judgement | None]] = [
        (run.n, run.id, row.judgement) for run, row in zip(some, rows, strict=True)
    ]
    # Those that nobody verified may have lost their verifications.
    credit += [(run.n, None, None) for run in unverified]
    return {"credit": credit, "entries": devices}


def _postpone(log: Tables, after: int) -> None:
    hold_places(log.reader.connection, after)


def _write_unverified(log: Tables, runs: Sequence[RunFacts]) -> list[EntryKey]:
    """Judge runs that nobody verified; returns the programs by devices that are to be ranked besides."""
    rows = with_beliefs(log, runs, list(_judged(log, runs, verified=False)))
    _write(log, rows)
    return add_new(log, runs, rows)


def _write(log: Tables, rows: Sequence[JudgedRun]) -> None:
    connection = log.reader.connection
    values = [(n, *judgement[:-1], *judgement.evidence, *flags) for n, judgement, *flags in rows]
    connection.executemany(_WRITE, values)
    done(connection, "verdicts", [row.n for row in rows])


def _judged(log: Tables, runs: Sequence[RunFacts], *, verified: bool) -> Iterator[JudgedRun]:
    """Rows of runs that somebody verified, or of runs that nobody did."""
    voter, named = roster_of(log).voter, log.trust.names_anybody
    rules, banned = cache(log.tasks.rules), bans(log)
    for run in runs:
        record = log.records.get(run.id) if verified else None
        judgement, ruling = judge_now(log, record) if record else _unverified(run, banned, voter), rules(run.task)
        compared = bool(
            run.valued
            and ruling is not None
            and ruling.ranks(run.budget)
            and (not run.forked or judgement.state in UPHELD)
            and not run.copied
        )
        attested = voter(run.author, run.time).attested if named else True
        checkers = len(checkers_of(log, run.id)) if record else 0
        yield JudgedRun(run.n, judgement, checkers, attested, compared)


def _unverified(run: RunFacts, banned: Bans, voter: Callable[[bytes, int], Voter]) -> Judgement:
    """What is judged of a run that nobody verified."""
    state = RunState.REPORTED
    if run.id in banned.frauds:
        state = RunState.FRAUD
    elif banned.by_key and banned.cover(voter(run.author, run.time).voter, run.time, device=run.author, seq=run.seq):
        state = RunState.BANNED
    return Judgement(state, None, None, 0, 0)


VERDICTS = Step(
    "verdicts",
    reads="record run verification commitment lineage suspect copy fraud stray rules task",
    writes="standing",
    change=change,
    arrive=arrive,
    derive=derive,
    rounds=2,
    piece=200,
    postpone=_postpone,
)
