"""Records into tables and out of them again: everything that one transaction changes.

With it what is computed from several records: forks, which runs come after one, strays, programs.
That is computed anew from the tables for whatever was touched, so that it is a function of the records kept and not of
the way they came in.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from autoresearch.judging.statistics import CountedRun, TaskRules, pool, rank
from autoresearch.log.connection import COUNTS, SUSPECT, is_by_values, make_tables, store_by_halves
from autoresearch.log.listing import settle_listing
from autoresearch.log.pairs import forget_pairs, settle_pairs
from autoresearch.log.projection import EVIDENCE, INSERTS, WITHDRAWABLE, Row, rows
from autoresearch.log.quota import Stored, enforce, shared_places
from autoresearch.log.rows import Device
from autoresearch.record.kinds import task_of_body
from autoresearch.record.record import Network, Record, parse_stored
from autoresearch.words import RunStatus

Program = tuple[bytes, bytes, float]  # task, digest without seeds, budget

# After a fork that no merge ended a run counts only when others verified it. Who counts is not known here: a program,
# which is everybody's word, leaves such runs out.
_COUNTED = f"""
SELECT run.time, run.id, run.value, run.author, run.replicate, run.device, run.source_digest FROM run {SUSPECT}
WHERE run.task = ? AND run.seedless = ? AND run.budget = ? AND {COUNTS} AND suspect.author IS NULL
"""  # noqa: S608
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
    shown: set[int] = field(default_factory=set)  # older ones that are not withdrawn any more


def settle(connection: sqlite3.Connection, touched: Touched) -> None:
    """Compute anew what depends on ``touched``: forks and strays, then suspects, then programs.

    What is judged of runs takes a trust list, so it is only noted which runs are to be judged again.
    """
    _settle_forks(connection, touched.shared)
    touched.people |= _settle_strays(connection, touched.gone, touched.after)
    for author in {author for author, _ in touched.places} | touched.authors:
        touched.programs |= _settle_suspect(connection, author)
    for task in touched.tasks:
        touched.programs |= _settle_task(connection, task)
    _settle_programs(connection, touched.programs)
    settle_pairs(connection, touched.after, touched.shown)
    if touched.after is not None:
        connection.execute(_DATE_NEW, (touched.after,))
        connection.execute(_DATE_OLD, (touched.after,))
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
    _note(connection, "SELECT n FROM run WHERE author = ? AND seq >= ?", (author, first))
    _note_like(connection, _NAMED_BY, (author, first))
    query = "SELECT DISTINCT task, seedless, budget FROM run WHERE author = ? AND seq >= ?"
    return set(connection.execute(query, (author, first)).fetchall())


def _settle_task(connection: sqlite3.Connection, task: bytes) -> set[Program]:
    """Note whether a task's rules and definition are known, and return the programs for which that changes."""
    before = connection.execute("SELECT rules, defined FROM ruled WHERE task = ?", (task,)).fetchone() or (0, 0)
    query = "SELECT EXISTS(SELECT 1 FROM rules WHERE task = ?1), EXISTS(SELECT 1 FROM task WHERE digest = ?1)"
    after = connection.execute(query, (task,)).fetchone()
    if before == after:
        return set()
    connection.execute("INSERT OR REPLACE INTO ruled VALUES(?, ?, ?)", (task, *after))
    _note(connection, "SELECT n FROM record WHERE task = ? AND kind = 'run'", (task,))
    connection.execute(_NOTE_COPIES, (task,))
    query = "SELECT DISTINCT task, seedless, budget FROM run WHERE task = ?"
    return set(connection.execute(query, (task,)).fetchall()) if before[0] != after[0] else set()


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


