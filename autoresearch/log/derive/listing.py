"""The rows that lists and charts of runs are read from: settled at the end of each transaction that changes a run.

A row is a function of the run, its standing, its task's rules and its parent. Sums take what a run adds to them and
give back what it added before, in whole numbers: so they do not depend on the order in which records came.
"""

from __future__ import annotations

import sqlite3
from collections import defaultdict
from collections.abc import Iterable
from typing import NamedTuple

from autoresearch.log.derive.leaders import Course, NewValue, find_leaders
from autoresearch.log.derive.step import Step
from autoresearch.log.tables.places import SLOT_BITS
from autoresearch.text import MINIMIZE, sign_of
from autoresearch.words import SOUND, RunMark, RunState, RunStatus

# So many runs are settled at once.
PIECE = 2_000
_OK, _FAILED = RunStatus.OK.value, RunMark.FAILED.value
_REPORTED = RunState.REPORTED.value
_CONFIRMED = RunState.CONFIRMED.value
_MAY_LEAD = frozenset(state.value for state in SOUND)
# The zero bits of so much of an id are counted.
_ID_BITS = 32
_LAST = "SELECT max(key) FROM (SELECT key FROM todo WHERE step = 'listing' ORDER BY key LIMIT ?)"
# A parent that comes or goes changes the difference that its children made.
_CHILDREN = """
INSERT OR IGNORE INTO todo SELECT 'listing', child.n FROM (
    SELECT run.id FROM todo CROSS JOIN run ON run.n = todo.key
    WHERE todo.step = 'listing' AND todo.key <= ?1 AND NOT EXISTS(SELECT 1 FROM listing WHERE listing.n = run.n)
    UNION ALL SELECT id FROM removed_run AS run
    WHERE n <= ?1 AND EXISTS(SELECT 1 FROM listing WHERE listing.n = run.n)
    AND NOT EXISTS(SELECT 1 FROM run AS shown WHERE shown.n = run.n)
) AS above CROSS JOIN lineage ON lineage.parent = above.id CROSS JOIN run AS child ON child.n = lineage.n
"""
_FACTS = """
SELECT run.n, run.task, run.time, run.id, run.author, run.device, run.status, run.cpu_ms, 1, run.value, above.status,
    iif(above.seedless = run.seedless AND above.source_digest <> run.source_digest, NULL, above.value),
    standing.state, standing.value, standing.improvement, standing.attested, standing.compared,
    run.replicate > 0 AND run.mode = 'experiment'
FROM todo CROSS JOIN run ON run.n = todo.key LEFT JOIN standing ON standing.n = run.n
LEFT JOIN record ON record.id = run.parent LEFT JOIN run AS above ON above.n = record.n AND above.task = run.task
WHERE todo.step = 'listing' AND todo.key <= ?1
UNION ALL SELECT *, 0, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL FROM removed_run AS run
WHERE n <= ?1 AND NOT EXISTS(SELECT 1 FROM run AS shown WHERE shown.n = run.n)
"""
_LISTED = """
SELECT listing.* FROM todo CROSS JOIN listing ON listing.n = todo.key WHERE todo.step = 'listing' AND todo.key <= ?1
"""
_ADD_TALLY = """
INSERT INTO tally VALUES(?, ?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET runs = runs + excluded.runs
"""
_DROP_TALLY = "DELETE FROM tally WHERE task = ? AND author = ? AND device = ? AND status = ? AND mark = ? AND runs = 0"
_ADD_SLOT = """
INSERT INTO slot VALUES(?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET runs = runs + excluded.runs,
    cpu_ms = cpu_ms + excluded.cpu_ms
"""
_DROP_SLOT = "DELETE FROM slot WHERE task = ? AND level = ? AND slot = ? AND runs = 0"


class Listed(NamedTuple):
    """A row of the table ``listing``."""

    n: int
    task: bytes
    time: int
    mark: str
    value: float | None
    delta: float | None
    hardware: str
    claim: float | None
    sure: float | None
    zeros: int


class _Facts(NamedTuple):
    """What a row follows from; without standing a run is only reported."""

    n: int
    task: bytes
    time: int
    id: bytes
    author: bytes
    device: str
    status: str
    cpu_ms: int
    is_there: int
    value: float | None
    parent_status: str | None
    parent_value: float | None
    state: str | None
    verified: float | None
    improvement: float | None
    attested: int | None
    compared: int | None
    repeats: int | None


_Changed = tuple[_Facts, Listed | None, Listed | None]


