"""The model finds what is there, knows how little it knows, and is not moved by what is still running."""

from __future__ import annotations

import math
import random
from collections.abc import Callable

import numpy as np
import pytest

from autoresearch.propose.program.ranges import Draws
from autoresearch.propose.program.space import Genome, space_of
from autoresearch.propose.search.gaussian import Prior, expected_improvement, fit, likeliest
from autoresearch.propose.search.moves import anywhere
from tests.propose.conftest import PATCHES, TRAIN

SPACE = space_of(TRAIN, PATCHES)
GENES = list(SPACE.parameters.values())
BASE = SPACE.default()
Rows = list[tuple[Genome, float, float]]


def rows(count: int, score: Callable[[Genome], float], noise: float = 0.1) -> Rows:
    """Random genomes with a score and some noise."""
    draws, luck = Draws(b"model"), random.Random(1)
    genomes = [anywhere(GENES, draws) for _ in range(count)]
    return [(genome, score(genome) + luck.gauss(0, noise), 1.0) for genome in genomes]


def test_it_finds_what_each_gene_adds() -> None:
    model = fit(GENES, rows(120, lambda genome: 0.5 - bool(genome["+muon"])), [], Prior())

    gain = model.at([{**BASE, "+muon": True}])[0][0] - model.at([BASE])[0][0]

    assert gain == pytest.approx(-1.0, abs=0.25)


def test_it_finds_what_two_genes_do_together_where_runs_lie_close() -> None:
    def together(genome: Genome) -> float:
        return -1.0 if genome["+muon"] == genome["+tied"] else 1.0  # no sum of curves says so

    seen: Rows = []
    for muon in (False, True):
        for tied in (False, True):
            genome = {**BASE, "+muon": muon, "+tied": tied}
            seen += [({**genome, "LR": rate}, together(genome), 1.0) for rate in (0.0005, 0.001, 0.002, 0.004)]
    model = fit(GENES, seen, [], Prior())

    both, single = model.at([{**BASE, "+muon": True, "+tied": True}])[0], model.at([{**BASE, "+muon": True}])[0]

    assert both[0] < single[0]


def test_it_agrees_with_the_textbook_formula() -> None:
    """With the bump and the switches' prior gain off it is Bayesian linear regression (Bishop 2006, section 3.3)."""
    belief = Prior(noise=0.4, curve=0.3, bump=0.0, patch_gain=0.0)
    seen = rows(30, lambda genome: float(genome["WARMUP"]))
    model = fit(GENES, seen, [], belief)

    def features(genome: Genome) -> list[float]:
        row = [1.0]
        for parameter in GENES:
            unit = 2 * parameter.place(genome[parameter.name]) - 1
            row += [0.3 * unit, 0.3 * (unit**2 - 1 / 3)] if parameter.ordered else [0.3 * bool(genome[parameter.name])]
        return row

    design = np.array([features(genome) for genome, _, _ in seen])
    precision = np.eye(design.shape[1]) + design.T @ design / 0.4**2
    weights = np.linalg.solve(precision, design.T @ np.array([score for _, score, _ in seen]) / 0.4**2)
    base_features = np.array(features(BASE))

    mean, deviation = model.at([BASE])[0]

    assert mean == pytest.approx(base_features @ weights, abs=1e-9)
    assert deviation == pytest.approx(np.sqrt(base_features @ np.linalg.solve(precision, base_features)), abs=1e-9)


def test_before_anything_is_known_patches_are_believed_to_help() -> None:
    model = fit(GENES, [(BASE, 0.0, 1.0), (BASE, 0.2, 1.0)], [], Prior())

    assert model.at([{**BASE, "+muon": True}])[0][0] < model.at([BASE])[0][0]


def test_what_runs_already_moves_no_mean_and_leaves_less_to_learn_nearby() -> None:
    seen = rows(30, lambda genome: float(genome["WARMUP"]))
    live_genome = {**BASE, "LR": 0.01}
    alone, beside = fit(GENES, seen, [], Prior()), fit(GENES, seen, [live_genome], Prior())
    near = {**live_genome, "LR": 0.009}

    assert beside.at([near])[0][0] == pytest.approx(alone.at([near])[0][0], abs=1e-9)
    assert beside.at([near])[0][1] < 0.7 * alone.at([near])[0][1]


def test_several_genomes_get_what_each_gets_by_itself() -> None:
    model = fit(GENES, rows(20, lambda genome: float(genome["+muon"])), [], Prior())
    several = [BASE, {**BASE, "+muon": True}, {**BASE, "+tied": True}]
    for single, together in zip(several, model.at(several), strict=True):
        assert model.at([single])[0] == pytest.approx(together, rel=1e-12)
    assert model.at([]) == []


def test_equal_programs_of_great_weight_are_believed_somehow() -> None:
    twins: Rows = [(BASE, float(number % 2), 1e30) for number in range(12)]
    belief = likeliest(GENES, twins, Prior())
    mean, deviation = fit(GENES, twins, [], belief).at([BASE])[0]
    assert math.isfinite(mean)
    assert math.isfinite(deviation)


def test_a_score_of_little_weight_says_less() -> None:
    def surprised(weight: float) -> float:
        return fit(GENES, [(BASE, 3.0, weight)], [], Prior()).at([BASE])[0][0]

    assert 0 < surprised(0.01) < surprised(1.0) < 3.0


def test_the_expected_improvement_is_the_mean_of_what_lies_below() -> None:
    luck = random.Random(2)
    drawn = [max(0.0, 1.0 - luck.gauss(1.2, 0.5)) for _ in range(200_000)]

    assert expected_improvement(1.2, 0.5, 1.0) == pytest.approx(sum(drawn) / len(drawn), abs=0.003)
    assert expected_improvement(5.0, 0.1, 1.0) < 1e-12


def test_runs_say_within_how_much_of_its_range_each_gene_changes_the_score() -> None:
    space = space_of("FAST = 0.5  # float [0.0, 1.0]\nSLOW = 0.5  # float [0.0, 1.0]\n")
    parameters, draws = list(space.parameters.values()), Draws(b"widths")
    genomes = [anywhere(parameters, draws) for _ in range(40)]
    seen = [(genome, math.sin(12 * float(genome["FAST"])) + 0.5 * float(genome["SLOW"]), 1.0) for genome in genomes]

    widths = likeliest(parameters, seen, Prior()).widths

    assert widths.get("FAST", 1.0) >= 4 * widths.get("SLOW", 1.0)
    assert not likeliest(parameters, seen[:7], Prior()).widths
