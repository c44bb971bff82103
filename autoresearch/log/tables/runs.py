"""Tasks as they were published, the runs on them, and programs in the order of their ranks.

Of runs: their history, whose children they are, how they ended. A program is ranked by all its runs together, and as
single devices ran it (:class:`Entries`).
"""

from __future__ import annotations

import heapq
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from autoresearch.judging.statistics import TaskRules
from autoresearch.log.connection import COPIED, COUNTS, ENDED, RUN_COLUMNS, SUSPECT, VISIBLE, Reader, in_parts
from autoresearch.log.rows import (
    Entry,
    EntryKey,
    EntryPlace,
    EntryRow,
    HistoryRow,
    Program,
    ProgramRow,
    RunFacts,
    SignedRun,
    StoredRun,
    TaskRow,
)
from autoresearch.record.kinds import Task
from autoresearch.record.record import parse_stored
from autoresearch.words import REOPENED, UNDECIDED, RunState

RULES = "SELECT direction, noise, budget, clocked, any_budget FROM rules WHERE task = ? LIMIT 1"
# Whose word an entry is, see schema.sql.
OTHERS, ATTESTED, DOUBTED = range(3)
_REPORTED = f"""
SELECT run.id, coalesce((
    SELECT total(entry.mean * entry.runs) / total(entry.runs) FROM entry
    WHERE (entry.task, entry.seedless, entry.budget, entry.author) = (run.task, run.seedless, run.budget, run.author)
    AND entry.vouch IN ({OTHERS}, {ATTESTED}) AND entry.hardware IN ('', run.device)), run.value)
FROM run WHERE n IN (SELECT n FROM record WHERE id IN ({{}})) AND +task = ? AND {COUNTS}
"""  # noqa: S608
# What one or more attested participants measured: still open, or decided. And what two or more did; by its state.
OPEN, DECIDED, CONFIRMED, PROVISIONAL, NEITHER = range(3, 8)
_BY_TWO = dict.fromkeys(RunState, NEITHER) | {RunState.CONFIRMED: CONFIRMED, RunState.PROVISIONAL: PROVISIONAL}
KINDS = {state: OPEN if state in UNDECIDED | REOPENED else DECIDED for state in RunState}, _BY_TWO
# What an entry is the first of: all that counts, that and unverified runs after a fork, what nobody attested has. Of
# measured runs it is ``1 << vouch``.
COUNTED, WITH_DOUBTED, UNVOUCHED = 1, 2, 4
# So many records are looked through for a sample of runs.
_SAMPLED_MOST = 5_000
_FORKED = "EXISTS(SELECT 1 FROM suspect WHERE suspect.author = run.author AND suspect.seq <= run.seq)"
_HISTORY = f"""
SELECT id, source_digest, genome, value, replicate, parent, base, status, author, budget, time, {_FORKED}, seq,
    seedless
FROM run
"""  # noqa: S608


def rules_in(row: tuple[str, float, float, int, int]) -> TaskRules:
    """The rules in a row of their table."""
    direction, noise, budget, clocked, any_budget = row
    return TaskRules(direction, noise, budget, bool(clocked), bool(any_budget))


