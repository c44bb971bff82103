"""Lists and charts of the runs of a task: those that a filter finds in any order, counted, sampled, with their places.

What is asked for often is read by an index or from sums. A filter by text, hardware, participant or setting reads the
entries of all runs in an index, and a sort by change or cost too: 0.1 to 0.5 µs for each run of the task.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, NamedTuple

from autoresearch.log.connection import PAGE, VISIBLE, Reader
from autoresearch.log.rows import LeaderRow
from autoresearch.log.tables.places import Place, Places
from autoresearch.words import NOT_FAILED, PLAIN_MARKS, STOPPED, RunMark

# What a condition calls the metric.
VALUE = "value"
Order = Literal["time", "value", "change", "cost"]
# More runs with words cannot be read on any page: the ones that came first are left out.
WORDS_MOST = 100_000
# A set of runs that is smaller is read by number, a larger one is looked through in order of time.
_SET_MOST = 10_000
_BY_TIME = "run AS r INDEXED BY run_task_time CROSS JOIN listing AS l ON l.n = r.n"
_BY_MARK = "listing AS l INDEXED BY listing_mark CROSS JOIN run AS r ON r.n = l.n"
_BY_VALUE = "listing AS l INDEXED BY listing_value CROSS JOIN run AS r ON r.n = l.n"
_BY_ZEROS = "listing AS l INDEXED BY listing_zeros CROSS JOIN run AS r ON r.n = l.n"
_BY_NUMBER = "run AS r CROSS JOIN listing AS l ON l.n = r.n"
_KEYS: dict[Order, str] = {"value": "l.value", "change": "l.delta", "cost": "r.cpu_ms"}
_VISIBLE = VISIBLE.format("r")
_SETTING = "json_extract(CAST(r.genome AS TEXT), ?)"
_ROWS = """
SELECT r.n, r.id, r.author, r.time, r.cpu_ms, r.parent, l.mark, l.value, l.delta, coalesce(s.state, 'reported'),
    s.margin, coalesce(s.runs, 0), l.zeros, iif(r.status = 'ok', r.value, NULL),
    s.improvement IS NOT NULL, s.compared AND l.hardware = ?1,
    EXISTS(SELECT 1 FROM frontier WHERE (task, hardware, sure, time, id) = (r.task, ?1, 1, r.time, r.id)),
    EXISTS(SELECT 1 FROM frontier WHERE (task, hardware, sure, time, id) = (r.task, ?1, 0, r.time, r.id))
FROM {} LEFT JOIN standing AS s ON s.n = r.n WHERE {}
"""
# The runs that may stand for all: of those the first zeros of the id are no choice of anybody's. Fewer have no index.
_ZEROS_LEAST = 4
_NOT_FAILED, _STOPPED = (", ".join(repr(word.value) for word in sorted(some)) for some in (NOT_FAILED, STOPPED))
_MARKED = " OR l.mark NOT IN ('reported', 'failed')"


def _marked(status: str, mark: str) -> str:
    """The mark of a run in these columns; empty where it was stopped, which is no failure of the program."""
    return f"iif({status} IN ({_STOPPED}), '', {mark})"


class OwnDevice(NamedTuple):
    """A device that is a participant's from one time on and before another, Unix milliseconds."""

    device: bytes
    start_ms: int
    end_ms: int


class Condition(NamedTuple):
    """A setting of a run, or its ``value``, compared (``<``, ``>=``, ``=``) with a number, or equal to one of some."""

    setting: str
    sign: str
    operands: tuple[float | str, ...]


