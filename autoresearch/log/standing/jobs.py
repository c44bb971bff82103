"""What this device verifies next, drawn by its proof, the best programs first.

Also the history of a run's state: after each verification, in the order of the records.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Set
from functools import cache
from itertools import chain, islice, pairwise, takewhile
from typing import NamedTuple

from autoresearch.judging import ecvrf
from autoresearch.judging.committee import expected, is_audited, is_replicated, network_rules, question, seeds
from autoresearch.judging.states import EVALUATE, REPLICATE, Report
from autoresearch.judging.statistics import MOST_VOTERS, PAIRS, Finding, judge_pairs
from autoresearch.log.log import Log
from autoresearch.log.rows import ProgramRow
from autoresearch.log.standing.bases import JUDGED_ROWS, Placed, checked, contenders, leading, placed, vouched
from autoresearch.log.standing.cache import in_snapshot, roster_of
from autoresearch.log.standing.context import TrustContext, board_hardware, trust_context
from autoresearch.log.standing.participants import track_record
from autoresearch.log.standing.precedence import heard_first
from autoresearch.log.standing.verification import (
    MINIMUM_EFFECT_NOISES,
    counted_reports,
    evaluated_ms,
    first_words,
    is_counted,
    is_drawn,
    is_pairs_only,
    is_state_only,
    judge_reports,
    judgement,
    needed,
    pending,
    voters_at,
)
from autoresearch.log.tables.runs import OPEN
from autoresearch.record.kinds import Run
from autoresearch.record.record import Record
from autoresearch.words import REOPENED, UNDECIDED, UNMEASURED, VERIFIED, RunState, VerifierPart

# New texts that one verifier asks a model about.
FRESH_TEXTS = 1
# So many of the best programs are verified, without those found wrong and the unattested ones.
CHECKED_ROWS = 10
# So many of them may be reported or half verified runs of one participant: false values keep no other run from being
# verified.
RUNS_EACH = 3
# So many of the newest commitments say which verifications have begun, of one voter fewer: none alone says it.
COMMITMENTS_MOST, COMMITMENTS_EACH = 200, 20
# So many of the newest runs may be audited.
AUDITED_MAX = 500


class VerificationJob(NamedTuple):
    """A verification that a device is chosen for: the run, the stage and round, the proof and the seeds."""

    run: bytes
    stage: str
    round: int
    proof: bytes
    seeds: tuple[int, ...]


class VerificationNeed(NamedTuple):
    """A stage and round of a run that still needs verifiers.

    ``measured`` voters revealed a value and ``committed`` others have measured it. ``needed`` must have before one of
    them reveals. ``part`` is what the device that asks has to do with it, None where it has no key at hand.
    """

    run: bytes
    stage: str
    round: int
    measured: int
    committed: int
    needed: int
    part: VerifierPart | None


@in_snapshot
def verification_needs(
    log: Log, task: bytes, device: bytes | None, seed: bytes | None, now_ms: int
) -> list[VerificationNeed]:
    """The runs of a task that wait for verifiers, the most urgent first; with ``seed`` those that the device audits."""
    auditor = None if device is None or seed is None else _Auditor(device, seed, now_ms)
    return [
        need for run_id in _candidates(log, task, seed) for need in _needs_of(log, log.records.get(run_id), auditor)
    ]


class _Auditor(NamedTuple):
    """A device with the seed of its key, and when it asks."""

    device: bytes
    seed: bytes
    now_ms: int


def _needs_of(log: Log, run: Record, auditor: _Auditor | None) -> Iterator[VerificationNeed]:
    author = roster_of(log).voter(run.author, run.time).voter
    reports = [report for _, report in counted_reports(log, run)]
    for stage, number in _wanted(log, run, reports):
        of_round = [report for report in reports if (report.stage, report.round) == (stage, number)]
        reporters = {report.voter for report in of_round if report.attested and not report.obstacle}
        waiting = pending(log, run, stage, number)
        part = None
        if auditor is not None:
            part = _part(log, run, auditor, (stage, number), reporters, waiting)
        count = needed(log, run, stage)
        yield VerificationNeed(run.id, stage, number, len(reporters - {author}), len(waiting), count, part)


def _part(
    log: Log,
    run: Record,
    auditor: _Auditor,
    question: tuple[str, int],
    reporters: Set[bytes],
    waiting: Mapping[bytes, int],
) -> VerifierPart:
    """What a device has to do with a stage of a run that waits for verifiers."""
    device, seed, now_ms = auditor
    me, author = roster_of(log).voter(device, now_ms).voter, roster_of(log).voter(run.author, run.time).voter
    if me == author or device == run.author:
        return VerifierPart.OWN
    if me in reporters:
        return VerifierPart.MEASURED
    if me in waiting:
        return VerifierPart.COMMITTED
    if not is_counted(log, run, device, now_ms):
        return VerifierPart.UNCOUNTED
    output = ecvrf.output(make_job(run.id, *question, seed).proof)
    return VerifierPart.DRAWN if is_drawn(log, run, device, now_ms, output, question) else VerifierPart.NOT_DRAWN


@in_snapshot
def next_job(
    log: Log, task: bytes, device: bytes, seed: bytes, now_ms: int, *, skip: Set[tuple[bytes, str, int]] = frozenset()
) -> VerificationJob | None:
    """The next job of this device on a task, or None: the best programs first, then disputes, then audits.

    ``seed`` is the device's secret key, for the proof. ``skip`` has the runs, stages and rounds to leave out.
    """
    me = roster_of(log).voter(device, now_ms)
    if not me.attested:
        return None
    for run_id in _candidates(log, task, seed):
        job = job_for(log, run_id, device, seed, now_ms)
        if job is not None and (job.run, job.stage, job.round) not in skip:
            return job
    return None


def _candidates(log: Log, task: bytes, seed: bytes | None) -> Iterator[bytes]:
    """The runs that may need a verifier, each once, most urgent first; with a device's key those that it audits."""
    seen = set[bytes]()
    for run_id in _by_urgency(log, task, seed):
        if run_id not in seen:
            seen.add(run_id)
            yield run_id


