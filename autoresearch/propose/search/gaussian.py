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
class _Genes:
    """What is read of genomes once, whatever is believed: a row for each."""

    curves: _Array
    """Of an ordered gene its place from -1 to 1 and the square of that, of another a switch for each choice."""
    places: _Array
    names: tuple[str, ...]
    """The gene of each column of ``places``."""
    patches: _Array
    """How many switches of each patch are on."""


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

    def at(self, genomes: Sequence[Genome]) -> list[tuple[float, float]]:
        """The expected score of each genome and its standard deviation, the noise of a run left out."""
        if not genomes:
            return []
        points = _points(_genes(self.parameters, genomes), self.belief)
        seen = np.einsum("ij,jk->ik", self.inverse, _covariances(self.belief, self.points, points))
        deviations = np.sqrt(np.maximum(points.variances - _squares(seen.T), 1e-9))
        means = points.means + np.einsum("ij,i->j", seen[: len(self.whitened)], self.whitened)
        return list(zip(means.tolist(), deviations.tolist(), strict=True))


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
    genes, count = _genes(parameters, [*(genome for genome, _, _ in rows), *pending]), len(rows)
    points, covariances, surprises = _seen(genes, rows, belief)
    inverse = np.zeros_like(covariances)
    for i, row in enumerate(covariances):
        before = inverse[:i, :i]
        seen = _times(before, row[:i])
        deviation = math.sqrt(max(row[i] - seen @ seen, 1e-9))
        inverse[i, :i] = -_times(before.T, seen) / deviation
        inverse[i, i] = 1.0 / deviation
    whitened = _times(inverse[:count, :count], surprises)
    return Process(tuple(parameters), belief, points, inverse, whitened)


def _seen(genes: _Genes, rows: Sequence[tuple[Genome, float, float]], belief: Prior) -> tuple[_Points, _Array, _Array]:
    """The points of the rows and of what is pending behind them, the covariances of their scores, and the surprises."""
    points, count = _points(genes, belief), len(rows)
    weights = np.ones(len(genes.places))
    weights[:count] = [weight for _, _, weight in rows]
    covariances = _covariances(belief, points, points)
    covariances[np.diag_indices_from(covariances)] = points.variances + belief.noise**2 / weights
    return points, covariances, np.array([score for _, score, _ in rows]) - points.means[:count]


def likeliest(parameters: Sequence[Parameter], rows: Sequence[tuple[Genome, float, float]], belief: Prior) -> Prior:
    """The belief under which the rows are likeliest, among some that differ in reach, noise, bump and widths.

    See Rasmussen and Williams, 2006, chapter 5 (type II maximum likelihood; with widths, "automatic relevance
    determination"). With few rows it is the one that is given.
    """
    if len(rows) < LEAST_ROWS:
        return belief
    best, most, leading = belief, -math.inf, rows[:MOST_ROWS]
    genes = _genes(parameters, [genome for genome, _, _ in leading])

    def consider(others: Iterable[Prior]) -> None:
        nonlocal best, most
        for other in others:
            _, covariances, surprises = _seen(genes, leading, other)
            try:  # LAPACK takes one thread for so few rows
                logarithm = -math.fsum(np.log(np.diag(np.linalg.cholesky(covariances))))
                logarithm -= 0.5 * float(surprises @ np.linalg.solve(covariances, surprises))
            except np.linalg.LinAlgError:  # equal rows of great weight: without noise they say nothing
                continue
            # a prior: few rows fit by chance with one width or another, so each doubling must explain something
            logarithm -= math.fsum(abs(math.log2(width)) for width in other.widths.values())
            if (likely := float(f"{logarithm:.9g}")) > most:
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


def _genes(parameters: Sequence[Parameter], genomes: Sequence[Genome]) -> _Genes:
    others = {each.name: [choice for choice in each.range.choices if choice != each.default] for each in parameters}
    curves, places, patches = [], [], []
    for genome in genomes:
        curved, near, on = [], [], []
        for parameter in parameters:
            value = genome[parameter.name]
            if parameter.ordered:
                place = parameter.place(value)
                unit = 2.0 * place - 1.0
                curved += [unit, unit * unit - 1 / 3]
                near.append(place)
                continue
            switches = [float(value == choice) for choice in others[parameter.name]]
            curved += switches
            near += [SWITCH * switch for switch in switches]
            if parameter.name.startswith("+"):
                on.append(sum(switches))
        curves.append(curved)
        places.append(near)
        patches.append(on)
    names = [each.name for each in parameters for _ in ([None] if each.ordered else others[each.name])]
    return _Genes(np.array(curves), np.array(places), tuple(names), np.array(patches))


def _points(genes: _Genes, belief: Prior) -> _Points:
    count = len(genes.places)
    features = np.hstack([np.ones((count, 1)), belief.curve * genes.curves])
    widths = np.array([belief.widths.get(name, 1.0) for name in genes.names])
    means = np.zeros(count)
    for patch in genes.patches.T:
        means -= belief.patch_gain * patch
    return _Points(features, widths * genes.places, means, _squares(features) + belief.bump**2)


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
