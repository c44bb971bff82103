"""Whether an evaluation of a trained model passes. Pure: the same numbers, the same result."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from statistics import fmean, quantiles, variance
from typing import NamedTuple

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
# The author's standard error counts up to so many of the verifier's, or up to this share of what the verifier measured.
PLAUSIBLE_ERRORS = 10.0
PLAUSIBLE_SHARE = 0.1
# What is larger is no standard error.
LARGEST_ERROR = 1e100
# The metric in which an evaluator states the standard error of its value.
STANDARD_ERROR = "standard_error"

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


def passes(claim: float | None, found: Findings, *, tolerance: float | None, noise: float) -> bool:
    """Whether the measured value agrees with the reported one (``claim``).

    ``tolerance`` is how far two evaluations of one checkpoint may lie apart, None where neither referee nor evaluator
    measures the task. Where neither was asked the run was repeated; ``noise`` over seeds then bounds the difference.
    """
    if claim is None or not math.isfinite(found.value):
        return False
    if not (found.challenges or found.evaluated):
        tolerance = None
    if not abs(found.value - claim) <= allowance(claim, tolerance=tolerance, noise=noise, error=found.error):
        return False
    if tolerance is None:
        return True
    has_seen_it = found.gap is not None and not found.gap > -GAP_ERRORS
    if has_learned_nothing(found):
        return False
    return not has_seen_it and is_honest(found.challenges, found.mismatches, found.mean_difference)


def has_learned_nothing(found: Findings) -> bool:
    """Whether a model is nearly as good with shuffled weights: its program carries the answer."""
    if found.shuffled is None or found.unigram is None or found.value >= found.unigram:
        return False
    return not found.shuffled - found.value >= LEARNED_SHARE * (found.unigram - found.value)


def difference_error(reported: Mapping[str, float], measured: Mapping[str, float], value: float) -> float:
    """The standard error of the difference between what an author reported and a verifier measured, by their metrics.

    ``value`` is what the verifier measured. The author's error counts only as far as that makes it plausible.
    """
    own = _stated_error(measured)
    return math.hypot(min(_stated_error(reported), max(PLAUSIBLE_ERRORS * own, PLAUSIBLE_SHARE * abs(value))), own)


def _stated_error(metrics: Mapping[str, float]) -> float:
    error = float(metrics.get(STANDARD_ERROR, 0.0))
    return error if 0.0 < error <= LARGEST_ERROR else 0.0


def allowance(claim: float, *, tolerance: float | None, noise: float, error: float = 0.0) -> float:
    """How far the measured value may lie from the reported one. ``error`` is that of :class:`Findings`.

    The other arguments are those of :func:`passes`.
    """
    if tolerance is not None:
        return max(tolerance, DIFFERENCE_ERRORS * error)
    return max(REPLAY_NOISES * noise, REPLAY_RELATIVE * abs(claim))
