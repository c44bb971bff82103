"""Reading what single devices say of programs, whatever all others write: nothing here takes longer for a flood."""

from __future__ import annotations

import heapq
from collections.abc import Collection, Iterator, Sequence
from itertools import groupby

from autoresearch.log.models import EntryRow, MeasuredRow
from autoresearch.log.reading import in_parts
from autoresearch.log.scoring import CountedRun
from autoresearch.log.tables import COUNTS, SUSPECT, Tables

# Most who ask want the first few of each device.
_FIRST_PAGE, _GROWTH, _PAGE = 4, 4, 500
# The first entries are read of so many devices at once, and so many entries of them together.
_DEVICES, _TOGETHER = 50, 400

_RUN = """run.time, run.id, run.value, run.author, run.replicate, run.device, run.title, run.parent,
  suspect.author IS NOT NULL"""
_OF_ENTRY = """run.task = entry.task AND run.source_digest = entry.source_digest AND run.budget = entry.budget
  AND run.author = entry.author"""
_OF_DEVICE = """
SELECT * FROM (
    SELECT * FROM entry
    WHERE task = ? AND author = ? AND bound IS NOT NULL AND (bound, source_digest, budget) > (?, ?, ?)
    ORDER BY bound, source_digest, budget LIMIT ?)
"""
_PAGES_OF_ENTRIES = f"""
SELECT entry.author, entry.source_digest, entry.budget, entry.bound, EXISTS(
    SELECT 1 FROM entry AS other WHERE other.task = entry.task AND other.source_digest = entry.source_digest
    AND other.budget = entry.budget AND other.author <> entry.author), {_RUN}
FROM (%s) AS entry CROSS JOIN run ON {_OF_ENTRY}
{SUSPECT} WHERE {COUNTS} ORDER BY entry.author, entry.bound, entry.source_digest, entry.budget
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
# Before all entries of a device.
_START = (float("-inf"), b"", 0.0)
# A program as a device ran it.
_Entry = tuple[bytes, bytes, float, bytes]
_NEWEST = """
SELECT record.time, record.id, record.author FROM record CROSS JOIN run ON run.n = record.n
WHERE record.author = ? AND (record.time, record.id) < (?, ?)
  AND run.task = ? AND run.status = 'ok' AND run.value IS NOT NULL
