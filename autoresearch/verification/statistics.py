"""Is a change better than its parent? A sequential test of paired differences. Pure.

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
from collections.abc import Sequence
from enum import StrEnum
from itertools import chain, combinations
from statistics import fmean
from typing import NamedTuple

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
_QUANTILES = {3: 4.5407, 5: 3.3649, 7: 2.9980, 9: 2.8214}
# The bounds of the last test, at 1 - ERROR / 4, by number of voters: where the noise is known, and where it is not.
# From 25 million simulated runs that are no better, rounded up.
_TRIMMED = {4: (2.56, 8.04), 5: (2.85, 5.45), 6: (3.03, 4.64)}


class Finding(StrEnum):
    """What the pairs show so far."""

    BETTER = "better"
    NOT_BETTER = "not better"
    OPEN = "open"


class Found(NamedTuple):
    """What the pairs show so far, and how many of the first verifiers were heard for it."""

    finding: Finding
    heard: int


Improvements = Sequence[Sequence[float]]


def judge_pairs(improvements: Improvements, *, noise: float, minimum_effect: float, most: int = MOST_VOTERS) -> Found:
    """What paired improvements show: those of each verifier, in the order of the verifications.

    ``noise`` is the task's standard deviation of one run over seeds, 0 when it is not known. The difference of two
    runs varies by √2 of it. ``minimum_effect`` is the least mean improvement that counts. At most ``most`` verifiers
    can run pairs. Verifications after the sixth change nothing.
    """
    spoken = min(len(improvements), LOOKS[-1])
    looks = LOOKS if noise > 0 else LOOKS[1:]  # two pairs alone do not show the spread
    for look in looks:
        if len(improvements) < look:
            is_all = looks[0] <= most <= len(improvements)  # with four voters, three can run pairs
            return Found(Finding.NOT_BETTER if is_all else Finding.OPEN, spoken)
        *others, _ = _by_mean(improvements[:look])
        if _is_better([improvements[voter] for voter in others], minimum_effect, noise=noise):
            return Found(Finding.BETTER, spoken)
    but_one = combinations(improvements[: LOOKS[-1]], LOOKS[-1] - 1)
    if not any(_is_better(three, minimum_effect, noise=noise) for three in but_one):
        return Found(Finding.NOT_BETTER, spoken)
    last = max(min(most, MOST_VOTERS), LOOKS[-1])
    if len(improvements) < last:
        return Found(Finding.OPEN, len(improvements))
    _, *middle, _ = _by_mean(improvements[:last])
    narrowed = _narrowed(improvements[:last])
    bound = _TRIMMED[last][0 if noise > 0 else 1]
    better = _is_better([narrowed[voter] for voter in middle], minimum_effect, noise=noise, bound=bound)
    return Found(Finding.BETTER if better else Finding.NOT_BETTER, last)


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
