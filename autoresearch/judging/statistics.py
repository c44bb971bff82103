"""Is a change better than its parent? A sequential test of paired differences; and one number to rank a program by.

Pure. Also 95 % confidence intervals of a mean, by Student's t, and whether an evaluation of a trained model passes.
Each pair is one run of the parent and one of the child, on the same machine with the same seed. Each verifier runs two.
After 2, 3 and 4 verifiers, the one with the greatest mean improvement is left out. A one-sided t-test at 1 % asks
whether the mean improvement of the others is above zero.

A friend of the author therefore gains little by false values: the others are wrong in one test of a hundred. Without a
friend the best honest verifier is left out. Then a change without effect is confirmed less than once in a hundred
times, all tests together, unless the noise is far above what the task states.

Where three of four verifiers alone would have found it better, two more are asked. A last test leaves out the greatest
and the least mean (a trimmed mean: Tukey and McLaughlin, 1963). No verifier's two pairs count as further apart than the
second widest. So a single false report, however large, decides nothing.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from itertools import chain, combinations
from statistics import fmean, quantiles, variance
from typing import NamedTuple

from autoresearch.record.kinds import NUMBER_MAX
from autoresearch.text import MAXIMIZE, MINIMIZE, sign_of

# The test is made after so many verifiers. One voter is never all of a test.
LOOKS = (2, 3, 4)
# So many verifiers are heard where one of four stands against the others, or all where there are fewer.
MOST_VOTERS = 6
# Each verifier runs exactly so many pairs: none can stop at a lucky one.
PAIRS = 2
ERROR = 0.01
# The task's noise counts as four further pairs: two pairs alone say little about the spread.
PRIOR_PAIRS = 4
# Student's t at 1 - ERROR, one-sided, by degrees of freedom.
_QUANTILES = {1: 31.8205, 3: 4.5407, 5: 3.3649, 7: 2.9980, 9: 2.8214}
# The bounds of the last test, at 1 - ERROR / 4, by number of voters: where the noise is known, and where it is not.
# From 25 million simulated runs that are no better, rounded up.
_TRIMMED = {4: (2.56, 8.04), 5: (2.85, 5.45), 6: (3.03, 4.64)}


class Finding(StrEnum):
    """What the pairs show so far."""

    BETTER = "better"
    NOT_BETTER = "not better"
    OPEN = "open"


class PairsResult(NamedTuple):
    """What the pairs show so far, and from how many of the first verifiers."""

    finding: Finding
    verifiers: int


Improvements = Sequence[Sequence[float]]


def judge_pairs(
    improvements: Improvements,
    *,
    noise: float,
    minimum_effect: float,
    most: int = MOST_VOTERS,
    exact: bool = False,
) -> PairsResult:
    """What paired improvements show: those of each verifier, in the order of the verifications.

    ``noise`` is the task's standard deviation of one run over seeds, 0 when it is not known. The difference of two
    runs varies by √2 of it. ``minimum_effect`` is the least mean improvement that counts. At most ``most`` verifiers
    can run pairs. Verifications after the sixth change nothing. ``exact``: the task states that a program's value does
    not depend on the seed. Two verifiers can then decide; the statement itself is not relied on, since their pairs have
    to agree as closely as two pairs of unknown noise must.
    """
    spoken = min(len(improvements), LOOKS[-1])
    looks = _looks(noise, exact=exact)
    for look in looks:
        if len(improvements) < look:
            is_all = looks[0] <= most <= len(improvements)  # with four voters, three can run pairs
            return PairsResult(Finding.NOT_BETTER if is_all else Finding.OPEN, spoken)
        *others, _ = _by_mean(improvements[:look])
        if _is_better([improvements[voter] for voter in others], minimum_effect, noise=noise):
            return PairsResult(Finding.BETTER, spoken)
    but_one = combinations(improvements[: LOOKS[-1]], LOOKS[-1] - 1)
    if not any(_is_better(three, minimum_effect, noise=noise) for three in but_one):
        return PairsResult(Finding.NOT_BETTER, spoken)
    last = max(min(most, MOST_VOTERS), LOOKS[-1])
    if len(improvements) < last:
        return PairsResult(Finding.OPEN, len(improvements))
    _, *middle, _ = _by_mean(improvements[:last])
    narrowed = _narrowed(improvements[:last])
    bound = _TRIMMED[last][0 if noise > 0 else 1]
    better = _is_better([narrowed[voter] for voter in middle], minimum_effect, noise=noise, bound=bound)
    return PairsResult(Finding.BETTER if better else Finding.NOT_BETTER, last)


def _looks(noise: float, *, exact: bool) -> tuple[int, ...]:
    """After how many verifiers the test is made: two pairs alone do not show a spread that nobody states."""
    return tuple(look for look in LOOKS if look > 2 or noise > 0 or exact)


def next_look(voters: int, *, noise: float, most: int, exact: bool = False) -> int:
    """How many verifiers the next test needs where so many ran pairs, and it is not decided; see :func:`judge_pairs`.

    More than ``most`` where the network has too few for it.
    """
    looks = _looks(noise, exact=exact)
    last = max(min(most, MOST_VOTERS), LOOKS[-1])
    return next((look for look in (*looks, last) if look > voters), last)


def _by_mean(improvements: Improvements) -> list[int]:
    return sorted(range(len(improvements)), key=lambda voter: fmean(improvements[voter]))


def _narrowed(improvements: Improvements) -> list[tuple[float, ...]]:
    """The improvements of each verifier around the same mean, no further apart than the second widest."""
    widths = [max(pairs) - min(pairs) for pairs in improvements]
    _, most, *_ = sorted(widths, reverse=True)
    narrowed = []
    for pairs, width in zip(improvements, widths, strict=True):
        mean, share = fmean(pairs), min(most / width, 1.0) if width > 0 else 1.0
        narrowed.append(tuple(mean + share * (value - mean) for value in pairs))
    return narrowed


def _is_better(improvements: Improvements, minimum_effect: float, *, noise: float, bound: float | None = None) -> bool:
    seen = list(chain.from_iterable(improvements))
    mean, error = fmean(seen), standard_error(seen, noise=noise)
    least = _QUANTILES[_freedom(len(seen), noise)] if bound is None else bound
    # Differences that are all the same and above zero are better beyond doubt; all zero are not better.
    return mean > least * error and mean >= minimum_effect and mean > 0


def standard_error(improvements: Sequence[float], *, noise: float) -> float:
    """The standard error of the mean improvement: of the pairs, and of the task's noise as further pairs."""
    mean = fmean(improvements)
    squares = math.fsum((value - mean) ** 2 for value in improvements)
    prior = PRIOR_PAIRS * 2 * noise**2 if noise > 0 else 0.0
    return math.sqrt((squares + prior) / _freedom(len(improvements), noise) / len(improvements))


