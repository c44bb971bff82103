"""Programs as all runs of them together rank, whoever published them."""

from __future__ import annotations

from autoresearch.log.models import ProgramRow
from autoresearch.log.reader import Reader

_PROGRAM = """
SELECT program.task, program.source_digest, program.budget, program.runs, program.mean, program.first,
       program.first_time, program.rank, run.author, run.title, run.parent, run.device
FROM program JOIN record ON record.id = program.first JOIN run ON run.n = record.n
"""


class Programs:
    """What is computed from the counted runs of each program."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader

    def ranked(self, task: bytes, *, limit: int = 50, skip: int = 0) -> list[ProgramRow]:
        """The best programs of a task first, past ``skip``: those with a budget that ranks whose runs count."""
        query = f"{_PROGRAM} WHERE program.task = ? AND program.rank IS NOT NULL"
        order = " ORDER BY program.rank, program.first_time, program.first LIMIT ? OFFSET ?"
        return [ProgramRow(*row) for row in self._reader.rows(query + order, task, limit, skip)]

    def find(self, task: bytes, source_digest: bytes, budget: float) -> ProgramRow | None:
        """The program of a source with a budget, or None when no run of it counts."""
        query = f"{_PROGRAM} WHERE program.task = ? AND program.source_digest = ? AND program.budget = ?"
        found = self._reader.rows(query, task, source_digest, budget)
        return ProgramRow(*found[0]) if found else None

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
