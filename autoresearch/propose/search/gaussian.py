"""A Gaussian process over genomes: which score to expect of a source, and how far off that may be.

Its kernel is the sum of two (Rasmussen and Williams, 2006, chapters 2 and 4). Each gene adds a curve of its own,
which says something about the whole space after few runs; a smooth bump over all genes together learns what they do
to each other where runs lie close.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt

from autoresearch.propose.program.space import Genome, Parameter


@dataclass(frozen=True, slots=True)
class Prior:
    """What is believed before anything is seen, in standard deviations of the scores."""

    noise: float = 0.2
    """What the model cannot explain of one score."""
    curve: float = 0.3
    """How large a coefficient of one gene's curve is."""
    bump: float = 0.6
    """How far genes together move the score from the sum of their curves."""
    reach: float = 1.5
    """How far the bump reaches: a distance over all genes, where a range is 1 wide and a switch ``SWITCH``."""
    patch_gain: float = 0.2
    """What a patch gains: the catalogue lists what helped others."""
    widths: Mapping[str, float] = field(default_factory=dict)
    """How wide the range of a gene is for the bump, where not 1: in a wide one scores change within a part of it."""


SWITCH = 0.5
# From so many rows on they say themselves how rough and how noisy the scores are; so many of the best are asked.
LEAST_ROWS, MOST_ROWS = 6, 60
REACHES, NOISES, BUMPS = (0.15, 0.3, 0.6, 1.2), (0.01, 0.05, 0.2), (0.6, 1.2)
# From so many rows a gene on they say in so many rounds how wide the range of each gene is.
GENE_ROWS, ROUNDS = 4, 2


_Array = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class _Points:
    """Genomes as the kernel sees them, a row for each."""

    features: _Array
    places: _Array
    means: _Array
    """The prior means of their scores."""
    variances: _Array
    """The prior variances of their scores."""


@dataclass(frozen=True, slots=True)
class Process:
    """The posterior: the points, the inverse of the Cholesky factor of their covariance, and the whitened scores."""

    parameters: tuple[Parameter, ...]
    belief: Prior
    points: _Points
    inverse: _Array
    whitened: _Array

    def at(self, genome: Genome) -> tuple[float, float]:
        """The expected score of a genome and its standard deviation, the noise of a run left out."""
        point = _points(self.parameters, self.belief, [genome])
        seen = _times(self.inverse, _covariances(self.belief, self.points, point)[:, 0])
        variance = point.variances[0] - seen @ seen
        mean = point.means[0] + seen[: len(self.whitened)] @ self.whitened
        return float(mean), math.sqrt(max(float(variance), 1e-9))


def fit(
    parameters: Sequence[Parameter],
    rows: Sequence[tuple[Genome, float, float]],
    pending: Sequence[Genome],
    belief: Prior,
) -> Process:
    """The posterior from (genome, standardised score, weight) rows.

    What is ``pending`` is taken to score what is expected of it: it moves no mean, and leaves less to learn nearby
    (the "kriging believer" of Ginsbourger, Le Riche and Carraro, 2010).
    """
    points = _points(parameters, belief, [*(genome for genome, _, _ in rows), *pending])
    noises = belief.noise**2 / np.array([*(weight for _, _, weight in rows), *(1.0 for _ in pending)])
    covariances, variances = _covariances(belief, points, points), points.variances + noises
    inverse = np.zeros_like(covariances)
    for i, variance in enumerate(variances):
        before = inverse[:i, :i]
        seen = _times(before, covariances[i, :i])
        deviation = math.sqrt(max(variance - seen @ seen, 1e-9))
        inverse[i, :i] = -_times(before.T, seen) / deviation
        inverse[i, i] = 1.0 / deviation
    count = len(rows)
    surprises = np.array([score for _, score, _ in rows]) - points.means[:count]
    return Process(tuple(parameters), belief, points, inverse, _times(inverse[:count, :count], surprises))