def _freedom(pairs: int, noise: float) -> int:
    return pairs - 1 + (PRIOR_PAIRS if noise > 0 else 0)


# Student's t at 97.5 % for 1 to 30 degrees of freedom.
_STUDENT = (
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131,
    2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042,
)  # fmt: skip
_NORMAL = 1.960


def student(freedom: int) -> float:
    """Student's t at 97.5 %, two-sided 95 %, for at least one degree of freedom; beyond 30 that of the normal."""
    return _STUDENT[freedom - 1] if freedom <= len(_STUDENT) else _NORMAL


def margin(error: float | None, runs: int, *, noise: float) -> float | None:
    """Half of the 95 % confidence interval of a mean of ``runs`` values with a standard error.

    Where the task states ``noise``, it is part of the error as further runs. None without an error.
    """
    freedom = runs - 1 + (PRIOR_PAIRS if noise > 0 else 0)
    if error is None or freedom < 1:
        return None
    return error * student(freedom)


# The 99 % quantile of the normal distribution.
_SURE = 2.3263


def contradicts(stated: float, deviation: float, freedom: int) -> bool:
    """Whether a standard deviation of replicates is not that which a task states, at 1 % to either side.

    By the chi-squared distribution of ``freedom`` degrees of freedom, as Wilson and Hilferty (1931) approximate it.
    Where the task states 0 any deviation above 0 contradicts it.
    """
    if freedom < 1 or stated <= 0:
        return freedom >= 1 and deviation > 0
    ratio, part = (deviation / stated) ** 2, 2 / (9 * freedom)
    low, high = (max(1 - part + sign * _SURE * math.sqrt(part), 0.0) ** 3 for sign in (-1, 1))
    return not low <= ratio <= high