class Runs:
    """The runs that were not withdrawn."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader

    def newest(self, task: bytes, *, limit: int = 50, author: bytes | None = None) -> list[StoredRun]:
        """The newest runs on a task, whole."""
        # The plus sign keeps SQLite from walking through everyone's runs on the task.
        condition = "run.task = ?" if author is None else "+run.task = ? AND run.author = ?"
        values = [task] if author is None else [task, author]
        query = f"""
        SELECT record.raw, record.signature, {_FORKED} FROM run JOIN record ON record.n = run.n
        WHERE {condition} ORDER BY run.time DESC, run.id DESC LIMIT ?
        """  # noqa: S608
        rows = self._reader.rows(query, *values, limit)
        return [StoredRun(parse_stored(raw, signature), bool(forked)) for raw, signature, forked in rows]

    def values(self, task: bytes, runs: Collection[bytes]) -> dict[bytes, float]:
        """What their authors report of those of these runs that are on a task and have a value."""
        # The plus sign keeps SQLite from walking through all runs on the task.
        query = """
        SELECT id, value FROM run WHERE n IN (SELECT n FROM record WHERE id IN ({}))
        AND +task = ? AND status = 'ok' AND value IS NOT NULL
        """
        return dict(self._reader.among(query, runs, task))

    def history(self, task: bytes) -> list[HistoryRow]:
        """All runs on a task, compact, the oldest first."""
        return [HistoryRow(*row) for row in self._reader.rows(f"{_HISTORY} WHERE task = ? ORDER BY time, id", task)]

    def dated_back(self, task: bytes) -> dict[bytes, int]:
        """The runs on a task that follow a record of their device with a later time, each with the latest of these."""
        query = "SELECT run.id, latest FROM dated_back CROSS JOIN run ON run.n = dated_back.n WHERE run.task = ?"
        return dict(self._reader.rows(query, task))

    def history_of(self, runs: Collection[bytes]) -> list[HistoryRow]:
        """The same of some runs, in no order."""
        query = f"{_HISTORY} WHERE n IN (SELECT n FROM record WHERE id IN ({{}}))"  # noqa: S608
        return [HistoryRow(*row) for row in self._reader.among(query, runs)]

    def signed(self, task: bytes) -> list[SignedRun]:
        """All runs that were published on a task, withdrawn ones too, the oldest first."""
        query = """
        SELECT id, author, time, seq,
               EXISTS(SELECT 1 FROM withdrawal WHERE target = record.id AND withdrawal.author = record.author)
        FROM record WHERE task = ? AND kind = 'run' ORDER BY time, id
        """
        rows = self._reader.read(query, (task,))
        return [SignedRun(run, author, time, seq, bool(withdrawn)) for run, author, time, seq, withdrawn in rows]

    def of_programs(
        self, task: bytes, digests: Collection[bytes], *, any_seeds: bool = False
    ) -> list[tuple[bytes, int, int, bytes, bytes]]:
        """Source digest, replicate, time, id and device of all runs of some sources on a task.

        With ``any_seeds`` also of those that differ from these in their seeds alone. Then digests may be of sources
        without seeds too.
        """
        query = "SELECT source_digest, replicate, time, id, author FROM run WHERE task = ?1 AND source_digest IN ({})"
        if any_seeds:
            # Two lists: with OR between them SQLite walks through all runs on the task.
            alike = """
            SELECT seedless FROM run WHERE task = ?1 AND source_digest IN ({0})
            UNION SELECT seedless FROM run WHERE task = ?1 AND seedless IN ({0})
            """
            query = query.replace("source_digest IN ({})", f"seedless IN ({alike})")
        rows: list[tuple[bytes, int, int, bytes, bytes]] = []
        for part in in_parts(digests):
            places = ", ".join(f"?{place}" for place in range(2, len(part) + 2))
            rows += self._reader.read(query.format(places), (task, *part))
        return rows

    def replicates(self, task: bytes, limit: int) -> list[RunFacts]:
        """The newest runs on a task with a value, the newest first: what tells how far replicates vary."""
        query = f"""
        SELECT {RUN_COLUMNS} FROM run {SUSPECT}
        WHERE task = ? AND {COUNTS} ORDER BY time DESC, id DESC LIMIT ?
        """  # noqa: S608
        return [RunFacts(*row) for row in self._reader.rows(query, task, limit)]

    def sample(self, task: bytes) -> list[tuple[int, bytes, bytes]]:
        """Time, id and device of the runs on a task that ended, of those among the first records by id.

        An id is a hash, so that these are as good as drawn at random.
        """
        query = f"""
        SELECT run.time, run.id, run.author FROM (SELECT n FROM record ORDER BY id LIMIT ?) AS some
        CROSS JOIN run ON run.n = some.n WHERE run.task = ? AND {ENDED}
        """  # noqa: S608
        return self._reader.rows(query, _SAMPLED_MOST, task)

    def has_more(self, task: bytes, than: int) -> bool:
        """Whether a task has more runs than so many."""
        return bool(self._reader.rows("SELECT 1 FROM run WHERE task = ? LIMIT 1 OFFSET ?", task, than))

    def children(self, run: bytes) -> list[bytes]:
        """The runs that name a run as their parent, in the order in which they came."""
        query = "SELECT record.id FROM lineage CROSS JOIN record ON record.n = lineage.n WHERE lineage.parent = ?"
        return [child for (child,) in self._reader.rows(f"{query} ORDER BY lineage.n", run)]

    def endings(self, task: bytes) -> dict[str, int]:
        """How many runs on a task ended in which way."""
        return dict(self._reader.rows("SELECT status, sum(runs) FROM tally WHERE task = ? GROUP BY status", task))

    def count_authors(self, task: bytes) -> int:
        """How many devices published runs on a task."""
        return int(self._reader.rows("SELECT count(DISTINCT author) FROM tally WHERE task = ?", task)[0][0])

    def claimed_delta(self, run: bytes) -> float | None:
        """The difference to its parent that an experiment's author reports, or verifiers found; None where none is."""
        query = """
        SELECT listing.delta FROM record CROSS JOIN run ON run.n = record.n AND run.mode = 'experiment'
        CROSS JOIN listing ON listing.n = run.n WHERE record.id = ?
        """
        rows = self._reader.rows(query, run)
        return rows[0][0] if rows else None

    def newest_attested(
        self, task: bytes, limit: int, *, own: Collection[bytes] = (), ended: bool = False
    ) -> list[bytes]:
        """The newest runs of a task with a value by attested participants and these devices, the newest first.

        With ``ended`` also those that failed.
        """
        query = f"""
        SELECT run.id FROM run INDEXED BY run_task_time CROSS JOIN standing ON standing.n = run.n
        WHERE run.task = ? AND {ENDED if ended else COUNTS}
        AND (standing.attested OR run.author IN ({", ".join("?" * len(own))}))
        ORDER BY run.time DESC, run.id DESC LIMIT ?
        """  # noqa: S608
        return [run for (run,) in self._reader.rows(query, task, *own, limit)]