ORDER BY record.time DESC, record.id DESC LIMIT ?
"""


class Entries(Tables):
    """The reading half of the log for networks in which some words count and others do not."""

    def entries(self, task: bytes, devices: Collection[bytes]) -> Iterator[EntryRow]:
        """The ranked programs of these devices, each once for each device that has it, by their bounds."""
        waiting = self._first_bounds(task, devices)
        heapq.heapify(waiting)
        opened: dict[bytes, tuple[EntryRow, Iterator[EntryRow]]] = {}
        first: dict[bytes, list[EntryRow]] = {}
        size = max(_FIRST_PAGE, _TOGETHER // max(min(len(waiting), _DEVICES), 1))
        while waiting:
            _, device = heapq.heappop(waiting)
            if device in opened:
                entry, rest = opened.pop(device)
                yield entry
            else:
                if device not in first:  # it and those that are likely to be next
                    others = [other for _, other in heapq.nsmallest(_DEVICES - 1, waiting) if other not in opened]
                    first = self._pages(task, [(one, _START) for one in (device, *others)], size)
                rest = self._entries_of(task, device, first[device], size)
            if (following := next(rest, None)) is not None:
                opened[device] = (following, rest)
                heapq.heappush(waiting, (following.bound, device))

    def entrants(self, task: bytes, source_digest: bytes, budget: float, among: Collection[bytes]) -> list[bytes]:
        """Those of the devices that have valued runs of a program; takes as long as there are devices, at most."""
        program = (task, source_digest, budget)
        rows = self._rows(f"{_ENTRANTS} LIMIT ?", *program, len(among) + 1)
        if len(rows) > len(among):
            parts = [(f"{_ENTRANTS} AND {_of(keys)}", keys) for keys in in_parts(among)]
            rows = [row for query, keys in parts for row in self._rows(query, *program, *keys)]
        return [device for (device,) in rows if device in among]

    def read_entrants_ahead(self, programs: Sequence[tuple[bytes, bytes, float]], among: Collection[bytes]) -> None:
        """Read at once, in this snapshot, which devices have valued runs of each of these programs."""
        if not self._pinned or not programs:
            return
        most = len(among) + 1
        # With the number of each: whoever has many of one name has no more rows of it.
        one = f"{_ENTRANTS} LIMIT {most})".replace("SELECT author", "SELECT * FROM (SELECT %d, author")
        for start in range(0, len(programs), _DEVICES):
            part = programs[start : start + _DEVICES]
            query = " UNION ALL ".join(one % number for number in range(len(part)))
            rows = self._read(query, [value for program in part for value in program])
            found = {number: [row[1:] for row in group] for number, group in groupby(rows, key=lambda row: row[0])}
            for number, program in enumerate(part):
                self._keep(f"{_ENTRANTS} LIMIT ?", (*program, most), found.get(number, []))

    def counted_runs(self, task: bytes, source_digest: bytes, budget: float, device: bytes) -> list[CountedRun]:
        """The runs of a program by one device that have a value."""
        return [CountedRun(*row) for row in self._rows(_COUNTED_RUNS, task, source_digest, budget, device)]

    def read_entries_ahead(self, entries: Collection[_Entry]) -> None:
        """Read at once the counted runs of these programs by these devices, in this snapshot."""
        if not self._pinned:
            return
        wanted = [one for one in dict.fromkeys(entries) if (_COUNTED_RUNS, one) not in self._kept]
        for start in range(0, len(wanted), _PAGE):
            part = wanted[start : start + _PAGE]
            rows: dict[_Entry, list[tuple]] = {one: [] for one in part}  # type: ignore[type-arg]
            query = _COUNTED_RUNS_WIDE % ", ".join(["(?, ?, ?, ?)"] * len(part))
            for row in self._read(query, [value for one in part for value in one]):
                rows[row[:4]].append(row[4:])
            for one, found in rows.items():
                self._keep(_COUNTED_RUNS, one, found)

    def measured(self, task: bytes, *, authors: int) -> list[MeasuredRow]:
        """The ranked runs of a task that at least so many devices measured, by the bounds of their entries."""
        # CROSS JOIN keeps SQLite from walking through all that is ranked: few runs have verifications.
        query = f"""
        SELECT run.id, run.time, run.task, run.source_digest, run.budget, run.author, entry.bound
        FROM (SELECT run FROM verification GROUP BY run HAVING count(DISTINCT author) >= ?) AS measured
        CROSS JOIN record ON record.id = measured.run
        CROSS JOIN run ON run.n = record.n
        CROSS JOIN entry ON {_OF_ENTRY}
        WHERE run.task = ? AND entry.bound IS NOT NULL AND {COUNTS}
        ORDER BY entry.bound, run.time, run.id
        """  # noqa: S608
        return [MeasuredRow(*row) for row in self._rows(query, authors, task)]

    def newest(self, task: bytes, devices: Collection[bytes]) -> Iterator[tuple[int, bytes, bytes]]:
        """Time, id and device of the runs of a task that have a value, the newest first, by these devices alone."""
        return heapq.merge(*(self._newest_of(task, device) for device in devices), reverse=True)

    def hardware_of(self, task: bytes, devices: Collection[bytes]) -> list[tuple[str, bytes, int, int]]:
        """On which hardware these devices had counted runs of a task, how many, and the time of the newest."""
        query = f"""
        SELECT run.device, run.author, count(*), max(run.time) FROM run
        WHERE +run.task = ? AND {COUNTS} AND run.%s GROUP BY run.device, run.author
        """  # noqa: S608
        return [row for keys in in_parts(devices) for row in self._rows(query % _of(keys), task, *keys)]

    def _first_bounds(self, task: bytes, devices: Collection[bytes]) -> list[tuple[float, bytes]]:
        best = "SELECT min(bound) FROM entry WHERE task = ? AND author = key.author AND bound IS NOT NULL"
        found: list[tuple[float | None, bytes]] = []
        for keys in in_parts(devices):
            values = ", ".join(["(?)"] * len(keys))
            query = f"WITH key(author) AS (VALUES {values}) SELECT ({best}), key.author FROM key"  # noqa: S608
            found += self._rows(query, *keys, task)
        return [(bound, device) for bound, device in found if bound is not None]

    def _entries_of(self, task: bytes, device: bytes, page: list[EntryRow], size: int) -> Iterator[EntryRow]:
        """A device's entries by their bounds: a page that is read already, and what comes after it."""
        while True:
            yield from page
            if len(page) < size:
                return
            after = (page[-1].bound, page[-1].source_digest, page[-1].budget)
            size = min(size * _GROWTH, _PAGE)
            page = self._pages(task, [(device, after)], size)[device]

    def _pages(
        self, task: bytes, places: Sequence[tuple[bytes, tuple[float, bytes, float]]], size: int
    ) -> dict[bytes, list[EntryRow]]:
        """So many entries of each device after a place, by their bounds."""
        query = _PAGES_OF_ENTRIES % " UNION ALL ".join([_OF_DEVICE] * len(places))
        values = [value for device, after in places for value in (task, device, *after, size)]
        pages: dict[bytes, list[EntryRow]] = {device: [] for device, _ in places}
        for (device, source, budget, bound, shared), runs in groupby(
            self._rows(query, *values), key=lambda row: row[:5]
        ):
            counted = tuple(CountedRun(*row[5:]) for row in runs)
            pages[device].append(EntryRow(task, source, budget, device, bound, bool(shared), counted))
        return pages

    def _newest_of(self, task: bytes, device: bytes) -> Iterator[tuple[int, bytes, bytes]]:
        before, size = (2**63 - 1, b""), _FIRST_PAGE
        while page := self._rows(_NEWEST, device, *before, task, size):
            yield from page
            before, size = page[-1][:2], min(size * _GROWTH, _PAGE)


def _of(keys: Sequence[bytes]) -> str:
    return f"author IN ({', '.join('?' * len(keys))})"
