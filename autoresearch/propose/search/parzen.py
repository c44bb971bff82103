"""How close genomes lie to a point of the space, by kernels around them: the tree-structured Parzen estimator.

Bergstra et al., 2011 (Algorithms for hyper-parameter optimization). The densities are of all genes together, as in
Falkner, Klein and Hutter, 2018 (BOHB).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from autoresearch.propose.program.space import Genome, Parameter

# Width of a kernel with one genome, in widths of a range; with more genomes it is narrower (Scott's rule).
WIDTH = 0.2


@dataclass(frozen=True, slots=True)
class Density:
    """One kernel around each of some genomes, and one that is the whole space."""

    parameters: Sequence[Parameter]
    centres: Sequence[Genome]

    @property
    def width(self) -> float:
        """How far a kernel reaches along an ordered gene, in widths of its range."""
        return WIDTH * math.pow(self._count, -1 / (len(self.parameters) + 4))

    def change(self, parameter: Parameter) -> float:
        """The chance that a kernel draws a gene without order anew."""
        return len(parameter.range.choices) / (self._count + len(parameter.range.choices))

    def logarithm(self, genome: Genome) -> float:
        """Of the density at a genome."""
        anywhere = math.prod(1 / len(parameter.range.choices) for parameter in self.parameters if not parameter.ordered)
        return math.log((anywhere + math.fsum(self._near(genome, centre) for centre in self.centres)) / self._count)

    @property
    def _count(self) -> int:
        return len(self.centres) + 1

    def _near(self, genome: Genome, centre: Genome) -> float:
        density = 1.0
        for parameter in self.parameters:
            value, middle = genome[parameter.name], centre[parameter.name]
            if parameter.ordered:
                distance = (parameter.place(value) - parameter.place(middle)) / self.width
                density *= math.exp(-0.5 * distance * distance) / (self.width * math.sqrt(2.0 * math.pi))
            else:
                change = self.change(parameter)
                density *= (value == middle) * (1.0 - change) + change / len(parameter.range.choices)
        return density
