"""What keeps a participant from verifying a run by hand: a sentence, and what to do instead."""

from __future__ import annotations

from datetime import UTC, datetime

from autoresearch.answers.voters import HOUR_MS, way_to_count
from autoresearch.errors import Refused
from autoresearch.identity import Voter
from autoresearch.log import Log
from autoresearch.records import Record, Run, short_id
from autoresearch.verification import EVALUATE, ecvrf, network_rules
from autoresearch.views import (
    VerificationJob,
    committed,
    counted_reports,
    in_snapshot,
    is_banned,
    is_counted,
    is_drawn,
    judged,
    participant_of,
    roster_of,
    run_body,
    track_record,
)
from autoresearch.words import RUN_STATE_SENTENCES, RUN_STATUS_SENTENCES, RunState, RunStatus

_ANOTHER = "autoresearch top shows others'"
_WITHOUT_MEASURING = (RunState.FRAUD, RunState.BANNED)


@in_snapshot
def check_asked(log: Log, run_id: bytes, device: bytes, now_ms: int) -> Run:
    """The run, when this device may measure it and somebody may count what comes out.

    Where the network names nobody, nobody counts, and everybody may measure for himself.

    Raises:
        NotFound: there is no such record.
        UsageError: it is no run.
        Refused: the run is nothing to measure, or this participant's word on it would not count.
    """
    body, record, name = run_body(log, run_id), log.records.get(run_id), short_id(run_id)
    _check_run(log, record, body, name)
    me = roster_of(log).voter(device, now_ms)
    if roster_of(log).voter(record.author, record.time).voter == me.voter or record.author == device:
        raise Refused(
            f"{name} is this participant's own run: only others can verify it.",
            hint=f"others verify it while they work; {_ANOTHER}",
        )
    if log.trust.names_anybody:
        _check_word(log, record, device, me, now_ms)
    return body


def _check_run(log: Log, record: Record, run: Run, name: str) -> None:
    """Whether there is something to measure. Raises Refused."""
    if run.status != RunStatus.OK or run.value is None:
        known = {status.value: sentence for status, sentence in RUN_STATUS_SENTENCES.items()}
        raise Refused(
            f"{name} has no value to verify: {known.get(run.status, 'it ended in a way that is unknown here')}.",
            hint=f"autoresearch show {name} says how it ended",
        )
    if log.records.is_withdrawn(record):
        raise Refused(f"{name} was withdrawn by its author: there is nothing to verify.", hint=_ANOTHER)
    state = judged(log, record).state
    if state in _WITHOUT_MEASURING:
        author = participant_of(log, record.author, record.time).short
        raise Refused(
            f"{name} is {state.value}: {RUN_STATE_SENTENCES[state]}. No measurement changes that.",
            hint=f"autoresearch credit {author}",
        )


def _check_word(log: Log, run: Record, device: bytes, me: Voter, now_ms: int) -> None:
    """Whether anybody counts what this device says of a run. Raises Refused."""
    name = short_id(run.id)
    if not me.attested:
        raise Refused(
            "This participant is unattested: its verifications would not count.",
            hint=way_to_count(log, me.root, now_ms),
        )
    if is_banned(log, me.voter, now_ms, device=device, seq=2**62):
        until_ms = track_record(log, me.voter).banned_until_ms
        until = f" until {_day(until_ms)}" if until_ms else ""
        raise Refused(f"This participant does not count{until}: its own records prove misbehaviour.",
                      hint="autoresearch credit me")  # fmt: skip
    if not is_counted(log, run, device, now_ms):
        hours = network_rules(log.network).age_ms / HOUR_MS
        raise Refused(
            f"This participant was not attested {hours:g} hours before {name} was published: it can't verify it.",
            hint="it can verify runs that are published later: autoresearch top",
        )


@in_snapshot
def check_new(log: Log, run: bytes, device: bytes, now_ms: int) -> None:
    """Whether this participant did not measure a run once more already. Raises Refused."""
    record, name = log.records.get(run), short_id(run)
    voter = roster_of(log).voter
    me = voter(device, now_ms).voter
    told = [
        check.id
        for check, report in counted_reports(log, record)
        if (report.voter, report.stage, report.round) == (me, EVALUATE, 0)
    ]
    if told:
        sentence = (
            f"This participant has measured {name} already, in {short_id(told[0])}: a second time does not count."
        )
        raise Refused(sentence, hint=f"autoresearch show {name}")
    if any(voter(row.author, row.time).voter == me for row in committed(log, record, EVALUATE, 0)):
        raise Refused(
            f"This participant has measured {name} already; the result is revealed once others have too.",
            hint="autoresearch status",
        )


@in_snapshot
def will_count(log: Log, run: bytes, job: VerificationJob, device: bytes, now_ms: int) -> str:
    """A sentence where what is measured will not count although the participant's word does; else nothing."""
    record = log.records.get(run)
    if not is_counted(log, record, device, now_ms):
        return "this network attests nobody, so the result does not count: it is for you only"
    if not is_drawn(log, record, device, now_ms, ecvrf.output(job.proof), job.stage, job.round):
        return "this node is not drawn for this run, so the result does not count; more are drawn while none reports"
    return ""


def _day(time_ms: int) -> str:
    return datetime.fromtimestamp(time_ms / 1000, UTC).strftime("%Y-%m-%d")