_PROGRAM = """
SELECT program.task, run.source_digest, program.budget, program.runs, program.mean, program.first,
       program.first_time, program.rank, run.author, run.title, run.parent, run.device, program.seedless
FROM program JOIN record ON record.id = program.first JOIN run ON run.n = record.n
"""


class Programs:
    """What is computed from the counted runs of each program."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader

    def ranked(
        self, task: bytes, *, hardware: str | None = None, limit: int = 50, skip: int = 0, visible: bool = False
    ) -> list[ProgramRow]:
        """The best programs of a task first, past ``skip``: those with a budget that ranks whose runs count.

        Without those whose checkpoint another participant published before. With ``hardware`` only those run on it;
        ``visible``: without those whose first run a person here hides.
        """
        query = f"""
        {_PROGRAM} WHERE program.task = ?1 AND program.rank IS NOT NULL AND NOT {COPIED}
        AND {VISIBLE.format("run") if visible else "true"}
        AND (?2 IS NULL OR run.device = ?2) ORDER BY program.rank, program.first_time, program.first LIMIT ?3 OFFSET ?4
        """
        return [ProgramRow(*row) for row in self._reader.rows(query, task, hardware, limit, skip)]

    def find(self, task: bytes, source_digest: bytes, budget: float) -> ProgramRow | None:
        """The program of a source with a budget, or None when no run of it counts.

        By the digest of the source, or of the source without its seeds. Where runs of one source state several of the
        latter, the one of most runs.
        """
        whole = f"{_PROGRAM} WHERE program.task = ?1 AND program.seedless = ?2 AND program.budget = ?3"
        stated = f"""
        {_PROGRAM} WHERE program.task = ?1 AND program.budget = ?3 AND program.seedless IN (
            SELECT seedless FROM run WHERE task = ?1 AND source_digest = ?2 AND budget = ?3)
        ORDER BY program.runs DESC, program.seedless LIMIT 1
        """  # noqa: S608
        for query in (whole, stated):
            for row in self._reader.rows(query, task, source_digest, budget):
                return ProgramRow(*row)
        return None

    def is_of(self, task: bytes, source_digest: bytes, budget: float, devices: Collection[bytes]) -> bool:
        """Whether one of these devices has a run of a program with a value."""
        query = f"""
        SELECT 1 FROM run WHERE task = ? AND source_digest = ? AND budget = ? AND author = ? AND {COUNTS} LIMIT 1
        """  # noqa: S608
        return any(self._reader.rows(query, task, source_digest, budget, device) for device in devices)

    def count(self, task: bytes) -> int:
        """How many programs of a task are ranked."""
        query = "SELECT count(*) FROM program WHERE task = ? AND rank IS NOT NULL"
        return int(self._reader.rows(query, task)[0][0])

    def hardware(self, task: bytes) -> list[tuple[str, bytes, int]]:
        """On which hardware the ranked programs of a task were first run, by whom, and how many."""
        query = """
        SELECT run.device, run.author, count(*) FROM program JOIN record ON record.id = program.first
        JOIN run ON run.n = record.n WHERE program.task = ? AND program.rank IS NOT NULL GROUP BY run.device, run.author
        """
        return self._reader.rows(query, task)


def _stems(name: str) -> set[str]:
    """A name, and what stands before the last part of it: ``gpt`` and ``gpt-m`` are sizes of one task."""
    return {name, name.rpartition("-")[0]} - {""}


def _family(definition: Mapping[str, object] | None) -> tuple[object, ...] | None:
    """What all sizes of a task have in common; None where its budget is no work, which alone has sizes."""
    metric, budget = (definition or {}).get("metric"), (definition or {}).get("budget")
    if definition is None or not isinstance(metric, Mapping) or not isinstance(budget, Mapping):
        return None
    stated = definition.get("baseline"), metric.get("name"), metric.get("direction"), metric.get("source")
    return stated if budget.get("unit") == "work" else None


_TASK = "SELECT id, digest, name, author, time, direction, noise, budget FROM task"


class Tasks:
    """The publications of tasks that were not withdrawn."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader

    def all(self, *, visible: bool = False) -> list[TaskRow]:
        """All publications of tasks, the oldest first. One task may be published by several.

        ``visible``: without those that a person here hides.
        """
        where = f"WHERE {VISIBLE.format('task')}" if visible else ""
        return [TaskRow(*row) for row in self._reader.rows(f"{_TASK} {where} ORDER BY time, id")]

    def find(self, digest: bytes) -> TaskRow | None:
        """The first publication of the task with this digest, or None."""
        rows = self._reader.rows(f"{_TASK} WHERE digest = ? ORDER BY time, id LIMIT 1", digest)
        return TaskRow(*rows[0]) if rows else None

    def definition(self, task: bytes) -> Mapping[str, object] | None:
        """The definition of a task, or None when nobody published it."""
        query = """
        SELECT record.raw, record.signature FROM task JOIN record ON record.n = task.n WHERE task.digest = ?
        ORDER BY task.time, task.id LIMIT 1
        """
        rows = self._reader.once(query, task)
        body = parse_stored(*rows[0]).body if rows else None
        return body.definition if isinstance(body, Task) else None

    def stated(self, task: bytes, table: str, key: str) -> object:
        """What the definition of a task has in a table; None where it has nothing there, or nobody published it."""
        section = (self.definition(task) or {}).get(table)
        return section.get(key) if isinstance(section, Mapping) else None

    def sizes(self, digest: bytes) -> list[TaskRow]:
        """The other sizes of a task by budget: the same program to begin with, the same number, names like ``gpt-m``.

        Of one that was published several times the first. What a program brings in one size may hold in the others.
        """
        definition = self.definition(digest) or {}
        family, stems, sizes = _family(definition), _stems(str(definition.get("name"))), dict[bytes, TaskRow]()
        for row in self.all() if family else ():
            if row.budget is not None and row.digest != digest and row.digest not in sizes and stems & _stems(row.name):
                record = self._reader.rows("SELECT raw, signature FROM record WHERE id = ?", row.id)
                body = parse_stored(*record[0]).body
                if isinstance(body, Task) and _family(body.definition) == family:
                    sizes[row.digest] = row
        return sorted(sizes.values(), key=lambda row: (row.budget or 0.0, row.digest))

    def rules(self, digest: bytes) -> TaskRules | None:
        """What ranking needs of a task, also of one whose record was withdrawn; None when unknown."""
        rows = self._reader.once(RULES, digest)
        return rules_in(rows[0]) if rows else None

    def sign(self, digest: bytes) -> float:
        """The factor that makes smaller values of a task better; 1 for an unknown task."""
        rules = self.rules(digest)
        return rules.sign if rules else 1.0


