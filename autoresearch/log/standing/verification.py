"""Computes the verification state of a run from the verifications in a log.

It depends on the records and the trust list, never on a clock: a verification is judged at its own time.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from statistics import fmean, median
from typing import NamedTuple

from autoresearch.judging import states, statistics
from autoresearch.judging.committee import expected, is_chosen, network_rules, seeds
from autoresearch.log.rows import CommitmentRow, CountedVerification
from autoresearch.log.standing.cache import cached, roster_of
from autoresearch.log.standing.context import commitment_of, committed_by, is_clocked, is_same_hardware
from autoresearch.log.standing.precedence import bans, is_banned
from autoresearch.log.tables.tables import Tables
from autoresearch.record.kinds import Run, Verification
from autoresearch.record.record import Record
from autoresearch.words import UPHELD, RunState

# An improvement counts if it is at least this share of the noise over seeds.
MINIMUM_EFFECT_NOISES = 0.5
# Hardly any honest pairs are so many standard deviations of one run from the median of all verifiers.
_APART_NOISES = 4.0
# The judgement of a run without verifications.
_UNHEARD = states.Judgement(RunState.REPORTED, None, None, 0, 0)


def judgement(log: Tables, run_id: bytes) -> states.Judgement:
    """What is judged of a run, by its row: its state, and what others measured. Raises NotFound."""
    judged = find_judgement(log, run_id)
    if judged is None:
        log.records.get(run_id)
        return _UNHEARD
    return judged


def find_judgement(log: Tables, run_id: bytes) -> states.Judgement | None:
    """The same; None where there is no such run here."""
    return log.standings.of([run_id]).get(run_id)


def judgements(log: Tables, runs: Iterable[bytes]) -> dict[bytes, states.Judgement]:
    """What is judged of several runs that are here."""
    by_run = dict.fromkeys(runs, _UNHEARD)
    return by_run | log.standings.of(by_run)


def judge_now(log: Tables, run: Record) -> states.Judgement:
    """The judgement of a run, from the reports on it."""
    return judge_reports(log, run, [report for _, report in counted_reports(log, run)])


def judge_reports(log: Tables, run: Record, reports: Sequence[states.Report]) -> states.Judgement:
    """The judgement of a run, if these were all the reports on it."""
    body = run.body_as(Run)
    terms = terms_of(log, body, voters_at(log, run) if reports else 0)  # counting them all takes its time
    author = roster_of(log).voter(run.author, run.time).voter
    judged = states.judge(
        reports,
        terms,
        author=author,
        minimum_effect=MINIMUM_EFFECT_NOISES * terms.noise,
        lineage=states.Lineage(
            claim=None if body.value is None else log.tasks.sign(body.task) * body.value,
            parent=_number_of_parent(log, body, terms.noise) if any(report.parents for report in reports) else None,
            as_parent=_as_parent(log, run),
            error=statistics.stated_error(body.metrics),
        ),
    )
    if judged.value is not None:
        judged = judged._replace(value=log.tasks.sign(body.task) * judged.value)
    judged = judged._replace(evidence=judged.evidence._replace(uncounted=_uncounted(log, run)))
    if run.id in bans(log).frauds:
        return judged._replace(state=RunState.FRAUD)
    if is_banned(log, author, run.time, device=run.author, seq=run.seq):
        return judged._replace(state=RunState.BANNED)
    return judged


def terms_of(log: Tables, run: Run, voters: int) -> states.Terms:
    """What a run is judged by in a network of so many voters."""
    rules = log.tasks.rules(run.task)
    return states.Terms(
        voters,
        network_rules(log.network),
        noise=rules.noise if rules else 0.0,
        pairs_only=is_pairs_only(log, run),
        state_only=is_state_only(run),
        exact=is_exact(log, run.task),
    )


def _uncounted(log: Tables, run: Record) -> int:
    """How many others measured a run whose verifications do not count."""
    voter = roster_of(log).voter
    author = voter(run.author, run.time).voter
    counting = {record.id for record, report in counted_reports(log, run) if report.attested}
    rows = [row for row in log.verifications.of(run.id) if row.id not in counting and row.verdict != "unavailable"]
    return len({voter(row.author, row.time).voter for row in rows} - {author})


def _number_of_parent(log: Tables, run: Run, noise: float) -> float | None:
    """The number of a run's parent, smaller is better: the network's, else the reported one, if any."""
    parent = log.records.find(run.parent) if run.parent else None
    if parent is None or not isinstance(parent.body, Run) or parent.body.task != run.task:
        return None
    if is_state_only(parent.body):
        return None  # its number says what it learned elsewhere, not what its program learns in a pair
    judged = states.judge(
        [report for _, report in counted_reports(log, parent)],
        states.Terms(voters_at(log, parent), network_rules(log.network), noise),
        author=roster_of(log).voter(parent.author, parent.time).voter,
        minimum_effect=0.0,
    )
    claim = None if parent.body.value is None else log.tasks.sign(run.task) * parent.body.value
    return claim if judged.value is None else judged.value


def _as_parent(log: Tables, run: Record) -> list[float]:
    """What each voter measured of a run where it was the parent in pairs; smaller is better."""
    roster, body = roster_of(log), run.body_as(Run)
    author = roster.voter(run.author, run.time).voter
    by_voter: dict[bytes, list[float]] = {}
    for child_id in log.verifications.paired_children(run.id):
        child = log.records.get(child_id)
        if not isinstance(child.body, Run) or child.body.task != body.task:
            continue
        authors = {author, roster.voter(child.author, child.time).voter}
        for _, report in counted_reports(log, child):
            if report.attested and report.parents and report.voter not in authors:
                by_voter.setdefault(report.voter, []).extend(report.parents)
    return [median(values) for values in by_voter.values()]


def checkers_of(log: Tables, run_id: bytes) -> set[bytes]:
    """The attested participants that published a measurement of a run, whether or not it counts."""
    spoken = (roster_of(log).voter(check.author, check.time) for check in log.verifications.of(run_id))
    return {voter.voter for voter in spoken if voter.attested}


def state_of(log: Tables, run_id: bytes) -> str:
    """The state of a run, or of the program that is judged by it, as a word. The only place that computes it."""
    return judgement(log, run_id).state.value


def voters_at(log: Tables, run: Record) -> int:
    """The number of voters of a run: attested long enough before it, its author included."""
    return roster_of(log).count(run.time - network_rules(log.network).age_ms)


def is_counted(log: Tables, run: Record, device: bytes, time_ms: int, *, seq: int = 0) -> bool:
    """Whether a verification of a run by this device at this time, in its record ``seq``, counts.

    The device must be attested, and must have been so as the same voter long enough before the run was published. So a
    key that was made or attested after seeing a run is not in its committee. Participants that the manifest names or
    a founder admitted need no such age. Banned participants do not count.
    """
    roster = roster_of(log)
    voter = roster.voter(device, time_ms)
    if not voter.attested or is_banned(log, voter.voter, time_ms, device=device, seq=seq):
        return False
    if voter.root in roster.participants:
        return True
    before = roster.voter(device, run.time - network_rules(log.network).age_ms)
    return before.attested and before.voter == voter.voter


def needed(log: Tables, run: Record, stage: str) -> int:
    """How many verifiers must have committed before one of them reveals."""
    quorum = network_rules(log.network).quorum if stage == states.EVALUATE else states.CONFIRMING_VOTERS
    return min(quorum, max(voters_at(log, run) - 1, 1))


def pending(log: Tables, run: Record, stage: str, number: int) -> dict[bytes, int]:
    """The voters that committed on a run and have not revealed, with the time of their first commitment."""
    voter, question = roster_of(log).voter, (stage, number)
    rows = [row for row in log.verifications.of(run.id) if (row.stage, row.round) == question]
    done = {voter(row.author, row.time).voter for row in rows if row.verdict not in (states.ERROR, states.UNAVAILABLE)}
    waiting: dict[bytes, int] = {}
    for row in committed(log, run, stage, number):  # the oldest first: a second commitment does not prolong the wait
        waiting.setdefault(voter(row.author, row.time).voter, row.time)
    return {who: time for who, time in waiting.items() if who not in done}


def committed(log: Tables, run: Record, stage: str, number: int) -> list[CommitmentRow]:
    """The commitments on a run, for a stage and a round, of drawn voters whose verifications count."""
    author, committee = roster_of(log).voter(run.author, run.time).voter, _committee(log, run, stage, number)
    return [
        row
        for row in log.verifications.commitments(run.id)
        if row.output is not None
        and (row.stage, row.round) == (stage, number)
        and is_counted(log, run, row.author, row.time, seq=row.seq)
        and _is_drawn(log, run, row.author, row.time, row.output, committee)
        and roster_of(log).voter(row.author, row.time).voter != author
    ]


def counted_reports(log: Tables, run: Record) -> Sequence[tuple[Record, states.Report]]:
    """The verifications of a run with valid proofs and commitments, as reports that tell which are attested."""
    return cached(log, ("reports", run.id), lambda: list(_reports(log, run)))


def first_words(log: Tables, run: Record) -> list[tuple[Record, states.Report]]:
    """The verifications that were asked for, the oldest first: of other voters, one for each stage and round.

    Round 1 is asked for where an evaluation of round 0 did not come to the reported value. A second verification of
    one voter, by another device or record, does not count again.
    """
    author = roster_of(log).voter(run.author, run.time).voter
    first: dict[tuple[bytes, str, int], tuple[Record, states.Report]] = {}
    for record, report in sorted(counted_reports(log, run), key=lambda pair: pair[1].order):
        if report.attested and report.voter != author and report.measured:
            first.setdefault((report.voter, report.stage, report.round), (record, report))
    doubted = any(not report.passed and report.round == 0 for _, report in first.values())
    return [pair for pair in first.values() if pair[1].round == 0 or doubted]


def count_verifications(log: Tables, run: Record, state: RunState) -> Iterator[CountedVerification]:
    """The verifications of a run in this state that count, of each participant the first of a stage and a round."""
    body, first = run.body_as(Run), first_words(log, run)
    reports, rules = [report for _, report in first], log.tasks.rules(body.task)
    timely = states.in_time(reports, min(network_rules(log.network).quorum, max(voters_at(log, run) - 1, 1)))
    apart = _apart([report for report in reports if report.stage == states.REPLICATE], rules.noise if rules else 0.0)
    for record, report in first:
        assert isinstance(record.body, Verification)
        # Pairs say nothing about the reported value. Who may have repeated others earns nothing when it was right.
        is_silent = report.stage == states.REPLICATE and (state is RunState.REFUTED or report.voter in apart)
        is_late = report.passed == (state in UPHELD) and report not in timely
        most_ms = record.time - run.time + log.network.ahead_ms
        yield CountedVerification(
            record.time,
            record.id,
            record.author,
            report.voter,
            report.stage,
            report.passed,
            decides=(state in UPHELD or state is RunState.REFUTED) and not is_silent and not is_late,
            spent_ms=record.body.duration_ms if record.body.duration_ms <= most_ms else 0,
        )


def _apart(pairs: Sequence[states.Report], noise: float) -> set[bytes]:
    """The voters that found another improvement than most: neither right nor wrong, since machines differ."""
    means = {report.voter: fmean(report.improvements) for report in pairs}
    middle = median(means.values()) if means else 0.0
    return {voter for voter, mean in means.items() if abs(mean - middle) > _APART_NOISES * noise > 0}


def _reports(log: Tables, run: Record) -> Iterator[tuple[Record, states.Report]]:
    evaluations = list(_reports_of(log, run, states.EVALUATE, run.time))
    yield from evaluations
    asked_ms = _pairs_asked_ms(log, run, [report for _, report in evaluations])
    yield from _reports_of(log, run, states.REPLICATE, asked_ms)


def _reports_of(log: Tables, run: Record, stage: str, asked_ms: int) -> Iterator[tuple[Record, states.Report]]:
    body = run.body_as(Run)
    roster, commitments = roster_of(log), committed_by(log.verifications.commitments(run.id))
    author, awaited = roster.voter(run.author, run.time).voter, needed(log, run, stage)
    lacking: defaultdict[int, set[bytes]] = defaultdict(set)  # by round, the voters that could not get the files
    stalled_ms: dict[int, int] = {}
    outputs = {  # of the rounds that are asked for
        row.id: row.output
        for row in log.verifications.of(run.id)
        if row.output is not None and row.stage == stage and row.round < states.ROUNDS[stage]
    }
    for record in sorted(log.records.several(outputs), key=lambda record: (record.time, record.id)):
        check, output = record.body_as(Verification), outputs[record.id]
        committee = _Committee(check.round, asked_ms, stalled_ms.get(check.round))
        if not _is_drawn(log, run, record.author, record.time, output, committee):
            continue
        obstacle = check.verdict if check.verdict in (states.ERROR, states.UNAVAILABLE) else ""
        # An obstacle reveals nothing that others could repeat, so nobody has to commit to it.
        committed = b"" if obstacle else commitment_of(record, commitments)
        if committed is None:
            continue
        if list(check.seeds) != seeds(output, len(check.seeds)):
            continue
        report = states.Report(
            roster.voter(record.author, record.time).voter,
            is_counted(log, run, record.author, record.time, seq=record.seq),
            (record.time, record.id),
            check.stage,
            check.round,
            commitment=committed,
            links=record.links,
            obstacle=obstacle,
        )
        if obstacle == states.UNAVAILABLE and report.attested and report.voter != author:
            lacking[check.round].add(report.voter)
            if len(lacking[check.round]) >= awaited:
                stalled_ms.setdefault(check.round, record.time)
        measured = _with_numbers(log, body, check, report)
        if measured is not None:
            yield record, measured


def _with_numbers(log: Tables, run: Run, check: Verification, report: states.Report) -> states.Report | None:
    """The report with the verifier's numbers; None where these say nothing about the run."""
    if report.obstacle or (check.stage == states.REPLICATE and check.verdict == "fail"):
        return report._replace(passed=False, measured=False)
    if check.stage == states.EVALUATE:
        if is_pairs_only(log, run) and not is_same_hardware(run, check.device):
            return None  # a value on other hardware cannot be compared
        passed = bears_out(log, run, check)
        report = report._replace(repeated=not (check.metrics.get("challenges") or check.metrics.get("evaluated")))
        if check.value is None:
            return report._replace(passed=passed)
        error = statistics.stated_error(check.metrics) if check.metrics.get("evaluated") else None
        return report._replace(passed=passed, values=(log.tasks.sign(run.task) * check.value,), error=error)
    if not len(check.values) == len(check.parent_values) == len(check.seeds) == statistics.PAIRS:
        return None
    if len(check.baseline_values) not in (0, statistics.PAIRS):
        return None
    sign = log.tasks.sign(run.task)
    # The differences of pairs on one machine can be compared across hardware, the values cannot.
    comparable_here = not is_clocked(log, run.task) or is_same_hardware(run, check.device)
    pairs = zip(check.parent_values, check.values, strict=True)
    return report._replace(
        improvements=tuple(sign * (before - after) for before, after in pairs),
        behind=tuple(
            sign * (parent - baseline)
            for parent, baseline in zip(check.parent_values, check.baseline_values, strict=bool(check.baseline_values))
        ),
        values=tuple(sign * value for value in check.values) if comparable_here else (),
        parents=tuple(sign * value for value in check.parent_values) if comparable_here else (),
    )