@dataclass(frozen=True, slots=True)
class Filter:
    """Which runs of a task. ``board`` is the hardware whose values are compared; empty where that is no matter.

    ``until``: of the records up to that number. ``authors`` and ``own`` are devices, always or for a time; None: all.
    ``match`` is a query of the index of texts, ``ids`` a range of ids: one of the two suffices. ``hidden``: those that
    a person hides too.
    """

    task: bytes
    board: str = ""
    marks: frozenset[str] = frozenset()
    until: int = 0
    authors: frozenset[bytes] | None = None
    own: tuple[OwnDevice, ...] = ()
    hardware: str = ""
    match: str = ""
    ids: tuple[bytes, bytes] | None = None
    setting: str = ""
    where: tuple[Condition, ...] = ()
    since: Place = (0, b"")
    to: Place | None = None
    hidden: bool = False

    @property
    def is_set(self) -> bool:
        """Whether it finds what stands in another table."""
        return bool(self.match or self.ids or self.setting)

    @property
    def is_summed(self) -> bool:
        """Whether there are sums of what it finds, but for marks and the newest records."""
        return not (self.is_set or self.own or self.where or self.to or self.since > (0, b""))


class ListedRun(NamedTuple):
    """A run in a list or chart: ``mark`` as :class:`RunMark`, ``value`` and ``delta`` as in the table ``listing``.

    ``reported`` is its author's value, None where it failed. ``measured``: verifiers measured ``delta`` in pairs.
    ``margin`` is half of the interval of the value of ``verified`` runs. ``compared``: with other values of the board.
    """

    n: int
    id: bytes
    author: bytes
    time: int
    cpu_ms: int
    parent: bytes | None
    mark: str
    value: float | None
    delta: float | None
    state: str
    margin: float | None
    verified: int
    zeros: int
    reported: float | None
    measured: bool
    compared: bool
    leads: bool
    led_by_claim: bool

    @property
    def place(self) -> Place:
        """Its place in the order of runs."""
        return self.time, self.id


_FLAGS = ListedRun._fields.index("measured")


class RunCounts(NamedTuple):
    """How many runs a filter finds by mark, and how many more are hidden here."""

    marks: dict[str, int]
    hidden: int


class Columns(NamedTuple):
    """Runs as columns: ``value`` where that is compared, ``genome`` the settings as JSON."""

    id: Sequence[bytes]
    parent: Sequence[bytes | None]
    mark: Sequence[str]
    value: Sequence[float | None]
    genome: Sequence[bytes]


@dataclass(slots=True)
class _Query:
    """Conditions and their values, in order."""

    texts: list[str] = field(default_factory=list)
    values: list[object] = field(default_factory=list)

    def add(self, text: str, *values: object) -> None:
        self.texts.append(text)
        self.values += values

    @property
    def text(self) -> str:
        return " AND ".join(self.texts)


