"""Records into tables and out of them again: everything that one transaction changes.

With it what is computed from several records: forks, which runs come after one, strays, programs, devices' entries.
That is computed anew from the tables for whatever was touched, so that it is a function of the records kept and not of
the way they came in.
"""

from __future__ import annotations

import sqlite3
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from autoresearch.judging.scoring import CountedRun, TaskRules, pool, rank, rank_bound
from autoresearch.log.projection import EVIDENCE, INSERTS, WITHDRAWABLE, Row, rows
from autoresearch.log.quota import Stored, drop, enforce, shared_places
from autoresearch.log.schema import make_tables
from autoresearch.record.kinds import task_of_body
from autoresearch.record.record import Network, Record, parse_stored

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
    shared: set[tuple[bytes, int]] = field(default_factory=set)  # those of several records, and those of dropped ones
    gone: set[bytes] = field(default_factory=set)  # ids of dropped records
    tasks: set[bytes] = field(default_factory=set)
    programs: set[Program] = field(default_factory=set)
    said: set[bytes] = field(default_factory=set)  # runs of which something else is said, by their ids
    people: bool = False  # who is who, or who cheated
    after: int | None = None  # records with greater numbers are new


def settle(connection: sqlite3.Connection, touched: Touched) -> None:
    """Compute anew what depends on ``touched``: forks and strays, then suspects, then programs.

    What is judged of runs takes a trust list, so it is only noted which runs are to be judged again.
    """
    _settle_forks(connection, touched.shared)
    touched.people |= _settle_strays(connection, touched.gone, touched.after)
    for author in {author for author, _ in touched.places} | touched.authors:
        touched.programs |= _settle_suspect(connection, author)
    for task in touched.tasks:
        programs, runs = _settle_task(connection, task)
        touched.programs |= programs
        touched.said |= runs
    _settle_programs(connection, touched.programs)
    _unsettle(connection, touched)


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


def _settle_strays(connection: sqlite3.Connection, gone: set[bytes], after: int | None) -> bool:
    """Whether any came or went."""
    before = connection.total_changes
    connection.executemany("DELETE FROM stray WHERE parent = ?", [(record,) for record in gone])
    if after is not None:
        for joined, name in ((_ABOVE, "child"), (_BELOW, "above")):
            connection.execute(f"{_STRAY.format(joined)} AND {name}.n > ?", (after,))
    return connection.total_changes != before


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


def _settle_task(connection: sqlite3.Connection, task: bytes) -> tuple[set[Program], set[bytes]]:
    """Note whether a task's rules and definition are known; where that has changed its programs and verified runs."""
    before = connection.execute("SELECT rules, defined FROM ruled WHERE task = ?", (task,)).fetchone() or (0, 0)
    query = "SELECT EXISTS(SELECT 1 FROM rules WHERE task = ?1), EXISTS(SELECT 1 FROM task WHERE digest = ?1)"
    after = connection.execute(query, (task,)).fetchone()
    if before == after:
        return set(), set()
    connection.execute("INSERT OR REPLACE INTO ruled VALUES(?, ?, ?)", (task, *after))
    query = "SELECT DISTINCT task, source_digest, budget FROM run WHERE task = ?"
    programs = set(connection.execute(query, (task,)).fetchall()) if before[0] != after[0] else set()
    query = "SELECT DISTINCT run FROM verification CROSS JOIN record ON record.id = run WHERE record.task = ?"
    return programs, {run for (run,) in connection.execute(query, (task,))}