# The runs that records name, which says that their authors had seen them.
_NAMED = """
SELECT record.n FROM (
    SELECT run AS id FROM mention WHERE n {0} UNION SELECT parent FROM lineage WHERE n {0}
    UNION SELECT run FROM commitment WHERE n {0}) AS named CROSS JOIN record ON record.id = named.id
"""
_NAMED_BY = _NAMED.format("IN (SELECT n FROM record WHERE author = ?1 AND seq >= ?2)")
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
_WITHDRAW = """
INSERT OR IGNORE INTO withdrawn_run SELECT n, id, task, source_digest, checkpoint, replicate, author, time, parent
FROM run WHERE n = ? AND status = 'ok'
"""
# The places of these columns in the row of a run.
_OF_WITHDRAWN = (0, 1, 2, 7, 16, 8, 11, 13, 9)

# Of a device the latest time of the records before one, by their numbers, where that is later than its own.
_LATEST = """
SELECT later.n, (
    SELECT time FROM record AS before WHERE before.author = later.author AND before.time > later.time
    AND before.seq < later.seq ORDER BY before.time DESC LIMIT 1) AS latest
FROM record AS later WHERE latest IS NOT NULL AND {}
"""
_DATE_BACK = "INSERT INTO dated_back {} ON CONFLICT DO UPDATE SET latest = max(latest, excluded.latest)"
# A new record may be dated back itself, or its time be later than that of stored ones with greater numbers.
_DATE_NEW = _DATE_BACK.format(_LATEST.format("later.n > ?1"))
_DATE_OLD = _DATE_BACK.format("""
SELECT later.n, max(new.time) FROM record AS new CROSS JOIN record AS later INDEXED BY record_author_seq
ON later.author = new.author AND later.seq > new.seq AND later.time < new.time
WHERE new.n > ?1 AND later.n <= ?1 GROUP BY later.n
""")
_DATE_ALL = """
INSERT INTO dated_back SELECT n, latest FROM (
    SELECT n, time, max(time) OVER (
        PARTITION BY author ORDER BY seq RANGE BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS latest FROM record)
WHERE latest > time
"""


_NOTE_COPIES = """
INSERT OR IGNORE INTO todo SELECT DISTINCT 'copies', CAST(task || shared AS BLOB) FROM copy WHERE task = ?
"""


def _unsettle(connection: sqlite3.Connection, touched: Touched) -> None:
    """Note which runs are to be judged again, and whether it changed who is who, or a task."""
    if touched.after is not None:
        touched.said.update(run for (run,) in connection.execute(SAID, (touched.after,)))
        _note_like(connection, _NEW_OR_NAMED, (touched.after,))
        connection.execute(_NOTE_CLAIMED.format("> ?"), (touched.after,))
        firsts: dict[bytes, int] = {}
        for author, seq in touched.places:
            firsts[author] = min(seq, firsts.get(author, seq))
        query = "SELECT 1 FROM record WHERE author = ? AND seq > ? AND n <= ? LIMIT 1"
        for author, seq in firsts.items():
            if connection.execute(query, (author, seq, touched.after)).fetchone():
                _note_like(connection, _NAMED_LATER, (author, seq, touched.after))
    note_unsettled(connection, touched.said)
    if touched.people:
        connection.execute(_PEOPLE)
    if touched.tasks:
        connection.execute(_TASKS)


def _note(connection: sqlite3.Connection, runs: str, values: tuple[object, ...]) -> None:
    """Note that the runs whose numbers a query finds are to be judged again."""
    connection.execute(f"INSERT OR IGNORE INTO todo SELECT 'verdicts', n FROM ({runs})", values)  # noqa: S608


def _note_like(connection: sqlite3.Connection, runs: str, values: tuple[object, ...]) -> None:
    """Note what may change when it does which of several runs was first: of those that a query finds and others.

    Who copied is found again, and programs of several devices are ranked again.
    """
    changed = connection.execute(_CHANGED.format(runs), values).fetchall()
    programs = [(n, task, digest, task + digest) for n, task, *_, digest, _ in changed if digest]
    connection.executemany(_NOTE_PROGRAM, programs)
    models = [(n, task, model, task + model) for n, task, *_, model in changed if model]
    connection.executemany(_NOTE_CHECKPOINT, models)
    connection.executemany(_NOTE_RIVAL, {(*row[1:5], Device._make(row[1:5]).key) for row in changed})
    if connection.execute("SELECT EXISTS(SELECT 1 FROM withdrawn_run)").fetchone()[0]:
        connection.execute(_NOTE_WITHDRAWN.format(runs), values)