def is_pairs_only(log: Tables, run: Run) -> bool:
    """Whether a run can be verified by pairs alone: a wall-clock task, and no model that a referee can ask."""
    return is_clocked(log, run.task) and (run.checkpoint is None or tolerance_of(log, run.task) is None)


def is_state_only(run: Run) -> bool:
    """Whether a run claims what its learned state is worth, and not what its program learns under the budget."""
    return run.mode != "experiment"


def is_exact(log: Tables, task: bytes) -> bool:
    """Whether a task states that a program's value does not depend on the seed: a noise of 0, not an unknown one."""
    return cached(log, ("exact", task), lambda: _states_no_noise(log, task), lasting=True)


def _states_no_noise(log: Tables, task: bytes) -> bool:
    noise = log.tasks.stated(task, "metric", "noise")
    return isinstance(noise, int | float) and not isinstance(noise, bool) and noise == 0


def bears_out(log: Tables, run: Run, check: Verification) -> bool:
    """Whether an evaluation agrees with the reported value of its run: by the numbers, not by the verdict."""
    if check.value is None:
        return False
    tolerance, outcome = tolerance_of(log, run.task), check.metrics
    if tolerance is not None and _is_modest(log, run, check):
        return True

    def number(name: str) -> float | None:
        finding = outcome.get(name)
        return None if finding is None else float(finding)

    finding = statistics.Findings(
        check.value,
        challenges=int(outcome.get("challenges", 0)),
        mismatches=int(outcome.get("mismatches", 0)),
        mean_difference=float(outcome.get("mean_difference", 0.0)),
        gap=number("gap"),
        shuffled=number("shuffled"),
        unigram=number("unigram"),
        evaluated=bool(outcome.get("evaluated", 0)),
        error=statistics.difference_error(outcome) if outcome.get("evaluated") else 0.0,
    )
    rules = log.tasks.rules(run.task)
    return statistics.passes(run.value, finding, tolerance=tolerance, noise=rules.noise if rules else 0.0)


