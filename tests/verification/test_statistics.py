"""Luck is not taken for progress, and progress is seen."""

from __future__ import annotations

import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from autoresearch.verification import ERROR, LOOKS, Finding, judge_pairs
from autoresearch.verification.statistics import _QUANTILES

NOISE = 0.02


def student(t: float, freedom: int) -> float:
    """The share of Student's distribution above t, by Simpson's rule over the tail's substitution x = t / u."""
    scale = math.gamma((freedom + 1) / 2) / (math.sqrt(freedom * math.pi) * math.gamma(freedom / 2))

    def density(u: float) -> float:
        if u == 0:
            return 0.0 if freedom > 1 else scale * freedom / t
        return scale * (1 + (t / u) ** 2 / freedom) ** (-(freedom + 1) / 2) * t / u**2

    steps = 20_000
    weights = (1 if k in (0, steps) else 4 if k % 2 else 2 for k in range(steps + 1))
    return sum(weight * density(k / steps) for k, weight in enumerate(weights)) / (3 * steps)


@pytest.mark.parametrize(("freedom", "quantile"), _QUANTILES.items())
def test_the_quantiles_leave_out_what_they_should(freedom: int, quantile: float) -> None:
    assert student(quantile, freedom) == pytest.approx(ERROR / len(LOOKS), rel=1e-3)


@pytest.mark.parametrize("known", [NOISE, 0.0], ids=["noise known", "noise unknown"])
def test_what_is_no_better_is_found_better_once_in_a_hundred_at_most(known: float) -> None:
    dice = random.Random(7)
    found = 0
    for _ in range(20_000):
        pairs = [dice.gauss(0, NOISE * math.sqrt(2)) for _ in range(LOOKS[-1])]
        found += judge_pairs(pairs, noise=known, minimum_effect=0.0) is Finding.BETTER
    assert found <= 20_000 * ERROR


def test_a_large_improvement_needs_two_pairs_and_a_small_one_more() -> None:
    assert judge_pairs([0.3, 0.31], noise=NOISE, minimum_effect=0.0) is Finding.BETTER
    assert judge_pairs([0.05, 0.06], noise=NOISE, minimum_effect=0.0) is Finding.OPEN
    assert judge_pairs([0.05, 0.06] * 4, noise=NOISE, minimum_effect=0.0) is Finding.BETTER
    assert judge_pairs([0.3], noise=NOISE, minimum_effect=0.0) is Finding.OPEN


def test_an_improvement_below_the_least_that_counts_does_not_count() -> None:
    pairs = [0.011, 0.0111, 0.0109, 0.011, 0.011, 0.0111, 0.0109, 0.011]
    assert judge_pairs(pairs, noise=0.0, minimum_effect=0.02) is Finding.NOT_BETTER
    assert judge_pairs(pairs, noise=0.0, minimum_effect=0.01) is Finding.BETTER


def test_worse_and_equal_are_not_better() -> None:
    assert judge_pairs([-0.3] * 8, noise=NOISE, minimum_effect=0.0) is Finding.NOT_BETTER
    assert judge_pairs([0.0] * 8, noise=0.0, minimum_effect=0.0) is Finding.NOT_BETTER


@given(st.lists(st.floats(-1, 1), max_size=20), st.floats(0, 1), st.floats(0, 0.1))
def test_any_pairs_have_a_finding_and_more_than_eight_change_nothing(
    pairs: list[float], noise: float, least: float
) -> None:
    finding = judge_pairs(pairs, noise=noise, minimum_effect=least)
    assert (finding is Finding.OPEN) <= (len(pairs) < LOOKS[-1])
    if len(pairs) >= LOOKS[-1]:
        assert finding is judge_pairs(pairs[: LOOKS[-1]], noise=noise, minimum_effect=least)