def note_unsettled(connection: sqlite3.Connection, runs: set[bytes]) -> None:
    """Note that runs, by their ids, and those whose judgement follows from theirs are to be judged again."""
    insert = "INSERT OR IGNORE INTO todo SELECT 'verdicts', n FROM record WHERE id = ?"
    connection.executemany(insert, [(run,) for run in runs | kin_of(connection, runs)])


def kin_of(connection: sqlite3.Connection, runs: Iterable[bytes]) -> set[bytes]:
    """The runs whose judgement follows from that of others: their parents, and their verified children."""
    return {other for run in runs for (other,) in connection.execute(_KIN, (run,))}


def _settle_programs(connection: sqlite3.Connection, programs: set[Program]) -> None:
    rules: dict[bytes, TaskRules | None] = {}
    gone, there = [], []
    for program in programs:
        task, _, budget = program
        if task not in rules:
            rules[task] = rules_of(connection, task)
        ruling = rules[task]
        runs = (CountedRun(*row) for row in connection.execute(_COUNTED, program))
        pooled = pool(runs, clocked=bool(ruling and ruling.clocked))
        if pooled is None:
            gone.append(program)
            continue
        ranked = rank(pooled.mean, pooled.runs, ruling) if ruling and ruling.ranks(budget) else None
        there.append((*program, pooled.runs, pooled.mean, pooled.first.id, pooled.first.time, ranked))
    connection.executemany("DELETE FROM program WHERE task = ? AND seedless = ? AND budget = ?", gone)
    connection.executemany("INSERT OR REPLACE INTO program VALUES(?, ?, ?, ?, ?, ?, ?, ?)", there)


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
_DROPS, _PEOPLE, _SETTLED, _TASKS = map(_COUNTED_IN_META.format, ("drops", "people", "settled", "tasks"))
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
    """Take out all that follows from records that were dropped. Runs inside the caller's transaction.

    Those after the row ``last`` came in the same transaction: nobody has seen them.
    """
    touched = _touched_by(over)
    _remove(connection, [stored[0] for stored in over], touched)
    settle(connection, touched)
    if any(stored[0] <= last for stored in over):
        connection.execute(_DROPS)


def note_settling(connection: sqlite3.Connection) -> None:
    """Note that answers may change although no record came."""
    connection.execute(_SETTLED)


def _touched_by(records: Iterable[Stored]) -> Touched:
    """What is computed anew because these records went, whatever they say."""
    places = {(author, seq) for _, _, author, seq, _ in records}
    return Touched(places=places, shared=set(places), gone={record_id for _, record_id, _, _, _ in records})


def rebuild(connection: sqlite3.Connection) -> None:
    """Make all tables anew from the records, whatever format they had; in an empty file make empty ones.

    Where records can't be stored any more, by the rules of this version, all go in again as those of peers do: these
    are dropped, and the others stay. Runs inside the caller's transaction.
    """
    try:
        with _savepoint(connection):
            _rebuild(connection)
    except Exception as error:
        if not is_by_values(error):
            raise
        _store_again(connection)


@contextmanager
def _savepoint(connection: sqlite3.Connection) -> Iterator[None]:
    """All or nothing, inside a transaction that goes on."""
    connection.execute("SAVEPOINT part")
    try:
        yield
    except BaseException:
        if connection.in_transaction:  # SQLite has ended it where the disk is full
            connection.execute("ROLLBACK TO part")
            connection.execute("RELEASE part")
        raise
    connection.execute("RELEASE part")


# Whatever a log holds was within the bounds of its network before.
_UNBOUNDED = Network(name="", per_day_seq=2**62, per_day=2**62)


