"""Programs at a budget, all their counted runs together: a table that follows from records, whoever is trusted."""

from __future__ import annotations

import sqlite3

from autoresearch.judging.statistics import CountedRun, TaskRules, pool, rank
from autoresearch.log.connection import COUNTS, SUSPECT
from autoresearch.log.derive import copies, verdicts
from autoresearch.log.derive.step import Changes, Step
from autoresearch.log.rows import Program
from autoresearch.log.tables.runs import RULES, rules_in

# After a fork that no merge ended a run counts only when others verified it. Who counts is not known here: a program,
# which is everybody's word, leaves such runs out.
_COUNTED = f"""
SELECT run.time, run.id, run.value, run.author, run.replicate, run.device, run.source_digest FROM run {SUSPECT}
WHERE run.task = ? AND run.seedless = ? AND run.budget = ? AND {COUNTS} AND suspect.author IS NULL
"""  # noqa: S608


def change(connection: sqlite3.Connection, changes: Changes) -> None:
    """Take in the rules of the touched tasks, and rank the touched programs again."""
    for task in changes.tasks:
        changes.programs |= _take_in_task(connection, task)
    _rank_programs(connection, changes.programs)
    if changes.tasks:
        connection.execute("INSERT INTO meta VALUES('tasks', 1) ON CONFLICT DO UPDATE SET value = value + 1")


def _take_in_task(connection: sqlite3.Connection, task: bytes) -> set[Program]:
    """Note whether a task's rules and definition are known, and return the programs for which that changes."""
    before = connection.execute("SELECT rules, defined FROM ruled WHERE task = ?", (task,)).fetchone() or (0, 0)
    query = "SELECT EXISTS(SELECT 1 FROM rules WHERE task = ?1), EXISTS(SELECT 1 FROM task WHERE digest = ?1)"
    after = connection.execute(query, (task,)).fetchone()
    if before == after:
        return set()
    connection.execute("INSERT OR REPLACE INTO ruled VALUES(?, ?, ?)", (task, *after))
    verdicts.note_query(connection, "SELECT n FROM record WHERE task = ? AND kind = 'run'", (task,))
    copies.note_task(connection, task)
    query = "SELECT DISTINCT task, seedless, budget FROM run WHERE task = ?"
    return set(connection.execute(query, (task,)).fetchall()) if before[0] != after[0] else set()


def _rank_programs(connection: sqlite3.Connection, programs: set[Program]) -> None:
    rules: dict[bytes, TaskRules | None] = {}
    gone, ranked_programs = [], []
    for program in programs:
        task, _, budget = program
        if task not in rules:
            rules[task] = _rules_of(connection, task)
        ruling = rules[task]
        runs = (CountedRun(*row) for row in connection.execute(_COUNTED, program))
        pooled = pool(runs, clocked=bool(ruling and ruling.clocked))
        if pooled is None:
            gone.append(program)
            continue
        ranked = rank(pooled.mean, pooled.runs, ruling) if ruling and ruling.ranks(budget) else None
        ranked_programs.append((*program, pooled.runs, pooled.mean, pooled.first.id, pooled.first.time, ranked))
    connection.executemany("DELETE FROM program WHERE task = ? AND seedless = ? AND budget = ?", gone)
    connection.executemany("INSERT OR REPLACE INTO program VALUES(?, ?, ?, ?, ?, ?, ?, ?)", ranked_programs)


def _rules_of(connection: sqlite3.Connection, task: bytes) -> TaskRules | None:
    """The rules of a task; all who publish it publish the same, because they are part of its digest."""
    rules = connection.execute(RULES, (task,)).fetchone()
    return rules_in(rules) if rules else None


PROGRAMS = Step("programs", reads="record rules task run suspect copy", writes="ruled program", change=change)