def _by_urgency(log: Log, task: bytes, seed: bytes | None) -> Iterator[bytes]:
    context = trust_context(log)
    leader, is_confirmable = leading(log, task), _is_confirmable(log, task, context)

    def best(rows: Iterable[ProgramRow] | None = None) -> Iterator[Placed]:
        yield from contenders(log, task, context, limit=CHECKED_ROWS, each=RUNS_EACH, rows=rows)

    sign, rows = log.tasks.sign(task), vouched(log, task, context, forked=True)
    ahead = islice(takewhile(lambda row: leader is None or sign * row.mean < leader, rows), JUDGED_ROWS)
    begun = _begun(log, task, context, leader, is_confirmable)
    for program in chain(
        (program for program in begun if is_confirmable(program.row)),
        best(row for row in ahead if is_confirmable(row)),
        begun,
        best(),
    ):
        # A measurement vouches for the time of its run, so the run that arrived first is measured and not a copy.
        is_new = program.judgement.state is RunState.REPORTED
        yield heard_first(log, program.row.first) if is_new else program.row.first
    measured = checked(log, task, context, [OPEN])
    yield from (program.row.first for program in measured if program.judgement.state in REOPENED)
    if seed is None:
        return
    voters, rules = context.roster.count(log.records.newest_ms()), network_rules(log.network)
    for run_id in log.runs.newest_attested(task, AUDITED_MAX):
        if is_audited(seed, run_id, voters=voters, rules=rules):
            yield run_id


def _is_confirmable(log: Log, task: bytes, context: TrustContext) -> Callable[[ProgramRow], bool]:
    """A predicate: whether verifiers confirm a program if they find the gain over its parent that its author reports.

    Of many small gains, each below what pairs can show, the last is the best run. Verifying it confirms nothing.
    """
    rules, others = log.tasks.rules(task), context.roster.count(log.records.newest_ms()) - 1
    noise, most = rules.noise if rules else 0.0, max(min(others, MOST_VOTERS), 1)

    @cache
    def is_enough(gain: float) -> bool:
        effect = MINIMUM_EFFECT_NOISES * noise
        pairs = judge_pairs([(gain,) * PAIRS] * most, noise=noise, minimum_effect=effect, most=most)
        return pairs.finding is Finding.BETTER

    def is_confirmable(row: ProgramRow) -> bool:
        delta = log.runs.claimed_delta(row.first)
        return delta is None or is_enough(-log.tasks.sign(task) * delta)

    return is_confirmable


