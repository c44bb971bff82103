"""What is computed from several records: forks, which runs come after one, strays, programs and devices' entries.

Everything here is computed anew from the tables for whatever was touched, so that it is a function of the records kept
and not of the way they came in.
"""

from __future__ import annotations

import sqlite3
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field

from autoresearch.log.scoring import CountedRun, TaskRules, pool, rank, rank_bound

Program = tuple[bytes, bytes, float]  # task, source digest, budget
# What none of its ranks is below, time and id of its first run, and how many devices measured one of its runs.
Entry = tuple[float | None, int, bytes, int]

# After a fork that no merge ended a run counts only when others verified it. Who counts is not known here: a program,
# which is everybody's word, leaves such runs out, an entry has them all.
_COUNTED = """
SELECT run.time, run.id, run.value, run.author, run.replicate, run.device, '', NULL, suspect.author IS NOT NULL,
    (SELECT count(DISTINCT author) FROM verification WHERE verification.run = run.id)
FROM run
LEFT JOIN suspect ON suspect.author = run.author AND suspect.seq <= run.seq
WHERE run.task = ? AND run.source_digest = ? AND run.budget = ? AND run.status = 'ok' AND run.value IS NOT NULL
"""
# A run whose parent is on another task: the lineage is made up. Whether the run was withdrawn does not matter.
_STRAY = """
INSERT OR IGNORE INTO stray SELECT child.n, lineage.parent FROM {} WHERE above.task IS NOT child.task
"""
_ABOVE = """record AS child CROSS JOIN lineage ON lineage.n = child.n
CROSS JOIN record AS above ON above.id = lineage.parent"""
_BELOW = """record AS above CROSS JOIN lineage ON lineage.parent = above.id
CROSS JOIN record AS child ON child.n = lineage.n"""
RULES = "SELECT direction, noise, budget, clocked, any_budget FROM rules WHERE task = ? LIMIT 1"


@dataclass
class Touched:
    """What has to be computed anew."""

    authors: set[bytes] = field(default_factory=set)
    places: set[tuple[bytes, int]] = field(default_factory=set)  # author, seq
    records: set[bytes] = field(default_factory=set)  # their ids
    tasks: set[bytes] = field(default_factory=set)
    programs: set[Program] = field(default_factory=set)


def settle(connection: sqlite3.Connection, touched: Touched) -> None:
    """Compute anew what depends on ``touched``: forks and strays, then suspects, then programs."""
    _settle_forks(connection, touched.places)
    _settle_strays(connection, touched.records)
    for author in {author for author, _ in touched.places} | touched.authors:
        touched.programs |= _settle_suspect(connection, author)
    for task in touched.tasks:
        touched.programs |= _settle_task(connection, task)
    _settle_programs(connection, touched.programs)


def _settle_forks(connection: sqlite3.Connection, places: set[tuple[bytes, int]]) -> None:
    """A fork is where one author has two records with one sequence number."""
    forked: list[tuple[bytes, int]] = []
    whole: list[tuple[bytes, int]] = []
    for place in places:
        query = "SELECT count(*) FROM record WHERE author = ? AND seq = ?"
        (forked if connection.execute(query, place).fetchone()[0] > 1 else whole).append(place)
    connection.executemany("INSERT OR IGNORE INTO fork VALUES(?, ?)", forked)
    if connection.execute("SELECT EXISTS(SELECT 1 FROM fork)").fetchone()[0]:
        connection.executemany("DELETE FROM fork WHERE author = ? AND seq = ?", whole)


def _settle_strays(connection: sqlite3.Connection, records: set[bytes]) -> None:
    ids = [(record,) for record in records]
    connection.executemany("DELETE FROM stray WHERE parent = ?", ids)
    for joined, name in ((_ABOVE, "child"), (_BELOW, "above")):
        connection.executemany(f"{_STRAY.format(joined)} AND {name}.id = ?", ids)


def settle_all_strays(connection: sqlite3.Connection) -> None:
    """Find all runs whose parent is on another task, where none is noted yet."""
    connection.execute(_STRAY.format(_ABOVE))


def merged_up_to(connection: sqlite3.Connection, author: bytes) -> int:
    """The last sequence number of ``author`` that a merge by a root key, which delegated it, covers; 0 without one."""
    query = """
    SELECT max(record.seq) FROM merge JOIN record ON record.id = merge.head AND record.author = merge.device
    WHERE merge.device = ?1 AND merge.root IN (SELECT root FROM delegation WHERE device = ?1)
    """
    return int(connection.execute(query, (author,)).fetchone()[0] or 0)


