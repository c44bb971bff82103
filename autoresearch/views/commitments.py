"""Whether what a verifier reveals is what it committed itself to."""

from __future__ import annotations

from collections.abc import Sequence

from autoresearch.log import CommitmentRow
from autoresearch.records import Record, Verification, body_fields
from autoresearch.verification import commitment_digest


def commitment_of(record: Record, commitments: Sequence[CommitmentRow]) -> bytes | None:
    """The id of the commitment that a verification links and opens, or None.

    A device has one for a stage and a round, its first in its own order: nobody commits to two numbers and then
    reveals the one that suits.
    """
    check = record.body
    assert isinstance(check, Verification)
    own = [
        row
        for row in commitments
        if (row.author, row.stage, row.round) == (record.author, check.stage, check.round) and row.output
    ]
    linked = [row for row in own if row.id in record.links]
    if not linked:
        return None
    first = min(own, key=lambda row: (row.seq, row.id))
    digest = commitment_digest(record.author, check.salt, body_fields(record))
    # An own commitment that an older copy of the log did not have is made again, the same: either may be linked.
    return linked[0].id if linked[0].digest == first.digest == digest else None
