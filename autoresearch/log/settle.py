"""What is computed from several records: forks, whose runs don't count until a merge, and the subjects' ranking.

Everything here is computed anew from the tables for whatever was touched, so that it is a function of the records kept
and not of the way they came in.
"""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass, field

from autoresearch.log.scoring import TaskRules, mean, rank

Subject = tuple[bytes, bytes, float]  # task, source digest, budget

_COUNTED = """
SELECT run.value, run.author, run.replicate, run.time, run.id, run.device FROM run
LEFT JOIN suspect ON suspect.author = run.author AND suspect.seq <= run.seq
WHERE run.task = ? AND run.source_digest = ? AND run.budget = ?
  AND run.status = 'ok' AND run.value IS NOT NULL AND suspect.author IS NULL
"""


@dataclass
class Touched:
    """What has to be computed anew."""

    authors: set[bytes] = field(default_factory=set)
    places: set[tuple[bytes, int]] = field(default_factory=set)  # author, seq
    tasks: set[bytes] = field(default_factory=set)
    subjects: set[Subject] = field(default_factory=set)


def settle(connection: sqlite3.Connection, touched: Touched) -> None:
    """Compute anew what depends on ``touched``: forks, then suspects, then subjects."""
    _settle_forks(connection, touched.places)
    for author in {author for author, _ in touched.places} | touched.authors:
        touched.subjects |= _settle_suspect(connection, author)
    for task in touched.tasks:
        touched.subjects |= _settle_task(connection, task)
    _settle_subjects(connection, touched.subjects)


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


def merged_up_to(connection: sqlite3.Connection, author: bytes) -> int:
    """The last sequence number of ``author`` that a merge by a root key, which delegated it, covers; 0 without one."""
    query = """
    SELECT max(record.seq) FROM merge JOIN record ON record.id = merge.head AND record.author = merge.device
    WHERE merge.device = ?1 AND merge.root IN (SELECT root FROM delegation WHERE device = ?1)
    """
    return int(connection.execute(query, (author,)).fetchone()[0] or 0)


def _settle_suspect(connection: sqlite3.Connection, author: bytes) -> set[Subject]:
    """Note from which record on the author's runs don't count, and return the subjects for which that changes."""
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


def _settle_task(connection: sqlite3.Connection, task: bytes) -> set[Subject]:
    """Note whether the task's rules are known, and return all its subjects when that has changed, else none."""
    before = connection.execute("SELECT 1 FROM ruled WHERE task = ?", (task,)).fetchone()
    after = connection.execute("SELECT 1 FROM rules WHERE task = ? LIMIT 1", (task,)).fetchone()
    if before == after:
        return set()
    statement = "INSERT INTO ruled VALUES(?)" if after else "DELETE FROM ruled WHERE task = ?"
    connection.execute(statement, (task,))
    query = "SELECT DISTINCT task, source_digest, budget FROM run WHERE task = ?"
    return set(connection.execute(query, (task,)).fetchall())


def _settle_subjects(connection: sqlite3.Connection, subjects: set[Subject]) -> None:
    rules: dict[bytes, TaskRules | None] = {}
    gone, there = [], []
    for subject in subjects:
        task, _, budget = subject
        if task not in rules:
            rules[task] = rules_of(connection, task)
        # One run for each author and replicate: doing the same again is no new evidence.
        counted: dict[tuple[bytes, int], tuple[int, bytes, float, str]] = {}
        for value, author, replicate, time, run, device in connection.execute(_COUNTED, subject):
            entry = (time, run, value, device)
            counted[author, replicate] = min(entry, counted.get((author, replicate), entry))
        if not counted:
            gone.append(subject)
            continue
        first_time, first, _, hardware = min(counted.values())
        ruling = rules[task]
        if ruling and ruling.clocked:  # what runs in the same time on other hardware is another experiment
            counted = {key: entry for key, entry in counted.items() if entry[3] == hardware}
        average = mean([entry[2] for entry in counted.values()])
        ranked = rank(average, len(counted), ruling) if ruling and ruling.budget == budget else None
        there.append((*subject, len(counted), average, first, first_time, ranked))
    connection.executemany("DELETE FROM subject WHERE task = ? AND source_digest = ? AND budget = ?", gone)
    connection.executemany("INSERT OR REPLACE INTO subject VALUES(?, ?, ?, ?, ?, ?, ?, ?)", there)


def rules_of(connection: sqlite3.Connection, task: bytes) -> TaskRules | None:
    """The rules of a task; all who publish it publish the same, because they are part of its digest."""
    query = "SELECT direction, noise, budget, clocked FROM rules WHERE task = ? LIMIT 1"
    found = connection.execute(query, (task,)).fetchone()
    if found is None:
        return None
    direction, noise, budget, clocked = found
    return TaskRules(direction, noise, budget, clocked=bool(clocked))