# At most one challenge of so many may mismatch, and all of them together may differ by so much, in nats.
MISMATCHES = 1 / 1000
MEAN_NATS = 0.001
# A model that is so many standard errors better on the task's own text than on new text has seen its own text.
GAP_ERRORS = 3.5
# Documents that cost more than so many interquartile ranges above the upper quartile count as if they cost that.
FAR_OUT_RANGES = 3.0
# A repetition on another machine may differ a little: within three standard deviations over seeds it is the same.
REPLAY_NOISES = 3.0
# Where the noise is not known, a repetition must give the same value, apart from rounding.
REPLAY_RELATIVE = 1e-6
# Two evaluations with standard errors agree where they lie so many standard errors of their difference apart.
DIFFERENCE_ERRORS = 4.0
# What is larger is no standard error.
LARGEST_ERROR = 1e100
# The metric in which an evaluator states the standard error of its value.
STANDARD_ERROR = "standard_error"
# The metrics in which it states what agents are compared with: what random actions earn in its environment, with the
# standard error of that, and from what it counts as solved.
RANDOM, RANDOM_ERROR, SOLVED = "random_reward", "random_standard_error", "solved_reward"

# Of several standard errors of one thing none counts as more than so many times the least of verifiers' above 0.
_MOST_ERRORS = 2.0
# The standard error of a median is at most so many times that of the mean.
_MEDIAN_ERRORS = math.sqrt(math.pi / 2)


def stated_error(metrics: Mapping[str, float], name: str = STANDARD_ERROR) -> float | None:
    """The standard error that an evaluator states among its metrics; None where it states none that is one."""
    error = float(metrics.get(name, math.nan))
    return error if 0.0 <= error <= LARGEST_ERROR else None


def agree(values: Sequence[float], errors: Sequence[float]) -> bool:
    """Whether values lie no further apart than chance alone moves them, by the least error above 0 that is stated.

    So a huge error that one verifier invents excuses no value that is far from those of the others.
    """
    least = min((error for error in errors if error > 0), default=0.0)
    return max(values) - min(values) <= DIFFERENCE_ERRORS * math.sqrt(2) * least


def pooled_error(errors: Sequence[float], author: float | None) -> float:
    """The standard error of one evaluation, of those that verifiers state (at least one) and of the author's.

    None may rule it. A huge one would share the places of better runs: each counts as at most twice the least of the
    verifiers' above 0. A tiny one would claim a place alone: the author's counts as no less than the least of theirs,
    and a verifier's is contradicted by the values, see :func:`agree`.
    """
    most = _MOST_ERRORS * min((error for error in errors if error > 0), default=0.0)
    bounded = [min(error, most) for error in errors]
    if author is not None:
        bounded.append(min(max(author, min(bounded)), most))
    return math.sqrt(fmean(error**2 for error in bounded))


def median_margin(error: float, values: int) -> float:
    """Half of the 95 % interval of the median of ``values`` evaluations with a standard error each."""
    return _NORMAL * error * (_MEDIAN_ERRORS if values > 2 else 1.0) / math.sqrt(values)


