"""What a participant is to verify next: drawn by its own proof, the best of the board first."""

from __future__ import annotations

from collections.abc import Iterator, Set
from itertools import islice
from typing import NamedTuple

from autoresearch.log import Log
from autoresearch.records import Record, Run
from autoresearch.verification import (
    EVALUATE,
    MOST_VOICES,
    PAIRS,
    REPLICATE,
    Report,
    ecvrf,
    expected,
    is_audited,
    is_replicated,
    network_rules,
    question,
    seeds,
)
from autoresearch.views.company import company, whose
from autoresearch.views.linking import heard_first
from autoresearch.views.memory import roster_of
from autoresearch.views.preference import checked, contenders, leading
from autoresearch.views.reputation import track_record
from autoresearch.views.standing import (
    counted_reports,
    evaluated_ms,
    first_words,
    is_counted,
    is_drawn,
    is_pairs_only,
    judgement,
    needed,
    pending,
    voices_at,
)
from autoresearch.words import RunState

# New texts that one verifier asks a model about.
FRESH_TEXTS = 1
# As far down the board as there is something worth checking: what was found wrong, or nobody stands for, not counted.
CHECKED_ROWS = 10
# So many of them may be what one participant alone says: who claims much that can't be had stops nobody else.
REPORTED_EACH = 3
# As far back as runs that lead nothing are audited.
AUDITED_MAX = 500


class Duty(NamedTuple):
    """A verification that somebody is chosen for: of which run, which stage and round, with which proof and seeds."""

    run: bytes
    stage: str
    round: int
    proof: bytes
    seeds: tuple[int, ...]


def next_duty(
    log: Log, task: bytes, device: bytes, seed: bytes, now_ms: int, *, skip: Set[tuple[bytes, str, int]] = frozenset()
) -> Duty | None:
    """What this device is to verify next on a task, or None: the best first, then disputes, then what is audited.

    ``seed`` is the device's secret key, for the proof. ``skip`` names runs, stages and rounds that are left out.
    """
    me = roster_of(log).voice(device, now_ms)
    if not me.attested:
        return None
    for run_id in dict.fromkeys(_candidates(log, task, seed)):
        duty = duty_for(log, run_id, device, seed, now_ms)
        if duty is not None and (duty.run, duty.stage, duty.round) not in skip:
            return duty
    return None


def _candidates(log: Log, task: bytes, seed: bytes) -> Iterator[bytes]:
    """The runs that may want a verifier, in the order in which they do."""
    here = company(log)
    for placed in contenders(log, task, here, limit=CHECKED_ROWS, each=REPORTED_EACH):
        # Whoever measures a copy that was dated back vouches for its time: it is the run that is measured.
        is_new = placed.found.state is RunState.REPORTED
        yield heard_first(log, placed.row.first) if is_new else placed.row.first
    yield from (
        placed.row.first for placed in checked(log, task, here, voices=1) if placed.found.state is RunState.DISPUTED
    )
    voices, rules = len(here.roster.voices(log.newest_ms())), network_rules(log.network)
    newest = log.newest(task, here.roster.keys)
    attested = (run_id for time_ms, run_id, author in newest if whose(author, time_ms, here).attested)
    for run_id in islice(attested, AUDITED_MAX):
        if is_audited(seed, run_id, voices=voices, rules=rules):
            yield run_id


def duty_for(log: Log, run_id: bytes, device: bytes, seed: bytes, now_ms: int) -> Duty | None:
    """What this device is to do about one run, or None: nothing is wanted, it has spoken, or others are chosen."""
    run, roster = log.get(run_id), roster_of(log)
    me, patience_ms = roster.voice(device, now_ms).voice, network_rules(log.network).patience_ms
    author = roster.voice(run.author, run.time).voice
    if author == me or not is_counted(log, run, device, now_ms):
        return None
    heard = [report for _, report in counted_reports(log, run)]
    # A device's first commitment is its last: whether or not that one counts, nothing after it does.
    fixed = {(row.stage, row.round) for row in log.commitments(run_id) if row.author == device and row.output}
    for stage, number in _wanted(log, run, heard):
        waiting = pending(log, run, stage, number)
        said = [report for report in heard if (report.stage, report.round) == (stage, number)]
        awaited = needed(log, run, stage)
        if stage == REPLICATE:  # nobody hears the pairs of more
            awaited = min(awaited, MOST_VOICES - len({report.voice for report in said if report.attested} - {author}))
        if (stage, number) in fixed or me in waiting or any(report.voice == me for report in said):
            continue  # it has measured already
        if sum(now_ms - at < patience_ms for at in waiting.values()) >= awaited:
            continue  # enough others are about to tell
        duty = make_duty(run_id, stage, number, seed)
        if is_drawn(log, run, device, now_ms, ecvrf.output(duty.proof), stage, number):
            return duty
    return None


