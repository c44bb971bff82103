"""What single devices say of programs, whatever all others write: nothing here takes longer for a flood."""

from __future__ import annotations

import heapq
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import groupby

from autoresearch.judging.scoring import CountedRun
from autoresearch.log.reader import COUNTS, ENDED, SUSPECT, Reader, in_parts
from autoresearch.log.rows import Bound, EntryRow, MeasuredRow

# Most who ask want the first few of each device.
_FIRST_PAGE, _GROWTH, _PAGE = 8, 4, 500
# The first entries are read of so many devices at once, and so many entries of them together.
_DEVICES, _TOGETHER = 50, 400
# So many entries with measured runs are read at once: about as many as most who ask want.
_MEASURED_PAGE = 250
# So many of a task's newest runs are looked through, whoever wrote them.
_RECENT = 2_000

_RUN = """run.time, run.id, run.value, run.author, run.replicate, run.device, run.title, run.parent,
  suspect.author IS NOT NULL"""
_OF_ENTRY = """run.task = entry.task AND run.source_digest = entry.source_digest AND run.budget = entry.budget
  AND run.author = entry.author"""
_OF_DEVICE = """
SELECT * FROM (
    SELECT * FROM entry
    WHERE task = ? AND author = ? AND bound IS NOT NULL AND (bound, time, first) > (?, ?, ?)
    ORDER BY bound, time, first LIMIT ?)
"""
_PAGES_OF_ENTRIES = f"""
SELECT entry.author, entry.source_digest, entry.budget, entry.bound, entry.time, entry.first, EXISTS(
    SELECT 1 FROM entry AS other WHERE other.task = entry.task AND other.source_digest = entry.source_digest
    AND other.budget = entry.budget AND other.author <> entry.author), {_RUN}
FROM (%s) AS entry CROSS JOIN run ON {_OF_ENTRY}
{SUSPECT} WHERE {COUNTS} ORDER BY entry.author, entry.bound, entry.time, entry.first
"""  # noqa: S608
_COUNTED_RUNS = f"""
SELECT {_RUN} FROM run {SUSPECT}
WHERE run.task = ? AND run.source_digest = ? AND run.budget = ? AND run.author = ? AND {COUNTS}
"""  # noqa: S608
_COUNTED_RUNS_WIDE = f"""
WITH entry(task, source_digest, budget, author) AS (VALUES %s)
SELECT entry.task, entry.source_digest, entry.budget, entry.author, {_RUN}
FROM entry CROSS JOIN run ON {_OF_ENTRY} {SUSPECT} WHERE {COUNTS}
"""  # noqa: S608
_ENTRANTS = "SELECT author FROM entry WHERE task = ? AND source_digest = ? AND budget = ?"
# From the measured entries of a task to their measured runs, few among all that is ranked.
_MEASURED = f"""
SELECT run.id, run.time, run.task, run.source_digest, run.budget, run.author, entry.bound, entry.time, entry.first
FROM (
    SELECT * FROM entry
    WHERE task = ?1 AND bound IS NOT NULL AND measured > 0 AND measured >= ?2 AND (bound, time, first) > (?3, ?4, ?5)
    ORDER BY bound, time, first LIMIT ?6
) AS entry CROSS JOIN run ON {_OF_ENTRY}
WHERE {COUNTS} AND (SELECT count(DISTINCT author) FROM verification WHERE verification.run = run.id) >= ?2
ORDER BY entry.bound, entry.time, entry.first, run.time, run.id
"""  # noqa: S608
_FIRST_BOUND = ", ".join(
    f"""(
    SELECT {column} FROM entry WHERE task = ? AND author = key.author AND bound IS NOT NULL
    ORDER BY bound, time, first LIMIT 1)"""  # noqa: S608
    for column in ("bound", "time", "first")
)
# Before all entries.
_START = Bound(float("-inf"), 0, b"")
# A program as a device ran it.
_Entry = tuple[bytes, bytes, float, bytes]
_NEWEST = """
SELECT record.time, record.id, record.author FROM record CROSS JOIN run ON run.n = record.n
WHERE record.author = ? AND (record.time, record.id) < (?, ?)
  AND run.task = ? AND (%s)
ORDER BY record.time DESC, record.id DESC LIMIT ?
"""


