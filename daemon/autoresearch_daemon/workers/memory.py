"""What the log knows, as a proposer wants it."""

from __future__ import annotations

import msgspec

from autoresearch.errors import AutoresearchError
from autoresearch.log import BlobStore, Log
from autoresearch.proposers import LiveClaim, PastRun, Problem
from autoresearch.records import Claim, Run
from autoresearch.tasks import Task
from autoresearch.views import DOUBTED, company, standings, tier, whose
from autoresearch.words import STOPPED, RunState

# As far down the board as runs are judged before a search; what is below hardly leads it.
JUDGED = 50
# What others came to stands in the place of the claim, whoever claimed.
BACKED = (RunState.PROVISIONAL, RunState.CONFIRMED, RunState.NOT_REPLICATED)


def recall(
    log: Log, blobs: BlobStore, task: Task, now_ms: int, *, me: bytes, sources_by: bytes | None
) -> tuple[Problem, list[PastRun], list[LiveClaim]]:
    """The problem, everybody's runs with the task's full budget, and what is being tried at this moment.

    ``me`` is the device that asks: what it measured itself comes before what others only say. With ``sources_by`` only
    that author's sources are built upon: nobody else's code may run without walls.
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
    return problem, _runs(log, task, me), claims(log, task, now_ms)


def _runs(log: Log, task: Task, me: bytes) -> list[PastRun]:
    """All runs that ended, with how far each may be built upon, and what others measured in its value's place."""
    here = company(log, me)
    standing = standings(log, task.digest, here, limit=JUDGED)
    found = []
    for row in log.history(task.digest):
        if row.budget != task.budget.amount or row.status in STOPPED:
            continue
        known = standing.get(row.id)
        author = known or whose(row.author, row.time, here)
        state = known.found.state if known else RunState.REPORTED
        backed = known is not None and state in BACKED
        believed = state not in DOUBTED and (author.attested or author.own or backed or not here.roster.keys)
        measured = known.found.value if known and backed else None
        found.append(
            PastRun(
                id=row.id,
                source_digest=row.source_digest,
                genome=msgspec.json.decode(row.genome),
                value=row.value if measured is None else measured,
                replicate=row.replicate,
                parent=row.parent,
                base=row.base,
                tier=tier(state, attested=author.attested, own=author.own, verifying=here.verifying),
                believed=believed,
            )
        )
    return found


def claims(log: Log, task: Task, now_ms: int) -> list[LiveClaim]:
    """What is being tried at this moment."""
    return [
        LiveClaim(source_digest=row.source_digest, replicate=row.replicate, genome=_genome(log, row.id))
        for row in log.claims(task.digest, now_ms=now_ms)
    ]


def _genome(log: Log, claim: bytes) -> dict[str, int | float | str | bool]:
    record = log.find(claim)
    return record.body.genome if record and isinstance(record.body, Claim) else {}