def _is_modest(log: Tables, run: Run, check: Verification) -> bool:
    """Whether the author claims no more than a verifier measured, where the evaluator drew the test of each.

    That gains an author nothing. A verifier whose draw was all the same states no error, and would refute others.
    """
    if run.value is None or check.value is None or not check.metrics.get("evaluated"):
        return False
    return statistics.STANDARD_ERROR in check.metrics and log.tasks.sign(run.task) * (check.value - run.value) <= 0


def allowed_difference(log: Tables, run: Run, check: Verification | None = None) -> float:
    """How far an evaluation may lie from the reported value of its run; without one, what its task allows."""
    metrics = check.metrics if check is not None else {"challenges": 1.0} if run.checkpoint else {}
    rules = log.tasks.rules(run.task)
    allowed = statistics.allowance(
        run.value or 0.0,
        tolerance=None if metrics.keys().isdisjoint(("challenges", "evaluated")) else tolerance_of(log, run.task),
        noise=rules.noise if rules else 0.0,
        error=statistics.difference_error(metrics) if metrics.get("evaluated") else 0.0,
    )
    if check is None or not _is_modest(log, run, check):
        return allowed
    return max(allowed, abs((check.value or 0.0) - (run.value or 0.0)))


def tolerance_of(log: Tables, task: bytes) -> float | None:
    """How far two evaluations of one checkpoint may lie apart on a task, None where nobody evaluates one."""
    return cached(log, ("tolerance", task), lambda: _tolerance(log, task), lasting=True)