class FirstEntries:
    """The first entries of devices on a task, kept by whoever asks again: what comes changes those of a few devices."""

    def __init__(self) -> None:
        self.bounds: dict[bytes, Bound | None] = {}
        self.pages: dict[bytes, list[EntryRow]] = {}
        self.size = 0
        self._devices: defaultdict[bytes, set[bytes]] = defaultdict(set)

    def keep(self, pages: Mapping[bytes, list[EntryRow]]) -> None:
        """Keep the first entries of devices."""
        self.pages.update(pages)
        for device, page in pages.items():
            for entry in page:
                self._devices[entry.source_digest].add(device)

    def forget(self, devices: Collection[bytes], programs: Collection[bytes]) -> None:
        """Forget what changes when these devices publish something, and somebody runs these programs."""
        for device in devices:
            self.bounds.pop(device, None)
        for device in {*devices, *(device for digest in programs for device in self._devices.pop(digest, ()))}:
            self.pages.pop(device, None)


class Entries:
    """Programs as single devices ran them, for networks in which some words count and others do not."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader

    def by_bound(self, task: bytes, devices: Collection[bytes], known: FirstEntries) -> Iterator[EntryRow]:
        """The ranked programs of these devices, each once for each device that has it, by their bounds."""
        bounds, first = known.bounds, known.pages
        bounds |= self._first_bounds(task, [device for device in devices if device not in bounds])
        waiting = [(bound, device) for device in devices if (bound := bounds[device]) is not None]
        heapq.heapify(waiting)
        size = known.size = known.size or max(_FIRST_PAGE, _TOGETHER // max(min(len(waiting), _DEVICES), 1))
        opened: dict[bytes, tuple[EntryRow, Iterator[EntryRow]]] = {}
        while waiting:
            _, device = heapq.heappop(waiting)
            if device in opened:
                entry, rest = opened.pop(device)
                yield entry
            else:
                if device not in first:  # it and those that are likely to be next
                    near = heapq.nsmallest(_DEVICES - 1, waiting)
                    others = [other for _, other in near if other not in opened and other not in first]
                    known.keep(self._pages(task, [(one, _START) for one in (device, *others)], size))
                rest = self._entries_of(task, device, first[device], size)
            if (following := next(rest, None)) is not None:
                opened[device] = (following, rest)
                heapq.heappush(waiting, (following.bound, device))

    def entrants(self, task: bytes, source_digest: bytes, budget: float, among: Collection[bytes]) -> list[bytes]:
        """Those of the devices that have valued runs of a program; takes as long as there are devices, at most."""
        program = (task, source_digest, budget)
        rows = self._reader.rows(f"{_ENTRANTS} LIMIT ?", *program, len(among) + 1)
        if len(rows) > len(among):
            parts = [(f"{_ENTRANTS} AND {_of(keys)}", keys) for keys in in_parts(among)]
            rows = [row for query, keys in parts for row in self._reader.rows(query, *program, *keys)]
        return [device for (device,) in rows if device in among]

    def read_entrants_ahead(self, programs: Sequence[tuple[bytes, bytes, float]], among: Collection[bytes]) -> None:
        """Read at once, in this snapshot, which devices have valued runs of each of these programs."""
        if not self._reader.pinned or not programs:
            return
        most = len(among) + 1
        # With the number of each: whoever has many of one name has no more rows of it.
        one = f"{_ENTRANTS} LIMIT {most})".replace("SELECT author", "SELECT * FROM (SELECT %d, author")
        for start in range(0, len(programs), _DEVICES):
            part = programs[start : start + _DEVICES]
            query = " UNION ALL ".join(one % number for number in range(len(part)))
            rows = self._reader.read(query, [value for program in part for value in program])
            by_number = {number: [row[1:] for row in group] for number, group in groupby(rows, key=lambda row: row[0])}
            for number, program in enumerate(part):
                self._reader.keep(f"{_ENTRANTS} LIMIT ?", (*program, most), by_number.get(number, []))

    def counted_runs(self, task: bytes, source_digest: bytes, budget: float, device: bytes) -> list[CountedRun]:
        """The runs of a program by one device that have a value."""
        return [CountedRun(*row) for row in self._reader.rows(_COUNTED_RUNS, task, source_digest, budget, device)]

    def read_entries_ahead(self, entries: Collection[_Entry]) -> None:
        """Read at once the counted runs of these programs by these devices, in this snapshot."""
        if not self._reader.pinned:
            return
        wanted = [one for one in dict.fromkeys(entries) if not self._reader.is_kept(_COUNTED_RUNS, one)]
        for start in range(0, len(wanted), _PAGE):
            part = wanted[start : start + _PAGE]
            rows: dict[_Entry, list[tuple]] = {one: [] for one in part}  # type: ignore[type-arg]
            query = _COUNTED_RUNS_WIDE % ", ".join(["(?, ?, ?, ?)"] * len(part))
            for row in self._reader.read(query, [value for one in part for value in one]):
                rows[row[:4]].append(row[4:])
            for one, found in rows.items():
                self._reader.keep(_COUNTED_RUNS, one, found)

    def measured(self, task: bytes, *, authors: int) -> Iterator[MeasuredRow]:
        """The ranked runs of a task that at least so many devices measured, by the bounds of their entries."""
        after, size = _START, _MEASURED_PAGE
        while True:
            rows = self._reader.rows(_MEASURED, task, authors, *after, size)
            measured = [MeasuredRow._make((*row[:6], Bound(*row[6:]))) for row in rows]
            yield from measured
            if len({row.bound for row in measured}) < size:
                return
            after = measured[-1].bound

    def newest(
        self, task: bytes, devices: Collection[bytes], *, ended: bool = False
    ) -> Iterator[tuple[int, bytes, bytes]]:
        """Time, id and device of the runs of a task that have a value, the newest first, by these devices alone.

        With ``ended`` also of those that failed.
        """
        which = ENDED if ended else COUNTS
        query = f"SELECT time, id, author FROM run WHERE task = ? AND {which} ORDER BY time DESC, id DESC LIMIT ?"  # noqa: S608
        recent = self._reader.rows(query, task, _RECENT)
        yield from (run for run in recent if run[2] in devices)
        if len(recent) == _RECENT:  # so many others' runs may be before the next one that only each device's are read
            before = recent[-1][:2]
            yield from heapq.merge(*(self._newest_of(task, device, before, which) for device in devices), reverse=True)

    def hardware_of(self, task: bytes, devices: Collection[bytes]) -> list[tuple[str, bytes, int, int]]:
        """On which hardware these devices had counted runs of a task, how many, and the time of the newest."""
        query = f"""
        SELECT run.device, run.author, count(*), max(run.time) FROM run
        WHERE +run.task = ? AND {COUNTS} AND run.%s GROUP BY run.device, run.author
        """  # noqa: S608
        return [row for keys in in_parts(devices) for row in self._reader.rows(query % _of(keys), task, *keys)]

    def _first_bounds(self, task: bytes, devices: Collection[bytes]) -> dict[bytes, Bound | None]:
        found: dict[bytes, Bound | None] = {}
        for keys in in_parts(devices):
            values = ", ".join(["(?)"] * len(keys))
            query = f"WITH key(author) AS (VALUES {values}) SELECT {_FIRST_BOUND}, key.author FROM key"  # noqa: S608
            rows = self._reader.rows(query, *keys, task, task, task)
            found |= {device: None if bound[0] is None else Bound(*bound) for *bound, device in rows}
        return found

    def _entries_of(self, task: bytes, device: bytes, page: list[EntryRow], size: int) -> Iterator[EntryRow]:
        """A device's entries by their bounds: the first page, which is read already, and what comes after it."""
        while True:
            yield from page
            if len(page) < size:
                return
            after, size = page[-1].bound, min(size * _GROWTH, _PAGE)
            page = self._pages(task, [(device, after)], size)[device]

    def _pages(self, task: bytes, places: Sequence[tuple[bytes, Bound]], size: int) -> dict[bytes, list[EntryRow]]:
        """So many entries of each device after a place, by their bounds."""
        query = _PAGES_OF_ENTRIES % " UNION ALL ".join([_OF_DEVICE] * len(places))
        values = [value for device, after in places for value in (task, device, *after, size)]
        pages: dict[bytes, list[EntryRow]] = {device: [] for device, _ in places}
        for (device, source, budget, *bound, shared), runs in groupby(
            self._reader.rows(query, *values), key=lambda row: row[:7]
        ):
            counted = tuple(CountedRun(*row[7:]) for row in runs)
            pages[device].append(EntryRow(task, source, budget, device, Bound(*bound), bool(shared), counted))
        return pages

    def _newest_of(
        self, task: bytes, device: bytes, before: tuple[int, bytes], which: str
    ) -> Iterator[tuple[int, bytes, bytes]]:
        size = _FIRST_PAGE
        while page := self._reader.rows(_NEWEST % which, device, *before, task, size):
            yield from page
            before, size = page[-1][:2], min(size * _GROWTH, _PAGE)


def _of(keys: Sequence[bytes]) -> str:
    return f"author IN ({', '.join('?' * len(keys))})"
