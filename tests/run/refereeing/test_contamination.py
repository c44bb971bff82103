"""Who trains on the validation text is found out by text that was written or drawn after the model."""

from __future__ import annotations

import pytest

from autoresearch.judging.statistics import GAP_ERRORS
from benchmarks.contamination import measure


# Each of two trains for a quarter of a minute on a quiet machine.
@pytest.mark.slow
def test_validation_text_spread_over_the_training_is_caught() -> None:
    figures = measure(quick=True)
    assert figures["library-32 spread 20%: gap"] < -GAP_ERRORS
    assert figures["library-32 spread 20%: gain"] > 0
