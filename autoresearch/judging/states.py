"""The state of a run, computed from reports: what one participant measured of it.

Pure: the same reports in any order give the same state.

reported → provisional → confirmed | not replicated
        ↘ disputed → provisional | refuted            fraud: proven by records alone
        ↘ unavailable → provisional | disputed

Commit before reveal: a verifier publishes a digest first, and its result when enough others have published theirs, so
nobody can fit a result to those of others. A reveal links its own commitment and those of the others that it waited
for: a commitment that another's reveal links is older than that reveal, whatever their clocks said.
"""

from __future__ import annotations

import hashlib
import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from statistics import median, median_high, median_low
from typing import Final, NamedTuple

from autoresearch.judging.committee import VerificationRules
from autoresearch.judging.statistics import (
    Finding,
    agree,
    judge_pairs,
    margin,
    median_margin,
    pooled_error,
    standard_error,
)
from autoresearch.record.encoding import encode
from autoresearch.words import UNDECIDED, RunState

EVALUATE, REPLICATE = "evaluate", "replicate"
# What keeps a verifier from measuring: it failed for a reason of its own, or it could not get the files of the run.
ERROR: Final = "error"
UNAVAILABLE: Final = "unavailable"
# The rounds of a stage: two evaluations (the second after a dispute), one for pairs. A further round would give a
# verifier other seeds to choose from, and a voter a second vote.
ROUNDS = {EVALUATE: 2, REPLICATE: 1}


class Report(NamedTuple):
    """One verification: an evaluation that passed or failed, or pairs of runs.

    ``voter`` is the verifier's voter, ``attested`` whether it counts. ``order`` sorts reports: time and id.
    ``commitment`` is the record that fixed it before the reveal, ``links`` are all links of the reveal. Without
    ``measured`` there is no value, and the run did not pass: the run failed in the pairs, or there was an ``obstacle``
    (ERROR or UNAVAILABLE), which what the voter measures of the same stage and round replaces. ``improvements`` are
    the differences of the pairs, positive where the run is better than its parent.
    ``values`` are the run's own values in the pairs, or the one of the evaluation, ``parents`` those of its parent in
    the pairs; smaller is better. ``behind``: how much worse than the task's baseline the parent was in each pair, empty
    where it is the baseline. ``repeated``: for the evaluation the program was trained again. ``error`` is the standard
    error that its evaluator states of the value, None where it states none.
    """

    voter: bytes
    attested: bool
    order: tuple[int, bytes]
    stage: str
    round: int = 0
    passed: bool = True
    improvements: tuple[float, ...] = ()
    values: tuple[float, ...] = ()
    commitment: bytes = b""
    links: tuple[bytes, ...] = ()
    measured: bool = True
    parents: tuple[float, ...] = ()
    behind: tuple[float, ...] = ()
    obstacle: str = ""
    repeated: bool = False
    error: float | None = None


SALT_BYTES = 32
_DOMAIN = b"autoresearch/commit/1"


def commitment_digest(author: bytes, salt: bytes, measured: Mapping[str, object]) -> bytes:
    """The digest that commits a device to a verification: of its key, the salt, and the body without the salt.

    The salt prevents guessing the value from the digest. The key prevents using another device's digest.
    """
    body = {name: value for name, value in measured.items() if name != "salt"}
    return hashlib.sha256(_DOMAIN + author + salt + encode(body)).digest()


def in_time(reports: Iterable[Report], quorum: int) -> set[Report]:
    """The reports that cannot repeat what others had revealed.

    A report is in time when another voter's reveal of the same stage and round links its commitment. Where fewer than
    ``quorum`` of one finding are in time, the first of the others fill it up. One verifier has to be the first, and in
    a small network none may have waited. Pairs are always in time: each verifier has its own seeds, so nothing can be
    repeated.
    """
    questions: defaultdict[int, list[Report]] = defaultdict(list)
    timely: set[Report] = set()
    for report in sorted(reports, key=lambda report: report.order):
        if report.stage == EVALUATE:
            questions[report.round].append(report)
        else:
            timely.add(report)
    for spoken in questions.values():
        vouched = [report for report in spoken if _is_vouched_for(report, spoken)]
        for finding in (True, False):
            same = [report for report in spoken if report.passed is finding]
            before = [report for report in same if report in vouched]
            others = [report for report in same if report not in vouched]
            timely.update(before, others[: max(quorum - len(before), 0)])
    return timely


