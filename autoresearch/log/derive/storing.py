"""Records into the rows of their kinds and out of them again, and what follows by the steps that take no trust list.

That is computed anew from the tables for whatever was touched, so that it is a function of the records kept and not of
the way they came in.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager

from autoresearch.log.connection import is_by_values, make_tables, store_by_halves
from autoresearch.log.derive import copies, pairs, verdicts
from autoresearch.log.derive.people import find_strays
from autoresearch.log.derive.step import Changes, done, note
from autoresearch.log.derive.steps import change_all, finish_all
from autoresearch.log.projection import EVIDENCE, INSERTS, WITHDRAWABLE, Row, rows
from autoresearch.log.quota import Stored, enforce, shared_places
from autoresearch.log.tables.records import ABOUT_PEOPLE
from autoresearch.record.kinds import task_of_body
from autoresearch.record.record import Network, Record, parse_stored
from autoresearch.words import RunStatus

_WITHDRAW = """
INSERT OR IGNORE INTO withdrawn_run SELECT n, id, task, source_digest, checkpoint, replicate, author, time, parent
FROM run WHERE n = ? AND status = 'ok'
"""
# The places of these columns in the row of a run.
_OF_WITHDRAWN = (0, 1, 2, 7, 16, 8, 11, 13, 9)
_BATCH = 1000
_DROPS = "INSERT INTO meta VALUES('drops', 1) ON CONFLICT DO UPDATE SET value = value + 1"


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
    changes = _changed_by(dropped)
    changes.places.update((r.author, r.seq) for r in records)
    changes.shared |= shared
    changes.after = first - 1
    changes.people = any(record.kind in ABOUT_PEOPLE for record in records)
    remaining = [(n, record) for n, record in numbered if n not in over]
    _project(connection, remaining, changes)
    # Last, because a withdrawal that goes may bring back a record that has just come.
    old = [n for n in over if n < first]
    _remove(connection, old, changes)
    change_all(connection, changes)
    if old:
        connection.execute(_DROPS)
    return inserted, dropped


def discard(connection: sqlite3.Connection, over: list[Stored], last: int) -> None:
    """Take out all that follows from records that were dropped. Runs inside the caller's transaction.

    Those after the row ``last`` came in the same transaction: nobody has seen them.
    """
    changes = _changed_by(over)
    _remove(connection, [stored[0] for stored in over], changes)
    change_all(connection, changes)
    if any(stored[0] <= last for stored in over):
        connection.execute(_DROPS)


def _changed_by(records: Iterable[Stored]) -> Changes:
    """What is computed anew because these records went, whatever they say."""
    places = {(author, seq) for _, _, author, seq, _ in records}
    return Changes(places=places, shared=set(places), gone={record_id for _, record_id, _, _, _ in records})


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
            finish_all(connection)

    last = 0
    while batch := connection.execute(
        "SELECT n, raw, signature FROM earlier WHERE n > ? ORDER BY n LIMIT ?", (last, _BATCH)
    ).fetchall():
        for _ in store_by_halves([pair for _, *pair in batch], store_some):
            connection.execute(_DROPS)
        last = batch[-1][0]
    connection.execute("DROP TABLE earlier")
    verdicts.put_off(connection, 0)
    copies.note_all(connection)


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
    changes = Changes(people=True, shared=shared_places(connection, 0))
    last = 0
    while batch := connection.execute(
        "SELECT n, raw, signature FROM record WHERE n > ? ORDER BY n LIMIT ?", (last, _BATCH)
    ).fetchall():
        numbered = [(n, parse_stored(raw, signature)) for n, raw, signature in batch]
        connection.executemany(
            "UPDATE record SET task = ? WHERE n = ?", [(task_of_body(r.body), n) for n, r in numbered]
        )
        changes.places.update((record.author, record.seq) for _, record in numbered)
        _project(connection, numbered, changes)
        last = batch[-1][0]
    find_strays(connection, set(), 0)
    copies.date_all(connection)
    change_all(connection, changes)
    pairs.change(connection, Changes(after=0))
    verdicts.put_off(connection, 0)
    copies.note_all(connection)
    finish_all(connection)


def _project(connection: sqlite3.Connection, numbered: Iterable[tuple[int, Record]], changes: Changes) -> None:
    """Insert the rows of records, heeding withdrawals that are there or come with them."""
    tables = _tables(numbered)
    for table in EVIDENCE:
        if table in tables:
            connection.executemany(INSERTS[table], tables[table])
    changes.tasks.update(row[1] for row in tables.get("rules", []))  # type: ignore[misc]
    changes.tasks.update(row[2] for row in tables.get("task", []))  # type: ignore[misc]
    changes.people |= "fraud" in tables
    changes.authors.update(row[2] for table in ("delegation", "merge") for row in tables.get(table, []))  # type: ignore[misc]
    for _, target, author in tables.get("withdrawal", []):
        target_row = connection.execute("SELECT n FROM record WHERE id = ? AND author = ?", (target, author)).fetchone()
        if target_row:
            connection.execute(_WITHDRAW, target_row)
            _unproject(connection, target_row[0], changes)
    _show(connection, tables, changes)


def _tables(numbered: Iterable[tuple[int, Record]]) -> dict[str, list[Row]]:
    tables: dict[str, list[Row]] = {}
    for n, record in numbered:
        for table, row in rows(n, record):
            tables.setdefault(table, []).append(row)
    return tables


def _show(connection: sqlite3.Connection, tables: dict[str, list[Row]], changes: Changes) -> None:
    """Insert those rows that a withdrawal takes away, unless one has done so already."""
    withdrawals = connection.execute("SELECT EXISTS(SELECT 1 FROM withdrawal)").fetchone()[0]
    query = "SELECT 1 FROM withdrawal WHERE target = ? AND author = ? LIMIT 1"
    for table, author in WITHDRAWABLE.items():
        present = tables.get(table, [])
        if withdrawals:
            hidden = [row for row in present if connection.execute(query, (row[1], row[author])).fetchone()]
            present = [row for row in present if row not in hidden]
            if table == "run":
                note(connection, "verdicts", [row[0] for row in hidden])  # type: ignore[misc]
                ended = [tuple(row[at] for at in _OF_WITHDRAWN) for row in hidden if row[4] == RunStatus.OK]
                connection.executemany("INSERT INTO withdrawn_run VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?)", ended)
        if present:
            connection.executemany(INSERTS[table], present)
        if table == "run":
            note(connection, "listing", [row[0] for row in present])  # type: ignore[misc]
            changes.programs.update((row[2], row[-1], row[6]) for row in present)  # type: ignore[misc]


def _unproject(connection: sqlite3.Connection, n: int, changes: Changes) -> None:
    """Take a record's rows out of the views that withdrawals affect."""
    query = "SELECT task, seedless, budget, author FROM run WHERE n = ?"
    devices = connection.execute(query, (n,)).fetchall()
    changes.programs.update(device[:3] for device in devices)
    copies.note_devices(connection, devices)
    verdicts.note_query(connection, "SELECT n FROM record WHERE n = ? AND kind = 'run'", (n,))
    copies.note_run(connection, n)
    changes.tasks.update(task for (task,) in connection.execute("SELECT digest FROM task WHERE n = ?", (n,)))
    pairs.forget_pairs(connection, n)
    for table in WITHDRAWABLE:
        connection.execute(f"DELETE FROM {table} WHERE rowid = ?", (n,))  # noqa: S608


