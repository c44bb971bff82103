"""What a node measured of others' runs and did not publish yet.

Also what keeps a participant from verifying a run by hand: a sentence, and what to do instead.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import NamedTuple

from autoresearch.ask.node import WaitingStatus
from autoresearch.ask.people.voters import HOUR_MS, way_to_count
from autoresearch.errors import Refused
from autoresearch.judging import ecvrf
from autoresearch.judging.committee import network_rules
from autoresearch.judging.states import EVALUATE
from autoresearch.log.log import Log
from autoresearch.log.standing.cache import in_snapshot, roster_of
from autoresearch.log.standing.context import participant_of
from autoresearch.log.standing.jobs import VerificationJob
from autoresearch.log.standing.participants import track_record
from autoresearch.log.standing.precedence import is_banned
from autoresearch.log.standing.queries import run_body
from autoresearch.log.standing.verification import committed, counted_reports, is_counted, is_drawn, judgement, needed
from autoresearch.record.encoding import format_id, short_id
from autoresearch.record.kinds import Commitment, Run, Verification
from autoresearch.record.record import DAY_MS, Record
from autoresearch.trust.roster import Voter
from autoresearch.words import HIDDEN, MISBEHAVED, RUN_STATE_SENTENCES, RUN_STATUS_SENTENCES, RunStatus

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
    commitments = dict.fromkeys(
        Untold(record.body.run, record.body.stage, record.body.round)
        for record in records
        if isinstance(record.body, Commitment)
    )
    return [
        commitment
        for commitment in commitments
        if not any(
            (row.author, row.stage, row.round) == (author, commitment.stage, commitment.round)
            and row.verdict in ("pass", "fail")
            for row in log.verifications.of(commitment.run)
        )
    ]


@in_snapshot
def waiting(log: Log, author: bytes, measured: Iterable[Untold]) -> list[WaitingStatus]:
    """What a device waits for with each measurement, the one that is told first in front."""
    rows = [
        _waiting(log, author, measurement, record, record.body)
        for measurement in measured
        if (record := log.records.find(measurement.run)) is not None and isinstance(record.body, Run)
    ]
    return sorted(rows, key=lambda row: (row.tells_ms, row.run))


def _waiting(log: Log, author: bytes, measurement: Untold, record: Record, run: Run) -> WaitingStatus:
    voter, body = roster_of(log).voter, measurement.body
    rows = committed(log, record, measurement.stage, measurement.round)
    spoken = {voter(row.author, row.time).voter for row in rows}
    own = [
        row.time
        for row in log.verifications.commitments(measurement.run)
        if (row.author, row.stage, row.round) == (author, measurement.stage, measurement.round)
    ]
    since_ms = min(own, default=0)
    counts = any(row.author == author for row in rows)  # else nobody is waited for
    return WaitingStatus(
        run=format_id(measurement.run),
        title=HIDDEN if log.hidden.of([measurement.run]) else run.title,
        participant=participant_of(log, record.author, record.time),
        stage=measurement.stage,
        round=measurement.round,
        measured_ms=since_ms,
        missing=max(needed(log, record, measurement.stage) - len(spoken), 0) if counts else 0,
        tells_ms=since_ms + (network_rules(log.network).patience_ms if counts else 0),
        verdict=body.verdict if body else "",
        value=body.value if body else None,
        values=list(body.values) if body else [],
    )


_ANOTHER = "autoresearch top shows others'"


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
        sentences = {status.value: sentence for status, sentence in RUN_STATUS_SENTENCES.items()}
        raise Refused(
            f"{name} has no value to verify: {sentences.get(run.status, 'it ended in a way that is unknown here')}.",
            hint=f"autoresearch show {name} says how it ended",
        )
    if log.records.is_withdrawn(record):
        raise Refused(f"{name} was withdrawn by its author: there is nothing to verify.", hint=_ANOTHER)
    state = judgement(log, record.id).state
    if state in MISBEHAVED:
        author = participant_of(log, record.author, record.time).short
        raise Refused(
            f"{name} is {state.value}: {RUN_STATE_SENTENCES[state]}. No measurement changes that.",
            hint=f"autoresearch network credit {author}",
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
        until = f" until {datetime.fromtimestamp(until_ms / 1000, UTC):%Y-%m-%d}" if until_ms else ""
        raise Refused(f"This participant does not count{until}: its own records prove misbehaviour.",
                      hint="autoresearch network credit me")  # fmt: skip
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
    own = [
        check.id
        for check, report in counted_reports(log, record)
        if (report.voter, report.stage, report.round, report.obstacle) == (me, EVALUATE, 0, "")
    ]
    if own:
        sentence = f"This participant has measured {name} already, in {short_id(own[0])}: a second time does not count."
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
    if not is_drawn(log, record, device, now_ms, ecvrf.output(job.proof), (job.stage, job.round)):
        return "this node is not drawn for this run, so the result does not count; more are drawn while none reports"
    return ""