def _is_vouched_for(report: Report, spoken: Iterable[Report]) -> bool:
    return any(report.commitment in other.links for other in spoken if other.voter != report.voter)


# A dispute is decided by two thirds of the new committee.
DECIDING_SHARE = 2 / 3
# A confirmation, and a refutation, needs at least so many participants besides the author.
CONFIRMING_VOTERS = 2
# Honest runs of one program hardly ever lie so many standard deviations apart in the middle of all.
_APART_NOISES = 3.0
# A parent that is by so many standard deviations worse than the task's baseline, in the mean of both pairs, makes any
# child look better. That mean varies by one of them: of an equal parent's pairs one in six is lost.
_BEHIND_NOISES = 1.0
# A parent is so many standard deviations worse in pairs than its number only where it fails in new worlds.
_COLLAPSE_NOISES = 8.0


class VerifierCounts(NamedTuple):
    """How many verifiers whose reports count did what to a run; each is counted once.

    ``evaluated`` measured what it left, ``repeated`` trained it again, ``paired`` ran it beside its parent.
    ``differing`` of the first two came to another value. ``unmeasured`` ended an evaluation in an error, and for
    ``failed`` the run failed beside its parent. For ``behind`` the parent was worse than the task's baseline: they are
    none of the ``paired``. ``uncounted`` other participants measured it whose verifications do not count.
    """

    evaluated: int = 0
    repeated: int = 0
    paired: int = 0
    differing: int = 0
    unmeasured: int = 0
    failed: int = 0
    behind: int = 0
    uncounted: int = 0


class Judgement(NamedTuple):
    """The state of a run; the network's value, half of its 95 % interval, of how many runs; the number of verifiers.

    ``value`` is like those of the reports: smaller is better. ``improvement`` is the median difference to the parent,
    positive where the run is better, ``improvement_margin`` half of its 95 % interval. Where the two numbers in the
    middle lie far apart, each is the worse of the two; ``is_worse``: so is the value.
    """

    state: RunState
    value: float | None
    margin: float | None
    runs: int
    voters: int
    improvement: float | None = None
    improvement_margin: float | None = None
    is_worse: bool = False
    evidence: VerifierCounts = VerifierCounts()


class Lineage(NamedTuple):
    """What is known of a run and of its parent; smaller is better.

    ``claim`` is the value that the run's author reports, ``error`` the standard error that it states of it. ``parent``
    is the number of its parent. ``as_parent`` is what each verifier measured of the run itself as the parent in pairs.
    A parent that is good in the task's own world alone makes every child look better in new worlds.
    """

    claim: float | None = None
    parent: float | None = None
    as_parent: Sequence[float] = ()
    error: float | None = None


class Terms(NamedTuple):
    """What a run is judged by, beside the reports on it. ``voters`` is the number of attested voters.

    Below ``rules.least`` voters no run passes provisional. ``pairs_only``: no evaluation is possible, so pairs need
    none before them. ``state_only``: the run claims what its learned state is worth and nothing else, so evaluations
    confirm it and there are no pairs. ``exact``: the task states a noise of 0, see :func:`judge_pairs`.
    """

    voters: int
    rules: VerificationRules
    noise: float
    pairs_only: bool = False
    state_only: bool = False
    exact: bool = False


