"""Ways to make a new genome: anywhere, around a good one, between two, or a few steps from one."""

from __future__ import annotations

from collections.abc import Sequence

from autoresearch.proposers.draws import Draws
from autoresearch.proposers.parameters import Parameter
from autoresearch.proposers.space import Genome


def anywhere(parameters: Sequence[Parameter], draws: Draws) -> Genome:
    """A genome drawn from the whole space."""
    return {parameter.name: parameter.anywhere(draws) for parameter in parameters}


def around(parameters: Sequence[Parameter], centre: Genome, spread: float, change: float, draws: Draws) -> Genome:
    """A genome with every ordered gene moved by a normal step, every other drawn anew with this chance."""
    genome = dict(centre)
    for parameter in parameters:
        if parameter.ordered:
            genome[parameter.name] = parameter.at(parameter.place(centre[parameter.name]) + spread * draws.normal())
        elif draws.chance(change):
            genome[parameter.name] = draws.choice(parameter.range.choices)
    return genome


def crossing(parent: Genome, other: Genome, share: float, draws: Draws) -> Genome:
    """A genome that has each gene from the parent with this chance, else from the other."""
    return {name: value if draws.chance(share) else other[name] for name, value in parent.items()}


def few_changes(parameters: Sequence[Parameter], parent: Genome, count: int, spread: float, draws: Draws) -> Genome:
    """The parent with ``count`` genes moved a little: a change that a person can read."""
    genome = dict(parent)
    for parameter in draws.sample(parameters, count):
        genome[parameter.name] = parameter.near(parent[parameter.name], spread, draws)
    return genome
