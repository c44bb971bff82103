"""How far others stand behind a run: from the verifications in the log to the word for it, and what is to be done next.

Depends on the records and on whom the network trusts, never on a clock: a verification is judged at its own time.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from typing import NamedTuple
from weakref import WeakKeyDictionary

from autoresearch.identity import Roster
from autoresearch.log import Log
from autoresearch.records import Record, Run, Task, Verification
from autoresearch.tasks import seed_for
from autoresearch.verification import (
    EVALUATE,
    LOOKS,
    REPLICATE,
    Findings,
    Judgement,
    Report,
    ecvrf,
    expected,
    is_chosen,
    judge,
    network_rules,
    passes,
    question,
    seeds,
)
from autoresearch.words import RunState

# A change counts that is better by at least this share of the noise over seeds.
MINIMUM_EFFECT_NOISES = 0.5
# Pairs that one verifier runs, and new texts that one asks a model about.
PAIRS = 2
FRESH_TEXTS = 1
# As far down the board as there is something worth checking.
CHECKED_ROWS = 10
_ALL = 1_000_000
_ROSTER_KINDS = ("identity", "attestation", "withdrawal")


class _Known(NamedTuple):
    """A roster, and what the log held when it was made: the last record's number, how many of each kind."""

    row: int
    counts: tuple[int, ...]
    roster: Roster


_rosters: WeakKeyDictionary[Log, _Known] = WeakKeyDictionary()


class Duty(NamedTuple):
    """A verification that somebody is chosen for: of which run, which stage and round, with which proof and seeds."""

    run: bytes
    stage: str
    round: int
    proof: bytes
    seeds: tuple[int, ...]


def roster_of(log: Log) -> Roster:
    """Who is who in a log, as the network trusts."""
    row = log.last_row()
    known = _rosters.get(log)
    if known is not None and known.row == row:
        return known.roster
    counts = tuple(log.count(kind) for kind in _ROSTER_KINDS)
    if known is not None and known.counts == counts:  # what came since says nothing of anybody
        roster = known.roster
    else:
        records = [record for kind in _ROSTER_KINDS for record in log.records(kind=kind, limit=_ALL)]
        roster = Roster(records, log.trust, domain_voices=log.network.domain_voices)
    _rosters[log] = _Known(row, counts, roster)
    return roster


def judgement(log: Log, run_id: bytes) -> Judgement:
    """How far others stand behind a run."""
    return judged(log, log.get(run_id))


def judged(log: Log, run: Record) -> Judgement:
    """How far others stand behind a run whose record is at hand."""
    return judge_reports(log, run, [report for _, report in counted_reports(log, run)])


def judge_reports(log: Log, run: Record, reports: Sequence[Report]) -> Judgement:
    """How far others stand behind a run, were these all the reports on it."""
    body = run.body
    assert isinstance(body, Run)
    rules = log.rules(body.task)
    noise = rules.noise if rules else 0.0
    return judge(
        reports,
        author=roster_of(log).voice(run.author, run.time).voice,
        voices=voices_at(log, run) if reports else 0,  # counting them all takes its time
        rules=network_rules(log.network),
        noise=noise,
        minimum_effect=MINIMUM_EFFECT_NOISES * noise,
        fraud=body.seed != seed_for(body.task, body.source_digest, body.replicate),
    )


def state_of(log: Log, run_id: bytes) -> str:
    """The word for how far others stand behind a run or the subject that it stands for. The one place that says so."""
    return judgement(log, run_id).state.value


def voices_at(log: Log, run: Record) -> int:
    """How many voices may verify a run: those that were attested long enough before it, its author's among them."""
    return len(roster_of(log).voices(run.time - network_rules(log.network).age_ms))


def is_counted(log: Log, run: Record, device: bytes, time_ms: int) -> bool:
    """Whether what this device says of a run at this time counts.

    It is attested, and it was so, as the same voice, long enough before the run was published: whoever makes a key, or
    has one attested, after seeing a run has no lot in its committee. Whom the network names by hand is known already.
    """
    roster = roster_of(log)
    voice = roster.voice(device, time_ms)
    if not voice.attested or voice.root in log.trust.participants:
        return voice.attested
    before = roster.voice(device, run.time - network_rules(log.network).age_ms)
    return before.attested and before.voice == voice.voice


def counted_reports(log: Log, run: Record) -> Iterator[tuple[Record, Report]]:
    """The verifications of a run whose proofs hold, as reports; whether their authors count they say."""
    body = run.body
    assert isinstance(body, Run)
    roster, rules = roster_of(log), log.rules(body.task)
    sign = -1.0 if rules and rules.direction == "maximize" else 1.0
    for row in log.verifications(run.id):
        record = log.get(row.id)
        check = record.body
        assert isinstance(check, Verification)
        output = ecvrf.verify(record.author, question(run.id, check.stage, check.round), check.proof)
        if output is None or check.verdict in ("unavailable", "error") or not _chosen(log, run, record, output):
            continue
        voice = roster.voice(record.author, record.time).voice
        attested = is_counted(log, run, record.author, record.time)
        order = (record.time, record.id)
        if check.stage == EVALUATE:
            if list(check.seeds) != seeds(output, len(check.seeds)):
                continue
            passed = bears_out(log, body, check)
            yield record, Report(voice, attested, order, EVALUATE, check.round, passed)
        elif check.stage == REPLICATE and list(check.seeds) == seeds(output, len(check.seeds)):
            if not len(check.values) == len(check.parent_values) == len(check.seeds):
                continue
            pairs = zip(check.parent_values, check.values, strict=True)
            better = tuple(sign * (before - after) for before, after in pairs)
            yield (
                record,
                Report(
                    voice,
                    attested,
                    order,
                    REPLICATE,
                    check.round,
                    improvements=better,
                    values=tuple(check.values),
                ),
            )