# The runs of which verifications say something else since the record ?1: they came, or a commitment of a verifier did,
# or the run itself came after them, or its parent did.
SAID = """
SELECT run FROM verification WHERE n > ?1
UNION SELECT run FROM commitment WHERE n > ?1 AND EXISTS(
    SELECT 1 FROM verification AS said WHERE said.run = commitment.run AND said.author = commitment.author)
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


def _unsettle(connection: sqlite3.Connection, touched: Touched) -> None:
    """Note which runs are to be judged again, and whether it changed who is who."""
    if touched.after is not None:
        touched.said.update(run for (run,) in connection.execute(SAID, (touched.after,)))
    note_unsettled(connection, touched.said)
    if touched.people:
        connection.execute(_PEOPLE)


def note_unsettled(connection: sqlite3.Connection, runs: set[bytes]) -> None:
    """Note that runs, by their ids, and those whose judgement follows from theirs are to be judged again."""
    insert = "INSERT OR IGNORE INTO unsettled SELECT n FROM record WHERE id = ?"
    connection.executemany(insert, [(run,) for run in runs | kin_of(connection, runs)])


def kin_of(connection: sqlite3.Connection, runs: Iterable[bytes]) -> set[bytes]:
    """The runs whose judgement follows from that of others: their parents, and their verified children."""
    return {other for run in runs for (other,) in connection.execute(_KIN, (run,))}


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
    for author, records in by_author.items():
        first, _ = min(records)
        bound = rank_bound((run.value for run, _ in records), ranking) if ranking else None
        found[author] = (bound, first.time, first.id, max(measured for _, measured in records))
    return found


def rules_of(connection: sqlite3.Connection, task: bytes) -> TaskRules | None:
    """The rules of a task; all who publish it publish the same, because they are part of its digest."""
    rules = connection.execute(RULES, (task,)).fetchone()
    return rules_in(rules) if rules else None


def rules_in(row: tuple[str, float, float, int, int]) -> TaskRules:
    """The rules in a row of their table."""
    direction, noise, budget, clocked, any_budget = row
    return TaskRules(direction, noise, budget, bool(clocked), bool(any_budget))


_BATCH = 1000
_COUNTED_IN_META = "INSERT INTO meta VALUES('{}', 1) ON CONFLICT DO UPDATE SET value = value + 1"
_DROPS, _PEOPLE = _COUNTED_IN_META.format("drops"), _COUNTED_IN_META.format("people")
# Kinds of records that say who is who. A withdrawal may take one of them back.
ABOUT_PEOPLE = ("identity", "attestation", "admission", "withdrawal")


def store(
    connection: sqlite3.Connection, network: Network, records: Sequence[Record]
) -> tuple[list[Stored], list[Stored]]:
    """Store new records, which must not be there yet, with all that follows from them.

    Returns them all, and what went over quota, among these or before.

    Runs inside the caller's transaction.
    """
    first = connection.execute("SELECT coalesce(max(n), 0) + 1 FROM record").fetchone()[0]
    numbered = list(enumerate(records, start=first))
    connection.executemany(
        "INSERT INTO record VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?)",
        [(n, r.id, r.author, r.seq, r.time, r.kind, task_of_body(r.body), r.raw, r.signature) for n, r in numbered],
    )
    inserted: list[Stored] = [(n, r.id, r.author, r.seq, r.time) for n, r in numbered]
    shared = shared_places(connection, first - 1)
    dropped = enforce(connection, network, inserted, shared)
    over = {stored[0] for stored in dropped}
    touched = _touched_by(dropped)
    touched.places.update((r.author, r.seq) for r in records)
    touched.shared |= shared
    touched.after = first - 1
    touched.people = any(record.kind in ABOUT_PEOPLE for record in records)
    kept = [(n, record) for n, record in numbered if n not in over]
    _project(connection, kept, touched)
    # Last, because a withdrawal that goes may bring back a record that has just come.
    old = [n for n in over if n < first]
    _remove(connection, old, touched)
    settle(connection, touched)
    if old:
        connection.execute(_DROPS)
    return inserted, dropped


def discard(connection: sqlite3.Connection, over: list[Stored], last: int) -> None:
    """Drop records that are stored, with all that follows from them. Runs inside the caller's transaction.

    Those after the row ``last`` came in the same transaction: nobody has seen them.
    """
    drop(connection, over)
    touched = _touched_by(over)
    _remove(connection, [stored[0] for stored in over], touched)
    settle(connection, touched)
    if any(stored[0] <= last for stored in over):
        connection.execute(_DROPS)


def _touched_by(records: Iterable[Stored]) -> Touched:
    """What is computed anew because these records went, whatever they say."""
    places = {(author, seq) for _, _, author, seq, _ in records}
    return Touched(places=places, shared=set(places), gone={record_id for _, record_id, _, _, _ in records})


def rebuild(connection: sqlite3.Connection) -> None:
    """Make all tables anew from the records, whatever format they had; in an empty file make empty ones.

    Runs inside the caller's transaction.
    """
    # The parts of a virtual table go with it, the indexes of a table too.
    query = """
    SELECT type, name FROM sqlite_master WHERE name NOT IN ('record', 'bucket', 'meta') AND sql IS NOT NULL
    AND EXISTS(SELECT 1 FROM sqlite_master WHERE name = 'record') ORDER BY sql NOT LIKE 'CREATE VIRTUAL TABLE%'
    """
    for kind, name in connection.execute(query).fetchall():
        connection.execute(f"DROP {kind} IF EXISTS {name}")
    make_tables(connection, "schema.sql")
    connection.execute("DELETE FROM meta WHERE key IN ('weighed', 'trusted')")
    touched = Touched(people=True, after=0, shared=shared_places(connection, 0))
    last = 0
    while batch := connection.execute(
        "SELECT n, raw, signature FROM record WHERE n > ? ORDER BY n LIMIT ?", (last, _BATCH)
    ).fetchall():
        numbered = [(n, parse_stored(raw, signature)) for n, raw, signature in batch]
        connection.executemany(
            "UPDATE record SET task = ? WHERE n = ?", [(task_of_body(r.body), n) for n, r in numbered]
        )
        touched.places.update((record.author, record.seq) for _, record in numbered)
        _project(connection, numbered, touched)
        last = batch[-1][0]
    settle(connection, touched)


def _project(connection: sqlite3.Connection, numbered: Iterable[tuple[int, Record]], touched: Touched) -> None:
    """Insert the rows of records, heeding withdrawals that are there or come with them."""
    tables = _tables(numbered)
    for table in EVIDENCE:
        if table in tables:
            connection.executemany(INSERTS[table], tables[table])
    touched.tasks.update(row[1] for row in tables.get("rules", []))  # type: ignore[misc]
    touched.tasks.update(row[2] for row in tables.get("task", []))  # type: ignore[misc]
    touched.people |= "fraud" in tables
    touched.authors.update(row[2] for table in ("delegation", "merge") for row in tables.get(table, []))  # type: ignore[misc]
    for _, target, author in tables.get("withdrawal", []):
        found = connection.execute("SELECT n FROM record WHERE id = ? AND author = ?", (target, author)).fetchone()
        if found:
            _unproject(connection, found[0], touched)
    _show(connection, tables, touched)
    _touch_programs_of(connection, (row[2] for row in tables.get("verification", [])), touched)


def _tables(numbered: Iterable[tuple[int, Record]]) -> dict[str, list[Row]]:
    tables: dict[str, list[Row]] = {}
    for n, record in numbered:
        for table, row in rows(n, record):
            tables.setdefault(table, []).append(row)
    return tables


def _show(connection: sqlite3.Connection, tables: dict[str, list[Row]], touched: Touched) -> None:
    """Insert those rows that a withdrawal takes away, unless one has done so already."""
    withdrawals = connection.execute("SELECT EXISTS(SELECT 1 FROM withdrawal)").fetchone()[0]
    query = "SELECT 1 FROM withdrawal WHERE target = ? AND author = ? LIMIT 1"
    for table, author in WITHDRAWABLE.items():
        shown = tables.get(table, [])
        if withdrawals:
            shown = [row for row in shown if not connection.execute(query, (row[1], row[author])).fetchone()]
        if shown:
            connection.executemany(INSERTS[table], shown)
        if table == "run":
            touched.programs.update((row[2], row[7], row[6]) for row in shown)  # type: ignore[misc]


def _unproject(connection: sqlite3.Connection, n: int, touched: Touched) -> None:
    """Take a record's rows out of the views that withdrawals affect."""
    query = "SELECT task, source_digest, budget FROM run WHERE n = ?"
    touched.programs.update(connection.execute(query, (n,)).fetchall())
    touched.tasks.update(task for (task,) in connection.execute("SELECT digest FROM task WHERE n = ?", (n,)))
    for table in WITHDRAWABLE:
        connection.execute(f"DELETE FROM {table} WHERE rowid = ?", (n,))  # noqa: S608