def _begun(
    log: Log,
    task: bytes,
    context: TrustContext,
    leader: float | None,
    is_confirmable: Callable[[ProgramRow], bool],
) -> list[Placed]:
    """The runs that would lead and whose verification has begun: better ones that come do not displace them.

    A commitment begins it. The run that most verifiers have come to goes first, so that they come to the same one.
    """
    commitments, sign = _newest_commitments(log, context), log.tasks.sign(task)
    rows = log.entries.leading(task, board_hardware(log, task) or "", commitments, sign, leader)

    def order(run: Placed) -> tuple[bool, int, float]:
        counts = run.judgement.evidence
        steps = max(counts.evaluated + counts.repeated + counts.paired, len(commitments.get(run.row.first, ())))
        return not is_confirmable(run.row), -steps, sign * run.value

    begun, runs = [], Counter[bytes]()
    for run in sorted(placed(log, rows, context), key=order):
        author = context.roster.voter(run.row.author, run.row.first_time).voter
        if runs[author] < RUNS_EACH:
            runs[author] += 1
            begun.append(run)
    return begun[:CHECKED_ROWS]


def _newest_commitments(log: Log, context: TrustContext) -> dict[bytes, set[tuple[bytes, str, int]]]:
    """By run, which voters committed to which stage and round of it, by the newest commitments of each voter."""
    runs, numbers = defaultdict[bytes, set[tuple[bytes, str, int]]](set), Counter[bytes]()
    newest = log.verifications.newest_commitments(COMMITMENTS_MOST) if context.naming else []
    for device, time_ms, run, stage, number in newest:
        who = context.roster.voter(device, time_ms)
        numbers[who.voter] += 1
        if who.attested and numbers[who.voter] <= COMMITMENTS_EACH:
            runs[run].add((who.voter, stage, number))
    return dict(runs)


@in_snapshot
def job_for(log: Log, run_id: bytes, device: bytes, seed: bytes, now_ms: int) -> VerificationJob | None:
    """The job of this device for one run, or None: nothing is needed, it has verified it, or others are drawn."""
    run, roster = log.records.get(run_id), roster_of(log)
    me, patience_ms = roster.voter(device, now_ms).voter, network_rules(log.network).patience_ms
    author = roster.voter(run.author, run.time).voter
    if author == me or not is_counted(log, run, device, now_ms):
        return None
    reports = [report for _, report in counted_reports(log, run) if not report.obstacle]  # an obstacle may be gone
    # Only a device's first commitment can count, so a device that has one does nothing more.
    fixed = {
        (row.stage, row.round) for row in log.verifications.commitments(run_id) if row.author == device and row.output
    }
    for stage, number in _wanted(log, run, reports):
        waiting = pending(log, run, stage, number)
        of_round = [report for report in reports if (report.stage, report.round) == (stage, number)]
        awaited = needed(log, run, stage)
        if stage == REPLICATE:  # pairs of more verifiers are not heard
            awaited = min(
                awaited, MOST_VOTERS - len({report.voter for report in of_round if report.attested} - {author})
            )
        if (stage, number) in fixed or me in waiting or any(report.voter == me for report in of_round):
            continue  # it has measured already
        if sum(now_ms - at < patience_ms for at in waiting.values()) >= awaited:
            continue  # enough others are about to reveal
        job = make_job(run_id, stage, number, seed)
        if is_drawn(log, run, device, now_ms, ecvrf.output(job.proof), (stage, number)):
            return job
    return None


def make_job(run_id: bytes, stage: str, number: int, seed: bytes) -> VerificationJob:
    """The job with its proof, whether or not the device is drawn for it."""
    return repeated_job(run_id, stage, number, ecvrf.prove(seed, question(run_id, stage, number)))


def repeated_job(run_id: bytes, stage: str, number: int, proof: bytes) -> VerificationJob:
    """The job of a proof that is known to be valid. Everybody with the proof can repeat it."""
    drawn = seeds(ecvrf.output(proof), PAIRS if stage == REPLICATE else FRESH_TEXTS)
    return VerificationJob(run_id, stage, number, proof, tuple(drawn))


