"""Forks: where one author has two records of one number, and from which of its records on it is in doubt."""

from __future__ import annotations

import sqlite3

from autoresearch.log.derive import copies, verdicts
from autoresearch.log.derive.step import Changes, Step
from autoresearch.log.rows import Program
from autoresearch.log.tables.records import merged_up_to


def change(connection: sqlite3.Connection, changes: Changes) -> None:
    """Find the forks at the touched places, and the authors whose runs come after one."""
    # A fork is where one author has two records with one sequence number.
    forked: list[tuple[bytes, int]] = []
    whole: list[tuple[bytes, int]] = []
    for place in changes.shared:
        query = "SELECT count(*) FROM record WHERE author = ? AND seq = ?"
        (forked if connection.execute(query, place).fetchone()[0] > 1 else whole).append(place)
    connection.executemany("INSERT OR IGNORE INTO fork VALUES(?, ?)", forked)
    if connection.execute("SELECT EXISTS(SELECT 1 FROM fork)").fetchone()[0]:
        connection.executemany("DELETE FROM fork WHERE author = ? AND seq = ?", whole)
    for author in {author for author, _ in changes.places} | changes.authors:
        changes.programs |= _find_suspect(connection, author)


def _find_suspect(connection: sqlite3.Connection, author: bytes) -> set[Program]:
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
    verdicts.note_query(connection, "SELECT n FROM run WHERE author = ? AND seq >= ?", (author, first))
    copies.note_like(connection, copies.NAMED_BY, (author, first))
    query = "SELECT DISTINCT task, seedless, budget FROM run WHERE author = ? AND seq >= ?"
    return set(connection.execute(query, (author, first)).fetchall())


FORKS = Step("forks", reads="record merge delegation run", writes="fork suspect", change=change)
