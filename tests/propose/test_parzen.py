"""Genomes near the good ones and away from the rest, and none that may not be used."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from autoresearch.propose.program.ranges import Draws
from autoresearch.propose.program.space import Genome, space_of
from autoresearch.propose.search.moves import anywhere
from autoresearch.propose.search.parzen import densest
from tests.propose.conftest import TRAIN

SPACE = space_of('RATE = 0.5  # float [0.0, 1.0]\nDEPTH = 3  # int [1, 9]\nKIND = "up"  # one of up down left right\n')
GENES = list(SPACE.parameters.values())


def test_it_goes_where_the_good_lie_and_the_rest_does_not() -> None:
    def good(genome: Genome) -> bool:
        return float(genome["RATE"]) < 0.3 and genome["KIND"] == "left"

    tried = sorted((anywhere(GENES, Draws(bytes([i]))) for i in range(200)), key=lambda one: not good(one))
    drawn = [densest(GENES, tried, [], Draws(b"draw", bytes([i])), lambda _: True) for i in range(40)]

    assert sum(good(one) for one in drawn if one) >= 30
    assert sum(map(good, tried)) < 40


def test_what_may_not_be_built_upon_draws_nobody() -> None:
    low, high = {"RATE": 0.1, "DEPTH": 2, "KIND": "up"}, {"RATE": 0.9, "DEPTH": 8, "KIND": "down"}
    drawn = [densest(GENES, [low], [high] * 30, Draws(b"barred", bytes([i])), lambda _: True) for i in range(40)]

    assert sum(abs(float(one["RATE"]) - 0.9) < 0.2 for one in drawn if one) < 4


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 30), st.integers(0, 30), st.integers(0, 1000))
def test_every_genome_is_of_the_space_and_usable(count: int, others: int, seed: int) -> None:
    genes = list(space_of(TRAIN).parameters.values())
    tried = [anywhere(genes, Draws(b"tried", bytes([i]))) for i in range(count + others)]

    def usable(genome: Genome) -> bool:
        return all(genome[gene.name] == gene.at(gene.place(genome[gene.name])) for gene in genes if gene.ordered)

    found = densest(genes, tried[:count], tried[count:], Draws(b"seed", seed.to_bytes(2, "big")), usable)

    assert found is not None
    assert usable(found)
    assert densest(genes, tried[:count], tried[count:], Draws(b"seed"), lambda _: False) is None
