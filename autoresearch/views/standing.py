"""How far others stand behind a run: from the verifications in the log to the word for it.

Depends on the records and on whom the network trusts, never on a clock: a verification is judged at its own time.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from autoresearch.log import CommitmentRow, Log, TaskRules
from autoresearch.records import Record, Run, Task, Verification
from autoresearch.verification import (
    CONFIRMING_VOICES,
    EVALUATE,
    PAIRS,
    REPLICATE,
    ROUNDS,
    Findings,
    Judgement,
    Report,
    expected,
    is_chosen,
    judge,
    network_rules,
    passes,
    seeds,
)
from autoresearch.views.bans import is_banned, is_fraud
from autoresearch.views.commitments import commitment_of, committed_by
from autoresearch.views.hardware import is_clocked, is_same_hardware
from autoresearch.views.memory import memory_of, roster_of
from autoresearch.words import RunState

# A change counts that is better by at least this share of the noise over seeds.
MINIMUM_EFFECT_NOISES = 0.5
# No metric has such numbers, and their squares and sums are no numbers any more.
_BEYOND = 1e100


def judgement(log: Log, run_id: bytes) -> Judgement:
    """How far others stand behind a run."""
    found = memory_of(log).judgements.get(run_id)
    return found if found is not None else judged(log, log.get(run_id))


def judged(log: Log, run: Record) -> Judgement:
    """How far others stand behind a run whose record is at hand."""
    memory = memory_of(log)
    version = memory.version
    found = memory.judgements.get(run.id)
    if found is None:
        found = judge_reports(log, run, [report for _, report in counted_reports(log, run)])
        if memory.version == version:
            memory.judgements[run.id] = found
    return found


def judge_reports(log: Log, run: Record, reports: Sequence[Report]) -> Judgement:
    """How far others stand behind a run, were these all the reports on it."""
    body = run.body
    assert isinstance(body, Run)
    rules = log.rules(body.task)
    noise = rules.noise if rules else 0.0
    author = roster_of(log).voice(run.author, run.time).voice
    found = judge(
        reports,
        author=author,
        voices=voices_at(log, run) if reports else 0,  # counting them all takes its time
        rules=network_rules(log.network),
        noise=noise,
        minimum_effect=MINIMUM_EFFECT_NOISES * noise,
        fraud=is_fraud(log, run.id),
        pairs_only=is_pairs_only(log, body),
    )
    if found.value is not None:
        found = found._replace(value=_sign(rules) * found.value)
    if found.state is not RunState.FRAUD and is_banned(log, author, run.time, device=run.author, seq=run.seq):
        return found._replace(state=RunState.BANNED)
    return found


def state_of(log: Log, run_id: bytes) -> str:
    """The word for how far others stand behind a run or the subject that it stands for. The one place that says so."""
    return judgement(log, run_id).state.value


def voices_at(log: Log, run: Record) -> int:
    """How many voices may verify a run: those that were attested long enough before it, its author's among them."""
    memory = memory_of(log)
    found = memory.voices.get(run.id)
    if found is None:
        found = len(memory.roster.voices(run.time - network_rules(log.network).age_ms))
        memory.voices[run.id] = found
    return found


def is_counted(log: Log, run: Record, device: bytes, time_ms: int, *, seq: int = 0) -> bool:
    """Whether what this device says of a run at this time, in its record ``seq``, counts.

    It is attested, and it was so, as the same voice, long enough before the run was published: whoever makes a key, or
    has one attested, after seeing a run has no lot in its committee. Whom the network names by hand is known already.
    Whom its own records prove to have cheated does not count for a while.
    """
    roster = roster_of(log)
    voice = roster.voice(device, time_ms)
    if not voice.attested or is_banned(log, voice.voice, time_ms, device=device, seq=seq):
        return False
    if voice.root in log.trust.participants:
        return True
    before = roster.voice(device, run.time - network_rules(log.network).age_ms)
    return before.attested and before.voice == voice.voice