def _tolerance(log: Tables, task: bytes) -> float | None:
    tolerance = log.tasks.stated(task, "evaluation", "tolerance")
    return float(tolerance) if isinstance(tolerance, int | float) and tolerance > 0 else None


def evaluated_ms(log: Tables, run: Record, reports: Iterable[states.Report], number: int) -> list[int]:
    """When each other voter first revealed an evaluation of a run in a round, in order."""
    author = roster_of(log).voter(run.author, run.time).voter
    first: dict[bytes, int] = {}
    for report in reports:
        if not report.measured:
            continue
        if (report.stage, report.round, report.attested) == (states.EVALUATE, number, True) and report.voter != author:
            first[report.voter] = min(report.order[0], first.get(report.voter, report.order[0]))
    return sorted(first.values())


def _pairs_asked_ms(log: Tables, run: Record, reports: Iterable[states.Report]) -> int:
    """The time from which the committee for pairs waits: when a quorum had evaluated the run.

    The run's own time is its author's statement. A quorum may come first in round 0 or in round 1; the earlier one
    counts. Where only pairs are possible, or neither round has a quorum, it is the run's own time.
    """
    body = run.body_as(Run)
    if is_pairs_only(log, body):
        return run.time
    reports, quorum = list(reports), needed(log, run, states.EVALUATE)
    rounds = [evaluated_ms(log, run, reports, number) for number in range(states.ROUNDS[states.EVALUATE])]
    return min((times_ms[quorum - 1] for times_ms in rounds if len(times_ms) >= quorum), default=run.time)


