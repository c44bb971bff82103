"""What is being tried now, what a participant may withdraw, and a published task as a folder of this machine."""

from __future__ import annotations

from pathlib import Path

from autoresearch.ask.discussion import ClaimsAnswer, OpenClaim
from autoresearch.ask.lookup import FoundTask
from autoresearch.ask.requests import BelieveRequest
from autoresearch.ask.runs.boards import resolve_reference
from autoresearch.errors import NotFound, Refused
from autoresearch.log.blobs import BlobStore, MissingBlob
from autoresearch.log.log import Log
from autoresearch.log.rows import ClaimRow
from autoresearch.log.standing.cache import in_snapshot
from autoresearch.log.standing.context import participant_of, trust_context
from autoresearch.log.standing.credit import is_heard
from autoresearch.log.standing.metrics import metric_of
from autoresearch.record.encoding import format_id, short_id
from autoresearch.record.kinds import BlobRef, Note, Run, Task
from autoresearch.record.record import Record
from autoresearch.task.folders import rebuild_task
from autoresearch.task.model import Task as TaskFolder
from autoresearch.text import value
from autoresearch.words import Disbelief, with_article

# So many claims are shown; each node has a few at a time.
CLAIMS_MOST = 200


@in_snapshot
def claims_answer(log: Log, task: FoundTask, *, now_ms: int, me: bytes | None = None) -> ClaimsAnswer:
    """The claims on a task that hold now, those that end first at the top; strangers' last where trust names anybody.

    Several claims of one device on one program with one seed are one, which holds as long as the longest.
    """
    trust = trust_context(log, me)
    rows: dict[tuple[bytes, bytes, int], ClaimRow] = {}
    for row in log.claims.open(task.digest, now_ms=now_ms, visible=True):  # the oldest first
        key = (row.author, row.source_digest, row.replicate)
        first = rows.setdefault(key, row)
        rows[key] = first._replace(until=max(first.until, row.until))
    ordered = sorted(rows.values(), key=lambda row: (not is_heard(row.author, row.time, trust, me), row.until, row.id))
    claims = [
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
    return ClaimsAnswer(task=task.name, claims=claims)


# What stays, whatever its author wants, and why.
_STAYS = {
    "verification": "others rely on it",
    "commitment": "it fixes what was measured",
    "task": "others may work on it",
}
_HINTS = {
    "attestation": "autoresearch network attestor withdraw KEY",
    "identity": "autoresearch node id revoke DEVICE",
    "admission": "autoresearch network dismiss WHO",
}


def own_record(log: Log, reference: str, me: bytes | None, *, archived: frozenset[bytes] = frozenset()) -> Record:
    """The run or note that the device ``me`` may withdraw; ``@mine`` is never of a task that is ``archived``.

    Raises:
        NotFound: there is no such record.
        Refused: it is no run and no note, another device's, or withdrawn already.
    """
    record = log.records.get(resolve_reference(log, reference, author=me, archived=archived))
    name, kind = short_id(record.id), with_article(record.kind)
    if not isinstance(record.body, Run | Note):
        why = f": {_STAYS[record.kind]}" if record.kind in _STAYS else ""
        raise Refused(f"{name} is {kind}, which can't be withdrawn{why}", hint=_HINTS.get(record.kind, ""))
    if record.author != me:
        author = participant_of(log, record.author, record.time)
        mine = me is not None and participant_of(log, me, record.time).key == author.key
        raise Refused(
            f"{name} was published by {'another device of yours' if mine else 'another participant'}",
            hint="withdraw it on that device" if mine else f"autoresearch show {name} says who published it",
        )
    if log.records.is_withdrawn(record):
        raise Refused(f"{name} is withdrawn already", hint=f"autoresearch show {name}")
    return record


def believed_run(log: Log, request: BelieveRequest, me: bytes | None, *, archived: frozenset[bytes]) -> Record:
    """The run that a person wants to believe, or no longer.

    Raises:
        NotFound: there is no such record.
        Refused: it is no run, has no value, is past its task's bound, or its program does not measure itself.
    """
    record = log.records.get(resolve_reference(log, request.id, author=me, archived=archived))
    name, body = short_id(record.id), record.body
    if not isinstance(body, Run):
        raise Refused(f"{name} is {with_article(record.kind)}, not a run", hint="autoresearch run list")
    if body.value is None:
        raise Refused(f"{name} has no value that could be believed", hint=f"autoresearch show {name}")
    metric = metric_of(log, body.task)
    if metric is None or not metric.printed:
        raise Refused(f"{name} was not measured by its own program", hint="autoresearch verify measures it again")
    if log.beliefs.of([record.id]).get(record.id) is Disbelief.FLOOR and request.believed:
        raise Refused(
            f"{name} is past the bound of its task: {value(body.value)}, metric.floor is {value(metric.floor or 0.0)}",
            hint="if the bound is wrong, correct metric.floor in task.toml: that makes another task",
        )
    return record


def published_task(log: Log, blobs: BlobStore, digest: bytes, folder: Path) -> TaskFolder:
    """Write the published task with this digest as a new folder; a folder that is this task already is only loaded.

    Raises:
        NotFound: the task, or one of its files (MissingBlob), is not on this machine.
        Refused: something else is in the folder's place.
        UsageError: what was published is no task.
    """
    row = log.tasks.find(digest)
    if row is None:
        raise NotFound(f"There is no task {digest.hex()[:12]} here.", hint="autoresearch task list")
    record = log.records.get(row.id)
    body = record.body_as(Task)

    def content(blob: BlobRef, name: str) -> bytes:
        if not blobs.has(blob.sha256):
            raise MissingBlob(f"{name} of the task {body.name}", blob, record.author)
        return blobs.get(blob.sha256)

    return rebuild_task(
        body.definition,
        digest,
        harness={name: content(blob, name) for name, blob in body.harness.items()},
        baseline=content(body.baseline, "the program"),
        summary=body.summary,
        folder=folder,
    )
