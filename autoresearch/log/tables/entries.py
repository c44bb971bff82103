"""Programs as single devices ran them, as rows in the order of their ranks."""

from __future__ import annotations

import heapq
from collections.abc import Collection, Iterable, Iterator, Sequence

from autoresearch.log.reader import COPIED, COUNTS, SUSPECT, Reader, in_parts
from autoresearch.log.rows import Device, DeviceRun, Entry, EntryRow, Place, Program, ProgramRow

# Most who ask want the first few.
_FIRST_PAGE, _GROWTH, _PAGE = 50, 4, 500
# So many entries with measured runs are read: more than anybody asks for, and not all that there may be.
_MEASURED_MOST = 500
# Which of several devices published a program first is found among so many of its oldest entries.
RIVALS = 50

_COLUMNS = ", ".join(Entry._fields)
_ROW = """
SELECT {0}.task, {0}.source_digest, {0}.budget, {0}.runs, {0}.mean, {0}.first, {0}.time, {0}.rank, {0}.author,
    run.title, run.parent, run.device
FROM {1} AS {0} CROSS JOIN run ON run.n = {0}.n
"""
_AFTER = "rank IS NOT NULL AND copy = 0 AND (rank, time, first) > (?, ?, ?) ORDER BY rank, time, first LIMIT ?"
_PLACED = (
    f"SELECT * FROM (SELECT * FROM entry WHERE task = ? AND hardware = ? AND place > 0 AND place = ? AND {_AFTER})"  # noqa: S608
)
_BY_DEVICE = f"""
SELECT * FROM entry WHERE task = ? AND author = ? AND hardware = ? AND vouch IN ({{}}) AND {_AFTER}
"""  # noqa: S608
_IN_ORDER = "ORDER BY entry.rank, entry.time, entry.first"
# From the measured entries of a task to their measured runs, few among all that is ranked.
_MEASURED = f"""
SELECT entry.task, entry.source_digest, entry.budget, entry.runs, entry.mean, run.id, run.time, entry.rank,
    entry.author, run.title, run.parent, run.device
FROM (
    SELECT * FROM entry
    WHERE task = ? AND hardware = ? AND measured > 0 AND measured >= ? AND rank IS NOT NULL AND copy = 0
    AND (vouch = 1 OR vouch = 0 AND author IN ({{}})) ORDER BY rank, time, first LIMIT {_MEASURED_MOST}
) AS entry
CROSS JOIN run ON run.task = entry.task AND run.source_digest = entry.source_digest AND run.budget = entry.budget
    AND run.author = entry.author AND entry.hardware IN ('', run.device)
CROSS JOIN standing ON standing.n = run.n AND standing.attested = entry.vouch
    AND standing.checkers >= ? AND standing.compared = 1
ORDER BY entry.rank, run.time, run.id
"""  # noqa: S608
_RUNS = f"""
SELECT run.time, run.id, run.value, run.author, run.replicate, run.device, run.n, standing.state, standing.attested,
    suspect.author IS NOT NULL, standing.checkers, {COPIED}
FROM run CROSS JOIN standing ON standing.n = run.n {SUSPECT}
WHERE run.task = ? AND run.source_digest = ? AND run.budget = ? AND run.author = ? AND {COUNTS}
"""  # noqa: S608
_OF = "task = ? AND source_digest = ? AND budget = ?"
_RIVAL = f"SELECT author, vouch, hardware, time, first, place FROM entry WHERE {_OF}"  # noqa: S608


