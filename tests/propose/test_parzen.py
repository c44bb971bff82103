"""Where scores come in steps and other trials run: near the good ones, away from the rest, from nothing barred."""

from __future__ import annotations

import itertools
import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from autoresearch.propose.program.ranges import Draws
from autoresearch.propose.program.space import Genome, space_of
from autoresearch.propose.search.moves import Sample, SearchHistory, SearchSettings, anywhere, next_move
from autoresearch.propose.search.parzen import Density
from tests.propose.conftest import past

SPACE = space_of('RATE = 0.5  # float [0.0, 1.0]\nDEPTH = 3  # int [1, 9]\nKIND = "up"  # one of up down left right\n')
GENES = list(SPACE.parameters.values())
CHOICES = space_of('KIND = "up"  # one of up down left right\nNORM = False  # one of True False\n')


def sample(genome: Genome, score: float, tier: int | None = 0) -> Sample:
    name = f"{genome}".encode().ljust(32)[-32:]
    return Sample(genome, past(f"{genome}", name, genome, score), score, tier=tier)


def moves(working: list[Sample], count: int = 40) -> list[Genome]:
    """Proposals that all go by density: there is a claim, and scores are equal."""
    always, claimed = SearchSettings(dense_share=1.0, random_share=0.0), [SPACE.default()]
    ranked = sorted(working, key=lambda example: example.score)
    made = (
        next_move(SPACE, SearchHistory(ranked, [], claimed), Draws(b"dense", bytes([i])), lambda _: True, always)
        for i in range(count)
    )
    return [move.genome for move in made if move is not None]


@given(st.lists(st.tuples(st.sampled_from(["up", "down", "left", "right"]), st.booleans()), max_size=20))
def test_the_density_of_a_space_of_choices_sums_to_one(centres: list[tuple[str, bool]]) -> None:
    parameters = list(CHOICES.parameters.values())
    density = Density(parameters, [{"KIND": kind, "NORM": norm} for kind, norm in centres])
    points = itertools.product(*(each.range.choices for each in parameters))

    total = math.fsum(
        math.exp(density.logarithm(dict(zip(CHOICES.parameters, point, strict=True)))) for point in points
    )

    assert total == pytest.approx(1.0)


def test_the_density_of_choices_that_were_computed_by_hand() -> None:
    """Four kernels around “up” draw it anew with the chance 4 ÷ (5 + 4); a fifth kernel is the whole space."""
    kind = [CHOICES.parameters["KIND"]]
    density = Density(kind, [{"KIND": "up"}] * 4)

    assert density.change(kind[0]) == pytest.approx(4 / 9)
    assert math.exp(density.logarithm({"KIND": "up"})) == pytest.approx((1 / 4 + 4 * (5 / 9 + 1 / 9)) / 5)
    assert math.exp(density.logarithm({"KIND": "down"})) == pytest.approx((1 / 4 + 4 * (1 / 9)) / 5)


@pytest.mark.parametrize(
    ("names", "centres", "width"),
    # A fifth of a range, times (kernels, with that of the whole space) to the power of -1 ÷ (genes + 4).
    [
        (["RATE"], 1, 0.2 * 2 ** (-1 / 5)),
        (["RATE"], 31, 0.1),
        (["RATE", "DEPTH", "KIND"], 127, 0.1),
        (["RATE", "DEPTH"], 0, 0.2),
    ],
)
def test_kernels_become_narrower_by_scotts_rule(names: list[str], centres: int, width: float) -> None:
    density = Density([SPACE.parameters[name] for name in names], [SPACE.default()] * centres)

    assert density.width == pytest.approx(width)


def test_the_density_of_a_number_that_was_computed_by_hand() -> None:
    """One kernel of width w around 0.5, a normal distribution, and one that is 1 everywhere: half of each."""
    density, width = Density([SPACE.parameters["RATE"]], [{"RATE": 0.5}]), 0.2 * 2 ** (-1 / 5)

    for rate in (0.5, 0.5 + width, 0.5 - 2 * width):
        normal = math.exp(-(((rate - 0.5) / width) ** 2) / 2) / (width * math.sqrt(2 * math.pi))
        assert math.exp(density.logarithm({"RATE": rate})) == pytest.approx((1 + normal) / 2)


@pytest.mark.slow
def test_proposals_go_where_the_good_lie_and_the_rest_does_not() -> None:
    def good(genome: Genome) -> bool:
        return float(genome["RATE"]) < 0.3 and genome["KIND"] == "left"

    tried = [anywhere(GENES, Draws(bytes([i]))) for i in range(200)]

    made = moves([sample(genome, 0.1 if good(genome) else 0.2) for genome in tried])

    assert sum(map(good, made)) >= 30
    assert sum(map(good, tried)) < 40


@pytest.mark.slow
def test_what_may_not_be_built_upon_draws_nobody() -> None:
    low = [{"RATE": 0.1 + 0.01 * i, "DEPTH": 2, "KIND": "up"} for i in range(5)]
    high = [{"RATE": 0.85 + 0.003 * i, "DEPTH": 8, "KIND": "down"} for i in range(30)]

    made = moves([sample(genome, 0.2) for genome in low] + [sample(genome, 0.0, tier=None) for genome in high])

    assert sum(abs(float(genome["RATE"]) - 0.9) < 0.2 for genome in made) < 4
    assert len(made) == 40


@settings(max_examples=20, deadline=None)
@given(st.integers(3, 30), st.integers(0, 255))
def test_every_proposal_is_of_the_space(count: int, seed: int) -> None:
    tried = [anywhere(GENES, Draws(b"tried", bytes([seed, i]))) for i in range(count)]
    for genome in moves([sample(example, 0.5) for example in tried], 3):
        assert all(genome[gene.name] == gene.at(gene.place(genome[gene.name])) for gene in GENES if gene.ordered)
        assert genome["KIND"] in ("up", "down", "left", "right")


def test_a_round_in_a_large_space_has_programs_from_anywhere() -> None:
    """With nine settings half of a round at the start; none of them where nothing else runs."""
    space = space_of("".join(f"RATE_{i} = 0.5  # float [0.0, 1.0]\n" for i in range(9)))
    first = Sample(space.default(), past("first", b"first", space.default(), 1.0), 1.0)

    def kinds(claimed: list[Genome]) -> list[str]:
        history, fresh = SearchHistory([first], [], claimed), lambda _: True
        made = [next_move(space, history, Draws(bytes([i])), fresh, SearchSettings()) for i in range(40)]
        return [move.kind for move in made if move is not None]

    claims: list[Genome] = [{**space.default(), "RATE_0": 0.01 * i} for i in range(9)]
    assert 10 <= kinds(claims[:1]).count("random") <= 30
    assert kinds([]) == ["local"] * 40
    assert "random" not in kinds(claims)
