"""What others measured of runs, and the commitments to it."""

from __future__ import annotations

from collections.abc import Collection

from autoresearch.log.models import CommitmentRow, VerificationRow
from autoresearch.log.reader import Reader, marks
from autoresearch.log.tables.records import Records
from autoresearch.records import Run

_VERIFICATION = "id, run, stage, verdict, value, author, time, round, output, n FROM verification"
_VERIFICATIONS = f"SELECT {_VERIFICATION} WHERE run = ? ORDER BY time, id"
_VERIFICATIONS_WIDE = f"SELECT run, {_VERIFICATION} WHERE run IN ({{}}) ORDER BY time, id"
_COMMITMENT = "n, id, run, stage, round, digest, author, seq, time, output FROM commitment"
_COMMITMENTS = f"SELECT {_COMMITMENT} WHERE run = ? ORDER BY time, id"
_COMMITMENTS_WIDE = f"SELECT run, {_COMMITMENT} WHERE run IN ({{}}) ORDER BY time, id"
_PAIRED = """
SELECT record.id FROM lineage CROSS JOIN record ON record.n = lineage.n WHERE lineage.parent = ?
AND EXISTS(SELECT 1 FROM verification WHERE run = record.id AND stage = 'replicate') ORDER BY lineage.n
"""
_PAIRED_WIDE = _PAIRED.replace("SELECT record.id", "SELECT lineage.parent, record.id", 1).replace("= ?", "IN ({})", 1)


class Verifications:
    """Verifications and commitments, by the runs that they are about. Nobody can withdraw them."""

    def __init__(self, reader: Reader, records: Records) -> None:
        self._reader = reader
        self._records = records

    def of(self, run: bytes) -> list[VerificationRow]:
        """The measurements of a run by others, the oldest first."""
        return [VerificationRow(*row) for row in self._reader.rows(_VERIFICATIONS, run)]

    def commitments(self, run: bytes) -> list[CommitmentRow]:
        """What verifiers of a run committed themselves to, the oldest first; nobody can take it back."""
        return [CommitmentRow(*row) for row in self._reader.rows(_COMMITMENTS, run)]

    def paired_children(self, run: bytes) -> list[bytes]:
        """The runs that name a run as their parent and that somebody replicated, in the order in which they came."""
        return [found for (found,) in self._reader.rows(_PAIRED, run)]

    def read_ahead(self, runs: Collection[bytes]) -> None:
        """Read at once what it takes to judge these runs in this snapshot: what is said of them and of their kin."""
        if not self._reader.pinned:
            return
        self._reader.read_ahead(_PAIRED, _PAIRED_WIDE, runs)
        children = [child for run in runs for child in self.paired_children(run)]
        bodies = [record.body for record in self._records.find_ahead([*runs, *children])]
        parents = [body.parent for body in bodies if isinstance(body, Run) and body.parent]
        kin = [*runs, *children, *parents]
        self._reader.read_ahead(_VERIFICATIONS, _VERIFICATIONS_WIDE, kin)
        self._reader.read_ahead(_COMMITMENTS, _COMMITMENTS_WIDE, kin)
        self._records.find_ahead([*parents, *(row.id for run in kin for row in self.of(run))])

    def verified(self) -> list[bytes]:
        """The ids of all runs that somebody verified, on whatever task, whether or not they are here."""
        return [row[0] for row in self._reader.rows("SELECT DISTINCT run FROM verification ORDER BY run")]

    def verified_and_parents(self) -> list[bytes]:
        """The ids of all runs that somebody verified, and of those that are named as the parent of one."""
        query = """
        SELECT run FROM verification UNION
        SELECT lineage.parent FROM (SELECT DISTINCT run FROM verification) AS said
        CROSS JOIN record ON record.id = said.run CROSS JOIN lineage ON lineage.n = record.n
        """
        return [row[0] for row in self._reader.rows(query)]

    def verified_with(self, devices: Collection[bytes]) -> list[bytes]:
        """The ids of all runs that these devices verified, and of theirs that somebody verified."""
        keys = list(devices)
        query = f"""
        SELECT run FROM verification WHERE author IN ({marks(keys)}) UNION
        SELECT verification.run FROM verification CROSS JOIN record ON record.id = verification.run
        WHERE record.author IN ({marks(keys)}) ORDER BY 1
        """  # noqa: S608
        return [row[0] for row in self._reader.rows(query, *keys)]