# Most who ask want the first few.
_FIRST_PAGE, _GROWTH, _PAGE = 50, 4, 500
# Which of several devices published a program first is found among so many of its oldest entries.
RIVALS = 50

_COLUMNS = ", ".join(Entry._fields)
_ROW = """
SELECT {0}.task, run.source_digest, {0}.budget, {0}.runs, {0}.mean, {0}.first, {0}.time, {0}.rank, {0}.author,
    run.title, run.parent, run.device, {0}.seedless
FROM {1} AS {0} CROSS JOIN run ON run.n = {0}.n
"""
_AFTER = "rank IS NOT NULL AND copy = 0 AND (rank, time, first) > (?, ?, ?) ORDER BY rank, time, first LIMIT ?"
_PLACED = f"""
SELECT * FROM (
    SELECT * FROM entry WHERE task = ? AND hardware = ? AND place > 0 AND place = ? AND {{}} AND {_AFTER})
"""  # noqa: S608
_BY_DEVICE = f"""
SELECT * FROM entry WHERE task = ? AND author = ? AND hardware = ? AND vouch IN ({{}}) AND {_AFTER}
"""  # noqa: S608
_IN_ORDER = "ORDER BY entry.rank, entry.time, entry.first"
_BY_FIRST = """
(SELECT entry.* FROM record CROSS JOIN run ON run.n = record.n CROSS JOIN entry ON entry.task = run.task
    AND entry.seedless = run.seedless AND entry.budget = run.budget AND entry.author = run.author AND entry.n = run.n
    WHERE record.id IN ({}) AND entry.task = ? AND entry.hardware = ? AND entry.place & ?)
"""
_IN_PLACE = """
(SELECT * FROM entry WHERE task = ? AND hardware = ? AND place > 0 AND place = ? AND rank >= -9e999 AND rank IS NOT NULL
    AND copy = 0 ORDER BY rank, time, first LIMIT 200)
"""
_WOULD_LEAD = f"""
CROSS JOIN standing ON standing.n = entry.n AND standing.state IN ({", ".join(map(repr, map(str, sorted(UNDECIDED))))})
WHERE entry.rank IS NOT NULL AND NOT entry.copy AND ? * coalesce(standing.value, entry.mean) < coalesce(?, 9e999)
"""
_BEGUN, _OPEN = (_ROW.format("entry", entries) + _WOULD_LEAD for entries in (_BY_FIRST, _IN_PLACE))
_RUNS = f"""
SELECT {RUN_COLUMNS}, standing.state, standing.attested, standing.checkers, standing.value
FROM run CROSS JOIN standing ON standing.n = run.n {SUSPECT}
WHERE run.task = ? AND run.seedless = ? AND run.budget = ? AND run.author = ? AND {COUNTS}
"""  # noqa: S608
_OF = "task = ? AND seedless = ? AND budget = ?"
# Of many entries the oldest of each kind, and those that have a place.
_RIVALS = f"""
SELECT author, vouch, hardware, time, first, place FROM (
    SELECT *, row_number() OVER (PARTITION BY vouch, hardware ORDER BY time, first) AS number FROM entry WHERE {_OF})
WHERE number <= {RIVALS} OR place > 0
"""  # noqa: S608


