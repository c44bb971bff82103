"""Rows that lists and charts are read from: in any order of arrival what a plain pass over the runs says."""

from __future__ import annotations

import math
import sqlite3
from collections import Counter
from dataclasses import replace
from functools import cache
from hashlib import sha256
from itertools import accumulate

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from autoresearch.log.connection import Reader, make_tables
from autoresearch.log.derive import leaders, listing
from autoresearch.log.derive.listing import settle_listing
from autoresearch.log.tables import filters as questions
from autoresearch.log.tables.filters import Filter, OwnDevice

TASKS = {b"a": ("minimize", 0), b"b": ("maximize", 1)}
TABLES = ("listing", "tally", "slot", "frontier")
MINUTES_MS = 60_000
NUMBERS = st.integers(0, 13)
VALUES = st.sampled_from([0.5, 0.75, 1.0, 1.25, 1.5, 1.75, 2.0])
# A run as its record says it: task, minutes, status, value, parent, hardware. Its number and id are its place.
RUNS = st.lists(
    st.tuples(
        st.sampled_from(sorted(TASKS)),
        st.sampled_from([0, 1, 2, 40, 41, 90, 3_000, 9_000]),
        st.sampled_from(["ok", "ok", "ok", "ok", "crashed"]),
        VALUES,
        st.none() | NUMBERS,
        st.sampled_from(["one card", "another"]),
    ),
    min_size=14,
    max_size=14,
)
JUDGED = st.tuples(
    st.sampled_from(["reported", "confirmed", "confirmed", "refuted"]),
    st.none() | VALUES,
    st.none() | VALUES,
    st.booleans(),
    st.sampled_from([True, True, True, False]),
)
# All runs come and are judged well, before anything else happens.
BEGINNING = st.permutations(range(14)).map(
    lambda order: [(n, what) for n in order for what in ("come", ("confirmed", None, None, True, True))]
)
MORE = st.lists(st.tuples(NUMBERS, st.sampled_from(["come", "come", "come", "go"]) | JUDGED), max_size=40)
STEPS = st.tuples(st.just([]) | BEGINNING, MORE).map(lambda steps: steps[0] + steps[1])


def name(number: int) -> bytes:
    return sha256(b"%d" % number).digest()


@cache
def empty() -> bytes:
    """The tables of an empty log."""
    connection = sqlite3.connect(":memory:", isolation_level=None)
    make_tables(connection, "schema.sql")
    return connection.serialize()


