"""Each step reads and writes the tables that it names, and no two steps write one table."""

from __future__ import annotations

import sqlite3
from collections import defaultdict
from collections.abc import Callable
from functools import wraps

import pytest

from autoresearch.log.derive import driver, listing, steps, verdicts
from autoresearch.log.derive.step import Step
from autoresearch.log.log import Log
from autoresearch.log.standing.hiding import hide
from autoresearch.log.tables.hidden import HiddenRow
from autoresearch.record.kinds import Merge, Withdrawal
from autoresearch.trust.roster import Trust
from tests.log.standing.village import ANN, BEN, CEM, EVE, ROOTS, TRUST, Village
from tests.record.making import NETWORK

WRITES = {sqlite3.SQLITE_INSERT, sqlite3.SQLITE_UPDATE, sqlite3.SQLITE_DELETE}
# What every step may read and write: what is left to do, and counters.
SHARED = {"todo", "meta"}
# Functions of a step that one before it calls, because its own rows follow from theirs.
LENT = (
    (verdicts, "with_beliefs", "beliefs"),
    (verdicts, "add_new", "entries"),
    (listing, "find_leaders", "leaders"),
    (driver, "find_reach", "beliefs"),
)


class Watch:
    """Which tables each step reads and writes, by SQLite's own account."""

    def __init__(self) -> None:
        self.read: defaultdict[str, set[str]] = defaultdict(set)
        self.written: defaultdict[str, set[str]] = defaultdict(set)
        self._note: Callable | None = None

    def watching(self, name: str, function: Callable) -> Callable:
        def note(action: int, table: str | None, _: str | None, __: str | None, trigger: str | None) -> int:
            # A text index has tables of its own.
            if trigger is None and table and not table.startswith("sqlite_") and "_index_" not in table:
                if action == sqlite3.SQLITE_READ:
                    self.read[name].add(table)
                elif action in WRITES:
                    self.written[name].add(table)
            return sqlite3.SQLITE_OK

        @wraps(function)
        def watched(log: Log | sqlite3.Connection, *args: object) -> object:
            connection = log if isinstance(log, sqlite3.Connection) else log.reader.connection
            before, self._note = self._note, note
            connection.set_authorizer(note)
            try:
                return function(log, *args)
            finally:
                self._note = before
                connection.set_authorizer(before)

        return watched

    def step(self, step: Step) -> Step:
        parts = {part: getattr(step, part) for part in ("change", "arrive", "derive", "finish")}
        return step._replace(**{part: self.watching(step.name, value) for part, value in parts.items() if value})


@pytest.fixture
def watch(monkeypatch) -> Watch:
    watch = Watch()
    watched = tuple(map(watch.step, steps.STEPS))
    monkeypatch.setattr(steps, "STEPS", watched)
    monkeypatch.setattr(driver, "STEPS", watched)
    for module, function, step in LENT:
        monkeypatch.setattr(module, function, watch.watching(step, getattr(module, function)))
    return watch


@pytest.mark.slow
def test_a_step_reads_and_writes_the_tables_that_it_names(tmp_path, watch) -> None:
    with Log.open(tmp_path / "log.sqlite", NETWORK, trust=TRUST) as log:
        village = Village(log)
        hide(log, [HiddenRow("nonsense", b"", "", 0)])
        first = village.run(1.5, "first", by=ANN)
        village.confirm(first, 2.0, 1.5)
        copy = village.run(1.5, "first", by=EVE)
        village.evaluate(copy, 9.0, BEN, CEM)
        village.run(1.4, "child", parent=first)
        with village.earlier(3_600_000):
            village.run(1.3, "late", by=EVE)
        village.append(EVE, "withdrawal", Withdrawal(), links=[copy.id])
        village.append(ROOTS[0], "merge", Merge(device=ANN.public, heads=[first.id]))
        log.trust = Trust()
        driver.settle(log, 60)
        log.writer.rebuild()
        driver.settle(log, 60)
    written = {step.name: watch.written[step.name] - SHARED - {*step.writes.split()} for step in steps.STEPS}
    assert {name: tables for name, tables in written.items() if tables} == {}, "writes that are not named"
    named = {step.name: {*step.reads.split(), *step.writes.split()} | SHARED for step in steps.STEPS}
    read = {name: watch.read[name] - tables for name, tables in named.items()}
    assert {name: tables for name, tables in read.items() if tables} == {}, "reads that are not named"


def test_a_table_is_written_by_one_step(watch) -> None:
    writers = [table for step in steps.STEPS for table in {*step.writes.split()} - SHARED]
    assert sorted(writers) == sorted(set(writers))
