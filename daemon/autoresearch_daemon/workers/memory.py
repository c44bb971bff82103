"""What the log knows, as a proposer wants it."""

from __future__ import annotations

import msgspec

from autoresearch.errors import AutoresearchError
from autoresearch.log import BlobStore, Log
from autoresearch.proposers import LiveClaim, PastRun, Problem
from autoresearch.records import Claim, Run
from autoresearch.tasks import Task
from autoresearch.words import STOPPED


def recall(
    log: Log, blobs: BlobStore, task: Task, now_ms: int, *, sources_by: bytes | None
) -> tuple[Problem, list[PastRun], list[LiveClaim]]:
    """The problem, everybody's runs with the task's full budget, and what is being tried at this moment.

    With ``sources_by`` only that author's sources are built upon: nobody else's code may run without walls.
    """

    def source_of(run: bytes) -> str | None:
        record = log.find(run)
        if record is None or not isinstance(record.body, Run) or sources_by not in (None, record.author):
            return None
        try:
            return blobs.get(record.body.source.sha256).decode()
        except (AutoresearchError, UnicodeDecodeError):
            return None  # not fetched yet, or no text: the proposer does without it

    problem = Problem(
        task=task.digest,
        baseline=task.baseline.decode(),
        direction=task.metric.direction,
        noise=task.metric.noise,
        floor=task.metric.floor,
        source_of=source_of,
    )
    runs = [
        PastRun(
            id=row.id,
            source_digest=row.source_digest,
            genome=msgspec.json.decode(row.genome),
            value=row.value,
            replicate=row.replicate,
            parent=row.parent,
            base=row.base,
        )
        for row in log.history(task.digest)
        if row.budget == task.budget.amount and row.status not in STOPPED
    ]
    claims = [
        LiveClaim(source_digest=row.source_digest, replicate=row.replicate, genome=_genome(log, row.id))
        for row in log.claims(task.digest, now_ms=now_ms)
    ]
    return problem, runs, claims


def _genome(log: Log, claim: bytes) -> dict[str, int | float | str | bool]:
    record = log.find(claim)
    return record.body.genome if record and isinstance(record.body, Claim) else {}
