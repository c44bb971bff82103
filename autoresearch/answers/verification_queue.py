"""Which runs of a task wait for verifiers, and what verifiers measured last."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from autoresearch.answers.task_lookup import FoundTask
from autoresearch.answers.voters import nothing_to_verify, too_few, works_alone
from autoresearch.api import AwaitedView, VerificationsAnswer, VerifiedView
from autoresearch.log import Log
from autoresearch.records import Record, Run, Verification, format_id
from autoresearch.verification import EVALUATE
from autoresearch.views import (
    VerificationNeed,
    bears_out,
    counted_reports,
    in_snapshot,
    participant_of,
    state_of,
    verification_needs,
)
from autoresearch.words import VERIFIER_PART_SENTENCES, VerifierPart

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
    return nothing_to_verify(log, device, now_ms, task.digest)


def _awaited(log: Log, need: VerificationNeed) -> AwaitedView:
    record = log.records.get(need.run)
    assert isinstance(record.body, Run)
    return AwaitedView(
        run=format_id(need.run),
        title=record.body.title,
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
    for record in log.records.newest(kind="verification", limit=SEARCHED):
        body = record.body
        run = log.records.find(body.run) if isinstance(body, Verification) else None
        if isinstance(body, Verification) and run and isinstance(run.body, Run) and run.body.task == task:
            yield _verified(log, record, body, run, run.body)


def _verified(log: Log, record: Record, body: Verification, run: Record, subject: Run) -> VerifiedView:
    return VerifiedView(
        id=format_id(record.id),
        run=format_id(run.id),
        title=subject.title,
        state=state_of(log, run.id),
        time_ms=record.time,
        verifier=participant_of(log, record.author, record.time),
        stage=body.stage,
        round=body.round,
        verdict=body.verdict,
        value=body.value if body.value is not None else _middle(body.values),
        agrees=bears_out(log, subject, body) if body.stage == EVALUATE else None,
        counts=any(one.id == record.id and report.attested for one, report in counted_reports(log, run)),
        device=body.device,
    )


def _middle(values: list[float]) -> float | None:
    return sorted(values)[len(values) // 2] if values else None