class Listing:
    """Questions to the rows that :mod:`autoresearch.log.derive.listing` writes. None is kept in memory."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader

    def page(self, selection: Filter, order: Order, *, falling: bool, limit: int, skip: int = 0) -> list[int]:
        """The numbers of some runs in an order; those without the value last, equal ones by time and id."""
        tables, query = self._tables(selection)
        if order == "time":
            by = "r.time DESC, r.id DESC" if falling else "r.time, r.id"
        else:
            by = f"{_KEYS[order]} {'DESC' if falling else 'ASC NULLS LAST'}, r.time, r.id"
            if order == "value" and tables == _BY_TIME and selection.authors is None and not selection.hardware:
                tables = _BY_VALUE
                query.add("l.task = ?", selection.task)
            elif order == "cost" and tables == _BY_TIME and not selection.marks:
                tables = _BY_TIME.partition(" CROSS JOIN ")[0]  # the index has it: no other table is read
        text = f"SELECT r.n FROM {tables} WHERE {query.text} ORDER BY {by} LIMIT ? OFFSET ?"  # noqa: S608
        return [n for (n,) in self._reader.read(text, (*query.values, limit, skip))]

    def counts(self, selection: Filter) -> RunCounts:
        """How many runs a filter finds of each mark, without its own marks; and how many with them are hidden."""
        sums = self._summed(selection) if selection.is_summed else self._counted(selection)
        if selection.is_summed:
            later = self._counted(selection, after=selection.until) if selection.until else {}
            for mark, (visible, runs) in later.items():
                sums[mark] = sums[mark][0] - visible, sums[mark][1] - runs
        counts = {mark: visible for mark, (visible, _) in sums.items()}
        hidden = sum(
            runs - visible for mark, (visible, runs) in sums.items() if not selection.marks or mark in selection.marks
        )
        query = _conditions(selection, with_marks=False)
        query.add("l.mark = 'reported'")
        text = f"""
        SELECT count(*) FROM frontier AS f CROSS JOIN run AS r ON r.n = f.n CROSS JOIN listing AS l ON l.n = r.n
        WHERE f.task = ? AND f.hardware = ? AND f.sure = 0 AND {query.text}
        """  # noqa: S608
        counts[RunMark.LEADING] = self._reader.read(text, (selection.task, selection.board, *query.values))[0][0]
        counts[RunMark.REPORTED] = counts.get(RunMark.REPORTED, 0) - counts[RunMark.LEADING]
        return RunCounts({mark.value: counts[mark] for mark in RunMark if counts.get(mark)}, hidden)

    def _tables(self, selection: Filter) -> tuple[str, _Query]:
        """The tables that a filter is looked up in, in an order in which few rows are read; and its conditions."""
        if self._is_small(selection):
            return _BY_NUMBER, _conditions(selection, by_number=True)
        query, tables = _conditions(selection), _BY_TIME
        if len(selection.marks) == 1 and RunMark.LEADING in selection.marks:
            return _BY_NUMBER, _conditions(selection, by_number=True)
        if selection.marks and not selection.marks & PLAIN_MARKS:
            tables = _BY_MARK
            query.add("l.task = ? AND l.mark NOT IN ('reported', 'failed')", selection.task)
        return tables, query

    def _summed(self, selection: Filter) -> dict[str, tuple[int, int]]:
        """By mark how many runs are visible, and how many there are, by the sums of devices."""
        query = _Query()
        query.add("task = ?", selection.task)
        if selection.hardware:
            query.add("device = ?", selection.hardware)
        if selection.authors is not None:
            query.add(f"author IN ({', '.join('?' * len(selection.authors))})", *selection.authors)
        is_visible = "true" if selection.hidden else "author NOT IN (SELECT author FROM hidden_author)"
        text = f"""
        SELECT mark, coalesce(sum(runs) FILTER (WHERE {is_visible}), 0), sum(runs) FROM tally
        WHERE {query.text} GROUP BY mark
        """  # noqa: S608
        sums = {mark: (visible, runs) for mark, visible, runs in self._reader.read(text, query.values)}
        query = _conditions(replace(selection, hidden=True), with_marks=False, by_number=True)
        query.add(is_visible.replace("author NOT", "r.author NOT"))
        text = f"""
        SELECT l.mark, count(*) FROM (SELECT DISTINCT n FROM hidden) AS h
        CROSS JOIN run AS r ON r.n = h.n CROSS JOIN listing AS l ON l.n = r.n WHERE {query.text} GROUP BY l.mark
        """  # noqa: S608
        for mark, alone in [] if selection.hidden else self._reader.read(text, query.values):
            sums[mark] = sums[mark][0] - alone, sums[mark][1]
        return sums

    def _counted(self, selection: Filter, *, after: int = 0) -> dict[str, tuple[int, int]]:
        """The same run by run; ``after``: of the records with greater numbers."""
        is_few = bool(after) or self._is_small(selection)
        query = _conditions(replace(selection, hidden=True), with_marks=False, after=after, by_number=is_few)
        tables = _BY_NUMBER if is_few else _BY_TIME
        is_visible = "true" if selection.hidden else _VISIBLE
        text = f"""
        SELECT l.mark, count(*) FILTER (WHERE {is_visible}), count(*) FROM {tables} WHERE {query.text} GROUP BY l.mark
        """  # noqa: S608
        return {mark: (visible, runs) for mark, visible, runs in self._reader.read(text, query.values)}

    def _is_small(self, selection: Filter) -> bool:
        query = _Query()
        if not selection.is_set:
            return False
        _add_sets(query, selection, words_most=_SET_MOST + 1)
        text = f"SELECT 1 FROM run AS r WHERE {query.text} LIMIT 1 OFFSET ?"  # noqa: S608
        return not self._reader.read(text, (*query.values, _SET_MOST))

    def sample(self, selection: Filter, kinds: Literal["plain", "marked"], zeros: int) -> list[ListedRun]:
        """Of the runs that a filter finds those whose id begins with so many zero bits, in order of time.

        ``plain`` are those only reported or failed, ``marked`` all others. An id is a hash: these are as good as drawn
        at random, and the same on all nodes.
        """
        query = _conditions(selection)
        query.add("l.zeros >= ?", zeros)
        tables = _BY_TIME
        if kinds == "marked":
            tables = _BY_MARK
            query.add("l.task = ? AND l.mark NOT IN ('reported', 'failed')", selection.task)
        else:
            query.add("l.mark IN ('reported', 'failed')")
            if zeros >= _ZEROS_LEAST:
                tables = _BY_ZEROS
                query.add(f"l.task = ? AND l.zeros >= {_ZEROS_LEAST}", selection.task)
        return self._facts(tables, query, selection.board)

    def leaders(self, selection: Filter, sure: int) -> list[LeaderRow]:
        """All runs of a task that led, as confirmed or as reported, in order; without those that are hidden."""
        text = f"""
        SELECT f.time, f.id, f.n, f.value FROM frontier AS f CROSS JOIN run AS r ON r.n = f.n
        WHERE f.task = ? AND f.hardware = ? AND f.sure = ? AND {_VISIBLE} ORDER BY f.time, f.id
        """  # noqa: S608
        return [LeaderRow._make(row) for row in self._reader.read(text, (selection.task, selection.board, sure))]

    def between(self, task: bytes, since_ms: int, to_ms: int) -> list[tuple[bytes, str, int]]:
        """How many runs of each device and mark a task has from a time on, up to another; a stopped one has no mark."""
        text = f"""
        SELECT r.author, {_marked("r.status", "l.mark")}, count(*) FROM {_BY_TIME}
        WHERE r.task = ? AND r.time >= ? AND r.time <= ? AND {_VISIBLE} GROUP BY 1, 2
        """  # noqa: S608
        return self._reader.read(text, (task, since_ms, to_ms))

    def by_settings(self, selection: Filter, names: Sequence[str]) -> list[tuple[Any, ...]]:
        """The runs that a filter finds: number, mark, value where that is compared, then the values of settings."""
        tables, query = self._tables(selection)
        settings = "".join(f", {_setting(name)}" for name in names)
        text = f"""
        SELECT l.n, l.mark, iif(s.compared AND l.hardware = ?, l.value, NULL){settings}
        FROM {tables} LEFT JOIN standing AS s ON s.n = r.n WHERE {query.text}
        """  # noqa: S608
        values = (selection.board, *map(_place_of, names), *query.values)
        return self._reader.read(text, values)

    def has_setting(self, task: bytes, name: str) -> bool:
        """Whether a run of a task names a setting or part."""
        text = f"SELECT 1 FROM {_BY_TIME} WHERE r.task = ? AND {_SETTING} IS NOT NULL LIMIT 1"  # noqa: S608
        return bool(self._reader.read(text, (task, _place_of(name))))

    def ids(self, runs: Collection[int]) -> dict[int, bytes]:
        """The ids of runs by their numbers."""
        return dict(self._reader.among("SELECT n, id FROM run WHERE n IN ({})", runs))

    def since(self, task: bytes, time_ms: int) -> list[tuple[bytes, str, int]]:
        """The same without an end: runs on the smaller side of the time are read."""
        places = self.places(task)
        if 2 * places.of([(time_ms, b"")])[0].number > places.total:
            text = f"""
            SELECT r.author, {_marked("r.status", "l.mark")}, count(*) FROM {_BY_TIME}
            WHERE r.task = ? AND r.time >= ? AND {_VISIBLE} GROUP BY 1, 2
            """  # noqa: S608
            return self._reader.read(text, (task, time_ms))
        text = f"""
        SELECT author, mark, sum(runs) FROM (
            SELECT author, {_marked("status", "mark")} AS mark, runs FROM tally WHERE task = ?1
            UNION ALL SELECT r.author, {_marked("r.status", "l.mark")}, -1 FROM {_BY_TIME}
                WHERE r.task = ?1 AND r.time < ?2
            UNION ALL SELECT r.author, {_marked("r.status", "l.mark")}, -1 FROM (SELECT DISTINCT n FROM hidden) AS h
            CROSS JOIN run AS r ON r.n = h.n CROSS JOIN listing AS l ON l.n = r.n WHERE r.task = ?1 AND r.time >= ?2
        ) WHERE author NOT IN (SELECT author FROM hidden_author) GROUP BY 1, 2 HAVING sum(runs) > 0
        """  # noqa: S608
        return self._reader.read(text, (task, time_ms))

    def times(self, task: bytes) -> tuple[int, int] | None:
        """The times of the first and the last run of a task; None without any."""
        text = "SELECT (SELECT {} FROM run INDEXED BY run_task_time WHERE task = ?1)"
        [(first,)], [(last,)] = (self._reader.read(text.format(end), (task,)) for end in ("min(time)", "max(time)"))
        return None if first is None else (first, last)

    def activity(self, task: bytes, since_ms: int, part_ms: int) -> list[tuple[bytes, int, int, int, int]]:
        """By device and part of time from a time on: runs, those of them that failed, verifications of runs."""
        text = f"""
        SELECT r.author, (r.time - ?2) / ?3, count(*), sum(r.status NOT IN ({_NOT_FAILED})), 0
        FROM run AS r INDEXED BY run_task_time WHERE r.task = ?1 AND r.time >= ?2 AND {_VISIBLE} GROUP BY 1, 2
        UNION ALL SELECT v.author, (v.time - ?2) / ?3, 0, 0, count(*) FROM verification AS v
        CROSS JOIN record ON record.id = v.run CROSS JOIN run AS r ON r.n = record.n
        WHERE v.time >= ?2 AND r.task = ?1 AND {VISIBLE.format("v")} GROUP BY 1, 2
        """  # noqa: S608
        return self._reader.read(text, (task, since_ms, part_ms))

    def places(self, task: bytes) -> Places:
        """The places of a task's runs, for one question."""
        return Places(self._reader, task)

    def facts(self, selection: Filter, runs: Collection[int]) -> dict[int, ListedRun]:
        """Those of these runs that a filter finds, by number."""
        rows: dict[int, ListedRun] = {}
        for part in _parts(runs):
            query = _conditions(selection, by_number=True)
            query.add(f"r.n IN ({', '.join('?' * len(part))})", *part)
            rows.update((run.n, run) for run in self._facts(_BY_NUMBER, query, selection.board))
        return rows

    def _facts(self, tables: str, query: _Query, board: str) -> list[ListedRun]:
        text = _ROWS.format(tables, query.text) + " ORDER BY r.time, r.id"
        rows = self._reader.read(text, (board, *query.values))
        return [ListedRun(*row[:_FLAGS], *map(bool, row[_FLAGS:])) for row in rows]

    def beside(self, selection: Filter, run: bytes) -> list[tuple[int, str, float | None, bool, bool]]:
        """The children of a run on its task, by time: number, mark, value, whether that is compared, and verified."""
        text = f"""
        SELECT l.n, iif(l.mark = 'reported' AND EXISTS(
            SELECT 1 FROM frontier AS f WHERE (f.task, f.hardware, f.sure, f.time, f.n) = (l.task, ?1, 0, l.time, l.n)
        ), 'leading', l.mark), l.value, s.compared AND l.hardware = ?1, s.runs > 0 FROM lineage
        CROSS JOIN run AS r ON r.n = lineage.n CROSS JOIN listing AS l ON l.n = r.n LEFT JOIN standing AS s ON s.n = r.n
        WHERE lineage.parent = ?2 AND l.task = ?3 AND {_VISIBLE} ORDER BY l.time, l.n
        """  # noqa: S608
        rows = self._reader.read(text, (selection.board, run, selection.task))
        return [(n, mark, value, *map(bool, flags)) for n, mark, value, *flags in rows]

    def children(self, task: bytes, run: bytes) -> int:
        """How many runs of a task have this one as their parent."""
        text = f"""
        SELECT count(*) FROM lineage CROSS JOIN run AS r ON r.n = lineage.n
        WHERE lineage.parent = ? AND r.task = ? AND {_VISIBLE}
        """  # noqa: S608
        return int(self._reader.read(text, (run, task))[0][0])

    def same_program(self, task: bytes, n: int, limit: int) -> list[int]:
        """The newest other runs of the program of a run, the oldest first."""
        # By default SQLite would walk through all runs of the task in order of time.
        text = f"""
        SELECT n FROM run AS r INDEXED BY run_seedless
        WHERE task = ?1 AND n <> ?2 AND seedless = (SELECT seedless FROM run WHERE n = ?2)
        AND {_VISIBLE} ORDER BY time DESC, id DESC LIMIT ?3
        """  # noqa: S608
        return [run for (run,) in reversed(self._reader.read(text, (task, n, limit)))]

    def way(self, n: int, *, most: int = -1) -> list[tuple[int, bytes, float | None]]:
        """The runs from the oldest known ancestor to a run, or the last ``most``, on its task: number, id and value."""
        text = """
        WITH RECURSIVE way(n, task, parent, depth) AS (
            SELECT n, task, parent, 0 FROM run WHERE n = ? UNION ALL
            SELECT above.n, above.task, above.parent, depth + 1 FROM way CROSS JOIN record ON record.id = way.parent
            CROSS JOIN run AS above ON above.n = record.n AND above.task = way.task LIMIT ?)
        SELECT way.n, run.id, listing.value FROM way CROSS JOIN run ON run.n = way.n
        CROSS JOIN listing ON listing.n = way.n ORDER BY depth DESC
        """
        return self._reader.read(text, (n, most))

    def number(self, run: bytes) -> int | None:
        """The number of a run that was not withdrawn."""
        rows = self._reader.read(
            "SELECT run.n FROM record CROSS JOIN run ON run.n = record.n WHERE record.id = ?", (run,)
        )
        return rows[0][0] if rows else None

    def devices(self, task: bytes) -> dict[bytes, tuple[int, int, int]]:
        """The devices with runs on a task: how many, and the times of the first and the last record of each."""
        text = """
        SELECT author, sum(runs), (SELECT min(time) FROM record WHERE record.author = tally.author),
            (SELECT max(time) FROM record WHERE record.author = tally.author) FROM tally WHERE task = ? GROUP BY author
        """
        return {author: (runs, first, last) for author, runs, first, last in self._reader.read(text, (task,))}

    def hardware(self, task: bytes) -> list[tuple[bytes, str]]:
        """The devices with runs on a task, each with the kinds of hardware that it ran on."""
        return self._reader.read("SELECT DISTINCT author, device FROM tally WHERE task = ?", (task,))

    def columns(self, selection: Filter, most: int, *, zeros: int = 0, marked: bool = False) -> Columns:
        """The newest runs of a task in order of time: those whose id begins with so many zero bits, and those that led.

        ``marked``: those that others measured too.
        """
        query = _Query()
        query.add("r.task = ?", selection.task)
        if zeros:
            some = "l.zeros >= ? OR l.n IN (SELECT n FROM frontier WHERE task = ?)"
            query.add(f"({some}{_MARKED if marked else ''})", zeros, selection.task)
        if not selection.hidden:
            query.add(_VISIBLE)
        text = f"""
        SELECT r.id, r.parent, l.mark, iif(s.compared AND l.hardware = ?, l.value, NULL), r.genome
        FROM {_BY_TIME} LEFT JOIN standing AS s ON s.n = r.n
        WHERE {query.text} ORDER BY r.time DESC, r.id DESC LIMIT ?
        """  # noqa: S608
        rows = self._reader.read(text, (selection.board, *query.values, most))
        return Columns._make(zip(*reversed(rows), strict=True) if rows else [()] * len(Columns._fields))