def _store_again(connection: sqlite3.Connection) -> None:
    connection.execute("CREATE TEMP TABLE earlier AS SELECT n, raw, signature FROM record")
    for table in ("record", "bucket"):
        connection.execute(f"DELETE FROM {table}")  # noqa: S608
    _rebuild(connection)

    def store_some(pairs: Sequence[tuple[bytes, bytes]]) -> None:
        with _savepoint(connection):
            store(connection, _UNBOUNDED, [parse_stored(*pair) for pair in pairs])
            settle_listing(connection)

    last = 0
    while batch := connection.execute(
        "SELECT n, raw, signature FROM earlier WHERE n > ? ORDER BY n LIMIT ?", (last, _BATCH)
    ).fetchall():
        for _ in store_by_halves([pair for _, *pair in batch], store_some):
            connection.execute(_DROPS)
        last = batch[-1][0]
    connection.execute("DROP TABLE earlier")
    put_off(connection, 0)
    note_like(connection)


def _rebuild(connection: sqlite3.Connection) -> None:
    # The parts of a virtual table go with it, the indexes of a table too.
    query = """
    SELECT type, name FROM sqlite_master
    WHERE name NOT IN ('record', 'bucket', 'meta', 'believed', 'measuring', 'hide', 'hidden_author', 'hidden')
    AND sql IS NOT NULL
    AND EXISTS(SELECT 1 FROM sqlite_master WHERE name = 'record') ORDER BY sql NOT LIKE 'CREATE VIRTUAL TABLE%'
    """
    for kind, name in connection.execute(query).fetchall():
        connection.execute(f"DROP {kind} IF EXISTS {name}")
    make_tables(connection, "schema.sql")
    connection.execute("DELETE FROM meta WHERE key IN ('weighed', 'trusted')")
    touched = Touched(people=True, shared=shared_places(connection, 0))
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
    _settle_strays(connection, set(), 0)
    connection.execute(_DATE_ALL)
    settle(connection, touched)
    settle_pairs(connection, 0, ())
    put_off(connection, 0)
    note_like(connection)
    settle_listing(connection)


def put_off(connection: sqlite3.Connection, after: int) -> None:
    """Note that all runs that were stored after the record with this number are to be judged."""
    _note(connection, "SELECT n FROM record WHERE n > ? AND kind = 'run'", (after,))
    hold_places(connection, after)


def hold_places(connection: sqlite3.Connection, after: int) -> None:
    """Have rows of those runs after a record that are to be judged: until then they are just reported."""
    connection.execute(
        """INSERT OR IGNORE INTO standing(n, state) SELECT todo.key, 'reported'
        FROM todo CROSS JOIN record ON record.n = todo.key
        WHERE todo.step = 'verdicts' AND todo.key > ? AND record.kind = 'run'""",
        (after,),
    )


def note_author(connection: sqlite3.Connection, author: bytes) -> None:
    """Note that all runs of a device are to be judged again."""
    _note(connection, "SELECT n FROM record INDEXED BY record_author_seq WHERE author = ? AND kind = 'run'", (author,))


def note_devices(connection: sqlite3.Connection, rows: Iterable[tuple[bytes, bytes, float, bytes]]) -> None:
    """Note that programs are to be ranked again as these devices ran them."""
    keys = [(Device._make(row).key,) for row in rows]
    connection.executemany("INSERT OR IGNORE INTO todo VALUES('entries', ?)", keys)


def note_like(connection: sqlite3.Connection) -> None:
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
            connection.execute(_WITHDRAW, found)
            _unproject(connection, found[0], touched)
    _show(connection, tables, touched)


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
            hidden = [row for row in shown if connection.execute(query, (row[1], row[author])).fetchone()]
            shown = [row for row in shown if row not in hidden]
            if table == "run":
                connection.executemany("INSERT OR IGNORE INTO todo VALUES('verdicts', ?)", [row[:1] for row in hidden])
                ended = [tuple(row[at] for at in _OF_WITHDRAWN) for row in hidden if row[4] == RunStatus.OK]
                connection.executemany("INSERT INTO withdrawn_run VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?)", ended)
        if shown:
            connection.executemany(INSERTS[table], shown)
        if table == "run":
            connection.executemany("INSERT OR IGNORE INTO todo VALUES('listing', ?)", [row[:1] for row in shown])
            touched.programs.update((row[2], row[-1], row[6]) for row in shown)  # type: ignore[misc]


