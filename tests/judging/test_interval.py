"""The interval that people see holds what it promises."""

import random
from statistics import fmean, median, pstdev

import pytest
from hypothesis import given
from hypothesis import strategies as st

from autoresearch.judging.statistics import LOOKS, margin, median_margin, pooled_error, standard_error

NOISE = 0.02
RUNS = 4000


@pytest.mark.parametrize("runs", LOOKS)
def test_the_true_value_lies_within_it_in_at_least_95_of_100_cases(runs):
    chance = random.Random(runs)
    held = 0
    for _ in range(RUNS):
        values = [chance.gauss(1.0, NOISE) for _ in range(runs)]
        half = margin(standard_error(values, noise=NOISE), runs, noise=NOISE)
        held += abs(median(values) - 1.0) <= half
    assert held / RUNS >= 0.95


def test_without_an_error_or_a_second_run_there_is_none():
    assert margin(None, 4, noise=NOISE) is None
    assert margin(0.1, 1, noise=0.0) is None


@given(st.floats(0, 1e6), st.integers(2, 100), st.booleans())
def test_it_is_wider_than_the_error_and_narrows_with_the_runs(error, runs, noise_known):
    noise = NOISE if noise_known else 0.0
    assert margin(error, runs, noise=noise) >= error
    assert margin(error, runs + 1, noise=noise) <= margin(error, runs, noise=noise)


@pytest.mark.slow
@pytest.mark.parametrize("verifiers", [2, 3, 5])
@pytest.mark.parametrize("draw", ["normal", "rare"])
def test_the_true_value_of_an_agent_lies_within_its_interval(verifiers: int, draw: str) -> None:
    """By the standard errors of 100 episodes each; ``rare``: one episode in ten fails."""
    chance, held, cases = random.Random(verifiers), 0, 600

    def evaluation() -> tuple[float, float]:
        rewards = [
            chance.gauss(200.0, 80.0) if draw == "normal" else 500.0 * (chance.random() > 0.1) for _ in range(100)
        ]
        return fmean(rewards), pstdev(rewards) / 10

    true = 200.0 if draw == "normal" else 450.0
    for _ in range(cases):
        values, errors = zip(*(evaluation() for _ in range(verifiers)), strict=True)
        half = median_margin(pooled_error(errors, evaluation()[1]), verifiers)
        held += abs(median(values) - true) <= half
    assert held / cases >= 0.93
