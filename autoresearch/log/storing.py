"""Records into tables and out of them again: everything that one transaction changes."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Sequence

from autoresearch.log.derived_rows import Touched, settle, settle_all_strays
from autoresearch.log.projection import EVIDENCE, INSERTS, WITHDRAWABLE, Row, rows, task_of
from autoresearch.log.quota import Stored, drop, enforce
from autoresearch.log.schema import PROJECTION_VERSION
from autoresearch.records import Network, Record, parse_stored

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
        [(n, r.id, r.author, r.seq, r.time, r.kind, task_of(r.body), r.raw, r.signature) for n, r in numbered],
    )
    inserted: list[Stored] = [(n, r.id, r.author, r.seq, r.time) for n, r in numbered]
    dropped = enforce(connection, network, inserted)
    over = {stored[0] for stored in dropped}
    touched = _touched_by([*inserted, *dropped])
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
    """What is computed anew because these records came or went, whatever they say."""
    touched = Touched()
    for _, record_id, author, seq, _ in records:
        touched.places.add((author, seq))
        touched.records.add(record_id)
    return touched


def rebuild(connection: sqlite3.Connection) -> None:
    """Compute all projections anew from the records. Runs inside the caller's transaction."""
    for table in (*WITHDRAWABLE, *EVIDENCE, "program", "entry", "fork", "suspect", "ruled", "stray"):
        connection.execute(f"DELETE FROM {table}")  # noqa: S608
    touched = Touched()
    last = 0
    while batch := connection.execute(
        "SELECT n, raw, signature FROM record WHERE n > ? ORDER BY n LIMIT ?", (last, _BATCH)
    ).fetchall():
        numbered = [(n, parse_stored(raw, signature)) for n, raw, signature in batch]
        connection.executemany("UPDATE record SET task = ? WHERE n = ?", [(task_of(r.body), n) for n, r in numbered])
        touched.places.update((record.author, record.seq) for _, record in numbered)
        _project(connection, numbered, touched)
        last = batch[-1][0]
    settle_all_strays(connection)
    settle(connection, touched)
    connection.execute("INSERT OR REPLACE INTO meta VALUES('projection_version', ?)", (PROJECTION_VERSION,))


def _project(connection: sqlite3.Connection, numbered: Iterable[tuple[int, Record]], touched: Touched) -> None:
    """Insert the rows of records, heeding withdrawals that are there or come with them."""
    tables = _tables(numbered)
    for table in EVIDENCE:
        if table in tables:
            connection.executemany(INSERTS[table], tables[table])
    touched.tasks.update(row[1] for row in tables.get("rules", []))  # type: ignore[misc]
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
    for n in gone:
        _unproject(connection, n, touched)
        said = connection.execute("SELECT run FROM verification WHERE n = ?", (n,)).fetchall()
        _touch_programs_of(connection, (run for (run,) in said), touched)
        targets.update(connection.execute("SELECT target, author FROM withdrawal WHERE n = ?", (n,)).fetchall())
        touched.tasks.update(task for (task,) in connection.execute("SELECT task FROM rules WHERE n = ?", (n,)))
        for table in ("delegation", "merge"):
            query = f"SELECT device FROM {table} WHERE n = ?"  # noqa: S608
            touched.authors.update(device for (device,) in connection.execute(query, (n,)))
        for table in (*EVIDENCE, "stray"):
            connection.execute(f"DELETE FROM {table} WHERE n = ?", (n,))  # noqa: S608
    for target in targets:
        query = "SELECT n, raw, signature FROM record WHERE id = ? AND author = ?"
        for n, raw, signature in connection.execute(query, target).fetchall():
            _unproject(connection, n, touched)
            _show(connection, _tables([(n, parse_stored(raw, signature))]), touched)