def is_drawn(log: Tables, run: Record, device: bytes, time_ms: int, output: bytes, question: tuple[str, int]) -> bool:
    """Whether a device with the VRF output ``output`` was drawn by this time for a stage and round of a run."""
    return _is_drawn(log, run, device, time_ms, output, _committee(log, run, *question))


class _Committee(NamedTuple):
    """Who is drawn for a round grows from ``asked_ms`` until ``stalled_ms``; None: without an end."""

    round: int
    asked_ms: int
    stalled_ms: int | None


def _committee(log: Tables, run: Record, stage: str, number: int) -> _Committee:
    return _Committee(number, _asked_ms(log, run, stage), _stalled_ms(log, run, stage, number))


def _asked_ms(log: Tables, run: Record, stage: str) -> int:
    """The time from which the committee of a stage waits."""
    if stage != states.REPLICATE:
        return run.time
    return _pairs_asked_ms(log, run, [report for _, report in counted_reports(log, run)])


def _stalled_ms(log: Tables, run: Record, stage: str, number: int) -> int | None:
    """When enough of the drawn verifiers had said that they cannot get the files: the committee grows no more."""
    author = roster_of(log).voter(run.author, run.time).voter
    first: dict[bytes, int] = {}
    for _, report in counted_reports(log, run):
        is_counted = (report.stage, report.round, report.obstacle, report.attested) == (
            stage,
            number,
            states.UNAVAILABLE,
            True,
        )
        if is_counted and report.voter != author:
            first[report.voter] = min(report.order[0], first.get(report.voter, report.order[0]))
    times_ms, awaited = sorted(first.values()), needed(log, run, stage)
    return times_ms[awaited - 1] if len(times_ms) >= awaited else None


def _is_drawn(log: Tables, run: Record, device: bytes, time_ms: int, output: bytes, committee: _Committee) -> bool:
    roster, rules = roster_of(log), network_rules(log.network)
    root = roster.voter(device, time_ms).root
    until_ms = time_ms if committee.stalled_ms is None else min(time_ms, committee.stalled_ms)
    return is_chosen(
        output,
        chosen=expected(rules, committee.round, until_ms - committee.asked_ms),
        voters=voters_at(log, run),
        devices=len(roster.devices(root, run.time)),
        rules=rules,
    )
