"""What changed in a log since it was looked at last: what a view that is kept between questions asks first."""

from __future__ import annotations

from autoresearch.log.models import Said
from autoresearch.log.reader import Reader
from autoresearch.log.tables.runs import Runs

# The runs whose verifications are others, or say something else: they came, or a commitment of a verifier did, or the
# run itself came after them, or its parent did.
_SAID = """
SELECT run FROM verification WHERE n > ?1
UNION SELECT run FROM commitment WHERE n > ?1 AND EXISTS(
    SELECT 1 FROM verification AS said WHERE said.run = commitment.run AND said.author = commitment.author)
UNION SELECT id FROM record WHERE n > ?1 AND EXISTS(SELECT 1 FROM verification WHERE run = record.id)
UNION SELECT child.id FROM record AS above CROSS JOIN lineage ON lineage.parent = above.id
CROSS JOIN record AS child ON child.n = lineage.n
WHERE above.n > ?1 AND EXISTS(SELECT 1 FROM verification WHERE run = child.id)
"""
# The tasks on which somebody ran a program again of which it had a measured run.
_MEASURED_TASKS = """
SELECT DISTINCT run.task FROM run NOT INDEXED CROSS JOIN entry ON entry.task = run.task
AND entry.source_digest = run.source_digest AND entry.budget = run.budget AND entry.author = run.author
WHERE run.n > ?1 AND entry.measured > 0
"""


class Changes:
    """What came after the record with a number, in the order in which records were stored here."""

    def __init__(self, reader: Reader, runs: Runs) -> None:
        self._reader = reader
        self._runs = runs

    def kinds_after(self, row: int) -> set[str]:
        """The kinds of the records stored after the one with this number."""
        # The plus sign keeps SQLite from walking through an index of all records.
        return {kind for (kind,) in self._reader.rows("SELECT DISTINCT +kind FROM record WHERE n > ?", row)}

    def said_after(self, row: int) -> Said:
        """The runs of which others' verifications say something else after the record with this number."""
        said = {run for (run,) in self._reader.rows(_SAID, row)}
        above = "SELECT parent FROM lineage WHERE n = (SELECT n FROM record WHERE id = ?)"
        parents = {found for run in said for (found,) in self._reader.rows(above, run)}
        children = {found for run in said for found in self._runs.children(run)}
        of = "SELECT task FROM run WHERE n = (SELECT n FROM record WHERE id = ?)"
        tasks = {task for run in said for (task,) in self._reader.rows(of, run)}
        return Said(said, parents, children, tasks | {task for (task,) in self._reader.rows(_MEASURED_TASKS, row)})

    def programs_after(self, row: int) -> tuple[set[bytes], set[bytes]]:
        """The source digests of the runs that came after the record with this number, and of the claims."""
        ran = self._reader.rows("SELECT DISTINCT source_digest FROM run WHERE n > ?", row)
        claimed = self._reader.rows("SELECT DISTINCT source_digest FROM claim WHERE n > ?", row)
        return {digest for (digest,) in ran}, {digest for (digest,) in claimed}

    def places_after(self, row: int) -> list[tuple[bytes, int]]:
        """By whom records were stored after the one with this number, and the first of each in its own order."""
        return self._reader.rows("SELECT author, min(seq) FROM record WHERE n > ? GROUP BY +author", row)

    def named_after(self, row: int) -> list[bytes]:
        """The runs that records stored after the one with this number name."""
        query = """
        SELECT run FROM mention WHERE n > ?1 UNION SELECT parent FROM lineage WHERE n > ?1
        UNION SELECT run FROM commitment WHERE n > ?1
        """
        return [run for (run,) in self._reader.rows(query, row)]