def _touch_programs_of(connection: sqlite3.Connection, runs: Iterable[object], touched: Touched) -> None:
    """The programs of runs of which something was measured; those that come later are touched then."""
    query = "SELECT task, source_digest, budget FROM run WHERE n = (SELECT n FROM record WHERE id = ?)"
    for run in runs:
        touched.programs.update(connection.execute(query, (run,)).fetchall())


def _remove(connection: sqlite3.Connection, gone: Sequence[int], touched: Touched) -> None:
    """Take out all rows of records that are stored no more, and bring back what they had withdrawn."""
    targets: set[tuple[bytes, bytes]] = set()
    # Of a record that is gone the kind is not known here; what it said of a run, or was as a run, is.
    touched.people |= bool(gone)
    for n in gone:
        _unproject(connection, n, touched)
        query = "SELECT run FROM verification WHERE n = ?1 UNION SELECT run FROM commitment WHERE n = ?1"
        runs = [run for (run,) in connection.execute(query, (n,))]
        _touch_programs_of(connection, runs, touched)
        touched.said.update(runs)
        touched.said.update(run for (run,) in connection.execute("SELECT parent FROM lineage WHERE n = ?", (n,)))
        targets.update(connection.execute("SELECT target, author FROM withdrawal WHERE n = ?", (n,)).fetchall())
        touched.tasks.update(task for (task,) in connection.execute("SELECT task FROM rules WHERE n = ?", (n,)))
        for table in ("delegation", "merge"):
            query = f"SELECT device FROM {table} WHERE n = ?"  # noqa: S608
            touched.authors.update(device for (device,) in connection.execute(query, (n,)))
        for table in (*EVIDENCE, "stray", "standing", "counted", "unsettled"):
            connection.execute(f"DELETE FROM {table} WHERE n = ?", (n,))  # noqa: S608
    if gone:
        touched.said |= kin_of(connection, touched.gone)
    for target in targets:
        query = "SELECT n, raw, signature FROM record WHERE id = ? AND author = ?"
        for n, raw, signature in connection.execute(query, target).fetchall():
            _unproject(connection, n, touched)
            tables = _tables([(n, parse_stored(raw, signature))])
            touched.tasks.update(row[2] for row in tables.get("task", []))  # type: ignore[misc]
            _show(connection, tables, touched)
