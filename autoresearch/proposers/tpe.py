"""Tree-structured Parzen estimator over a search space (Bergstra et al., 2011), joint over all genes.

Two densities are laid over the runs: one over the good, one over the rest and over what others are trying
now. Of some drawn genomes the one with the largest ratio is taken. Every peer's runs are its data.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from autoresearch.proposers.draws import Draws
from autoresearch.proposers.genes import Gene
from autoresearch.proposers.space import Genome

# Bandwidth of one kernel on [0, 1], before it shrinks with the number of kernels.
SPREAD = 0.2
# Kernels in the density of the bad, at most: more cost time and say nothing new.
MOST_BAD = 300


@dataclass(frozen=True, slots=True)
class Density:
    """A mixture of one kernel per genome, and one flat part that keeps every value possible."""

    genes: tuple[Gene, ...]
    centres: tuple[tuple[float, ...], ...]
    spread: float

    def log_at(self, places: Sequence[float]) -> float:
        """The logarithm of the density at a genome's places."""
        count = len(self.centres)
        terms = [sum(self._flat(gene) for gene in self.genes)]
        peak = -math.log(self.spread) - 0.919
        for centre in self.centres:
            total = 0.0
            for gene, here, there in zip(self.genes, places, centre, strict=True):
                if gene.ordered:
                    distance = (here - there) / self.spread
                    total += peak - 0.5 * distance * distance
                else:
                    total += math.log(((here == there) + 1 / count) / (1 + len(gene.range.choices) / count))
            terms.append(total)
        top = max(terms)
        return top + math.log(math.fsum(math.exp(term - top) for term in terms) / len(terms))

    @staticmethod
    def _flat(gene: Gene) -> float:
        return 0.0 if gene.ordered else -math.log(max(1, len(gene.range.choices)))


def places(genes: Sequence[Gene], genome: Genome) -> tuple[float, ...]:
    """Where a genome lies, gene by gene."""
    return tuple(gene.place(genome[gene.name]) for gene in genes)


def density(genes: Sequence[Gene], genomes: Sequence[Genome]) -> Density:
    """The density around these genomes; its kernels narrow as they become many."""
    spread = SPREAD * max(1, len(genomes)) ** (-1 / (len(genes) + 4))
    return Density(tuple(genes), tuple(places(genes, genome) for genome in genomes), spread)


def ratio(good: Density, bad: Density) -> Callable[[Genome], float]:
    """How much likelier a genome is among the good than among the bad, as a logarithm."""

    def score(genome: Genome) -> float:
        here = places(good.genes, genome)
        return round(good.log_at(here) - bad.log_at(here), 9)

    return score


def anywhere(genes: Sequence[Gene], draws: Draws) -> Genome:
    """A genome drawn from the whole space."""
    return {gene.name: gene.anywhere(draws) for gene in genes}


def around(genes: Sequence[Gene], centre: Genome, spread: float, count: int, draws: Draws) -> Genome:
    """A genome drawn from the kernel on this one, as one of ``count`` kernels."""
    genome = dict(centre)
    for gene in genes:
        if gene.ordered:
            genome[gene.name] = gene.at(gene.place(centre[gene.name]) + spread * draws.normal())
        else:
            choices = len(gene.range.choices)
            if not draws.chance((1 + 1 / count) / (1 + choices / count)):
                genome[gene.name] = draws.choice(gene.range.choices)
    return genome


def few_changes(genes: Sequence[Gene], parent: Genome, count: int, spread: float, draws: Draws) -> Genome:
    """The parent with ``count`` genes moved a little: a change that a person can read."""
    genome = dict(parent)
    for gene in draws.sample(genes, count):
        genome[gene.name] = gene.near(parent[gene.name], spread, draws)
    return genome