def _conditions(selection: Filter, *, with_marks: bool = True, after: int = 0, by_number: bool = False) -> _Query:
    """What a filter asks of ``run AS r`` and ``listing AS l``. ``by_number``: few runs are named by their numbers."""
    query = _Query()
    query.add("+r.task = ?" if by_number else "r.task = ?", selection.task)
    _add_sets(query, selection)
    if after:
        query.add("r.n > ?", after)
    elif selection.until:
        query.add("+r.n <= ?", selection.until)
    if selection.authors is not None:
        devices = f"r.author IN ({', '.join('?' * len(selection.authors))})"
        own = ", ".join(["(?, ?, ?)"] * len(selection.own))
        times = "column1 = r.author AND r.time >= column2 AND r.time < column3"
        either = f"({devices} OR EXISTS(SELECT 1 FROM (VALUES {own}) WHERE {times}))" if own else devices  # noqa: S608
        query.add(either, *selection.authors, *(value for own in selection.own for value in own))
    if selection.hardware:
        query.add("r.device = ?", selection.hardware)
    for setting, sign, operands in selection.where:
        is_value = setting == VALUE
        name, place = ("l.value", ()) if is_value else (_setting(setting), (_place_of(setting),))
        if sign == "=":
            query.add(f"{name} IN ({', '.join('?' * len(operands))})", *place, *operands)
            continue
        query.add(f"{name} {sign} ?", *place, *operands)
        if sign in (">", ">=") and not is_value:  # any text is larger than a number
            query.add(f"typeof({name}) <> 'text'", *place)
    if selection.since > (0, b""):
        query.add("r.time >= ? AND (r.time, r.id) >= (?, ?)", selection.since[0], *selection.since)
    if selection.to:
        query.add("r.time <= ? AND (r.time, r.id) < (?, ?)", selection.to[0], *selection.to)
    if not selection.hidden:
        query.add(_VISIBLE)
    if with_marks and selection.marks:
        _add_marks(query, selection)
    return query


