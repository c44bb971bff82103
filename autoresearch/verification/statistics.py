"""Is a change better than its parent? Paired differences of strangers' runs, looked at early and seldom. Pure.

Each pair is one run of the parent and one of the change on the same machine with the same seed. After 2, 4, 6 and 8
pairs a one-sided t-test asks whether the mean improvement is above zero. The four looks share the error of 1 %
evenly, so that by the union bound a change that is no better is confirmed at most once in a hundred times however
often it is looked at. Each verifier runs two pairs and one alone decides nothing, so that the first look that is taken
is the one at four: a large improvement needs four pairs, a small one eight.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from enum import StrEnum
from statistics import fmean

LOOKS = (2, 4, 6, 8)
# Each verifier runs so many, no more and no fewer: one voice is not all of a look, and stops at no lucky pair.
PAIRS = 2
ERROR = 0.01
# The task's own noise counts as much as four further pairs: with two pairs alone the spread is hardly known.
PRIOR_PAIRS = 4
# Student's t at 1 - ERROR / len(LOOKS), one-sided, by degrees of freedom.
_QUANTILES = {1: 127.3213, 3: 7.4533, 5: 4.7733, 7: 4.0293, 9: 3.6897, 11: 3.4966}


class Finding(StrEnum):
    """What the pairs say so far."""

    BETTER = "better"
    NOT_BETTER = "not better"
    OPEN = "open"


def judge_pairs(
    improvements: Sequence[float], *, noise: float, minimum_effect: float, least: int = LOOKS[0]
) -> Finding:
    """What paired improvements say, in the order in which they were made; more than eight say no more than eight.

    ``noise`` is the task's standard deviation of one run over seeds, 0 when it is not known; the difference of two
    runs is taken to vary by √2 of it. ``minimum_effect`` is the least mean improvement that counts. There is no look
    at less than ``least`` pairs.
    """
    for look in LOOKS:
        if look < least:
            continue
        if len(improvements) < look:
            return Finding.OPEN
        seen = improvements[:look]
        mean, error, freedom = fmean(seen), standard_error(seen, noise=noise), _freedom(look, noise)
        # Differences that are all the same and above zero are better beyond doubt; all zero are not better.
        if mean > _QUANTILES[freedom] * error and mean >= minimum_effect and mean > 0:
            return Finding.BETTER
    return Finding.NOT_BETTER


def standard_error(improvements: Sequence[float], *, noise: float) -> float:
    """The standard error of the mean improvement: of the pairs, and of the task's noise as further pairs."""
    mean = fmean(improvements)
    squares = math.fsum((value - mean) ** 2 for value in improvements)
    prior = PRIOR_PAIRS * 2 * noise**2 if noise > 0 else 0.0
    return math.sqrt((squares + prior) / _freedom(len(improvements), noise) / len(improvements))


def _freedom(pairs: int, noise: float) -> int:
    return pairs - 1 + (PRIOR_PAIRS if noise > 0 else 0)