def settle_listing(connection: sqlite3.Connection) -> None:
    """List anew all runs that came, went or are judged in another way. Runs inside the caller's transaction."""
    rules: dict[bytes, tuple[float, bool]] = {}
    while (last := connection.execute(_LAST, (PIECE,)).fetchone()[0]) is not None:
        connection.execute(_CHILDREN, (last,))
        _settle_piece(connection, last, rules)
        connection.execute("DELETE FROM todo WHERE step = 'listing' AND key <= ?", (last,))
        connection.execute("DELETE FROM removed_run WHERE n <= ?", (last,))


def _settle_piece(connection: sqlite3.Connection, last: int, rules: dict[bytes, tuple[float, bool]]) -> None:
    """List the runs with the smallest numbers, up to this one."""
    before = {row[0]: Listed._make(row) for row in connection.execute(_LISTED, (last,))}
    changed: list[_Changed] = []
    for row in connection.execute(_FACTS, (last,)).fetchall():
        facts = _Facts._make(row)
        if facts.task not in rules:
            query = "SELECT direction, clocked FROM rules WHERE task = ? LIMIT 1"
            direction, clocked = connection.execute(query, (facts.task,)).fetchone() or (MINIMIZE, 0)
            rules[facts.task] = sign_of(direction), bool(clocked)
        sign, clocked = rules[facts.task]
        old, new = before.get(facts.n), _listed(facts, sign, clocked=clocked) if facts.is_there else None
        if old != new:
            changed.append((facts, old, new))
    connection.executemany("DELETE FROM listing WHERE n = ?", [(facts.n,) for facts, old, _ in changed if old])
    rows = [new for _, _, new in changed if new]
    connection.executemany("INSERT INTO listing VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", rows)
    _settle_sums(connection, changed)
    for course, changes in _changes(changed).items():
        find_leaders(connection, course, changes)


def _listed(facts: _Facts, sign: float, *, clocked: bool) -> Listed:
    """The row of a run."""
    failed = facts.status != _OK
    state = facts.state or _REPORTED
    reported = None if failed else facts.value
    value = reported if facts.verified is None else facts.verified
    delta: float | None = None
    if facts.improvement is not None:
        delta = -sign * facts.improvement
    elif reported is not None and facts.parent_status == _OK and facts.parent_value is not None:
        delta = reported - facts.parent_value
    compared = facts.compared and reported is not None
    # A lucky seed of a program is no progress.
    claims = compared and facts.attested and state in _MAY_LEAD and not facts.repeats
    return Listed(
        facts.n,
        facts.task,
        facts.time,
        _FAILED if failed else state,
        value,
        delta,
        facts.device if clocked and compared else "",
        sign * reported if claims and reported is not None else None,
        sign * value if compared and state == _CONFIRMED and value is not None else None,
        _ID_BITS - int.from_bytes(facts.id[: _ID_BITS // 8]).bit_length(),
    )


def _changes(changed: Iterable[_Changed]) -> dict[Course, list[NewValue]]:
    """Which runs may lead by another value than before, or may no longer. Their hardware stays as it is."""
    changes = defaultdict[Course, list[NewValue]](list)
    for facts, old, new in changed:
        for sure in (0, 1):
            was, now = (row and (row.sure if sure else row.claim) for row in (old, new))
            row = new if now is not None else old
            if was != now and row:
                changes[Course(facts.task, row.hardware, sure)].append(NewValue(facts.time, facts.id, facts.n, now))
    return changes


def _settle_sums(connection: sqlite3.Connection, changed: Iterable[_Changed]) -> None:
    tally = defaultdict[tuple[bytes, bytes, str, str, str], int](int)
    slots = defaultdict[tuple[bytes, int], list[int]](lambda: [0, 0])
    for facts, old, new in changed:
        if new:
            tally[facts.task, facts.author, facts.device, facts.status, new.mark] += 1
        if old:
            tally[facts.task, facts.author, facts.device, facts.status, old.mark] -= 1
        if not (old and new):
            sums, count = slots[facts.task, facts.time >> SLOT_BITS[0]], 1 if new else -1
            sums[0] += count
            sums[1] += count * facts.cpu_ms
    connection.executemany(_ADD_TALLY, [(*key, runs) for key, runs in tally.items() if runs])
    connection.executemany(_DROP_TALLY, [key for key, runs in tally.items() if runs < 0])
    for level, bits in enumerate(SLOT_BITS):
        up = bits - SLOT_BITS[0]
        connection.executemany(_ADD_SLOT, [(task, level, at >> up, *sums) for (task, at), sums in slots.items()])
        gone = [(task, level, at >> up) for (task, at), sums in slots.items() if sums[0] < 0]
        connection.executemany(_DROP_SLOT, gone)


LISTING = Step(
    "listing",
    reads="record run standing rules lineage",
    writes="listing tally slot removed_run",
    finish=settle_listing,
)