def _add_sets(query: _Query, selection: Filter, *, words_most: int = WORDS_MOST) -> None:
    texts, values = [], list[object]()
    if selection.match:
        newest = "SELECT rowid FROM text_index WHERE text_index MATCH ? ORDER BY rowid DESC LIMIT ?"
        texts.append(f"r.n IN ({newest})")
        values += [selection.match, words_most]
    if selection.ids:
        texts.append("r.n IN (SELECT n FROM record WHERE id BETWEEN ? AND ?)")
        values += selection.ids
    if texts:
        query.add(f"({' OR '.join(texts)})", *values)
    if selection.setting:
        pairs = "r.n IN (SELECT n FROM pair WHERE task = ? AND setting IN (?, ?) AND same_base)"
        query.add(pairs, selection.task, selection.setting, f"+{selection.setting}")


def _add_marks(query: _Query, selection: Filter) -> None:
    """A run leads by its place on the frontier, whatever its row says."""
    marks = set(selection.marks)
    led = "l.mark = 'reported' AND r.n {} (SELECT n FROM frontier WHERE task = ? AND hardware = ? AND sure = 0)"
    texts, values = [], list[object]()
    if (RunMark.LEADING in marks) != (RunMark.REPORTED in marks):
        texts.append(f"({led.format('IN' if RunMark.LEADING in marks else 'NOT IN')})")
        values += [selection.task, selection.board]
        marks.discard(RunMark.REPORTED)
    marks.discard(RunMark.LEADING)
    texts.append(f"l.mark IN ({', '.join('?' * len(marks))})")
    query.add(f"({' OR '.join(texts)})", *values, *sorted(marks))


def _setting(name: str) -> str:
    """The value of a setting of ``run AS r``. Of a run that has settings, a part that it does not name is off."""
    return f"iif(length(r.genome) > 2, coalesce({_SETTING}, 0), NULL)" if name.startswith("+") else _SETTING


def _place_of(setting: str) -> str:
    """Where a setting stands in the JSON of a run's settings."""
    return f'$."{setting}"'


def _parts(runs: Collection[int]) -> Iterator[list[int]]:
    ordered = list(runs)
    for start in range(0, len(ordered), PAGE):
        yield ordered[start : start + PAGE]
