"""Matches verifications with commitments: whether a verifier reveals what it committed to."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from autoresearch.log import CommitmentRow
from autoresearch.records import Record, Verification, body_fields
from autoresearch.verification import commitment_digest


class Own(NamedTuple):
    """The commitments of a device for a stage and a round: its first by number, and all by id."""

    first: CommitmentRow
    by_id: dict[bytes, CommitmentRow]


def committed_by(rows: Iterable[CommitmentRow]) -> dict[tuple[bytes, str, int], Own]:
    """The commitments on a run with valid proofs, by device, stage and round."""
    found: dict[tuple[bytes, str, int], Own] = {}
    for row in rows:
        if row.output is not None:
            name = (row.author, row.stage, row.round)
            own = found.get(name, Own(row, {}))
            own.by_id[row.id] = row
            found[name] = own._replace(first=min(own.first, row, key=lambda row: (row.seq, row.id)))
    return found


def commitment_of(record: Record, commitments: Mapping[tuple[bytes, str, int], Own]) -> bytes | None:
    """The id of the commitment that a verification links and opens, or None.

    A device has one for a stage and a round: its first by number. So no verifier can commit to two values and then
    choose which one to reveal.
    """
    check = record.body
    assert isinstance(check, Verification)
    own = commitments.get((record.author, check.stage, check.round))
    linked = [own.by_id[link] for link in record.links if link in own.by_id] if own else []
    if own is None or not linked:
        return None
    oldest = min(linked, key=lambda row: (row.time, row.id))
    digest = commitment_digest(record.author, check.salt, body_fields(record))
    # After a restored copy of the log a device commits again, to the same: either commitment may be linked.
    return oldest.id if oldest.digest == own.first.digest == digest else None