# With shuffled weights a model must lose so much of its advantage over the frequencies of the tokens.
LEARNED_SHARE = 0.5


class Findings(NamedTuple):
    """What a verifier measured of a run.

    ``value`` is in the task's metric. The next four are known where the referee asked the author's checkpoint.
    ``challenges`` is the number of challenges, ``mismatches`` how many answers differed from the fixed losses, and
    ``mean_difference`` the mean difference in nats. ``gap`` is how many standard errors worse the task's own text is
    than new text, None when not measured.

    ``shuffled`` is the value with shuffled weights, None when not measured or when the model could not answer.
    ``unigram`` is the value that the frequencies of the tokens alone give. ``evaluated``: the task's evaluator measured
    the author's artifact. ``error`` is the standard error of the difference to the reported value, see
    :func:`difference_error`.
    """

    value: float
    challenges: int = 0
    mismatches: int = 0
    mean_difference: float = 0.0
    gap: float | None = None
    shuffled: float | None = None
    unigram: float | None = None
    evaluated: bool = False
    error: float = 0.0


def is_honest(challenges: float, mismatches: float, mean_difference: float) -> bool:
    """Whether answers from beginnings alone equal the fixed losses, apart from rounding."""
    return mismatches <= challenges * MISMATCHES and abs(mean_difference) <= MEAN_NATS


def gap(own: Sequence[float], new: Sequence[float]) -> float:
    """How much worse a model is on the task's own text than on new text, in standard errors. Far below 0: it saw it.

    ``own`` and ``new`` are the costs of the documents: above the parent's cost, or above what a perfect model needs.
    The first detects more, since a hard document is hard for both. Costs far above the others count as a bound, the
    same in both texts. Otherwise a model could hide the difference behind a few expensive documents. 0 when a text has
    fewer than two documents.
    """
    if min(len(own), len(new)) < 2:
        return 0.0
    lower, _, upper = quantiles([*own, *new])
    most = upper + FAR_OUT_RANGES * (upper - lower)
    own, new = [min(cost, most) for cost in own], [min(cost, most) for cost in new]
    error = math.sqrt(variance(own) / len(own) + variance(new) / len(new))
    return (fmean(own) - fmean(new)) / error if error > 0 else 0.0


def passes(claim: float | None, findings: Findings, *, tolerance: float | None, noise: float) -> bool:
    """Whether the measured value agrees with the reported one (``claim``).

    ``tolerance`` is how far two evaluations of one checkpoint may lie apart, None where neither referee nor evaluator
    measures the task. Where neither was asked the run was repeated; ``noise`` over seeds then bounds the difference.
    """
    if claim is None or not math.isfinite(findings.value):
        return False
    if not (findings.challenges or findings.evaluated):
        tolerance = None
    if not abs(findings.value - claim) <= allowance(claim, tolerance=tolerance, noise=noise, error=findings.error):
        return False
    if tolerance is None:
        return True
    has_seen_it = findings.gap is not None and not findings.gap > -GAP_ERRORS
    if has_learned_nothing(findings):
        return False
    return not has_seen_it and is_honest(findings.challenges, findings.mismatches, findings.mean_difference)


def has_learned_nothing(findings: Findings) -> bool:
    """Whether a model is nearly as good with shuffled weights: its program carries the answer."""
    if findings.shuffled is None or findings.unigram is None or findings.value >= findings.unigram:
        return False
    return not findings.shuffled - findings.value >= LEARNED_SHARE * (findings.unigram - findings.value)


def difference_error(measured: Mapping[str, float]) -> float:
    """The standard error of the difference between what an author reported and a verifier measured, by its metrics.

    The author drew as large a test as the verifier, so its error is taken to be the same: what the author states of it
    widens nothing.
    """
    return math.sqrt(2) * (stated_error(measured) or 0.0)


