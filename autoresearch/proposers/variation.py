"""Ways to make a new genome: anywhere, around a good one, between two, or a few steps from one."""

from __future__ import annotations

from collections.abc import Sequence

from autoresearch.proposers.draws import Draws
from autoresearch.proposers.genes import Gene
from autoresearch.proposers.space import Genome


def anywhere(genes: Sequence[Gene], draws: Draws) -> Genome:
    """A genome drawn from the whole space."""
    return {gene.name: gene.anywhere(draws) for gene in genes}


def around(genes: Sequence[Gene], centre: Genome, spread: float, change: float, draws: Draws) -> Genome:
    """A genome with every ordered gene moved by a normal step, every other drawn anew with this chance."""
    genome = dict(centre)
    for gene in genes:
        if gene.ordered:
            genome[gene.name] = gene.at(gene.place(centre[gene.name]) + spread * draws.normal())
        elif draws.chance(change):
            genome[gene.name] = draws.choice(gene.range.choices)
    return genome


def crossing(parent: Genome, other: Genome, share: float, draws: Draws) -> Genome:
    """A genome that has each gene from the parent with this chance, else from the other."""
    return {name: value if draws.chance(share) else other[name] for name, value in parent.items()}


def few_changes(genes: Sequence[Gene], parent: Genome, count: int, spread: float, draws: Draws) -> Genome:
    """The parent with ``count`` genes moved a little: a change that a person can read."""
    genome = dict(parent)
    for gene in draws.sample(genes, count):
        genome[gene.name] = gene.near(parent[gene.name], spread, draws)
    return genome
