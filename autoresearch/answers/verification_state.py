"""How far others stand behind a run, with everything that they measured."""

from __future__ import annotations

from autoresearch.answers.voters import too_few_then, works_alone
from autoresearch.api import Measured, StateChange, VerificationStateView
from autoresearch.log import Log
from autoresearch.records import Record, Run, Verification, format_id
from autoresearch.verification import EVALUATE, margin
from autoresearch.views import (
    allowed_difference,
    copied_from,
    counted_reports,
    in_snapshot,
    judgement,
    marks_of,
    participant_of,
    roster_of,
    states_over_time,
    trust_context,
    wants_retest,
    whose,
)
from autoresearch.words import RUN_STATE_SENTENCES, RunState


@in_snapshot
def verification_state_view(log: Log, run: Record, *, marks: bool = True) -> VerificationStateView:
    """The word for a run, why it is no better, who measured what; with ``marks`` its author's, which takes time."""
    found = judgement(log, run.id)
    body = run.body
    assert isinstance(body, Run)
    rules = log.tasks.rules(body.task)
    author = roster_of(log).voter(run.author, run.time).voter
    counted = {record.id for record, report in counted_reports(log, run) if report.attested and report.voter != author}
    return VerificationStateView(
        state=found.state.value,
        reason=reason(log, run, found.state),
        voters=found.voters,
        value=found.value,
        error=found.error,
        runs=found.runs,
        tolerance=allowed_difference(log, body),
        margin=margin(found.error, found.runs, noise=rules.noise if rules else 0.0),
        changes=[
            StateChange(state=change.state.value, id=format_id(change.record), time_ms=change.time_ms)
            for change in states_over_time(log, run.id)
        ],
        copy_of=_id(copied_from(log).get(run.id)),
        retest=wants_retest(log, body.parent),
        marks=marks_of(log, run) if marks else [],
        attested=whose(run.author, run.time, trust_context(log)).attested,
        measured=[_measured(log, body, log.records.get(row.id), counted) for row in log.verifications.of(run.id)],
    )


def _id(record: bytes | None) -> str | None:
    return None if record is None else format_id(record)


def reason(log: Log, run: Record, state: RunState) -> str:
    """The sentence for a state; in a network too small to confirm anything it says so, and what to do."""
    assert isinstance(run.body, Run)
    sentence = RUN_STATE_SENTENCES[state]
    if state not in (RunState.REPORTED, RunState.PROVISIONAL) or works_alone(log, run.body.task):
        return sentence
    few = too_few_then(log, run)
    return f"{sentence}; {few}" if few else sentence


def _measured(log: Log, run: Run, record: Record, counted: set[bytes]) -> Measured:
    body = record.body
    assert isinstance(body, Verification)
    return Measured(
        id=format_id(record.id),
        author=record.author.hex(),
        time_ms=record.time,
        stage=body.stage,
        round=body.round,
        verdict=body.verdict,
        value=body.value,
        values=list(body.values),
        parent_values=list(body.parent_values),
        metrics={name: float(number) for name, number in body.metrics.items()},
        allowed=allowed_difference(log, run, body) if body.stage == EVALUATE else None,
        counts=record.id in counted,
        device=body.device,
        participant=participant_of(log, record.author, record.time),
    )
