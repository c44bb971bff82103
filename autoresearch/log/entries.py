"""Reading what single devices say of programs, whatever all others write: nothing here takes longer for a flood."""

from __future__ import annotations

import heapq
from collections.abc import Collection, Iterator, Sequence
from itertools import groupby

from autoresearch.log.scoring import CountedRun
from autoresearch.log.tables import COUNTS, NOT_SUSPECT, Tables
from autoresearch.log.verdicts import EntryRow, MeasuredRow

# So many keys are asked for at once; SQLite takes no more than 32,766.
_KEYS = 500
# Most who ask want the first few of each device.
_FIRST_PAGE, _GROWTH, _PAGE = 4, 4, 500

_RUN = "run.time, run.id, run.value, run.author, run.replicate, run.device, run.title, run.parent"
_OF_ENTRY = """run.task = entry.task AND run.source_digest = entry.source_digest AND run.budget = entry.budget
  AND run.author = entry.author"""
_PAGE_OF_ENTRIES = f"""
SELECT entry.source_digest, entry.budget, entry.bound, entry.shared, {_RUN}
FROM (
    SELECT *, EXISTS(
        SELECT 1 FROM entry AS other WHERE other.task = entry.task AND other.source_digest = entry.source_digest
        AND other.budget = entry.budget AND other.author <> entry.author) AS shared
    FROM entry WHERE task = ? AND author = ? AND bound IS NOT NULL AND (bound, source_digest, budget) > (?, ?, ?)
    ORDER BY bound, source_digest, budget LIMIT ?
) AS entry CROSS JOIN run ON {_OF_ENTRY}
{NOT_SUSPECT} WHERE {COUNTS} ORDER BY entry.bound, entry.source_digest, entry.budget
"""  # noqa: S608
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
        while waiting:
            _, device = heapq.heappop(waiting)
            if device in opened:
                entry, rest = opened.pop(device)
                yield entry
            else:
                rest = self._entries_of(task, device)
            if (following := next(rest, None)) is not None:
                opened[device] = (following, rest)
                heapq.heappush(waiting, (following.bound, device))

    def entrants(self, task: bytes, source_digest: bytes, budget: float, among: Collection[bytes]) -> list[bytes]:
        """Those of the devices that have counted runs of a program; takes as long as there are devices, at most."""
        query = "SELECT author FROM entry WHERE task = ? AND source_digest = ? AND budget = ?"
        program = (task, source_digest, budget)
        rows = self._rows(f"{query} LIMIT ?", *program, len(among) + 1)
        if len(rows) > len(among):
            rows = [row for keys in _in_parts(among) for row in self._rows(f"{query} AND {_of(keys)}", *program, *keys)]
        return [device for (device,) in rows if device in among]

    def counted_runs(self, task: bytes, source_digest: bytes, budget: float, device: bytes) -> list[CountedRun]:
        """The runs of a program by one device that count."""
        query = f"""
        SELECT {_RUN} FROM run {NOT_SUSPECT}
        WHERE run.task = ? AND run.source_digest = ? AND run.budget = ? AND run.author = ? AND {COUNTS}
        """  # noqa: S608
        return [CountedRun(*row) for row in self._rows(query, task, source_digest, budget, device)]

    def measured(self, task: bytes, *, authors: int) -> list[MeasuredRow]:
        """The ranked runs of a task that at least so many devices measured, by the bounds of their entries."""
        # CROSS JOIN keeps SQLite from walking through all that is ranked: few runs have verifications.
        query = f"""
        SELECT run.id, run.time, run.task, run.source_digest, run.budget, run.author, entry.bound
        FROM (SELECT run FROM verification GROUP BY run HAVING count(DISTINCT author) >= ?) AS measured
        CROSS JOIN record ON record.id = measured.run
        CROSS JOIN run ON run.n = record.n
        CROSS JOIN entry ON {_OF_ENTRY}
        {NOT_SUSPECT}
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
        SELECT run.device, run.author, count(*), max(run.time) FROM run {NOT_SUSPECT}
        WHERE +run.task = ? AND {COUNTS} AND run.%s GROUP BY run.device, run.author
        """  # noqa: S608
        return [row for keys in _in_parts(devices) for row in self._rows(query % _of(keys), task, *keys)]

    def _first_bounds(self, task: bytes, devices: Collection[bytes]) -> list[tuple[float, bytes]]:
        best = "SELECT min(bound) FROM entry WHERE task = ? AND author = key.author AND bound IS NOT NULL"
        found: list[tuple[float | None, bytes]] = []
        for keys in _in_parts(devices):
            values = ", ".join(["(?)"] * len(keys))
            query = f"WITH key(author) AS (VALUES {values}) SELECT ({best}), key.author FROM key"  # noqa: S608
            found += self._rows(query, *keys, task)
        return [(bound, device) for bound, device in found if bound is not None]

    def _entries_of(self, task: bytes, device: bytes) -> Iterator[EntryRow]:
        after: tuple[float, bytes, float] = (float("-inf"), b"", 0.0)
        size = _FIRST_PAGE
        while True:
            rows = self._rows(_PAGE_OF_ENTRIES, task, device, *after, size)
            count = 0
            for (source, budget, bound, shared), runs in groupby(rows, key=lambda row: row[:4]):
                counted = tuple(CountedRun(*row[4:]) for row in runs)
                yield EntryRow(task, source, budget, device, bound, bool(shared), counted)
                after, count = (bound, source, budget), count + 1
            if count < size:
                return
            size = min(size * _GROWTH, _PAGE)

    def _newest_of(self, task: bytes, device: bytes) -> Iterator[tuple[int, bytes, bytes]]:
        before, size = (2**63 - 1, b""), _FIRST_PAGE
        while page := self._rows(_NEWEST, device, *before, task, size):
            yield from page
            before, size = page[-1][:2], min(size * _GROWTH, _PAGE)


def _of(keys: Sequence[bytes]) -> str:
    return f"author IN ({', '.join('?' * len(keys))})"


def _in_parts(keys: Collection[bytes]) -> Iterator[list[bytes]]:
    ordered = list(keys)
    for start in range(0, len(ordered), _KEYS):
        yield ordered[start : start + _KEYS]