def judge(
    reports: Iterable[Report], terms: Terms, *, author: bytes, minimum_effect: float, lineage: Lineage | None = None
) -> Judgement:
    """The state of a run, from the reports on it.

    ``author`` is the author's voter; its own reports never count. Each voter has one report for each stage and round,
    its first.
    """
    voters, rules, noise, pairs_only, state_only, exact = terms
    lineage = lineage or Lineage()
    spoken = _counting_reports(reports, author)
    paired = [report for report in spoken if (report.stage, report.round) == (REPLICATE, 0)]
    pairs = [report for report in paired if report.measured and not _is_behind(report, noise)]
    finding, count = judge_pairs(
        [report.improvements for report in pairs],
        noise=noise,
        minimum_effect=minimum_effect,
        most=voters - 1,
        exact=exact,
    )
    counted = pairs[:count] if count >= CONFIRMING_VOTERS else []  # one verifier alone gives no number
    improvements = [value for report in counted for value in report.improvements]
    values = [value for report in counted for value in report.values]
    speakers = len({report.voter for report in spoken if not report.obstacle})
    measured = (
        _middle(values, noise, worse=median_high) if values else None,
        _margin(values, noise),
        len(values),
        speakers,
        _middle(improvements, noise, worse=median_low) if improvements else None,
        _margin(improvements, noise),
        _is_apart(values, noise),
        _evidence(spoken, noise),
    )
    evaluations = [report for report in spoken if report.stage == EVALUATE]
    state = _evaluated(evaluations, voters, rules)
    if state_only:
        judgement = _of_state(state, [report for report in evaluations if report.measured], terms, lineage.error)
        return judgement._replace(evidence=_evidence(evaluations, noise))
    ready = state is RunState.PROVISIONAL or (pairs_only and state is RunState.REPORTED)
    if state in UNDECIDED and _collapses(lineage.as_parent, lineage.claim, noise):
        return Judgement(RunState.DISPUTED, *measured)
    if not ready or voters < rules.least:
        return Judgement(state, *measured)
    failures = sum(not report.measured and not report.obstacle for report in paired)
    if failures >= CONFIRMING_VOTERS and failures > len(pairs):
        return Judgement(RunState.NOT_REPLICATED, *measured)
    hindered = [report.obstacle for report in paired if report.obstacle]
    if len(hindered) >= CONFIRMING_VOTERS and len(hindered) > len(pairs):
        # What most verifiers cannot run, the others do not confirm. An error in pairs may be the parent's.
        return Judgement(RunState.UNAVAILABLE if pairs_only and _is_withheld(hindered) else state, *measured)
    if finding is Finding.BETTER and _is_apart(values, noise) and len(pairs) == CONFIRMING_VOTERS < voters - 1:
        finding = Finding.OPEN  # one voter against the other: a third is asked
    if finding is Finding.BETTER and _collapses(
        [median(r.parents) for r in counted if r.parents], lineage.parent, noise
    ):
        finding = Finding.OPEN  # its parent failed there: the difference means nothing
    if finding is not Finding.OPEN:
        state = RunState.CONFIRMED if finding is Finding.BETTER else RunState.NOT_REPLICATED
    return Judgement(state, *measured)


def _is_behind(report: Report, noise: float) -> bool:
    """Whether the parent in these pairs was worse than the task's baseline: then they say nothing of the run.

    Where the noise is not known it was so in each pair.
    """
    behind = report.behind if report.stage == REPLICATE and report.measured else ()
    if noise > 0:
        return bool(behind) and sum(behind) > _BEHIND_NOISES * noise * len(behind)
    return bool(behind) and min(behind) > 0


def _evidence(reports: Sequence[Report], noise: float) -> VerifierCounts:
    """Who did what, of reports that count."""
    behind = [report for report in reports if _is_behind(report, noise)]
    reports = [report for report in reports if report not in behind]

    def voters(stage: str, *, measured: bool = True, repeated: bool | None = None, passed: bool | None = None) -> int:
        keys = {
            report.voter
            for report in reports
            if (report.stage, report.measured) == (stage, measured)
            and repeated in (None, report.repeated)
            and passed in (None, report.passed)
        }
        return len(keys)

    return VerifierCounts(
        evaluated=voters(EVALUATE, repeated=False),
        repeated=voters(EVALUATE, repeated=True),
        paired=voters(REPLICATE),
        differing=voters(EVALUATE, passed=False),
        unmeasured=voters(EVALUATE, measured=False),
        failed=voters(REPLICATE, measured=False),
        behind=len({report.voter for report in behind}),
    )


def _of_state(state: RunState, evaluations: Sequence[Report], terms: Terms, claimed_error: float | None) -> Judgement:
    """The judgement of a run that is evaluated alone: confirmed by a quorum of at least two where that is enough.

    Where evaluators state how far chance moves a value, and the values lie no further apart, that is the interval. Else
    the values themselves are all that says how far they can be wrong.
    """
    values = [value for report in evaluations for value in report.values]
    speakers = len({report.voter for report in evaluations})
    if speakers < CONFIRMING_VOTERS or terms.voters < terms.rules.least:
        return Judgement(state, None, None, 0, speakers)
    if state is RunState.PROVISIONAL:
        state = RunState.CONFIRMED
    errors = [report.error for report in evaluations if report.values and report.error is not None]
    if values and errors and agree(values, errors):
        half = median_margin(pooled_error(errors, claimed_error), len(values))
        return Judgement(state, median(values), half, len(values), speakers)
    number = _middle(values, terms.noise, worse=median_high) if values else None
    is_worse = _is_apart(values, terms.noise)
    return Judgement(state, number, _margin(values, terms.noise), len(values), speakers, is_worse=is_worse)


