"""Which runs of a task wait for verifiers, what verifiers measured last, and this node's own part in it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import NamedTuple
from weakref import WeakKeyDictionary

from autoresearch.ask.lookup import FoundTask
from autoresearch.ask.node import VerifyingStatus
from autoresearch.ask.people.participants import AwaitedView, VerificationsAnswer, VerifiedView
from autoresearch.ask.people.voters import nothing_to_verify, too_few, works_alone
from autoresearch.judging.states import EVALUATE
from autoresearch.log.log import Log
from autoresearch.log.standing.cache import in_snapshot
from autoresearch.log.standing.context import participant_of
from autoresearch.log.standing.jobs import VerificationNeed, verification_needs
from autoresearch.log.standing.verification import bears_out, counted_reports, state_of
from autoresearch.record.encoding import format_id
from autoresearch.record.kinds import Run, Verification
from autoresearch.record.record import DAY_MS, Record
from autoresearch.words import HIDDEN, VERIFIER_PART_SENTENCES, VerifierPart

NEWEST = 50
# Among so many verifications of all tasks those of the task are looked for.
SEARCHED = 500


@in_snapshot
def verifications_answer(
    log: Log, task: FoundTask, *, device: bytes | None = None, seed: bytes | None = None, now_ms: int
) -> VerificationsAnswer:
    """The runs of a task that wait for verifiers and its newest verifications.

    ``device`` is the key of this node, ``seed`` its secret part: without it nobody can tell what the node is drawn for.
    """
    alone = works_alone(log, task.digest)  # then nobody can verify a run, and none waits for it
    needs = [] if alone else verification_needs(log, task.digest, device, seed, now_ms)
    return VerificationsAnswer(
        task=task.name,
        waiting=[_awaited(log, need) for need in needs],
        newest=list(islice(_newest(log, task.digest), NEWEST)),
        note=_note(log, task, needs, device, now_ms),
    )


def _note(log: Log, task: FoundTask, needs: list[VerificationNeed], device: bytes | None, now_ms: int) -> str:
    if works_alone(log, task.digest):
        return ""
    if few := too_few(log):
        return few
    if device is None or any(need.part is VerifierPart.DRAWN for need in needs):
        return ""
    return nothing_to_verify(log, device, now_ms)


def _awaited(log: Log, need: VerificationNeed) -> AwaitedView:
    record = log.records.get(need.run)
    assert isinstance(record.body, Run)
    return AwaitedView(
        run=format_id(need.run),
        title=HIDDEN if log.hidden.of([need.run]) else record.body.title,
        state=state_of(log, need.run),
        time_ms=record.time,
        value=record.body.value,
        participant=participant_of(log, record.author, record.time),
        stage=need.stage,
        round=need.round,
        measured=need.measured,
        committed=need.committed,
        needed=need.needed,
        part=need.part.value if need.part else "",
        reason=VERIFIER_PART_SENTENCES[need.part] if need.part else "",
    )


def _newest(log: Log, task: bytes) -> Iterator[VerifiedView]:
    for record in log.records.newest(kind="verification", limit=SEARCHED, visible=True):
        body = record.body
        run = log.records.find(body.run) if isinstance(body, Verification) else None
        if isinstance(body, Verification) and run and isinstance(run.body, Run) and run.body.task == task:
            yield _verified(log, record, body, run, run.body)


def _verified(log: Log, record: Record, body: Verification, run: Record, subject: Run) -> VerifiedView:
    values = sorted(body.values)
    return VerifiedView(
        id=format_id(record.id),
        run=format_id(run.id),
        title=HIDDEN if log.hidden.of([run.id]) else subject.title,
        state=state_of(log, run.id),
        time_ms=record.time,
        verifier=participant_of(log, record.author, record.time),
        stage=body.stage,
        round=body.round,
        verdict=body.verdict,
        value=body.value if body.value is not None or not values else values[len(values) // 2],
        agrees=bears_out(log, subject, body) if body.stage == EVALUATE else None,
        counts=any(check.id == record.id and report.attested for check, report in counted_reports(log, run)),
        device=body.device,
    )


# No device publishes more in a day than peers keep.
_ALL = 1_000_000


class _Cached(NamedTuple):
    """The answer for a day, and how many own records there were then."""

    author: bytes
    day: int
    own: int
    status: VerifyingStatus


_cache: WeakKeyDictionary[Log, _Cached] = WeakKeyDictionary()


@in_snapshot
def verifying_status(log: Log, author: bytes, now_ms: int) -> VerifyingStatus:
    """What a device verified in the UTC day of ``now_ms``, and the share of its computing time that this took."""
    key = author, now_ms // DAY_MS, log.records.count(author=author)
    cached = _cache.get(log)
    if cached is not None and cached[:3] == key:
        return cached.status
    since_ms = now_ms // DAY_MS * DAY_MS
    checks = log.records.newest(kind="verification", author=author, since_ms=since_ms, limit=_ALL)
    runs = log.records.newest(kind="run", author=author, since_ms=since_ms, limit=_ALL)
    verifying_ms, running_ms = _spent(checks), _spent(runs)
    whole = verifying_ms + running_ms
    status = VerifyingStatus(
        today=len(checks), spent_ms=verifying_ms, share=verifying_ms / whole if whole else 0.0, runs_today=len(runs)
    )
    _cache[log] = _Cached(*key, status)
    return status


def _spent(records: Sequence[Record]) -> int:
    return sum(record.body.duration_ms for record in records if isinstance(record.body, Run | Verification))
