"""Effects come from pairs alone, with their uncertainty, the same from any order."""

from __future__ import annotations

import math
import random
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from autoresearch.propose.search.effects import effects
from autoresearch.propose.search.evidence import PastRun


def run(name: int, genome: dict[str, Any], value: Any, parent: int | None = None) -> PastRun:
    held = None if parent is None else parent.to_bytes(32, "big")
    return PastRun(name.to_bytes(32, "big"), bytes(32), genome, value, 0, held, None)


def pairs(count: int, gain: float) -> list[PastRun]:
    noise, made = random.Random(1), []
    for i in range(count):
        on = i % 2 == 0
        old = 2.0 - gain * (not on) + noise.gauss(0, 0.02)
        made.append(run(2 * i, {"+muon": not on, "LR": 0.01}, old))
        made.append(run(2 * i + 1, {"+muon": on, "LR": 0.01}, 2.0 - gain * on + noise.gauss(0, 0.02), 2 * i))
    return made


def test_a_patch_that_helps_is_seen_from_adding_and_from_removing_it() -> None:
    (effect,) = effects(pairs(20, 0.1), direction="minimize")

    assert (effect.parameter, effect.pairs) == ("+muon", 20)
    assert effect.better >= 18
    assert effect.low < -0.1 < effect.high < 0


def test_one_pair_alone_is_certain_of_nothing() -> None:
    (effect,) = effects(pairs(1, 0.1), direction="minimize")

    assert (effect.low, effect.high) == (-math.inf, math.inf)


def test_for_a_metric_that_grows_the_same_change_is_worse() -> None:
    (up,) = effects(pairs(20, 0.1), direction="maximize")
    (down,) = effects(pairs(20, 0.1), direction="minimize")

    assert up.mean == down.mean
    assert up.better == 20 - down.better


def test_failures_replicates_and_wide_changes_do_not_count() -> None:
    base = run(0, {"A": 1, "B": 1, "C": 1, "D": 1}, 1.0)
    others = [
        run(1, {"A": 2}, None, 0),
        run(2, {"A": 1}, 0.5, 0),
        run(3, {"A": 2, "B": 2, "C": 2, "D": 2}, 0.5, 0),
        run(4, {"A": 2}, 0.5, 99),
    ]

    assert effects([base, *others], direction="minimize") == []


@given(st.randoms(use_true_random=False), st.dictionaries(st.text(max_size=3), st.floats() | st.integers()))
def test_the_order_does_not_matter_and_weird_genomes_are_borne(order: random.Random, weird: dict[str, float]) -> None:
    runs = [*pairs(5, 0.1), run(500, weird, 1e300, 0), run(501, weird, 1.0, 500), run(502, weird, math.nan, 1)]
    first = effects(runs, direction="minimize")

    order.shuffle(runs)

    assert effects(runs, direction="minimize") == first