class Entries:
    """Programs as single devices ran them, for networks in which some words count and others do not."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader

    def placed(
        self, task: bytes, hardware: str, places: Collection[int], *, visible: bool = False
    ) -> Iterator[ProgramRow]:
        """The programs of a task whose places are among these, the best first.

        ``visible``: without those whose first run a person here hides.
        """
        query = " UNION ALL ".join([_PLACED.format(VISIBLE.format("entry") if visible else "true")] * len(places))
        yield from self._pages(query, [(task, hardware, place) for place in places])

    def of_devices(
        self, task: bytes, hardware: str, devices: Collection[bytes], vouches: Collection[int]
    ) -> Iterator[ProgramRow]:
        """The programs of a task as each of these devices ran them, the best first."""
        query = _BY_DEVICE.format(", ".join(map(str, vouches)))
        yield from heapq.merge(
            *(self._pages(query, [(task, device, hardware)]) for device in devices),
            key=lambda row: (row.rank, row.first_time, row.first),
        )

    def leading(
        self, task: bytes, hardware: str, runs: Collection[bytes], sign: float, leader: float | None
    ) -> list[ProgramRow]:
        """The undecided programs of a task that would lead: measured ones, and those that one of these runs ranks."""
        begun = self._reader.among(_BEGUN, runs, task, hardware, COUNTED | WITH_DOUBTED, sign, leader)
        rows = [*begun, *self._reader.rows(_OPEN, task, hardware, 1 << OPEN, sign, leader)]
        return [ProgramRow(*row) for row in dict.fromkeys(rows)]

    def first(self, program: Program) -> ProgramRow | None:
        """A program, by its source too, by the runs of the attested participant that published it first, or None."""
        query = f"""
        {_ROW.format("entry", "entry")} WHERE entry.task = ?1 AND entry.budget = ?3 AND entry.place IN (1, 3)
        AND entry.seedless IN (
            SELECT ?2 UNION ALL SELECT seedless FROM run WHERE task = ?1 AND source_digest = ?2 AND budget = ?3)
        ORDER BY entry.runs DESC, entry.seedless LIMIT 1
        """  # noqa: S608
        rows = self._reader.rows(query, *program)
        return ProgramRow(*rows[0]) if rows else None

    def has(self, program: Program, device: bytes, *, vouch: int) -> bool:
        """Whether a device has an entry for a program by runs of a kind."""
        query = f"SELECT 1 FROM entry WHERE {_OF} AND author = ? AND vouch = ?"  # noqa: S608
        return bool(self._reader.read(query, (*program, device, vouch)))

    def _pages(self, query: str, places: Sequence[tuple[object, ...]]) -> Iterator[ProgramRow]:
        after: tuple[object, ...] = (float("-inf"), 0, b"")
        size = _FIRST_PAGE
        query = f"{_ROW.format('entry', f'({query})')} {_IN_ORDER} LIMIT ?"
        while True:
            values = [value for place in places for value in (*place, *after, size)]
            page = [ProgramRow(*row) for row in self._reader.once(query, *values, size)]
            yield from page
            if len(page) < size:
                return
            after, size = (page[-1].rank, page[-1].first_time, page[-1].first), min(size * _GROWTH, _PAGE)

    # What the step of entries reads and writes.

    def runs_of(self, device: EntryKey) -> list[RunFacts]:
        """The runs of a program by one device that have a value."""
        return [RunFacts(*row) for row in self._reader.read(_RUNS, device)]

    def rivals(self, program: Program) -> list[EntryRow]:
        """The entries of a program; of many the oldest by kind and hardware, and those that have a place."""
        return [EntryRow(*row) for row in self._reader.read(_RIVALS, program)]

    def reported(self, task: bytes, runs: Collection[bytes]) -> dict[bytes, float]:
        """What the authors of those of these runs that are on a task report of the run's program: the mean.

        Of a run whose program is not counted yet its own value.
        """
        return dict(self._reader.among(_REPORTED, runs, task))

    def is_new(self, program: Program) -> bool:
        """Whether nothing but one run is known of a program, and no entry yet."""
        query = f"""
        SELECT NOT EXISTS(SELECT 1 FROM entry WHERE {_OF})
        AND (SELECT count(*) FROM (SELECT 1 FROM run WHERE {_OF} LIMIT 2)) = 1
        """  # noqa: S608
        return bool(self._reader.read(query, (*program, *program))[0][0])

    def replace(self, devices: Iterable[EntryKey], entries: Iterable[Entry]) -> None:
        """Write all entries of some programs by some devices."""
        connection, devices = self._reader.connection, list(devices)
        connection.executemany(f"DELETE FROM entry WHERE {_OF} AND author = ?", devices)  # noqa: S608
        self.add(entries)

    def add(self, entries: Iterable[Entry]) -> None:
        """Write entries that are not there."""
        statement = f"INSERT INTO entry({_COLUMNS}) VALUES({', '.join('?' * len(Entry._fields))})"
        self._reader.connection.executemany(statement, entries)

    def set_places(self, program: Program, places: Iterable[EntryPlace]) -> None:
        """Note which entries of a program are the first of it, and which are not."""
        self._reader.connection.executemany(
            f"UPDATE entry SET place = ? WHERE {_OF} AND author = ? AND vouch = ? AND hardware = ?",  # noqa: S608
            [(place.place, *program, *place[:3]) for place in places],
        )

    def hardware_of(self, task: bytes, devices: Collection[bytes]) -> list[tuple[str, bytes, int, int]]:
        """On which hardware these devices had counted runs of a task, how many, and the time of the newest."""
        query = f"""
        SELECT run.device, run.author, count(*), max(run.time) FROM run
        WHERE +run.task = ? AND {COUNTS} AND run.%s GROUP BY run.device, run.author
        """  # noqa: S608
        return [row for keys in in_parts(devices) for row in self._reader.rows(query % _of(keys), task, *keys)]


def _of(keys: Sequence[bytes]) -> str:
    return f"author IN ({', '.join('?' * len(keys))})"
