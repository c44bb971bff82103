"""Is a change better than its parent? Paired differences of strangers' runs, looked at early and seldom. Pure.

Each pair is one run of the parent and one of the change on the same machine with the same seed; each verifier runs two.
After the pairs of 2, 3 and 4 verifiers whoever found the most is left out, and a one-sided t-test at 1 % asks whether
the mean improvement of the others is above zero. So a friend of the author gains little by what it makes up: the others
are wrong once in a hundred looks. Where there is none the best of them is left out, and a change that is no better is
confirmed less than once in a hundred times, all looks together, unless the noise is far above what the task says.

Where one of the four keeps it from being better, for three of them alone would have found it so, two more are asked,
and a last test leaves out who found the most and who found the least (a trimmed mean: Tukey and McLaughlin, 1963), and
takes the two pairs of any other to be no further apart than the second widest: a single false word, however large,
decides nothing.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from enum import StrEnum
from itertools import chain, combinations
from statistics import fmean
from typing import NamedTuple

# So many verifiers have spoken when it is looked. One voice is not all of a look.
LOOKS = (2, 3, 4)
# So many are heard where one of four stands against the others, or all where there are fewer.
MOST_VOICES = 6
# Each verifier runs so many, no more and no fewer: nobody stops at a lucky pair.
PAIRS = 2
ERROR = 0.01
# The task's own noise counts as much as four further pairs: with two pairs alone the spread is hardly known.
PRIOR_PAIRS = 4
# Student's t at 1 - ERROR, one-sided, by degrees of freedom.
_QUANTILES = {3: 4.5407, 5: 3.3649, 7: 2.9980, 9: 2.8214}
# The bounds of the last test, at 1 - ERROR / 4, for so many voices but the first and the last, none wider than the
# second widest, where the noise is known and where it is not: from 25 million simulated runs that are no better,
# rounded up.
_TRIMMED = {4: (2.56, 8.04), 5: (2.85, 5.45), 6: (3.03, 4.64)}


class Finding(StrEnum):
    """What the pairs say so far."""

    BETTER = "better"
    NOT_BETTER = "not better"
    OPEN = "open"


class Found(NamedTuple):
    """What the pairs say so far, and how many of the first verifiers were heard for it."""

    finding: Finding
    heard: int


Improvements = Sequence[Sequence[float]]


def judge_pairs(improvements: Improvements, *, noise: float, minimum_effect: float, most: int = MOST_VOICES) -> Found:
    """What paired improvements say: those of each verifier, in the order in which they spoke.

    ``noise`` is the task's standard deviation of one run over seeds, 0 when it is not known; the difference of two
    runs is taken to vary by √2 of it. ``minimum_effect`` is the least mean improvement that counts. ``most`` verifiers
    can speak; what comes after the sixth says nothing.
    """
    spoken = min(len(improvements), LOOKS[-1])
    looks = LOOKS if noise > 0 else LOOKS[1:]  # how wide they spread is not to be seen from two pairs alone
    for look in looks:
        if len(improvements) < look:
            is_all = looks[0] <= most <= len(improvements)  # in a network of four, three speak and no more
            return Found(Finding.NOT_BETTER if is_all else Finding.OPEN, spoken)
        *others, _ = _by_mean(improvements[:look])
        if _is_better([improvements[voice] for voice in others], minimum_effect, noise=noise):
            return Found(Finding.BETTER, spoken)
    but_one = combinations(improvements[: LOOKS[-1]], LOOKS[-1] - 1)
    if not any(_is_better(three, minimum_effect, noise=noise) for three in but_one):
        return Found(Finding.NOT_BETTER, spoken)
    last = max(min(most, MOST_VOICES), LOOKS[-1])
    if len(improvements) < last:
        return Found(Finding.OPEN, len(improvements))
    _, *middle, _ = _by_mean(improvements[:last])
    narrowed = _narrowed(improvements[:last])
    bound = _TRIMMED[last][0 if noise > 0 else 1]
    better = _is_better([narrowed[voice] for voice in middle], minimum_effect, noise=noise, bound=bound)
    return Found(Finding.BETTER if better else Finding.NOT_BETTER, last)


def _by_mean(improvements: Improvements) -> list[int]:
    return sorted(range(len(improvements)), key=lambda voice: fmean(improvements[voice]))


def _narrowed(improvements: Improvements) -> list[tuple[float, ...]]:
    """The improvements of each, around the same mean, but no further apart than the second widest are."""
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
