"""Copies: runs whose program or checkpoint another participant published before, by the trust list.

Which of several runs was first follows from who had seen which, and from the records of a device that state an earlier
time than one before them (``dated_back``). Noted is what may change when records come or go.
"""

from __future__ import annotations

import math
import sqlite3
import time
from collections.abc import Iterable, Iterator, Sequence
from functools import cache

from autoresearch.log.derive.step import Changes, Items, Step, done, note
from autoresearch.log.rows import CopyRow, EntryKey, LikeRow, Shared
from autoresearch.log.standing.cache import roster_of
from autoresearch.log.standing.precedence import bans, order_of
from autoresearch.log.tables.tables import Tables

# The runs that records name, which says that their authors had seen them.
_NAMED = """
SELECT record.n FROM (
    SELECT run AS id FROM mention WHERE n {0} UNION SELECT parent FROM lineage WHERE n {0}
    UNION SELECT run FROM commitment WHERE n {0}) AS named CROSS JOIN record ON record.id = named.id
"""
NAMED_BY = _NAMED.format("IN (SELECT n FROM record WHERE author = ?1 AND seq >= ?2)")
# Of a device whose record comes late, the runs that its later records name: these may be older than they say.
_NAMED_LATER = _NAMED.format("""IN (
    SELECT n FROM record WHERE author = ?1 AND seq > ?2
    AND time < (SELECT max(time) FROM record WHERE author = ?1 AND seq >= ?2 AND n > ?3))""")
_NEW_OR_NAMED = f"SELECT n FROM record WHERE n > ?1 AND +kind = 'run' UNION {_NAMED.format('> ?1')}"  # noqa: S608
# Which of several runs with one program or one checkpoint are copies follows from all of them, and from who had seen
# which. Of programs repetitions with other seeds are no copies.
_CHANGED = """
SELECT DISTINCT run.n, run.task, run.seedless, run.budget, run.author,
    iif(run.replicate = 0 AND run.status = 'ok', run.source_digest, NULL), iif(run.status = 'ok', run.checkpoint, NULL)
FROM ({}) AS changed CROSS JOIN run ON run.n = changed.n
"""
_IF_WITHDRAWN = "SELECT 1 FROM withdrawn_run WHERE task = ?2 AND {0} = ?3"
_NOTE_PROGRAM = f"""
INSERT OR IGNORE INTO todo SELECT 'copies', ?4 WHERE EXISTS(
    SELECT 1 FROM run WHERE task = ?2 AND source_digest = ?3 AND n <> ?1 AND replicate = 0 AND status = 'ok'
    UNION ALL {_IF_WITHDRAWN.format("source_digest")})
"""  # noqa: S608
_NOTE_CHECKPOINT = f"""
INSERT OR IGNORE INTO todo SELECT 'copies', ?4 WHERE EXISTS(
    SELECT 1 FROM run WHERE task = ?2 AND checkpoint = ?3 AND n <> ?1 UNION ALL {_IF_WITHDRAWN.format("checkpoint")})
"""  # noqa: S608
_NOTE_RIVAL = """
INSERT OR IGNORE INTO todo SELECT 'entries', ?5 WHERE EXISTS(
    SELECT 1 FROM entry WHERE task = ?1 AND seedless = ?2 AND budget = ?3 AND author <> ?4)
"""
_NOTE_WITHDRAWN = """
INSERT OR IGNORE INTO todo SELECT 'copies', CAST(run.task || run.source_digest AS BLOB)
FROM ({0}) AS changed CROSS JOIN withdrawn_run AS run ON run.n = changed.n
UNION ALL SELECT 'copies', CAST(run.task || run.checkpoint AS BLOB)
FROM ({0}) AS changed CROSS JOIN withdrawn_run AS run ON run.n = changed.n WHERE run.checkpoint IS NOT NULL
"""
# Who claimed a program before another published it copied nothing.
_NOTE_CLAIMED = """
INSERT OR IGNORE INTO todo SELECT DISTINCT 'copies', CAST(copy.task || copy.shared AS BLOB) FROM claim
CROSS JOIN copy ON copy.task = claim.task AND copy.source_digest = claim.source_digest WHERE claim.n {}
"""

# Of a device's records from a number on, those that are dated back: with the latest time of the records before each.
# The record before the first stands for all before it: by its own time, or the latest before it if it is dated back.
# It is one pass: a peer's records come in any order, and each batch may have some before thousands that are stored.
_DATE_FROM = """
INSERT INTO dated_back SELECT n, latest FROM (
    SELECT record.n, time, max(max(time, coalesce(dated_back.latest, time))) OVER (
        ORDER BY seq RANGE BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS latest
    FROM record INDEXED BY record_author_seq LEFT JOIN dated_back ON dated_back.n = record.n
    WHERE author = ?1 AND seq >= coalesce((SELECT max(seq) FROM record WHERE author = ?1 AND seq < ?2), ?2))
WHERE latest > time ON CONFLICT DO UPDATE SET latest = max(latest, excluded.latest)
"""
_DATE_ALL = """
INSERT INTO dated_back SELECT n, latest FROM (
    SELECT n, time, max(time) OVER (
        PARTITION BY author ORDER BY seq RANGE BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS latest FROM record)
WHERE latest > time
"""


