"""Luck is not taken for progress, and progress is seen."""

from __future__ import annotations

import math
import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from autoresearch.judging.statistics import _QUANTILES, _TRIMMED, ERROR, LOOKS, MOST_VOTERS, PAIRS, Finding, judge_pairs

NOISE = 0.02
# Of the error, what the last look may use up.
SHARE = ERROR / 4


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
    assert student(quantile, freedom) == pytest.approx(ERROR, rel=1e-3)


@pytest.mark.slow
@pytest.mark.parametrize("noise_known", [True, False], ids=["noise known", "noise unknown"])
@pytest.mark.parametrize("count", _TRIMMED)
def test_the_bounds_without_the_first_and_the_last_and_the_widest_leave_out_what_they_should(
    count: int, noise_known: bool
) -> None:
    pairs = np.random.default_rng(count).normal(0, math.sqrt(2), (400_000, count, PAIRS))
    middle = np.argsort(pairs.mean(2), axis=1)[:, 1:-1]
    means, half = pairs.mean(2, keepdims=True), np.abs(np.diff(pairs, axis=2)) / 2
    half = np.minimum(half, np.sort(half, axis=1)[:, -2:-1])
    narrowed = np.concatenate([means - half, means + half], axis=2)
    seen = np.take_along_axis(narrowed, middle[:, :, None], axis=1).reshape(len(pairs), -1)
    freedom = seen.shape[1] - 1 + (4 if noise_known else 0)
    squares = seen.var(axis=1) * seen.shape[1] + (4 * 2 if noise_known else 0)
    errors = np.sqrt(squares / freedom / seen.shape[1])
    share = float(np.mean(seen.mean(1) > _TRIMMED[count][0 if noise_known else 1] * errors))
    # Four standard deviations of what so many trials show.
    assert share == pytest.approx(SHARE, abs=4 * math.sqrt(SHARE / len(pairs)))


def judged(pairs: list[float], *, most: int = MOST_VOTERS, **settings: float) -> Finding:
    """What the pairs of verifiers say, two each."""
    each = [pairs[place : place + PAIRS] for place in range(0, len(pairs), PAIRS)]
    return judge_pairs(each, most=most, **settings).finding


@pytest.mark.slow
@pytest.mark.parametrize("noise", [NOISE, 0.0], ids=["noise known", "noise unknown"])
@pytest.mark.parametrize("most", [4, 6])
def test_what_is_no_better_is_found_better_once_in_a_hundred_at_most(noise: float, most: int) -> None:
    dice = random.Random(7)
    better = 0
    for _ in range(8_000):
        pairs = [dice.gauss(0, NOISE * math.sqrt(2)) for _ in range(most * PAIRS)]
        better += judged(pairs, most=most, noise=noise, minimum_effect=0.0) is Finding.BETTER
    assert better <= 8_000 * ERROR


@pytest.mark.slow
@pytest.mark.parametrize(
    ("noise", "most", "share"), [(NOISE, 3, 0.01), (NOISE, 4, 0.04), (NOISE, 6, 0.025), (0.0, 6, 0.055)]
)
def test_a_friend_of_the_author_brings_little_luck_through(noise: float, most: int, share: float) -> None:
    """Before anybody was left out at the first looks: 0.06, with the noise known."""
    dice = random.Random(5)
    spread = NOISE * math.sqrt(2)
    seen = [[dice.gauss(0, spread) for _ in range(most * PAIRS)] for _ in range(1_500)]
    for gain in (1, 2, 3, 4, 6, 1000):
        for pairs in seen:
            pairs[PAIRS : 2 * PAIRS] = [gain * NOISE] * PAIRS
        findings = [judged(pairs, most=most, noise=noise, minimum_effect=0.0) for pairs in seen]
        assert findings.count(Finding.BETTER) <= share * len(seen)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("noise", "most", "shares"),
    [(NOISE, 6, (0.96, 0.99)), (NOISE, 4, (0.85, 0.99)), (0.0, 6, (0.75, 0.99)), (0.0, 4, (0.12, 0.43))],
)
def test_a_single_liar_buries_no_large_gain(noise: float, most: int, shares: tuple[float, ...]) -> None:
    dice = random.Random(6)
    for effect, share in zip((3, 5), shares, strict=True):
        seen = [[dice.gauss(effect, math.sqrt(2)) * NOISE for _ in range(most * PAIRS)] for _ in range(600)]
        for lie in ((-1000.0, -1000.0), (-1000.0, -994.0), (-3.0, 9.0), (-1000.0, 1001.0), (1000.0, 1000.0)):
            for pairs in seen:
                pairs[:PAIRS] = [NOISE * value for value in lie]
            findings = [judged(pairs, most=most, noise=noise, minimum_effect=NOISE / 2) for pairs in seen]
            assert findings.count(Finding.BETTER) >= share * len(seen)