def needed(log: Log, run: Record, stage: str) -> int:
    """How many must have committed themselves before a verifier tells what it measured."""
    quorum = network_rules(log.network).quorum if stage == EVALUATE else CONFIRMING_VOICES
    return min(quorum, max(voices_at(log, run) - 1, 1))


def pending(log: Log, run: Record, stage: str, number: int) -> dict[bytes, int]:
    """The voices that committed themselves on a run and did not tell yet, with the time when they first did."""
    voice, asked = roster_of(log).voice, (stage, number)
    rows = [row for row in log.verifications(run.id) if (row.stage, row.round) == asked]
    told = {voice(row.author, row.time).voice for row in rows}
    waiting: dict[bytes, int] = {}
    for row in committed(log, run, stage, number):  # the oldest first: who commits again is waited for no longer
        waiting.setdefault(voice(row.author, row.time).voice, row.time)
    return {who: time for who, time in waiting.items() if who not in told}


def committed(log: Log, run: Record, stage: str, number: int) -> list[CommitmentRow]:
    """The commitments on a run, for a stage and a round, of those who were drawn and whose word counts."""
    author, asked_ms = roster_of(log).voice(run.author, run.time).voice, _asked_ms(log, run, stage)
    return [
        row
        for row in log.commitments(run.id)
        if row.output is not None
        and (row.stage, row.round) == (stage, number)
        and is_counted(log, run, row.author, row.time, seq=row.seq)
        and _is_drawn(log, run, row.author, row.time, row.output, number, asked_ms)
        and roster_of(log).voice(row.author, row.time).voice != author
    ]


def counted_reports(log: Log, run: Record) -> Sequence[tuple[Record, Report]]:
    """The verifications of a run whose proofs and commitments hold, as reports, which say whose word counts."""
    memory = memory_of(log)
    version = memory.version
    found = memory.reports.get(run.id)
    if found is None:
        found = list(_reports(log, run))
        if memory.version == version:
            memory.reports[run.id] = found
    return found


def first_words(log: Log, run: Record) -> list[tuple[Record, Report]]:
    """The verifications that somebody asked for, the oldest first: of attested others, one for each stage and round.

    A second round is asked for where somebody of the first did not come to the claim. Who says the same twice, with
    another device or another record, was right or wrong once.
    """
    author = roster_of(log).voice(run.author, run.time).voice
    first: dict[tuple[bytes, str, int], tuple[Record, Report]] = {}
    for record, report in sorted(counted_reports(log, run), key=lambda pair: pair[1].order):
        if report.attested and report.voice != author:
            first.setdefault((report.voice, report.stage, report.round), (record, report))
    doubted = any(not report.passed and report.round == 0 for _, report in first.values())
    return [pair for pair in first.values() if pair[1].round == 0 or doubted]


def _reports(log: Log, run: Record) -> Iterator[tuple[Record, Report]]:
    evaluations = list(_reports_of(log, run, EVALUATE, run.time))
    yield from evaluations
    asked_ms = _pairs_asked_ms(log, run, [report for _, report in evaluations])
    yield from _reports_of(log, run, REPLICATE, asked_ms)


def _reports_of(log: Log, run: Record, stage: str, asked_ms: int) -> Iterator[tuple[Record, Report]]:
    body = run.body
    assert isinstance(body, Run)
    roster, commitments = roster_of(log), committed_by(log.commitments(run.id))
    for row in log.verifications(run.id):
        record, output = log.get(row.id), row.output
        check = record.body
        assert isinstance(check, Verification)
        if output is None or check.stage != stage or check.verdict in ("unavailable", "error"):
            continue
        if check.round >= ROUNDS[stage]:
            continue  # nobody asks for that
        if not _is_drawn(log, run, record.author, record.time, output, check.round, asked_ms):
            continue
        committed = commitment_of(record, commitments)
        if committed is None:
            continue
        if list(check.seeds) != seeds(output, len(check.seeds)):
            continue
        report = Report(
            roster.voice(record.author, record.time).voice,
            is_counted(log, run, record.author, record.time, seq=record.seq),
            (record.time, record.id),
            check.stage,
            check.round,
            commitment=committed,
            links=record.links,
        )
        measured = _with_numbers(log, body, check, report)
        if measured is not None:
            yield record, measured