def likeliest(parameters: Sequence[Parameter], rows: Sequence[tuple[Genome, float, float]], belief: Prior) -> Prior:
    """The belief under which the rows are likeliest, among some that differ in reach, noise, bump and widths.

    See Rasmussen and Williams, 2006, chapter 5 (type II maximum likelihood; with widths, "automatic relevance
    determination"). With few rows it is the one that is given.
    """
    if len(rows) < LEAST_ROWS:
        return belief
    best, most = belief, -math.inf

    def likelihood(other: Prior) -> float:
        made = fit(parameters, rows[:MOST_ROWS], [], other)
        logarithm = math.fsum(np.log(np.diag(made.inverse))) - 0.5 * math.fsum(made.whitened**2)
        # a prior: few rows fit by chance with one width or another, so each doubling must explain something
        logarithm -= math.fsum(abs(math.log2(width)) for width in other.widths.values())
        return float(f"{logarithm:.9g}")

    def consider(others: Iterable[Prior]) -> None:
        nonlocal best, most
        for other in others:
            if (likely := likelihood(other)) > most:
                best, most = other, likely

    consider(replace(belief, reach=a, noise=b, bump=c) for a in REACHES for b in NOISES for c in BUMPS)
    for _ in range(ROUNDS if len(rows) >= GENE_ROWS * len(parameters) else 0):
        for parameter in parameters:
            width = best.widths.get(parameter.name, 1.0)
            widths = [{**best.widths, parameter.name: width * factor} for factor in (0.5, 2.0)]
            consider([replace(best, widths=choice) for choice in widths])
        consider([replace(best, noise=noise) for noise in NOISES])
    return best


def expected_improvement(mean: float, deviation: float, best: float) -> float:
    """How much lower than ``best`` a normally distributed score is on average, counting worse as none."""
    gap = (best - mean) / deviation
    below = 0.5 * math.erfc(-gap / math.sqrt(2.0))
    return deviation * (gap * below + math.exp(-0.5 * gap * gap) / math.sqrt(2.0 * math.pi))


def _points(parameters: Sequence[Parameter], belief: Prior, genomes: Sequence[Genome]) -> _Points:
    features, places, means = [], [], []
    for genome in genomes:
        curves, near, mean = [1.0], [], 0.0
        for parameter in parameters:
            value, width = genome[parameter.name], belief.widths.get(parameter.name, 1.0)
            if parameter.ordered:
                place = parameter.place(value)
                unit = 2.0 * place - 1.0
                curves += [belief.curve * unit, belief.curve * (unit * unit - 1 / 3)]
                near.append(width * place)
                continue
            switches = [float(value == choice) for choice in parameter.range.choices if choice != parameter.default]
            curves += [belief.curve * switch for switch in switches]
            near += [width * SWITCH * switch for switch in switches]
            if parameter.name.startswith("+"):
                mean -= belief.patch_gain * sum(switches)
        features.append(curves)
        places.append(near)
        means.append(mean)
    curved = np.array(features)
    return _Points(curved, np.array(places), np.array(means), _squares(curved) + belief.bump**2)


# The products are no calls of BLAS: its threads wait for work by spinning, beside the run that trains meanwhile.
def _covariances(belief: Prior, a: _Points, b: _Points) -> _Array:
    squared = _squares(a.places)[:, None] + _squares(b.places) - 2.0 * np.einsum("ij,kj->ik", a.places, b.places)
    bump = belief.bump**2 * np.exp(-0.5 * squared / belief.reach**2)
    return np.asarray(np.einsum("ij,kj->ik", a.features, b.features) + bump)


def _times(matrix: _Array, vector: _Array) -> _Array:
    return np.asarray(np.einsum("ij,j->i", matrix, vector))


def _squares(rows: _Array) -> _Array:
    """The sum of the squares of each row."""
    return np.asarray(np.einsum("ij,ij->i", rows, rows))
