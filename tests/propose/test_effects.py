"""Effects come from pairs alone: medians with their interval, failures apart, the same from any order."""

from __future__ import annotations

import math
import random
import statistics

import pytest
from hypothesis import given
from hypothesis import strategies as st

from autoresearch.log.rows import PairRow
from autoresearch.propose.search.effects import Effect, effect_of, median_interval, ranked
from autoresearch.text import failures


def pair(delta: float | None, raised: int = 1) -> PairRow:
    return PairRow(0, raised, delta, None if delta is None else 2.0 + delta, 2.0)


def effect(*pairs: PairRow, sign: float = 1.0, name: str = "LR") -> Effect:
    estimate = effect_of(name, pairs, sign=sign)
    assert estimate is not None
    return estimate


def test_a_part_that_helps_is_seen_from_adding_and_from_dropping_it() -> None:
    noise = random.Random(1)
    pairs = [pair(-0.1 + noise.gauss(0, 0.02), 1) for _ in range(10)] + [pair(0.1, -1)] * 10
    estimate = effect(*pairs)
    assert (estimate.pairs, estimate.raised, estimate.lowered) == (20, 10, 10)
    assert estimate.better >= 18
    assert estimate.low is not None
    assert estimate.high is not None
    assert estimate.median is not None
    assert estimate.low <= estimate.median <= estimate.high < 0


def test_one_value_that_exploded_moves_nothing() -> None:
    calm = [pair(-0.1), pair(-0.2), pair(-0.3), pair(-0.1), pair(-0.2), pair(-0.3), pair(-0.25)]
    exploded = effect(*calm, pair(738.9))
    assert exploded.median == pytest.approx(-0.2)
    assert (exploded.better, exploded.worse) == (7, 1)
    assert exploded.low == -0.3


def test_runs_that_failed_are_counted_apart_and_by_direction() -> None:
    estimate = effect(*[pair(None)] * 4, pair(-0.1), pair(-0.1), pair(0.2, -1), pair(None, -1))
    assert (estimate.pairs, estimate.median) == (3, pytest.approx(-0.1))
    assert (estimate.raised, estimate.raised_failed, estimate.lowered, estimate.lowered_failed) == (6, 4, 2, 1)
    assert failures(6, 4, 2, 1) == "raised: 4 of 6 failed, lowered: 1 of 2 failed"
    assert failures(6, 0, 2, 0) == ""
    only = effect(pair(None))
    assert (only.pairs, only.median, only.low, only.raised_failed) == (0, None, None, 1)
    assert effect_of("LR", [], sign=1.0) is None


def test_what_comes_of_rounding_is_no_effect() -> None:
    rounded = effect(*[pair(1.1e-16), pair(-1.1e-16), pair(2e-16)] * 4)
    assert (rounded.pairs, rounded.better, rounded.worse) == (12, 0, 0)
    assert (rounded.median, rounded.low, rounded.high) == (0.0, 0.0, 0.0)
    assert effect(*[pair(-1e-9)] * 8).better == 8


def test_fewer_than_six_pairs_are_certain_of_nothing() -> None:
    assert median_interval([0.1] * 5) == (None, None)
    assert median_interval([0.6, 0.1, 0.5, 0.2, 0.4, 0.3]) == (0.1, 0.6)


@pytest.mark.parametrize("count", [6, 9, 20, 37, 200])
def test_the_interval_holds_the_median_in_95_of_100_draws_and_is_no_wider_than_it_must_be(count: int) -> None:
    low, high = median_interval([float(number) for number in range(count)])
    assert low is not None
    assert high is not None
    rank = int(low)  # so many values lie below it, and as many above the upper one
    assert high == count - 1 - rank

    def missed(below: int) -> float:
        """How often the median of a distribution lies outside: fewer than so many values on one side of it."""
        return 2 * sum(math.comb(count, number) for number in range(below + 1)) / 2**count

    assert missed(rank) <= 0.05 < missed(rank + 1)


@given(
    st.lists(st.floats(-1e6, 1e6).map(lambda delta: round(delta, 9)), min_size=1, max_size=40),
    st.randoms(use_true_random=False),
)
def test_the_order_is_no_matter_and_a_larger_metric_is_the_mirror(deltas: list[float], order: random.Random) -> None:
    pairs = [pair(delta, order.choice((1, -1))) for delta in deltas]
    down, up = effect(*pairs), effect(*pairs, sign=-1.0)
    assert (up.better, up.worse, up.median, up.low, up.high) == (
        down.worse,
        down.better,
        down.median,
        down.low,
        down.high,
    )
    assert down.median == statistics.median(
        change.delta * change.raised for change in pairs if change.delta is not None
    )
    order.shuffle(pairs)
    assert effect(*pairs) == down


def test_the_surest_improvement_is_first_and_few_pairs_last() -> None:
    sure = effect(*[pair(-0.1)] * 8, name="sure")
    large = effect(*[pair(-0.1), pair(-5.0)] * 4, pair(0.2), name="unsure")
    harm = effect(*[pair(0.3)] * 8, name="harm")
    few, fewer, failing = effect(pair(-9.0), name="few"), effect(pair(-8.0), name="fewer"), effect(pair(None), name="f")
    made = [few, failing, harm, large, fewer, sure]
    assert [part.parameter for part in ranked(made, sign=1.0)] == ["sure", "unsure", "harm", "few", "fewer", "f"]
    assert ranked(made, sign=-1.0)[0] == harm
