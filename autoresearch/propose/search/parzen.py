"""A genome near the good ones and far from the others: the tree-structured Parzen estimator.

Bergstra et al., 2011 (Algorithms for hyper-parameter optimization). The densities are of all genes together, as in
Falkner, Klein and Hutter, 2018 (BOHB).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from autoresearch.propose.program.ranges import Draws
from autoresearch.propose.program.space import Genome, Parameter

# The good are this share of all genomes, at most so many; so many genomes near them compete.
GOOD_SHARE, MOST_GOOD, DRAWN = 0.1, 25, 24
# Width of a kernel with one genome, in widths of a range; with more genomes it is narrower (Scott's rule).
WIDTH = 0.2


@dataclass(frozen=True, slots=True)
class _Kernels:
    """A density over genomes: one kernel around each of some, and one that is the whole space."""

    parameters: Sequence[Parameter]
    centres: Sequence[Genome]

    @property
    def count(self) -> int:
        return len(self.centres) + 1

    @property
    def width(self) -> float:
        return WIDTH * math.pow(self.count, -1 / (len(self.parameters) + 4))

    def draw(self, draws: Draws) -> Genome:
        """A genome from it."""
        place = draws.below(self.count)
        if place == len(self.centres):
            return {parameter.name: parameter.anywhere(draws) for parameter in self.parameters}
        genome = dict(self.centres[place])
        for parameter in self.parameters:
            name, choices = parameter.name, parameter.range.choices
            if parameter.ordered:
                genome[name] = parameter.at(parameter.place(genome[name]) + self.width * draws.normal())
            elif draws.chance(len(choices) / (self.count + len(choices))):
                genome[name] = draws.choice(choices)
        return genome

    def logarithm(self, genome: Genome) -> float:
        """Of its density at a genome."""
        anywhere = math.prod(1 / len(one.range.choices) for one in self.parameters if not one.ordered)
        return math.log((anywhere + math.fsum(self._near(genome, one) for one in self.centres)) / self.count)

    def _near(self, genome: Genome, centre: Genome) -> float:
        density = 1.0
        for parameter in self.parameters:
            here, there, choices = genome[parameter.name], centre[parameter.name], parameter.range.choices
            if parameter.ordered:
                away = (parameter.place(here) - parameter.place(there)) / self.width
                density *= math.exp(-0.5 * away * away) / (self.width * math.sqrt(2.0 * math.pi))
            else:
                density *= ((here == there) * self.count + 1) / (self.count + len(choices))
        return density


def densest(
    parameters: Sequence[Parameter],
    ranked: Sequence[Genome],
    others: Sequence[Genome],
    draws: Draws,
    usable: Callable[[Genome], bool],
) -> Genome | None:
    """Of some genomes drawn near the good ones that where these lie closest for what the rest does.

    ``ranked`` are the tried ones that may be built upon, best first: the first of them are the good. None where nothing
    usable was drawn in many tries.
    """
    count = min(MOST_GOOD, math.ceil(GOOD_SHARE * (len(ranked) + len(others))))
    good, rest = _Kernels(parameters, ranked[:count]), _Kernels(parameters, [*ranked[count:], *others])
    drawn: list[Genome] = []
    for _ in range(8 * DRAWN):
        if usable(genome := good.draw(draws)):
            drawn.append(genome)
        if len(drawn) == DRAWN:
            break
    return max(drawn, key=lambda one: float(f"{good.logarithm(one) - rest.logarithm(one):.9g}"), default=None)