def _unproject(connection: sqlite3.Connection, n: int, touched: Touched) -> None:
    """Take a record's rows out of the views that withdrawals affect."""
    query = "SELECT task, seedless, budget, author FROM run WHERE n = ?"
    devices = connection.execute(query, (n,)).fetchall()
    touched.programs.update(device[:3] for device in devices)
    note_devices(connection, devices)
    _note(connection, "SELECT n FROM record WHERE n = ? AND kind = 'run'", (n,))
    _note_like(connection, "SELECT ?1 AS n", (n,))
    connection.execute(_NOTE_CLAIMED.format("= ?"), (n,))
    touched.tasks.update(task for (task,) in connection.execute("SELECT digest FROM task WHERE n = ?", (n,)))
    forget_pairs(connection, n)
    for table in WITHDRAWABLE:
        connection.execute(f"DELETE FROM {table} WHERE rowid = ?", (n,))  # noqa: S608


def _remove(connection: sqlite3.Connection, gone: Sequence[int], touched: Touched) -> None:
    """Take out all rows of records that are stored no more, and bring back what they had withdrawn."""
    targets: set[tuple[bytes, bytes]] = set()
    # Of a record that is gone the kind is not known here; what it said of a run, or was as a run, is.
    touched.people |= bool(gone)
    for n in gone:
        _unproject(connection, n, touched)
        _note_like(connection, _NAMED.format("= ?1"), (n,))
        query = "SELECT run FROM verification WHERE n = ?1 UNION SELECT run FROM commitment WHERE n = ?1"
        runs = [run for (run,) in connection.execute(query, (n,))]
        touched.said.update(runs)
        touched.said.update(run for (run,) in connection.execute("SELECT parent FROM lineage WHERE n = ?", (n,)))
        targets.update(connection.execute("SELECT target, author FROM withdrawal WHERE n = ?", (n,)).fetchall())
        touched.tasks.update(task for (task,) in connection.execute("SELECT task FROM rules WHERE n = ?", (n,)))
        for table in ("delegation", "merge"):
            query = f"SELECT device FROM {table} WHERE n = ?"  # noqa: S608
            touched.authors.update(device for (device,) in connection.execute(query, (n,)))
        for table in (*EVIDENCE, "stray", "standing", "fact", "copy", "withdrawn_run", "dated_back"):
            connection.execute(f"DELETE FROM {table} WHERE n = ?", (n,))  # noqa: S608
        connection.execute("DELETE FROM todo WHERE step = 'verdicts' AND key = ?", (n,))
    if gone:
        touched.said |= kin_of(connection, touched.gone)
        for place in touched.places:
            _note_like(connection, _NAMED_BY, place)
            later = "later.author = ? AND later.seq > ?"
            query = f"DELETE FROM dated_back WHERE n IN (SELECT n FROM record AS later WHERE {later})"  # noqa: S608
            connection.execute(query, place)
            connection.execute(_DATE_BACK.format(_LATEST.format(later)), place)
    for target in targets:
        query = "SELECT n, raw, signature FROM record WHERE id = ? AND author = ?"
        for n, raw, signature in connection.execute(query, target).fetchall():
            _unproject(connection, n, touched)
            connection.execute("DELETE FROM withdrawn_run WHERE n = ?", (n,))
            tables = _tables([(n, parse_stored(raw, signature))])
            touched.tasks.update(row[2] for row in tables.get("task", []))  # type: ignore[misc]
            _show(connection, tables, touched)
            touched.shown.add(n)
            _note_like(connection, "SELECT ?1 AS n", (n,))
            connection.execute(_NOTE_CLAIMED.format("= ?"), (n,))