_NOTE_COPIES = """
INSERT OR IGNORE INTO todo SELECT DISTINCT 'copies', CAST(task || shared AS BLOB) FROM copy WHERE task = ?
"""


def change(connection: sqlite3.Connection, changes: Changes) -> None:
    """Note what follows from new records: which are dated back, and of which runs it may change who was first."""
    if changes.after is None:
        return
    firsts = _firsts(changes.places)
    connection.executemany(_DATE_FROM, firsts)
    note_like(connection, _NEW_OR_NAMED, (changes.after,))
    connection.execute(_NOTE_CLAIMED.format("> ?"), (changes.after,))
    query = "SELECT 1 FROM record WHERE author = ? AND seq > ? AND n <= ? LIMIT 1"
    for author, seq in firsts:
        if connection.execute(query, (author, seq, changes.after)).fetchone():
            note_like(connection, _NAMED_LATER, (author, seq, changes.after))


def _firsts(places: Iterable[tuple[bytes, int]]) -> Sequence[tuple[bytes, int]]:
    """Of each author the place with the smallest number: the records after it are those after any of the places."""
    firsts: dict[bytes, int] = {}
    for author, seq in places:
        firsts[author] = min(seq, firsts.get(author, seq))
    return list(firsts.items())


def note_like(connection: sqlite3.Connection, runs: str, values: tuple[object, ...]) -> None:
    """Note what may change when it does which of several runs was first: of those that a query finds and others.

    Who copied is found again, and programs of several devices are ranked again.
    """
    changed = connection.execute(_CHANGED.format(runs), values).fetchall()
    programs = [(n, task, digest, task + digest) for n, task, *_, digest, _ in changed if digest]
    connection.executemany(_NOTE_PROGRAM, programs)
    models = [(n, task, model, task + model) for n, task, *_, model in changed if model]
    connection.executemany(_NOTE_CHECKPOINT, models)
    connection.executemany(_NOTE_RIVAL, {(*row[1:5], EntryKey._make(row[1:5]).key) for row in changed})
    if connection.execute("SELECT EXISTS(SELECT 1 FROM withdrawn_run)").fetchone()[0]:
        connection.execute(_NOTE_WITHDRAWN.format(runs), values)


def note_run(connection: sqlite3.Connection, n: int) -> None:
    """Note what may change when a run or a claim comes back or goes."""
    note_like(connection, "SELECT ?1 AS n", (n,))
    connection.execute(_NOTE_CLAIMED.format("= ?"), (n,))


def note_named(connection: sqlite3.Connection, n: int) -> None:
    """Note what may change when a record that names runs goes."""
    note_like(connection, _NAMED.format("= ?1"), (n,))


def note_gone(connection: sqlite3.Connection, places: Iterable[tuple[bytes, int]]) -> None:
    """Note what may change when these records are gone, by author and number, and find again what is dated back."""
    query = "DELETE FROM dated_back WHERE n IN (SELECT n FROM record WHERE author = ? AND seq > ?)"
    for place in _firsts(places):
        note_like(connection, NAMED_BY, place)
        connection.execute(query, place)
        connection.execute(_DATE_FROM, place)


def note_task(connection: sqlite3.Connection, task: bytes) -> None:
    """Note that of all copies on a task it is to be found again whose they are."""
    connection.execute(_NOTE_COPIES, (task,))


def note_devices(connection: sqlite3.Connection, rows: Iterable[tuple[bytes, bytes, float, bytes]]) -> None:
    """Note that programs are to be ranked again as these devices ran them."""
    note(connection, "entries", [EntryKey._make(row).key for row in rows])


def note_all(connection: sqlite3.Connection) -> None:
    """Note what may change wherever several runs have one checkpoint or one program."""
    connection.execute(
        """INSERT OR IGNORE INTO todo
        SELECT 'copies', CAST(task || checkpoint AS BLOB) FROM run INDEXED BY run_checkpoint
        WHERE checkpoint IS NOT NULL GROUP BY task, checkpoint HAVING count(*) > 1
        UNION ALL SELECT 'copies', CAST(task || source_digest AS BLOB) FROM run INDEXED BY run_program
        GROUP BY task, source_digest HAVING count(*) > 1"""
    )
    connection.execute(_NOTE_WITHDRAWN.format("SELECT n FROM withdrawn_run"))
    several = """
    SELECT task, seedless, budget, min(author) FROM entry
    GROUP BY task, seedless, budget HAVING min(author) <> max(author)
    """
    note_devices(connection, connection.execute(several).fetchall())