def make_duty(run_id: bytes, stage: str, number: int, seed: bytes) -> Duty:
    """The duty with its proof, whether or not the device is chosen for it."""
    return repeated_duty(run_id, stage, number, ecvrf.prove(seed, question(run_id, stage, number)))


def repeated_duty(run_id: bytes, stage: str, number: int, proof: bytes) -> Duty:
    """The duty that a proof, which is known to be valid, stands for: whoever has the proof can do the same."""
    drawn = seeds(ecvrf.output(proof), PAIRS if stage == REPLICATE else FRESH_TEXTS)
    return Duty(run_id, stage, number, proof, tuple(drawn))


def _wanted(log: Log, run: Record, heard: list[Report]) -> Iterator[tuple[str, int]]:
    """Which stages and rounds still want a verifier."""
    state = judgement(log, run.id).state
    body = run.body
    assert isinstance(body, Run)
    pairs_only = is_pairs_only(log, body)
    if state in (RunState.PROVISIONAL, RunState.CONFIRMED) and not pairs_only:
        # The round that decided: what is said in another changes nothing any more.
        last = max((report.round for _, report in first_words(log, run) if report.stage == EVALUATE), default=0)
        if _spoke_late(log, run, heard, last):
            yield EVALUATE, last
    if state is RunState.REPORTED and not pairs_only:
        yield EVALUATE, 0
    elif state is RunState.DISPUTED:
        yield EVALUATE, 1
    elif state in (RunState.REPORTED, RunState.PROVISIONAL) and body.parent is not None:
        author = roster_of(log).voice(run.author, run.time).voice
        spoken = {report.voice for report in heard if report.attested and report.stage == REPLICATE} - {author}
        enough = voices_at(log, run) >= network_rules(log.network).least
        if enough and len(spoken) < MOST_VOICES and (spoken or _is_replicated(log, run, body)):
            yield REPLICATE, 0


def _spoke_late(log: Log, run: Record, heard: list[Report], number: int) -> bool:
    """Whether a committee that waiting had made larger came to a run in a round, and too few of it spoke.

    A run's time is its author's word. One that is dated back is as if many had been silent for long: everybody is drawn
    at once, its author's friends before all others. Of a committee twice as large twice as many are asked, so that
    friends gain nothing by it. What the others say changes the word for the run only where it does not pass.
    """
    rules, voices = network_rules(log.network), voices_at(log, run)
    if voices < rules.everybody:
        return False
    times_ms = evaluated_ms(log, run, heard, number)
    if len(times_ms) < rules.quorum:
        return False
    wanted = rules.quorum * expected(rules, 0, times_ms[rules.quorum - 1] - run.time) // rules.committee
    return len(times_ms) < min(wanted, voices - 1)


def _value_of(log: Log, run_id: bytes | None) -> float | None:
    """What others measured of a run, else what its author says; None where it is not here, or has no value."""
    run = log.find(run_id) if run_id else None
    if run is None or not isinstance(run.body, Run):
        return None
    found = judgement(log, run.id).value
    return run.body.value if found is None else found


def _is_replicated(log: Log, run: Record, body: Run) -> bool:
    """Whether a run that others came to is to be replicated: always when it would lead, else by its author's record.

    Never when its author does not even say that it is better than its parent, or than what others measured of that.
    """
    author = roster_of(log).voice(run.author, run.time).voice
    rules, leader = network_rules(log.network), leading(log, body.task)
    task = log.rules(body.task)
    sign = -1.0 if task and task.direction == "maximize" else 1.0
    if body.value is None:
        return False
    if leader is not None and leader.found.value is not None and sign * body.value < sign * leader.found.value:
        return True
    above = _value_of(log, body.parent)
    if above is not None and sign * body.value >= sign * above:
        return False
    if leader is None or leader.found.value is None:
        return True
    spoken = [row for row in log.verifications(run.id) if (row.stage, row.round) == (EVALUATE, 0) and row.output]
    heard = {record.id for record, report in counted_reports(log, run) if report.attested and report.voice != author}
    outputs = [row.output or b"" for row in spoken if row.id in heard][: rules.quorum]
    streak = track_record(log, author).consecutive_valid
    return is_replicated(run.id, outputs, consecutive_valid=streak, rules=rules)
