"""What is being tried now: by whom, and until when."""

from __future__ import annotations

from autoresearch.answers.task_lookup import FoundTask
from autoresearch.api import ClaimsAnswer, OpenClaim
from autoresearch.log import ClaimRow, Log
from autoresearch.records import format_id
from autoresearch.views import in_snapshot, is_heard, participant_of, trust_context

# So many claims are shown; each node has a few at a time.
CLAIMS_MOST = 200


@in_snapshot
def claims_answer(log: Log, task: FoundTask, *, now_ms: int, me: bytes | None = None) -> ClaimsAnswer:
    """The claims on a task that hold now, those that end first at the top; strangers' last where trust names anybody.

    Several claims of one device on one program with one seed are one, which holds as long as the longest.
    """
    here = trust_context(log, me)
    rows: dict[tuple[bytes, bytes, int], ClaimRow] = {}
    for row in log.claims.open(task.digest, now_ms=now_ms):  # the oldest first
        key = (row.author, row.source_digest, row.replicate)
        first = rows.setdefault(key, row)
        rows[key] = first._replace(until=max(first.until, row.until))
    ordered = sorted(rows.values(), key=lambda row: (not is_heard(row.author, row.time, here, me), row.until, row.id))
    shown = [
        OpenClaim(
            id=format_id(row.id),
            title=row.title,
            source_digest=row.source_digest.hex(),
            replicate=row.replicate,
            time_ms=row.time,
            until_ms=row.until,
            author=row.author.hex(),
            participant=participant_of(log, row.author, row.time),
            is_own=row.author == me,
        )
        for row in ordered[:CLAIMS_MOST]
    ]
    return ClaimsAnswer(task=task.name, claims=shown)
