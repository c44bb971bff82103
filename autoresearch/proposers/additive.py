"""A Bayesian linear model of the score: each gene adds its own curve, no gene speaks to another.

Crude, but with 40 dimensions and 80 noisy runs there is data for little more; what genes do together is left
to the moves, which start from sources that are good already. Standard library only: the matrices are small.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from autoresearch.proposers.draws import Draws
from autoresearch.proposers.genes import Gene
from autoresearch.proposers.space import Genome


@dataclass(frozen=True, slots=True)
class Additive:
    """The posterior over the coefficients: their mean, and the Cholesky factor of the precision."""

    genes: tuple[Gene, ...]
    mean: tuple[float, ...]
    factor: tuple[tuple[float, ...], ...]
    centre: float
    scale: float

    def predict(self, genome: Genome, coefficients: Sequence[float] | None = None) -> float:
        """The expected score of a genome, or its score under these coefficients."""
        weights = self.mean if coefficients is None else coefficients
        row = features(self.genes, genome)
        return self.centre + self.scale * sum(x * w for x, w in zip(row, weights, strict=True) if x)

    def sample(self, draws: Draws, boldness: float = 1.0) -> list[float]:
        """Coefficients drawn from the posterior (Thompson sampling); less bold draws stay nearer to its mean."""
        noise = [boldness * draws.normal() for _ in self.mean]
        return [m + e for m, e in zip(self.mean, _solve_upper(self.factor, noise), strict=True)]


def features(genes: Sequence[Gene], genome: Genome) -> list[float]:
    """1, then a line and a parabola for each ordered gene and one switch per other choice of the rest."""
    row = [1.0]
    for gene in genes:
        value = genome[gene.name]
        if gene.ordered:
            unit = 2.0 * gene.place(value) - 1.0
            row += [unit, unit * unit - 1 / 3]
        else:
            row += [float(value == choice) for choice in gene.range.choices if choice != gene.default]
    return row


def fit(
    genes: Sequence[Gene],
    rows: Sequence[tuple[Genome, float, float]],
    *,
    noise: float,
    prior: float,
    patch_gain: float = 0.0,
) -> Additive:
    """The posterior from (genome, score, weight) rows.

    ``noise``, ``prior`` (of a coefficient, around zero) and ``patch_gain`` (what a patch is believed to gain before
    anything is seen: the catalogue lists what helped others) are in standard deviations of the scores.
    """
    total = math.fsum(weight for _, _, weight in rows)
    centre = math.fsum(weight * score for _, score, weight in rows) / total
    variance = math.fsum(weight * (score - centre) ** 2 for _, score, weight in rows) / total
    scale = math.sqrt(variance) or 1.0
    size = len(features(genes, rows[0][0]))
    precision = [[0.0] * size for _ in range(size)]
    right = [0.0] * size
    for i in range(size):
        precision[i][i] = 1.0 if i == 0 else 1.0 / prior**2
    for i, belief in enumerate(_prior_means(genes, patch_gain)):
        right[i] = belief / prior**2
    for genome, score, weight in rows:
        row = features(genes, genome)
        filled = [(i, x) for i, x in enumerate(row) if x]
        share = weight / noise**2
        target = (score - centre) / scale
        for i, x in filled:
            right[i] += share * x * target
            line = precision[i]
            for j, y in filled:
                if j > i:
                    break
                line[j] += share * x * y
    factor = _cholesky(precision)
    mean = _solve_upper(factor, _solve_lower(factor, right))
    return Additive(tuple(genes), tuple(mean), tuple(tuple(line) for line in factor), centre, scale)


def _prior_means(genes: Sequence[Gene], patch_gain: float) -> list[float]:
    means = [0.0]
    for gene in genes:
        count = 2 if gene.ordered else sum(choice != gene.default for choice in gene.range.choices)
        means += [-patch_gain if gene.name.startswith("+") else 0.0] * count
    return means


def _cholesky(matrix: list[list[float]]) -> list[list[float]]:
    size = len(matrix)
    lower = [[0.0] * size for _ in range(size)]
    for i in range(size):
        for j in range(i + 1):
            rest = matrix[i][j] - sum(lower[i][k] * lower[j][k] for k in range(j))
            lower[i][j] = math.sqrt(max(rest, 1e-12)) if i == j else rest / lower[j][j]
    return lower


def _solve_lower(lower: Sequence[Sequence[float]], right: Sequence[float]) -> list[float]:
    solution: list[float] = []
    for i, line in enumerate(lower):
        solution.append((right[i] - sum(line[k] * solution[k] for k in range(i))) / line[i])
    return solution


def _solve_upper(lower: Sequence[Sequence[float]], right: Sequence[float]) -> list[float]:
    """Solve with the transpose of a lower triangle."""
    size = len(lower)
    solution = [0.0] * size
    for i in reversed(range(size)):
        rest = right[i] - sum(lower[k][i] * solution[k] for k in range(i + 1, size))
        solution[i] = rest / lower[i][i]
    return solution