def _wanted(log: Log, run: Record, reports: list[Report]) -> Iterator[tuple[str, int]]:
    """The stages and rounds that still need a verifier."""
    state = judgement(log, run.id).state
    body = run.body_as(Run)
    pairs_only = is_pairs_only(log, body)
    if state in VERIFIED and not pairs_only:
        # The round that decided: evaluations of another one change nothing any more.
        last = max((report.round for _, report in first_words(log, run) if report.stage == EVALUATE), default=0)
        if _spoke_late(log, run, reports, last):
            yield EVALUATE, last
    if state is RunState.UNAVAILABLE and pairs_only:
        yield REPLICATE, 0
    elif state in UNMEASURED and not pairs_only:
        yield EVALUATE, 0
    elif state is RunState.DISPUTED:
        yield EVALUATE, 1
    elif is_state_only(body):
        return  # there is nothing to replicate
    elif state in UNDECIDED and body.parent is not None:
        author = roster_of(log).voter(run.author, run.time).voter
        pairs = [report for report in reports if report.stage == REPLICATE and not report.obstacle]
        spoken = {report.voter for report in pairs if report.attested} - {author}
        enough = voters_at(log, run) >= network_rules(log.network).least
        if enough and len(spoken) < MOST_VOTERS and (spoken or _is_replicated(log, run, body)):
            yield REPLICATE, 0


def _spoke_late(log: Log, run: Record, reports: list[Report], number: int) -> bool:
    """Whether waiting had made the committee of a round larger, and too few of it have evaluated the run.

    A run's time is its author's statement. Back-dating it makes the committee large at once, so that friends of the
    author are drawn. Of a committee twice as large, twice as many are therefore asked. The further evaluations change
    the state only where one does not pass.
    """
    rules, voters = network_rules(log.network), voters_at(log, run)
    if voters < rules.everybody:
        return False
    times_ms = evaluated_ms(log, run, reports, number)
    if len(times_ms) < rules.quorum:
        return False
    enough = rules.quorum * expected(rules, 0, times_ms[rules.quorum - 1] - run.time) // rules.committee
    return len(times_ms) < min(enough, voters - 1)


def _values_of(log: Log, run_id: bytes | None) -> list[float]:
    """The value that others measured of a run and the reported one; empty where the run is not in the log."""
    run = log.records.find(run_id) if run_id else None
    if run is None or not isinstance(run.body, Run):
        return []
    return [value for value in (judgement(log, run.id).value, run.body.value) if value is not None]


def _is_replicated(log: Log, run: Record, body: Run) -> bool:
    """Whether a provisional run is replicated: always when it would lead, else by its author's track record.

    Never when its reported value is no better than its parent's: neither than the reported nor than the measured one.
    """
    author = roster_of(log).voter(run.author, run.time).voter
    rules, leader = network_rules(log.network), leading(log, body.task)
    sign = log.tasks.sign(body.task)
    if body.value is None:
        return False
    if leader is not None and sign * body.value < leader:
        return True
    above = [sign * value for value in _values_of(log, body.parent)]
    if above and sign * body.value >= max(above):
        return False
    if leader is None:
        return True
    spoken = [row for row in log.verifications.of(run.id) if (row.stage, row.round) == (EVALUATE, 0) and row.output]
    timely = {record.id for record, report in counted_reports(log, run) if report.attested and report.voter != author}
    outputs = [row.output or b"" for row in spoken if row.id in timely][: rules.quorum]
    streak = track_record(log, author).consecutive_valid
    return is_replicated(run.id, outputs, consecutive_valid=streak, rules=rules)


class Change(NamedTuple):
    """A change of state: by which record, and its time. The first is the run's publication."""

    state: RunState
    record: bytes
    time_ms: int


def states_over_time(log: Log, run_id: bytes) -> list[Change]:
    """The states of a run, the oldest first: a function of the records, whenever they arrived."""
    run = log.records.get(run_id)
    if not isinstance(run.body, Run):
        return []
    # Unattested and repeated verifications change no state, so they are skipped: any number of them takes no time.
    first: dict[tuple[bytes, str, int, str], tuple[Record, Report]] = {}
    for record, report in sorted(counted_reports(log, run), key=lambda pair: pair[1].order):
        if report.attested:
            first.setdefault((report.voter, report.stage, report.round, report.obstacle), (record, report))
    entries = list(first.values())
    reports = [report for _, report in entries]
    changes = [Change(judge_reports(log, run, []).state, run.id, run.time)]
    for number, (record, _) in enumerate(entries, start=1):
        state = judge_reports(log, run, reports[:number]).state
        if state is not changes[-1].state:
            changes.append(Change(state, record.id, record.time))
    return changes


def confirmed_until(log: Log, run_id: bytes) -> Change | None:
    """The verification after which a run that was confirmed no longer was, or None."""
    changes = states_over_time(log, run_id)
    if not changes or changes[-1].state is RunState.CONFIRMED:
        return None
    ends = [after for before, after in pairwise(changes) if before.state is RunState.CONFIRMED]
    return ends[-1] if ends else None
