"""What an evaluation of a trained model has to show to pass. Pure: the same numbers give the same word everywhere."""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import fmean, quantiles, variance
from typing import NamedTuple

# At most one challenge of so many may mismatch, and all of them together may differ by so much, in nats.
MISMATCHES = 1 / 1000
MEAN_NATS = 0.001
# A model that is so many standard errors better on the task's own text than on new text of the same kind has seen it.
GAP_ERRORS = 3.5
# Documents that cost more than so many interquartile ranges above the upper quartile count as if they cost that.
FAR_OUT_RANGES = 3.0
# A replay on another machine may differ a little: within three standard deviations over seeds it is the same.
REPLAY_NOISES = 3.0
# Where the noise is not known a replay must give the same number, give or take rounding.
REPLAY_RELATIVE = 1e-6


class Findings(NamedTuple):
    """What a verifier measured of a run.

    ``value`` is in the task's metric. Where the referee asked the author's checkpoint, ``challenges`` is how often,
    ``mismatches`` how many answers were not what was committed, ``mean_difference`` by how many nats all of them
    together, and ``gap`` how many standard errors worse the task's own text is than new text, None when not measured.
    """

    value: float
    challenges: int = 0
    mismatches: int = 0
    mean_difference: float = 0.0
    gap: float | None = None


def is_honest(challenges: float, mismatches: float, mean_difference: float) -> bool:
    """Whether answers from beginnings alone are what was committed, give or take arithmetic."""
    return mismatches <= challenges * MISMATCHES and abs(mean_difference) <= MEAN_NATS


def gap(own: Sequence[float], new: Sequence[float]) -> float:
    """How much worse a model does on the task's own text than on new text, in standard errors; far below 0: it saw it.

    What each document of each text costs: above what it costs the model's parent, or above what a perfect model would
    need. The first sees more, for what makes a document hard is the same for both. A few new documents that a model
    makes as expensive as it likes would drown any difference: what lies far out is taken to the same bound in both.
    0 when a text has less than two documents.
    """
    if min(len(own), len(new)) < 2:
        return 0.0
    lower, _, upper = quantiles([*own, *new])
    most = upper + FAR_OUT_RANGES * (upper - lower)
    own, new = [min(cost, most) for cost in own], [min(cost, most) for cost in new]
    error = math.sqrt(variance(own) / len(own) + variance(new) / len(new))
    return (fmean(own) - fmean(new)) / error if error > 0 else 0.0


def passes(claim: float | None, found: Findings, *, tolerance: float | None, noise: float) -> bool:
    """Whether what was measured bears out the claim.

    ``tolerance`` is how far two evaluations of one checkpoint may lie apart, None where no referee measures the task;
    without challenges the run was repeated, and ``noise`` over seeds says how far that may lie.
    """
    if claim is None or not math.isfinite(found.value):
        return False
    if not found.challenges:
        tolerance = None
    if not abs(found.value - claim) <= allowance(claim, tolerance=tolerance, noise=noise):
        return False
    if tolerance is None:
        return True
    has_seen_it = found.gap is not None and not found.gap > -GAP_ERRORS
    return not has_seen_it and is_honest(found.challenges, found.mismatches, found.mean_difference)


def allowance(claim: float, *, tolerance: float | None, noise: float) -> float:
    """How far from the claim what is measured may lie; the arguments are those of :func:`passes`."""
    if tolerance is not None:
        return tolerance
    return max(REPLAY_NOISES * noise, REPLAY_RELATIVE * abs(claim))