def _collapses(values: Sequence[float], number: float | None, noise: float) -> bool:
    """Whether most verifiers of a run, and more than one, found it far worse than its number."""
    if number is None or noise <= 0:
        return False
    worse = sum(value - number > _COLLAPSE_NOISES * noise for value in values)
    return worse >= CONFIRMING_VOTERS and 2 * worse > len(values)


def _middle(values: Sequence[float], noise: float, *, worse: Callable[[Sequence[float]], float]) -> float:
    """The median, or the worse of the two numbers in the middle where these lie too far apart.

    With two verifiers, half of the numbers are one voter's. It must not move the median as far as it likes.
    """
    return worse(values) if _is_apart(values, noise) else median(values)


def _is_apart(values: Sequence[float], noise: float) -> bool:
    """Whether the two numbers in the middle lie further apart than runs of one program do."""
    return bool(values) and median_high(values) - median_low(values) > _APART_NOISES * noise


def _margin(values: Sequence[float], noise: float) -> float | None:
    """Half of the 95 % interval by the values themselves. Values too far out for one program count as the bound."""
    if len(values) < 2:
        return None
    middle, most = median(values), _APART_NOISES * noise if noise > 0 else math.inf
    error = standard_error([min(max(value, middle - most), middle + most) for value in values], noise=noise)
    return margin(error, len(values), noise=noise)


def _counting_reports(reports: Iterable[Report], author: bytes) -> list[Report]:
    """The reports that count, in order: of attested voters other than the author, one for each stage and round.

    A voter's first measurement counts, else its first obstacle.
    """
    first: dict[tuple[bytes, str, int], Report] = {}
    for report in sorted(reports, key=lambda report: (bool(report.obstacle), report.order)):
        if report.attested and report.voter != author:
            first.setdefault((report.voter, report.stage, report.round), report)
    return sorted(first.values(), key=lambda report: report.order)


def _is_withheld(obstacles: Sequence[str]) -> bool:
    """Whether most of these verifiers could not get the files, rather than failed with them."""
    return 2 * sum(obstacle == UNAVAILABLE for obstacle in obstacles) > len(obstacles)


def _evaluated(evaluations: Sequence[Report], voters: int, rules: VerificationRules) -> RunState:
    """The state by the evaluations alone. One that fails opens a dispute; it never rejects.

    Where a quorum met an obstacle, and more verifiers than came to a value, no value makes the run provisional.
    Otherwise a model that only the author's friends can get, or can measure, could pass.
    """
    quorum = min(rules.quorum, max(voters - 1, 1))
    hindered = [report for report in evaluations if not report.measured]
    evaluations = [report for report in evaluations if report.measured]
    state, last = RunState.REPORTED, max((report.round for report in evaluations), default=0)
    timely = in_time(evaluations, quorum)
    for number in range(last + 1):
        spoken = [report for report in evaluations if report.round == number]
        if number and state is not RunState.DISPUTED:
            break  # this round was not asked for
        # Who met an obstacle in an earlier round, and has measured nothing since, meets it still.
        since = {report.voter for report in spoken}
        obstacles = {r.voter: r.obstacle for r in hindered if r.round <= number and r.voter not in since}
        if number == 0:
            if any(not report.passed for report in spoken):
                state = RunState.DISPUTED
            elif len(obstacles) >= quorum and len(obstacles) > len(spoken):
                withheld = _is_withheld(list(obstacles.values()))
                state = RunState.UNAVAILABLE if withheld else RunState.DISPUTED
            elif len(spoken) >= quorum:
                state = RunState.PROVISIONAL
            continue
        # Reports that may be repetitions decide only where those in time do not.
        for decisive in ([report for report in spoken if report in timely], spoken):
            passed = sum(report.passed for report in decisive)
            failed = len(decisive) - passed
            if len(decisive) >= quorum and passed >= DECIDING_SHARE * (len(decisive) + len(obstacles)):
                state = RunState.PROVISIONAL
            elif len(decisive) >= max(quorum, CONFIRMING_VOTERS) and failed >= DECIDING_SHARE * len(decisive):
                state = RunState.REFUTED  # by at least two: one against one decides nothing
            if state is not RunState.DISPUTED:
                break
    return state