def bears_out(log: Log, run: Run, check: Verification) -> bool:
    """Whether what was measured in an evaluation bears out what the run claims: by the numbers, not by a verdict."""
    if check.value is None:
        return False
    asked, gap = check.metrics, check.metrics.get("gap")
    found = Findings(
        check.value,
        challenges=int(asked.get("challenges", 0)),
        mismatches=int(asked.get("mismatches", 0)),
        mean_difference=float(asked.get("mean_difference", 0.0)),
        gap=None if gap is None else float(gap),
    )
    rules = log.rules(run.task)
    return passes(run.value, found, tolerance=tolerance_of(log, run.task), noise=rules.noise if rules else 0.0)


def tolerance_of(log: Log, task: bytes) -> float | None:
    """How far two evaluations of one checkpoint may lie apart on a task, or None when it has no referee."""
    row = log.task(task)
    body = log.get(row.id).body if row else None
    evaluation = body.definition.get("evaluation") if isinstance(body, Task) else None
    tolerance = evaluation.get("tolerance") if isinstance(evaluation, Mapping) else None
    return float(tolerance) if isinstance(tolerance, int | float) and tolerance > 0 else None


def next_duty(
    log: Log, task: bytes, device: bytes, seed: bytes, now_ms: int, *, skip: Set[tuple[bytes, str, int]] = frozenset()
) -> Duty | None:
    """What this device is to verify next among the best of a task, the best first, or None.

    ``seed`` is the device's secret key, for the proof. ``skip`` names runs, stages and rounds that are left out.
    """
    me = roster_of(log).voice(device, now_ms)
    if not me.attested:
        return None
    for row in log.ranked(task, limit=CHECKED_ROWS):
        duty = duty_for(log, row.first, device, seed, now_ms)
        if duty is not None and (duty.run, duty.stage, duty.round) not in skip:
            return duty
    return None


def duty_for(log: Log, run_id: bytes, device: bytes, seed: bytes, now_ms: int) -> Duty | None:
    """What this device is to do about one run, or None: nothing is wanted, it has spoken, or others are chosen."""
    run, roster = log.get(run_id), roster_of(log)
    me = roster.voice(device, now_ms).voice
    if roster.voice(run.author, run.time).voice == me or not is_counted(log, run, device, now_ms):
        return None
    heard = [report for _, report in counted_reports(log, run)]
    for stage, number in _wanted(log, run, heard):
        if any(report.voice == me and report.stage == stage and report.round == number for report in heard):
            continue
        duty = make_duty(run_id, stage, number, seed)
        if _is_chosen(log, run, device, now_ms, ecvrf.output(duty.proof), number):
            return duty
    return None


def make_duty(run_id: bytes, stage: str, number: int, seed: bytes) -> Duty:
    """The duty with its proof, whether or not the device is chosen for it."""
    proof = ecvrf.prove(seed, question(run_id, stage, number))
    drawn = seeds(ecvrf.output(proof), PAIRS if stage == REPLICATE else FRESH_TEXTS)
    return Duty(run_id, stage, number, proof, tuple(drawn))


def _wanted(log: Log, run: Record, heard: list[Report]) -> Iterator[tuple[str, int]]:
    """Which stages and rounds still want a verifier."""
    state = judgement(log, run.id).state
    body = run.body
    assert isinstance(body, Run)
    if state is RunState.REPORTED:
        yield EVALUATE, 0
    elif state is RunState.DISPUTED:
        yield EVALUATE, 1
    elif state is RunState.PROVISIONAL and body.parent is not None:
        pairs = sum(len(report.improvements) for report in heard if report.attested and report.stage == REPLICATE)
        if voices_at(log, run) >= network_rules(log.network).least and pairs < LOOKS[-1]:
            yield REPLICATE, 0


def _chosen(log: Log, run: Record, record: Record, output: bytes) -> bool:
    body = record.body
    assert isinstance(body, Verification)
    return _is_chosen(log, run, record.author, record.time, output, body.round)


def _is_chosen(log: Log, run: Record, device: bytes, time_ms: int, output: bytes, number: int) -> bool:
    roster, rules = roster_of(log), network_rules(log.network)
    root = roster.voice(device, time_ms).root
    return is_chosen(
        output,
        chosen=expected(rules, number, time_ms - run.time),
        voices=voices_at(log, run),
        devices=len(roster.devices(root, run.time)),
        rules=rules,
    )
