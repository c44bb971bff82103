"""What an evaluation must show to pass follows from its numbers alone."""

from __future__ import annotations

import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from autoresearch.judging.statistics import GAP_ERRORS, Findings, difference_error, gap, passes

GOOD = Findings(1.0, challenges=2048, mismatches=0, mean_difference=1e-6, gap=0.3)


def check(claim: float | None, findings: Findings, *, tolerance: float | None = 0.0005, noise: float = 0.02) -> bool:
    return passes(claim, findings, tolerance=tolerance, noise=noise)


def test_an_honest_evaluation_passes() -> None:
    assert check(1.0004, GOOD)


@pytest.mark.parametrize(
    "findings",
    [
        GOOD._replace(mismatches=3),
        GOOD._replace(mean_difference=-0.002),
        GOOD._replace(mean_difference=0.002),
        GOOD._replace(mean_difference=math.nan),
        GOOD._replace(gap=-GAP_ERRORS - 0.1),
        GOOD._replace(gap=math.nan),
        GOOD._replace(value=math.nan),
        GOOD._replace(value=1.002),
        GOOD._replace(value=0.998),
    ],
)
def test_each_fault_alone_fails_it(findings: Findings) -> None:
    assert not check(1.0, findings)


def test_a_model_that_needs_nothing_it_learned_fails() -> None:
    findings = GOOD._replace(unigram=4.0)
    assert check(1.0, findings._replace(shuffled=7.2))
    assert check(1.0, findings._replace(shuffled=2.6))
    assert not check(1.0, findings._replace(shuffled=2.4))
    assert not check(1.0, findings._replace(shuffled=1.0))
    assert not check(1.0, findings._replace(shuffled=math.nan))
    assert check(5.0, findings._replace(value=5.0, shuffled=5.0))  # one that has hardly learned anything yet


def test_evaluations_agree_within_four_standard_errors_of_their_difference() -> None:
    error = difference_error({"standard_error": 4.0})
    assert error == pytest.approx(math.hypot(4.0, 4.0))
    drawn = Findings(480.0, evaluated=True, error=error)
    assert check(502.6, drawn)
    assert not check(502.7, drawn)
    assert check(480.0004, drawn._replace(error=0.0))
    assert not check(480.001, drawn._replace(error=0.0))


@pytest.mark.parametrize("stated", [math.inf, math.nan, -1.0, 0.0, 1e101])
def test_what_is_no_standard_error_allows_nothing(stated: float) -> None:
    assert difference_error({"standard_error": stated}) == 0.0


def test_a_run_without_a_number_never_passes() -> None:
    assert not check(None, GOOD)


def test_a_repetition_may_differ_by_what_seeds_and_machines_make_of_it() -> None:
    again = Findings(1.05)

    assert check(1.0, again)
    assert not check(1.0, again, noise=0.01)
    assert not check(1.0, Findings(1.0001), noise=0.0)
    assert check(1.0, Findings(1.0), noise=0.0)


def test_an_artifact_that_is_evaluated_again_gives_the_same_number_within_the_tolerance_alone() -> None:
    again = Findings(1.0004, evaluated=True)

    assert check(1.0, again)
    assert not check(1.0, again._replace(value=1.01))
    assert check(1.0, again._replace(value=1.01), tolerance=None)


def test_a_task_without_a_referee_takes_no_challenges_as_proof() -> None:
    assert not check(1.0, GOOD._replace(value=1.1), tolerance=None)


@given(st.integers(0, 2**32), st.floats(-0.5, 0.5))
def test_the_gap_is_a_number_of_standard_errors(seed: int, shift: float) -> None:
    drawn = random.Random(seed)
    own = [drawn.gauss(shift, 1) for _ in range(400)]
    new = [drawn.gauss(0, 1) for _ in range(800)]

    assert abs(gap(own, new) - shift / math.sqrt(1 / 400 + 1 / 800)) < 6
    assert gap(own, new) == pytest.approx(-gap(new, own))


def test_texts_that_cost_exactly_the_same_show_no_gap() -> None:
    assert gap([1.0, 1.0], [1.0, 1.0, 1.0]) == 0.0


def test_a_few_new_documents_made_as_expensive_as_one_likes_hide_nothing() -> None:
    drawn = random.Random(7)
    own = [drawn.gauss(-10, 15) for _ in range(512)]
    new = [drawn.gauss(0, 15) for _ in range(1024)]
    drowned = [*new[:-5], *([1e6] * 5)]

    assert gap(own, new) < -2 * GAP_ERRORS
    assert gap(own, drowned) == pytest.approx(gap(own, new), abs=0.5)


def test_a_text_of_one_document_shows_no_gap() -> None:
    assert gap([1.0], [2.0, 3.0]) == gap([1.0, 2.0], [3.0]) == 0.0