def allowance(claim: float, *, tolerance: float | None, noise: float, error: float = 0.0) -> float:
    """How far the measured value may lie from the reported one. ``error`` is that of :class:`Findings`.

    The other arguments are those of :func:`passes`.
    """
    if tolerance is not None:
        return max(tolerance, DIFFERENCE_ERRORS * error)
    return max(REPLAY_NOISES * noise, REPLAY_RELATIVE * abs(claim))


class TaskRules(NamedTuple):
    """What ranking needs of a task's definition: the direction, the noise over seeds, and the full budget.

    ``clocked``: the budget is time, so that numbers from different hardware cannot be compared. ``any_budget``: what a
    run left is measured alone, however long it was trained, so that runs with less and more than the budget rank too.
    """

    direction: str
    noise: float
    budget: float
    clocked: bool = False
    any_budget: bool = False

    def ranks(self, budget: float) -> bool:
        """Whether runs with a budget are compared with others."""
        return self.any_budget or budget == self.budget

    @property
    def sign(self) -> float:
        """The factor that makes smaller values better."""
        return sign_of(self.direction)


class CountedRun(NamedTuple):
    """A run with a value; ``device`` is the hardware. Ordered by time and id."""

    time: int
    id: bytes
    value: float
    author: bytes
    replicate: int
    device: str
    source_digest: bytes = b""


class Pooled(NamedTuple):
    """Runs of one program as one: the one that it stands by, how many count, and their mean."""

    first: CountedRun
    runs: int
    mean: float


def task_rules(definition: Mapping[str, object]) -> TaskRules | None:
    """The rules in a task's definition, or None when they are not there or make no sense."""
    metric, budget = definition.get("metric"), definition.get("budget")
    if not isinstance(metric, Mapping) or not isinstance(budget, Mapping):
        return None
    direction = metric.get("direction")
    noise, amount = _number(metric.get("noise", 0.0)), _number(budget.get("amount"))
    if (
        direction not in (MINIMIZE, MAXIMIZE)
        or noise is None
        or not 0 <= noise <= NUMBER_MAX
        or amount is None
        or not 0 < amount <= NUMBER_MAX
    ):
        return None
    evaluation = definition.get("evaluation")
    any_budget = budget.get("unit") == "episodes" or (
        isinstance(evaluation, Mapping) and bool(evaluation.get("answers"))
    )
    return TaskRules(str(direction), noise, amount, budget.get("unit") == "seconds", any_budget)


def pool(runs: Iterable[CountedRun], *, clocked: bool) -> Pooled | None:
    """Runs of one program as one, None of none. It stands by its first run.

    One run counts for each author, replicate and source, the oldest: doing the same again is no new evidence. The
    sources differ in their seeds alone. On a wall-clock
    task only those on the hardware of the first: what runs in the same time elsewhere is another experiment.
    """
    counted: dict[tuple[bytes, int, bytes], CountedRun] = {}
    for run in runs:
        key = (run.author, run.replicate, run.source_digest)
        counted[key] = min(run, counted.get(key, run))
    if not counted:
        return None
    first = min(counted.values())
    values = [run.value for run in counted.values() if not clocked or run.device == first.device]
    return Pooled(first, len(values), mean(values))


def mean(values: Sequence[float]) -> float:
    """The mean, the same for any order of the values, and finite when they are."""
    try:
        return math.fsum(values) / len(values)
    except OverflowError:
        return math.fsum(value / len(values) / 2 for value in values) * 2


def rank(mean_value: float, runs: int, rules: TaskRules) -> float | None:
    """What a program is ordered by, the smallest first: its mean made worse by the standard error.

    One lucky seed doesn't win: with standard deviation σ over seeds and n runs it is mean + σ/√n when less is better,
    and −(mean − σ/√n) when more is better. None when that is no finite number.
    """
    result = rules.sign * mean_value + rules.noise / math.sqrt(runs)
    return result if math.isfinite(result) else None


def _number(value: object) -> float | None:
    return float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else None