def _with_numbers(log: Log, run: Run, check: Verification, report: Report) -> Report | None:
    """The report with what its verifier measured; None where that says nothing of the run."""
    if check.stage == EVALUATE:
        if is_pairs_only(log, run) and not is_same_hardware(run, check.device):
            return None  # the same time on other hardware says nothing
        return report._replace(passed=bears_out(log, run, check))
    if not len(check.values) == len(check.parent_values) == len(check.seeds) == PAIRS:
        return None
    if any(abs(value) > _BEYOND for value in (*check.values, *check.parent_values)):
        return None
    sign = _sign(log.rules(run.task))
    # Differences of pairs on one machine say what numbers of other hardware don't.
    comparable_here = not is_clocked(log, run.task) or is_same_hardware(run, check.device)
    pairs = zip(check.parent_values, check.values, strict=True)
    return report._replace(
        improvements=tuple(sign * (before - after) for before, after in pairs),
        values=tuple(sign * value for value in check.values) if comparable_here else (),
    )


def _sign(rules: TaskRules | None) -> float:
    """What makes the smaller of two numbers of a task the better."""
    return -1.0 if rules and rules.direction == "maximize" else 1.0


def is_pairs_only(log: Log, run: Run) -> bool:
    """Whether only pairs on one machine say something of a run: it had a wall clock, and no model to ask."""
    return is_clocked(log, run.task) and (run.checkpoint is None or tolerance_of(log, run.task) is None)


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


def evaluated_ms(log: Log, run: Record, reports: Iterable[Report], number: int) -> list[int]:
    """When each of the attested others first said what it measured of a run in a round, the first first."""
    author = roster_of(log).voice(run.author, run.time).voice
    first: dict[bytes, int] = {}
    for report in reports:
        if (report.stage, report.round, report.attested) == (EVALUATE, number, True) and report.voice != author:
            first[report.voice] = min(report.order[0], first.get(report.voice, report.order[0]))
    return sorted(first.values())


def _pairs_asked_ms(log: Log, run: Record, reports: Iterable[Report]) -> int:
    """Since when pairs are waited for: since a quorum evaluated the run, whose own time is only its author's word.

    A dispute may have been settled by a quorum before there was one of the first round: whichever was first. Where
    nothing but pairs can be made, or too few evaluated it in either round, since its own time.
    """
    body = run.body
    assert isinstance(body, Run)
    if is_pairs_only(log, body):
        return run.time
    reports, quorum = list(reports), needed(log, run, EVALUATE)
    rounds = [evaluated_ms(log, run, reports, number) for number in range(ROUNDS[EVALUATE])]
    return min((times_ms[quorum - 1] for times_ms in rounds if len(times_ms) >= quorum), default=run.time)


def is_drawn(log: Log, run: Record, device: bytes, time_ms: int, output: bytes, stage: str, number: int) -> bool:
    """Whether a device whose proof stands for ``output`` was drawn by this time for a stage and a round on a run."""
    return _is_drawn(log, run, device, time_ms, output, number, _asked_ms(log, run, stage))


def _asked_ms(log: Log, run: Record, stage: str) -> int:
    """Since when it is waited for those who are drawn for a stage."""
    if stage != REPLICATE:
        return run.time
    return _pairs_asked_ms(log, run, [report for _, report in counted_reports(log, run)])


def _is_drawn(log: Log, run: Record, device: bytes, time_ms: int, output: bytes, number: int, asked_ms: int) -> bool:
    roster, rules = roster_of(log), network_rules(log.network)
    root = roster.voice(device, time_ms).root
    return is_chosen(
        output,
        chosen=expected(rules, number, time_ms - asked_ms),
        voices=voices_at(log, run),
        devices=len(roster.devices(root, run.time)),
        rules=rules,
    )