class Entries:
    """Programs as single devices ran them, for networks in which some words count and others do not."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader

    def placed(self, task: bytes, hardware: str, places: Collection[int]) -> Iterator[ProgramRow]:
        """The programs of a task whose places are among these, the best first."""
        query = " UNION ALL ".join([_PLACED] * len(places))
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

    def measured(self, task: bytes, hardware: str, *, voters: int, own: Collection[bytes]) -> list[ProgramRow]:
        """The runs that so many attested participants measured, of attested participants and of these devices.

        Each as its program, by its device, the best of these first.
        """
        query = _MEASURED.format(", ".join("?" * len(own)))
        return [ProgramRow(*row) for row in self._reader.rows(query, task, hardware, voters, *own, voters)]

    def first(self, program: Program) -> ProgramRow | None:
        """A program by the runs of the attested participant that published it first, or None."""
        query = f"{_ROW.format('entry', 'entry')} WHERE entry.task = ? AND entry.source_digest = ?"
        rows = self._reader.rows(f"{query} AND entry.budget = ? AND entry.place IN (1, 3)", *program)
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
            page = [ProgramRow(*row) for row in self._reader.rows(query, *values, size)]
            yield from page
            if len(page) < size:
                return
            after, size = (page[-1].rank, page[-1].first_time, page[-1].first), min(size * _GROWTH, _PAGE)

    # What settling reads and writes.

    def runs_of(self, device: Device) -> list[DeviceRun]:
        """The runs of a program by one device that have a value."""
        return [DeviceRun(*row) for row in self._reader.read(_RUNS, device)]

    def rivals(self, program: Program) -> list[EntryRow]:
        """The entries of a program; of many the oldest of each kind of runs, and those that have a place."""
        rows = self._reader.read(f"{_RIVAL} LIMIT {RIVALS + 1}", program)
        if len(rows) > RIVALS:
            rows = self._reader.read(f"{_RIVAL} AND place > 0", program)
            for vouch in (0, 1, 2):
                rows += self._reader.read(f"{_RIVAL} AND vouch = {vouch} ORDER BY time, first LIMIT {RIVALS}", program)
        return [EntryRow(*row) for row in dict.fromkeys(rows)]

    def is_new(self, program: Program) -> bool:
        """Whether nothing but one run is known of a program, and no entry yet."""
        query = f"""
        SELECT NOT EXISTS(SELECT 1 FROM entry WHERE {_OF})
        AND (SELECT count(*) FROM (SELECT 1 FROM run WHERE {_OF} LIMIT 2)) = 1
        """  # noqa: S608
        return bool(self._reader.read(query, (*program, *program))[0][0])

    def replace(self, devices: Iterable[Device], entries: Iterable[Entry]) -> None:
        """Write all entries of some programs by some devices."""
        connection, devices = self._reader.connection, list(devices)
        for table in ("entry", "unranked"):
            connection.executemany(f"DELETE FROM {table} WHERE {_OF} AND author = ?", devices)  # noqa: S608
        self.add(entries)

    def add(self, entries: Iterable[Entry]) -> None:
        """Write entries that are not there."""
        statement = f"INSERT INTO entry({_COLUMNS}) VALUES({', '.join('?' * len(Entry._fields))})"
        self._reader.connection.executemany(statement, entries)

    def set_places(self, program: Program, places: Iterable[Place]) -> None:
        """Note which entries of a program are the first of it, and which are not."""
        self._reader.connection.executemany(
            f"UPDATE entry SET place = ? WHERE {_OF} AND author = ? AND vouch = ? AND hardware = ?",  # noqa: S608
            [(place.place, *program, *place[:3]) for place in places],
        )

    def unranked(self, limit: int) -> list[Device]:
        """Programs by devices whose entries are to be computed again."""
        query = "SELECT task, source_digest, budget, author FROM unranked LIMIT ?"
        return [Device(*row) for row in self._reader.read(query, (limit,))]

    def hardware_of(self, task: bytes, devices: Collection[bytes]) -> list[tuple[str, bytes, int, int]]:
        """On which hardware these devices had counted runs of a task, how many, and the time of the newest."""
        query = f"""
        SELECT run.device, run.author, count(*), max(run.time) FROM run
        WHERE +run.task = ? AND {COUNTS} AND run.%s GROUP BY run.device, run.author
        """  # noqa: S608
        return [row for keys in in_parts(devices) for row in self._reader.rows(query % _of(keys), task, *keys)]


def _of(keys: Sequence[bytes]) -> str:
    return f"author IN ({', '.join('?' * len(keys))})"