class Table:
    """Tables of a log, with runs that come, go and are judged."""

    def __init__(self, runs: list[tuple]) -> None:
        self.connection = sqlite3.connect(":memory:", isolation_level=None)
        self.connection.deserialize(empty())
        self.runs = runs
        for n, (task, (direction, clocked)) in enumerate(TASKS.items(), 100):
            self.connection.execute("INSERT INTO rules VALUES(?, ?, ?, 0.1, 1, ?, 0)", (n, task, direction, clocked))

    def come(self, n: int) -> None:
        """A run is published, or shown again after its withdrawal was taken out."""
        task, minutes, status, value, parent, device = self.runs[n]
        if self.connection.execute("SELECT 1 FROM run WHERE n = ?", (n,)).fetchone():
            return
        above = None if parent is None else name(parent)
        first = (n, name(n), b"%d" % (n % 3), n, minutes * MINUTES_MS, "run", task, b"", b"")
        self.connection.execute("INSERT OR IGNORE INTO record VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?)", first)
        if above:
            self.connection.execute("INSERT OR IGNORE INTO lineage VALUES(?, ?)", (n, above))
        row = (n, name(n), task, "", status, value, 1, b"", 0, above, None, b"%d" % (n % 3), n, minutes * MINUTES_MS)
        marks = ", ".join("?" * 20)
        self.connection.execute(f"INSERT INTO run VALUES({marks})", (*row, "", b"{}", None, device, 10 + n, b""))
        self.connection.execute("INSERT OR IGNORE INTO todo VALUES('listing', ?)", (n,))

    def go(self, n: int) -> None:
        """A run is withdrawn."""
        self.connection.execute("DELETE FROM run WHERE n = ?", (n,))

    def judge(self, n: int, state: str, value: float | None, gain: float | None, attested: bool, fair: bool) -> None:
        """Verifiers say something, or others are trusted."""
        columns = [row[1] for row in self.connection.execute("PRAGMA table_info(standing)")]
        fields = {"n": n, "state": state, "value": value, "improvement": gain, "attested": attested, "compared": fair}
        row = [fields.get(column, None if column == "error" else 0) for column in columns]
        self.connection.execute(f"INSERT OR REPLACE INTO standing VALUES({', '.join('?' * len(row))})", row)

    def act(self, n: int, what: str | tuple) -> None:
        """A step of a story."""
        if what == "come":
            self.come(n)
        elif what == "go":
            self.go(n)
        else:
            self.judge(n, *what)

    def dump(self) -> dict[str, list[tuple]]:
        """All rows."""
        return {table: sorted(self.connection.execute(f"SELECT * FROM {table}"), key=repr) for table in TABLES}

    def plain(self) -> dict[str, list[tuple]]:
        """The same from one pass over all runs."""
        by_name: dict[str, list[tuple]] = {table: [] for table in TABLES}
        run_numbers = {n for (n,) in self.connection.execute("SELECT n FROM run")}
        states = {
            n: row
            for n, *row in self.connection.execute(
                "SELECT n, state, value, improvement, attested, compared FROM standing"
            )
        }
        numbers = {name(n): n for n in run_numbers}
        best: dict[tuple, float] = {}
        tally, slots = Counter(), Counter()
        for n in sorted(run_numbers, key=lambda n: (self.runs[n][1], name(n))):
            task, minutes, status, value, parent, device = self.runs[n]
            state, verified, gain, attested, fair = states.get(n, ["reported", None, None, 0, 0])
            sign, clocked, time = (1 if TASKS[task][0] == "minimize" else -1), TASKS[task][1], minutes * MINUTES_MS
            reported = value if status == "ok" else None
            latest_value = reported if verified is None else verified
            above = self.runs[numbers[name(parent)]] if parent is not None and name(parent) in numbers else None
            delta = None
            if gain is not None:
                delta = -sign * gain
            elif above and above[0] == task and above[2] == "ok" and reported is not None:
                delta = reported - above[3]
            fair = fair and reported is not None
            hardware = device if clocked and fair else ""
            claim = sign * reported if fair and attested and state in ("reported", "confirmed") else None
            sure = sign * latest_value if fair and state == "confirmed" else None
            mark = "failed" if status != "ok" else state
            zeros = 32 - int.from_bytes(name(n)[:4]).bit_length()
            by_name["listing"].append((n, task, time, mark, latest_value, delta, hardware, claim, sure, zeros))
            for kind, key in enumerate((claim, sure)):
                course = (task, hardware, kind)
                if key is not None and key < best.get(course, math.inf):
                    best[course] = key
                    by_name["frontier"].append((*course, time, name(n), n, key))
            tally[task, b"%d" % (n % 3), device, status, mark] += 1
            for level, width in enumerate((2**21, 2**27)):
                slots[task, level, time // width, "runs"] += 1
                slots[task, level, time // width, "cpu"] += 10 + n
        by_name["tally"] = [(*key, runs) for key, runs in tally.items()]
        by_name["slot"] = [(*key[:3], runs, slots[*key[:3], "cpu"]) for key, runs in slots.items() if key[3] == "runs"]
        return {table: sorted(rows, key=repr) for table, rows in by_name.items()}


@pytest.mark.parametrize("at_once", [1, 2_000])
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(runs=RUNS, steps=STEPS, batch=st.integers(1, 9))
def test_rows_are_those_of_one_pass_over_all_runs(monkeypatch, at_once: int, runs, steps, batch: int) -> None:
    monkeypatch.setattr(leaders, "READ_AT_ONCE", at_once)
    monkeypatch.setattr(listing, "PIECE", at_once)
    table = Table(runs)
    for place, (n, what) in enumerate(steps, 1):
        table.act(n, what)
        if place % batch == 0 or place == len(steps):
            settle_listing(table.connection)
            assert table.dump() == table.plain()
    table.connection.close()


def test_what_two_runs_hid_leads_after_the_one_that_is_lost() -> None:
    """At once the best is lost and one that was no candidate leads, but a better one after it was hidden."""
    values = {0: 2.0, 1: 0.5, 2: 1.5, 3: 0.75}
    table = Table([(b"a", n, "ok", values.get(n, 2.0), None, "one card") for n in range(14)])
    for n in values:
        table.come(n)
        table.judge(n, "reported", None, None, True, n != 2)
    settle_listing(table.connection)
    assert [row[5] for row in table.dump()["frontier"]] == [0, 1]
    table.judge(1, "refuted", None, None, True, True)
    table.judge(2, "reported", None, None, True, True)
    settle_listing(table.connection)
    assert [row[5] for row in table.dump()["frontier"]] == [0, 2, 3]
    table.connection.close()


def asked_of(table: Table, number: int, picked: list[int]) -> Filter:
    """A filter of some kind."""
    task = b"a" if number % 2 else b"b"
    runs = table.runs
    minutes = sorted(runs[n][1] for n in picked)
    kinds: list[dict[str, object]] = [
        {},
        {"until": picked[0]},
        {"hardware": "another"},
        {"authors": frozenset({b"%d" % (picked[0] % 3)})},
        {"authors": frozenset({b"0"}), "own": (OwnDevice(b"1", 0, minutes[-1] * MINUTES_MS),)},
        {"authors": frozenset(), "own": (OwnDevice(b"2", minutes[0] * MINUTES_MS, 1 << 60),), "until": picked[0]},
        {"ids": (min(name(n) for n in picked), max(name(n) for n in picked))},
        {"since": (minutes[0] * MINUTES_MS, name(picked[0])), "to": (minutes[-1] * MINUTES_MS, name(picked[-1]))},
    ]
    return Filter(task, board="" if task == b"a" else "one card", **kinds[number % len(kinds)])  # type: ignore[arg-type]


MARKS = st.sets(st.sampled_from(["leading", "reported", "failed", "confirmed", "refuted"]))


@pytest.mark.parametrize("small", [0, 10_000])
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    runs=RUNS,
    steps=STEPS,
    number=st.integers(0, 100),
    picked=st.lists(NUMBERS, min_size=2, max_size=6),
    marks=MARKS,
    order=st.sampled_from(["time", "value", "change", "cost"]),
    falling=st.booleans(),
    cut=st.integers(1, 5),
)
def test_a_filter_finds_what_looking_at_each_run_finds(
    monkeypatch, *, small: int, runs, steps, number: int, picked, marks, order, falling: bool, cut: int
) -> None:
    monkeypatch.setattr(questions, "_SET_MOST", small)
    table = Table(runs)
    for n, what in steps:
        table.act(n, what)
    settle_listing(table.connection)
    reader = Reader(table.connection)
    result, every = asked_of(table, number, picked), table.plain()
    led = {
        (sure, n)
        for task, device, sure, _, _, n, _ in every["frontier"]
        if (task, device) == (result.task, result.board)
    }
    rows = {}
    for n, task, time, mark, value, delta, *_ in every["listing"]:
        device, author, place = runs[n][5], b"%d" % (n % 3), (time, name(n))
        theirs = result.authors is None or author in result.authors
        theirs |= any(own.device == author and own.start_ms <= time < own.end_ms for own in result.own)
        fits = task == result.task and theirs and (not result.until or n <= result.until)
        fits &= result.hardware in ("", device) and (not result.ids or result.ids[0] <= name(n) <= result.ids[1])
        if fits and result.since <= place and (not result.to or place < result.to):
            key = {"time": time, "value": value, "change": delta, "cost": 10 + n}[order]
            rows[n] = "leading" if mark == "reported" and (0, n) in led else mark, key, place
    listing_ = questions.Listing(reader)
    if not result.to and result.since == (0, b""):
        assert listing_.counts(result).marks == Counter(mark for mark, _, _ in rows.values())
    target = [n for n, (mark, _, _) in rows.items() if not marks or mark in marks]
    sign = -1 if falling else 1
    with_place = sorted(target, key=lambda n: rows[n][2], reverse=falling and order == "time")
    expected = with_place
    if order != "time":
        with_key = sorted((n for n in with_place if rows[n][1] is not None), key=lambda n: sign * rows[n][1])
        expected = [*with_key, *(n for n in with_place if rows[n][1] is None)]
    requests = replace(result, marks=frozenset(marks))
    views = [listing_.page(requests, order, falling=falling, limit=cut, skip=skip) for skip in range(0, 15, cut)]
    assert [n for page in views for n in page] == expected
    facts = listing_.facts(requests, range(14))
    assert list(facts) == sorted(target, key=lambda n: rows[n][2])
    assert {n for n, run in facts.items() if run.led_by_claim} == {n for n in target if (0, n) in led}
    assert {n for n, run in facts.items() if run.leads} == {n for n in target if (1, n) in led}
    some = [run.n for kinds in ("plain", "marked") for run in listing_.sample(requests, kinds, cut)]
    assert sorted(some) == sorted(n for n in target if int.from_bytes(name(n)[:4]) < 1 << 32 - cut)
    frontier = {n for task, *_, n, _ in every["frontier"] if task == result.task}
    plain = {"reported", "failed"} if falling else {mark for *_, mark, _, _, _, _, _, _ in every["listing"]}
    in_sample = [
        name(n)
        for n, task, _, mark, *_ in every["listing"]
        if task == result.task and (int.from_bytes(name(n)[:4]) < 1 << 32 - cut or n in frontier or mark not in plain)
    ]
    columns = listing_.columns(Filter(result.task, result.board), 14, zeros=cut, marked=falling)
    assert sorted(columns.id) == sorted(in_sample)
    table.connection.close()


@settings(max_examples=40, deadline=None)
@given(runs=RUNS, steps=STEPS, least=st.integers(0, 300))
def test_places_are_those_of_counting(runs, steps, least: int) -> None:
    table = Table(runs)
    for n, what in steps:
        table.act(n, what)
    settle_listing(table.connection)
    for task in TASKS:
        places = questions.Listing(Reader(table.connection)).places(task)
        run_costs = sorted((row[2], name(row[0]), 10 + row[0]) for row in table.plain()["listing"] if row[1] == task)
        costs = list(accumulate(cost for _, _, cost in run_costs))
        assert places.total == len(run_costs)
        numbered = [(run[:2], (at, cost)) for at, (run, cost) in enumerate(zip(run_costs, costs, strict=True), 1)]
        for some in numbered, numbered[::2], numbered[::-1], numbered + numbered:
            assert places.of(place for place, _ in some) == [sums for _, sums in some]
        for axis, sums in (("number", list(range(1, len(run_costs) + 1))), ("cost", costs)):
            first = next((run[:2] for run, sum_ in zip(run_costs, sums, strict=True) if sum_ >= least), None)
            assert places.at(axis, least) == first
    table.connection.close()


@settings(max_examples=40, deadline=None)
@given(runs=RUNS, steps=STEPS, minutes=st.sampled_from([0, 1, 41, 3_001, 10_000]), hidden=st.sets(NUMBERS))
def test_what_came_since_a_time_is_counted_alike_on_both_sides_of_it(runs, steps, minutes: int, hidden) -> None:
    table = Table(runs)
    for n, what in steps:
        table.act(n, what)
    settle_listing(table.connection)
    table.connection.executemany("INSERT INTO hidden VALUES(?, ?)", [(n, n) for n in hidden])
    table.connection.execute("INSERT INTO hidden_author VALUES(?, ?)", (b"1", b"1"))
    for task in TASKS:
        visible = Counter(
            (b"%d" % (n % 3), mark)
            for n, of, time, mark, *_ in table.plain()["listing"]
            if of == task and time >= minutes * MINUTES_MS and n not in hidden and n % 3 != 1
        )
        counted = questions.Listing(Reader(table.connection)).since(task, minutes * MINUTES_MS)
        assert {(author, mark): runs for author, mark, runs in counted} == visible
    table.connection.close()
