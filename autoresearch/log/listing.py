"""The rows that lists and charts of runs are read from: settled at the end of each transaction that changes a run.

A row is a function of the run, its standing, its task's rules and its parent. Sums take what a run adds to them and
give back what it added before, in whole numbers: so they do not depend on the order in which records came.

Also the runs that led their task: each better than all before it, by the stated time and then the id. As reported and
as confirmed; on a task whose budget is time for each kind of hardware. Runs come late, and leaders are lost when others
find them false: then those that they hid lead. These are looked for between the lost leader and the next one that is as
good, and read by value or by time, whichever are fewer.
"""

from __future__ import annotations

import math
import sqlite3
from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from autoresearch.text import MINIMIZE, sign_of
from autoresearch.words import SOUND, RunMark, RunState, RunStatus

# So many runs are read at once where hidden ones are looked for.
READ_AT_ONCE = 2_000
_NAMES = ("claim", "sure")
_BY_VALUE = """
SELECT listing.time, run.id, listing.n, listing.{name} FROM listing CROSS JOIN run ON run.n = listing.n
WHERE listing.task = ? AND listing.hardware = ? AND listing.{name} >= ? AND listing.{name} < ? LIMIT ?
"""
_BY_TIME = """
SELECT run.time, run.id, run.n, listing.{name}, listing.hardware FROM run INDEXED BY run_task_time
CROSS JOIN listing ON listing.n = run.n
WHERE run.task = ? AND run.time >= ? AND (run.time, run.id) > (?, ?) ORDER BY run.time, run.id LIMIT ?
"""
_LEADERS = """
SELECT time, id, n, value FROM frontier WHERE task = ? AND hardware = ? AND sure = ? ORDER BY time, id
"""


class Course(NamedTuple):
    """Which runs are compared: of a task, on hardware (empty: any), as reported or as confirmed."""

    task: bytes
    hardware: str
    sure: int


class Leader(NamedTuple):
    """A run that led. Smaller values are better, whatever the metric's direction."""

    time: int
    id: bytes
    n: int
    value: float

    @property
    def place(self) -> tuple[int, bytes]:
        """Its place in the order of runs."""
        return self.time, self.id


class Change(NamedTuple):
    """A run that came, went or is judged in another way; its value now, None where it may not lead."""

    time: int
    id: bytes
    n: int
    value: float | None


def leaders(runs: Iterable[Leader]) -> list[Leader]:
    """Those of the runs that are better than all before them, in order. Pure."""
    found: list[Leader] = []
    for run in sorted(runs):
        if not found or run.value < found[-1].value:
            found.append(run)
    return found


def settle_frontier(connection: sqlite3.Connection, course: Course, changes: Sequence[Change]) -> None:
    """Find who leads after changes of some runs, whose rows in ``listing`` are those of now."""
    before = [Leader._make(row) for row in connection.execute(_LEADERS, course)]
    changed = {change.n: change for change in changes}
    came = [Leader(*change[:3], change.value) for change in changes if change.value is not None]
    after = leaders([*(leader for leader in before if leader.n not in changed), *came])
    for leader in before:
        change = changed.get(leader.n)
        if change and (change.value is None or change.value > leader.value):
            after = leaders([*after, *_hidden(connection, course, after, leader)])
    old, new = set(before), set(after)
    delete = "DELETE FROM frontier WHERE task = ? AND hardware = ? AND sure = ? AND time = ? AND id = ?"
    connection.executemany(delete, [(*course, *leader.place) for leader in old - new])
    connection.executemany("INSERT INTO frontier VALUES(?, ?, ?, ?, ?, ?, ?)", [(*course, *run) for run in new - old])


def _hidden(connection: sqlite3.Connection, course: Course, after: Sequence[Leader], lost: Leader) -> list[Leader]:
    """The runs that a leader hid, with some that still do not lead."""
    limit = min((leader.value for leader in after if leader.place <= lost.place), default=math.inf)
    ends = [leader.place for leader in after if leader.place > lost.place and leader.value <= lost.value]
    end = min(ends, default=(math.inf, b""))
    name, place, found = _NAMES[course.sure], lost.place, list[Leader]()
    while True:
        between = (course.task, course.hardware, lost.value, limit, READ_AT_ONCE + 1)
        hidden = connection.execute(_BY_VALUE.format(name=name), between).fetchall()
        if len(hidden) <= READ_AT_ONCE:
            return found + [run for row in hidden if place < (run := Leader._make(row)).place < end]
        rows = connection.execute(_BY_TIME.format(name=name), (course.task, place[0], *place, READ_AT_ONCE)).fetchall()
        for *row, hardware in rows:
            run = Leader._make(row)
            if run.place < end and hardware == course.hardware and run.value is not None and run.value < limit:
                found.append(run)
                limit = run.value
        if not rows or rows[-1][:2] >= end:
            return found
        place = rows[-1][:2]


# So many runs are settled at once.
PIECE = 2_000
# A slot of time: so many bits of milliseconds, by level.
SLOT_BITS = (21, 27)
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
    is_here: int
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
            found = connection.execute("SELECT direction, clocked FROM rules WHERE task = ? LIMIT 1", (facts.task,))
            direction, clocked = found.fetchone() or (MINIMIZE, 0)
            rules[facts.task] = sign_of(direction), bool(clocked)
        sign, clocked = rules[facts.task]
        old, new = before.get(facts.n), _listed(facts, sign, clocked=clocked) if facts.is_here else None
        if old != new:
            changed.append((facts, old, new))
    connection.executemany("DELETE FROM listing WHERE n = ?", [(facts.n,) for facts, old, _ in changed if old])
    rows = [new for _, _, new in changed if new]
    connection.executemany("INSERT INTO listing VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", rows)
    _settle_sums(connection, changed)
    for course, changes in _changes(changed).items():
        settle_frontier(connection, course, changes)


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


def _changes(changed: Iterable[_Changed]) -> dict[Course, list[Change]]:
    """Which runs may lead by another value than before, or may no longer. Their hardware stays as it is."""
    found = defaultdict[Course, list[Change]](list)
    for facts, old, new in changed:
        for sure in (0, 1):
            was, now = (row and (row.sure if sure else row.claim) for row in (old, new))
            row = new if now is not None else old
            if was != now and row:
                found[Course(facts.task, row.hardware, sure)].append(Change(facts.time, facts.id, facts.n, now))
    return found


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