def _remove(connection: sqlite3.Connection, gone: Sequence[int], changes: Changes) -> None:
    """Take out all rows of records that are stored no more, and bring back what they had withdrawn."""
    targets: set[tuple[bytes, bytes]] = set()
    # Of a record that is gone the kind is not known here; what it said of a run, or was as a run, is.
    changes.people |= bool(gone)
    for n in gone:
        _unproject(connection, n, changes)
        copies.note_named(connection, n)
        query = "SELECT run FROM verification WHERE n = ?1 UNION SELECT run FROM commitment WHERE n = ?1"
        runs = [run for (run,) in connection.execute(query, (n,))]
        changes.reviewed.update(runs)
        changes.reviewed.update(run for (run,) in connection.execute("SELECT parent FROM lineage WHERE n = ?", (n,)))
        targets.update(connection.execute("SELECT target, author FROM withdrawal WHERE n = ?", (n,)).fetchall())
        changes.tasks.update(task for (task,) in connection.execute("SELECT task FROM rules WHERE n = ?", (n,)))
        for table in ("delegation", "merge"):
            query = f"SELECT device FROM {table} WHERE n = ?"  # noqa: S608
            changes.authors.update(device for (device,) in connection.execute(query, (n,)))
        for table in (*EVIDENCE, "stray", "standing", "fact", "copy", "withdrawn_run", "dated_back"):
            connection.execute(f"DELETE FROM {table} WHERE n = ?", (n,))  # noqa: S608
        done(connection, "verdicts", [n])
    if gone:
        changes.reviewed |= verdicts.kin_of(connection, changes.gone)
        copies.note_gone(connection, changes.places)
    for target in targets:
        query = "SELECT n, raw, signature FROM record WHERE id = ? AND author = ?"
        for n, raw, signature in connection.execute(query, target).fetchall():
            _unproject(connection, n, changes)
            connection.execute("DELETE FROM withdrawn_run WHERE n = ?", (n,))
            tables = _tables([(n, parse_stored(raw, signature))])
            changes.tasks.update(row[2] for row in tables.get("task", []))  # type: ignore[misc]
            _show(connection, tables, changes)
            changes.restored.add(n)
            copies.note_run(connection, n)