def test_where_the_noise_is_not_known_two_verifiers_confirm_nothing() -> None:
    pairs = [[0.3, 0.31], [0.3, 0.3]]
    assert judge_pairs(pairs, noise=0.0, minimum_effect=0.0).finding is Finding.OPEN
    assert judge_pairs(pairs, noise=0.0, minimum_effect=0.0, most=2).finding is Finding.OPEN
    assert judge_pairs([*pairs, [0.29, 0.3]], noise=0.0, minimum_effect=0.0).finding is Finding.BETTER


def test_a_large_improvement_needs_two_voices_and_a_small_one_more() -> None:
    assert judged([0.3, 0.31], noise=NOISE, minimum_effect=0.0) is Finding.OPEN
    assert judged([0.3, 0.31] * 2, noise=NOISE, minimum_effect=0.0) is Finding.BETTER
    assert judged([0.03, 0.04] * 2, noise=NOISE, minimum_effect=0.0) is Finding.OPEN
    assert judged([0.03, 0.04] * 4, noise=NOISE, minimum_effect=0.0) is Finding.BETTER


def test_an_improvement_below_the_least_that_counts_does_not_count() -> None:
    pairs = [0.011, 0.0111, 0.0109, 0.011, 0.011, 0.0111, 0.0109, 0.011]
    assert judged(pairs, noise=0.0, minimum_effect=0.02) is Finding.NOT_BETTER
    assert judged(pairs, noise=0.0, minimum_effect=0.01) is Finding.BETTER


def test_worse_and_equal_are_not_better() -> None:
    assert judged([-0.3] * 8, noise=NOISE, minimum_effect=0.0) is Finding.NOT_BETTER
    assert judged([0.0] * 8, noise=0.0, minimum_effect=0.0) is Finding.NOT_BETTER


def test_where_no_more_than_three_can_speak_these_decide() -> None:
    for most in (2, 3):
        pairs = [0.01, -0.01] * most
        assert judged(pairs[:-PAIRS], most=most, noise=NOISE, minimum_effect=0.0) is Finding.OPEN
        assert judged(pairs, most=most, noise=NOISE, minimum_effect=0.0) is Finding.NOT_BETTER
    assert judged([0.01, -0.01], most=1, noise=NOISE, minimum_effect=0.0) is Finding.OPEN


def test_whoever_stands_against_the_others_decides_nothing_and_all_six_are_heard() -> None:
    pairs = [[0.1, 0.11], [-9.0, -9.0], [0.1, 0.12], [0.09, 0.1], [0.1, 0.1], [0.5, 0.4]]
    for count in (4, 5):
        assert judge_pairs(pairs[:count], noise=NOISE, minimum_effect=0.0) == (Finding.OPEN, count)
    assert judge_pairs(pairs, noise=NOISE, minimum_effect=0.0) == (Finding.BETTER, 6)


@given(st.lists(st.tuples(*[st.floats(-1, 1)] * PAIRS), max_size=9), st.floats(0, 1), st.floats(0, 0.1))
def test_any_pairs_have_a_finding_and_more_than_six_change_nothing(
    pairs: list[tuple[float, ...]], noise: float, least: float
) -> None:
    outcome = judge_pairs(pairs, noise=noise, minimum_effect=least)
    assert (outcome.finding is Finding.OPEN) <= (len(pairs) < MOST_VOTERS)
    assert outcome == judge_pairs(pairs[:MOST_VOTERS], noise=noise, minimum_effect=least)
    assert min(len(pairs), LOOKS[-1]) <= outcome.verifiers <= len(pairs)
