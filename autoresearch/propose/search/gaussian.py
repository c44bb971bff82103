"""A Gaussian process over genomes: which score to expect of a source, and how far off that may be.

Its kernel is the sum of two (Rasmussen and Williams, 2006, chapters 2 and 4). Each gene adds a curve of its own,
which says something about the whole space after few runs; a smooth bump over all genes together learns what they do
to each other where runs lie close. Standard library only: the matrices are small.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from operator import mul

from autoresearch.propose.program.space import Genome, Parameter


@dataclass(frozen=True, slots=True)
class Belief:
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


SWITCH = 0.5


@dataclass(frozen=True, slots=True)
class _Point:
    """A genome as the kernel sees it."""

    features: tuple[float, ...]
    places: tuple[float, ...]
    length: float
    mean: float
    """The prior mean of its score."""
    variance: float
    """The prior variance of its score."""


@dataclass(frozen=True, slots=True)
class Process:
    """The posterior: the points, the Cholesky factor of their covariance, and the whitened scores."""

    parameters: tuple[Parameter, ...]
    belief: Belief
    points: tuple[_Point, ...]
    factor: tuple[tuple[float, ...], ...]
    whitened: tuple[float, ...]

    def at(self, genome: Genome) -> tuple[float, float]:
        """The expected score of a genome and its standard deviation, the noise of a run left out."""
        point = _point(self.parameters, self.belief, genome)
        seen = _solve_lower(self.factor, [_covariance(self.belief, point, other) for other in self.points])
        variance = point.variance - sum(map(mul, seen, seen))
        return point.mean + sum(map(mul, seen, self.whitened)), math.sqrt(max(variance, 1e-9))


def fit(
    parameters: Sequence[Parameter],
    rows: Sequence[tuple[Genome, float, float]],
    pending: Sequence[Genome],
    belief: Belief,
) -> Process:
    """The posterior from (genome, standardised score, weight) rows.

    What is ``pending`` is taken to score what is expected of it: it moves no mean, and leaves less to learn nearby
    (the "kriging believer" of Ginsbourger, Le Riche and Carraro, 2010).
    """
    points = [_point(parameters, belief, genome) for genome in (*(genome for genome, _, _ in rows), *pending)]
    noises = [belief.noise**2 / weight for _, _, weight in rows] + [belief.noise**2] * len(pending)
    factor: list[list[float]] = []
    for i, point in enumerate(points):
        line: list[float] = []
        for other, above in zip(points[:i], factor, strict=True):
            line.append((_covariance(belief, point, other) - sum(map(mul, line, above))) / above[-1])
        rest = point.variance + noises[i] - sum(map(mul, line, line))
        line.append(math.sqrt(max(rest, 1e-9)))
        factor.append(line)
    surprises = [score - point.mean for (_, score, _), point in zip(rows, points, strict=False)]
    whitened = _solve_lower(factor[: len(rows)], surprises)
    return Process(tuple(parameters), belief, tuple(points), tuple(tuple(line) for line in factor), tuple(whitened))


def expected_improvement(mean: float, deviation: float, best: float) -> float:
    """How much lower than ``best`` a normally distributed score is on average, counting worse as none."""
    gap = (best - mean) / deviation
    below = 0.5 * math.erfc(-gap / math.sqrt(2.0))
    return deviation * (gap * below + math.exp(-0.5 * gap * gap) / math.sqrt(2.0 * math.pi))


def _point(parameters: Sequence[Parameter], belief: Belief, genome: Genome) -> _Point:
    features, places, mean = [1.0], [], 0.0
    for parameter in parameters:
        value = genome[parameter.name]
        if parameter.ordered:
            place = parameter.place(value)
            unit = 2.0 * place - 1.0
            features += [belief.curve * unit, belief.curve * (unit * unit - 1 / 3)]
            places.append(place)
        else:
            switches = [float(value == choice) for choice in parameter.range.choices if choice != parameter.default]
            features += [belief.curve * switch for switch in switches]
            places += [SWITCH * switch for switch in switches]
            if parameter.name.startswith("+"):
                mean -= belief.patch_gain * sum(switches)
    variance = sum(map(mul, features, features)) + belief.bump**2
    return _Point(tuple(features), tuple(places), sum(map(mul, places, places)), mean, variance)


def _covariance(belief: Belief, a: _Point, b: _Point) -> float:
    squared = a.length + b.length - 2.0 * sum(map(mul, a.places, b.places))
    bump = belief.bump**2 * math.exp(-0.5 * squared / belief.reach**2)
    linear: float = sum(map(mul, a.features, b.features))
    return linear + bump


def _solve_lower(factor: Sequence[Sequence[float]], right: Sequence[float]) -> list[float]:
    """Solve with a lower triangle; its lines end at the diagonal."""
    solution: list[float] = []
    for line, value in zip(factor, right, strict=True):
        solution.append((value - sum(map(mul, solution, line))) / line[-1])
    return solution
