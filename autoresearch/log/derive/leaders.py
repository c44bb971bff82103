"""Leaders: the runs that led their task, each better than all before it, by the stated time and then the id.

As reported and as confirmed; on a task whose budget is time for each kind of hardware. Runs come late, and leaders are
lost when others find them false: then those that they hid lead. These are looked for between the lost leader and the
next one that is as good, and read by value or by time, whichever are fewer.

The step before, :mod:`.listing`, hands on which runs may lead by another value than before.
"""

from __future__ import annotations

import math
import sqlite3
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from autoresearch.log.derive.step import Step
from autoresearch.log.rows import LeaderRow

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


class NewValue(NamedTuple):
    """A run that came, went or is judged in another way; its value now, None where it may not lead."""

    time: int
    id: bytes
    n: int
    value: float | None


def leaders(runs: Iterable[LeaderRow]) -> list[LeaderRow]:
    """Those of the runs that are better than all before them, in order. Pure."""
    best: list[LeaderRow] = []
    for run in sorted(runs):
        if not best or run.value < best[-1].value:
            best.append(run)
    return best


def find_leaders(connection: sqlite3.Connection, course: Course, changes: Sequence[NewValue]) -> None:
    """Find who leads after changes of some runs, whose rows in ``listing`` are those of now."""
    before = [LeaderRow._make(row) for row in connection.execute(_LEADERS, course)]
    changed = {change.n: change for change in changes}
    came = [LeaderRow(*change[:3], change.value) for change in changes if change.value is not None]
    after = leaders([*(leader for leader in before if leader.n not in changed), *came])
    for leader in before:
        change = changed.get(leader.n)
        if change and (change.value is None or change.value > leader.value):
            after = leaders([*after, *_hidden(connection, course, after, leader)])
    old, new = set(before), set(after)
    delete = "DELETE FROM frontier WHERE task = ? AND hardware = ? AND sure = ? AND time = ? AND id = ?"
    connection.executemany(delete, [(*course, *leader.place) for leader in old - new])
    connection.executemany("INSERT INTO frontier VALUES(?, ?, ?, ?, ?, ?, ?)", [(*course, *run) for run in new - old])


def _hidden(
    connection: sqlite3.Connection, course: Course, after: Sequence[LeaderRow], lost: LeaderRow
) -> list[LeaderRow]:
    """The runs that a leader hid, with some that still do not lead."""
    limit = min((leader.value for leader in after if leader.place <= lost.place), default=math.inf)
    ends = [leader.place for leader in after if leader.place > lost.place and leader.value <= lost.value]
    end = min(ends, default=(math.inf, b""))
    name, place, candidates = _NAMES[course.sure], lost.place, list[LeaderRow]()
    while True:
        between = (course.task, course.hardware, lost.value, limit, READ_AT_ONCE + 1)
        hidden = connection.execute(_BY_VALUE.format(name=name), between).fetchall()
        if len(hidden) <= READ_AT_ONCE:
            return candidates + [run for row in hidden if place < (run := LeaderRow._make(row)).place < end]
        rows = connection.execute(_BY_TIME.format(name=name), (course.task, place[0], *place, READ_AT_ONCE)).fetchall()
        for *row, hardware in rows:
            run = LeaderRow._make(row)
            if run.place < end and hardware == course.hardware and run.value is not None and run.value < limit:
                candidates.append(run)
                limit = run.value
        if not rows or rows[-1][:2] >= end:
            return candidates
        place = rows[-1][:2]


LEADERS = Step("leaders", reads="listing run", writes="frontier")