def date_all(connection: sqlite3.Connection) -> None:
    """Find all records that state an earlier time than one before them, where none is noted yet."""
    connection.execute(_DATE_ALL)


def derive(log: Tables, groups: Sequence[Shared], end: float) -> Items:
    """Find again which runs with these programs or checkpoints are copies. Where that changes they are judged again."""
    connection = log.reader.connection
    for group in groups:
        models = "SELECT n FROM copy WHERE task = ? AND shared = ? AND model"
        before = {n for (n,) in connection.execute(models, group)}
        rows = list(copies_in(log, group))
        connection.execute("DELETE FROM copy WHERE task = ? AND shared = ?", group)
        connection.executemany("INSERT INTO copy VALUES(?, ?, ?, ?, ?, ?, ?, ?)", rows)
        note(connection, "verdicts", before ^ {row.n for row in rows if row.model})
        done(connection, "copies", [group.key])
        if time.monotonic() > end:
            break
    return {}


# A withdrawn copy stays one when so many uninvolved attested participants measured it: it took their time. Until then
# an author that learns of the other run can withdraw its own, and no mark remains.
_MEASURED_BY = 2


def copies_in(log: Tables, group: Shared) -> Iterator[CopyRow]:
    """The runs with a program or a checkpoint that another participant had published before.

    Such a run is marked as copied where it was published as a discovery. It has the same program and changes a parent.
    Or it has the same checkpoint from another program, on a task whose seeds matter: there no two trainings end alike.
    It is not when its author claimed the program before the other published it: two may have one idea. A withdrawn copy
    stays one if others had measured it.
    """
    rules, first_claims = log.tasks.rules(group.task), cache(lambda digest: _first_claims(log, group.task, digest))
    is_seeded = rules is not None and rules.noise > 0
    for model in (True, False):
        for row, first in _pairs(log, group, model=model):
            voter = roster_of(log).voter(row.author, row.time).voter
            is_discovery = is_seeded and row.source_digest != first.source_digest if model else row.changes
            marked = is_discovery and first_claims(row.source_digest).get(voter, math.inf) >= first.time
            yield CopyRow(row.n, model, *group, row.source_digest, first.id, voter, marked)


def _pairs(log: Tables, group: Shared, *, model: bool) -> Iterator[tuple[LikeRow, LikeRow]]:
    """Each run that is not the first of a group, with the first; of withdrawn runs those that others measured."""
    published = log.evidence.with_checkpoint(group) if model else log.evidence.discoveries(group)
    withdrawn = log.evidence.withdrawn(group, model=model)
    if len(published) + bool(withdrawn) < 2:
        return
    order, voter = order_of(log, [*published, *withdrawn]), roster_of(log).voter
    yield from order.copies(published)
    for row in withdrawn:
        measured = _measured(log, row)
        for copy, first in order.copies([*published, row]) if len(measured) >= _MEASURED_BY else ():
            authors = {voter(run.author, run.time).voter for run in (copy, first)}
            if copy is row and len(measured - authors) >= _MEASURED_BY:
                yield copy, first


def _measured(log: Tables, run: LikeRow) -> set[bytes]:
    """The attested voters that measured a run. Each names its own time: what was withdrawn first does not matter."""
    voters, banned = roster_of(log).voter, bans(log)
    measured = set[bytes]()
    for row in log.verifications.commitments(run.id):
        who = voters(row.author, row.time)
        if row.output and who.attested and not banned.cover(who.voter, row.time, device=row.author, seq=row.seq):
            measured.add(who.voter)
    return measured


def _first_claims(log: Tables, task: bytes, source_digest: bytes) -> dict[bytes, int]:
    """When each voter first claimed a program."""
    voter = roster_of(log).voter
    first: dict[bytes, int] = {}
    for author, time_ms in log.claims.claimed(task, source_digest):
        who = voter(author, time_ms).voter
        first[who] = min(time_ms, first.get(who, time_ms))
    return first


def _is_little(log: Tables, groups: Sequence[Shared]) -> bool:
    return sum(map(log.evidence.count_like, groups)) <= ALIKE


# Of programs and checkpoints that so few runs share it is found in the transaction of a record which are copies.
ALIKE = 200

COPIES = Step(
    "copies",
    reads="record run withdrawn_run mention lineage commitment claim suspect rules entry",
    writes="copy dated_back",
    change=change,
    derive=derive,
    item=Shared.of_key,
    is_little=_is_little,
)
