"""What a node measured of others' runs and did not tell yet: of which run, and what it waits for."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from autoresearch.api import WaitingStatus
from autoresearch.log import Log
from autoresearch.records import DAY_MS, Commitment, Record, Run, Verification, format_id
from autoresearch.verification import network_rules
from autoresearch.views import committed, in_snapshot, needed, participant_of, roster_of

# Older commitments without a reveal are of a node that lost what it measured.
_KEPT_MS = 7 * DAY_MS
_MOST = 1000


class Untold(NamedTuple):
    """A measurement of a run for a stage and a round; ``body`` is what came out, where that is known."""

    run: bytes
    stage: str
    round: int
    body: Verification | None = None


@in_snapshot
def untold(log: Log, author: bytes, now_ms: int) -> list[Untold]:
    """What a device committed itself to and did not tell, as far as the log says."""
    records = log.records.newest(kind="commitment", author=author, since_ms=now_ms - _KEPT_MS, limit=_MOST)
    asked = dict.fromkeys(
        Untold(record.body.run, record.body.stage, record.body.round)
        for record in records
        if isinstance(record.body, Commitment)
    )
    return [one for one in asked if not _is_told(log, author, one)]


@in_snapshot
def waiting(log: Log, author: bytes, measured: Iterable[Untold]) -> list[WaitingStatus]:
    """What a device waits for with each measurement, the one that is told first in front."""
    found = [
        _waiting(log, author, one, record, record.body)
        for one in measured
        if (record := log.records.find(one.run)) is not None and isinstance(record.body, Run)
    ]
    return sorted(found, key=lambda one: (one.tells_ms, one.run))


def _is_told(log: Log, author: bytes, one: Untold) -> bool:
    return any(
        (row.author, row.stage, row.round) == (author, one.stage, one.round) for row in log.verifications.of(one.run)
    )


def _waiting(log: Log, author: bytes, one: Untold, record: Record, run: Run) -> WaitingStatus:
    voter, body = roster_of(log).voter, one.body
    rows = committed(log, record, one.stage, one.round)
    spoken = {voter(row.author, row.time).voter for row in rows}
    own = [
        row.time
        for row in log.verifications.commitments(one.run)
        if (row.author, row.stage, row.round) == (author, one.stage, one.round)
    ]
    since_ms = min(own, default=0)
    counts = any(row.author == author for row in rows)  # else nobody is waited for
    return WaitingStatus(
        run=format_id(one.run),
        title=run.title,
        participant=participant_of(log, record.author, record.time),
        stage=one.stage,
        round=one.round,
        measured_ms=since_ms,
        missing=max(needed(log, record, one.stage) - len(spoken), 0) if counts else 0,
        tells_ms=since_ms + (network_rules(log.network).patience_ms if counts else 0),
        verdict=body.verdict if body else "",
        value=body.value if body else None,
        values=list(body.values) if body else [],
    )