def _settle_suspect(connection: sqlite3.Connection, author: bytes) -> set[Program]:
    """Note from which record on the author's runs come after a fork, and return the programs for which that changes."""
    before = connection.execute("SELECT seq FROM suspect WHERE author = ?", (author,)).fetchone()
    after = None
    if connection.execute("SELECT 1 FROM fork WHERE author = ? LIMIT 1", (author,)).fetchone():
        merged = merged_up_to(connection, author)
        query = "SELECT seq FROM fork WHERE author = ? AND seq > ? ORDER BY seq LIMIT 1"
        after = connection.execute(query, (author, merged)).fetchone()
    if before == after:
        return set()
    connection.execute("DELETE FROM suspect WHERE author = ?", (author,))
    if after:
        connection.execute("INSERT INTO suspect VALUES(?, ?)", (author, after[0]))
    first = min(row[0] for row in (before, after) if row)
    query = "SELECT DISTINCT task, source_digest, budget FROM run WHERE author = ? AND seq >= ?"
    return set(connection.execute(query, (author, first)).fetchall())


def _settle_task(connection: sqlite3.Connection, task: bytes) -> set[Program]:
    """Note whether the task's rules are known, and return all its programs when that has changed, else none."""
    before = connection.execute("SELECT 1 FROM ruled WHERE task = ?", (task,)).fetchone()
    after = connection.execute("SELECT 1 FROM rules WHERE task = ? LIMIT 1", (task,)).fetchone()
    if before == after:
        return set()
    statement = "INSERT INTO ruled VALUES(?)" if after else "DELETE FROM ruled WHERE task = ?"
    connection.execute(statement, (task,))
    query = "SELECT DISTINCT task, source_digest, budget FROM run WHERE task = ?"
    return set(connection.execute(query, (task,)).fetchall())


def _settle_programs(connection: sqlite3.Connection, programs: set[Program]) -> None:
    rules: dict[bytes, TaskRules | None] = {}
    gone, there = [], []
    left: list[tuple[bytes, bytes, float, bytes]] = []
    entered: list[tuple[object, ...]] = []
    for program in programs:
        task, _, budget = program
        if task not in rules:
            rules[task] = rules_of(connection, task)
        ruling = rules[task]
        ranking = ruling if ruling and ruling.ranks(budget) else None
        found = [(CountedRun(*row[:-1]), row[-1]) for row in connection.execute(_COUNTED, program)]
        runs = [run for run, _ in found]
        before, after = _entries_before(connection, program), _entries(found, ranking)
        left += [(*program, author) for author in before.keys() - after.keys()]
        entered += [(*program, author, *entry) for author, entry in after.items() if before.get(author) != entry]
        pooled = pool((run for run in runs if not run.forked), clocked=bool(ruling and ruling.clocked))
        if pooled is None:
            gone.append(program)
            continue
        ranked = rank(pooled.mean, pooled.runs, ranking) if ranking else None
        there.append((*program, pooled.runs, pooled.mean, pooled.first.id, pooled.first.time, ranked))
    connection.executemany("DELETE FROM program WHERE task = ? AND source_digest = ? AND budget = ?", gone)
    connection.executemany("INSERT OR REPLACE INTO program VALUES(?, ?, ?, ?, ?, ?, ?, ?)", there)
    statement = "DELETE FROM entry WHERE task = ? AND source_digest = ? AND budget = ? AND author = ?"
    connection.executemany(statement, left)
    connection.executemany("INSERT OR REPLACE INTO entry VALUES(?, ?, ?, ?, ?, ?, ?, ?)", entered)


def _entries_before(connection: sqlite3.Connection, program: Program) -> dict[bytes, Entry]:
    """Which devices had entries for a program."""
    query = """
    SELECT author, bound, time, first, measured FROM entry WHERE task = ? AND source_digest = ? AND budget = ?
    """
    return {row[0]: row[1:] for row in connection.execute(query, program)}


def _entries(runs: Iterable[tuple[CountedRun, int]], ranking: TaskRules | None) -> dict[bytes, Entry]:
    """Which devices have entries for a program, by its runs, each with the number of devices that measured it.

    Whose word counts is not known here: that depends on whom a network trusts, and may change with a late attestation.
    So an entry says how well the device can stand at best, whichever of its runs count.
    """
    by_author: defaultdict[bytes, list[tuple[CountedRun, int]]] = defaultdict(list)
    for run, measured in runs:
        by_author[run.author].append((run, measured))
    found: dict[bytes, Entry] = {}
    for author, said in by_author.items():
        first, _ = min(said)
        bound = rank_bound((run.value for run, _ in said), ranking) if ranking else None
        found[author] = (bound, first.time, first.id, max(measured for _, measured in said))
    return found


def rules_of(connection: sqlite3.Connection, task: bytes) -> TaskRules | None:
    """The rules of a task; all who publish it publish the same, because they are part of its digest."""
    found = connection.execute(RULES, (task,)).fetchone()
    return rules_in(found) if found else None


def rules_in(row: tuple[str, float, float, int, int]) -> TaskRules:
    """The rules in a row of their table."""
    direction, noise, budget, clocked, any_budget = row
    return TaskRules(direction, noise, budget, bool(clocked), bool(any_budget))
