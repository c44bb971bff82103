"""Steps, work and tokens that an author invents earn it nothing."""

from __future__ import annotations

import pytest

from tests.log.standing.test_credit import COST, FULL, of
from tests.log.standing.village import ANN, BEN, CEM, EVE, Village


@pytest.fixture
def village(tmp_path):
    made = Village.at(tmp_path)
    yield made
    made.log.close()


@pytest.mark.parametrize("steps", [0.0, -1.0, 1e15, 1e100])
@pytest.mark.parametrize("budget", [FULL / 2, FULL, 1e20])
def test_metrics_that_an_author_states_count_nowhere(village, steps, budget):
    metrics = dict.fromkeys(("steps", "work", "flops", "tokens", "evaluated", "challenges"), steps)
    run = village.run(1.2, "good", by=ANN, **(COST | {"metrics": metrics, "budget": budget}))
    village.evaluate(run, 1.2, BEN, CEM, EVE)
    learned = village.run(1.3, "learned", by=ANN, mode="train", **(COST | {"metrics": metrics, "budget": budget}))
    village.evaluate(learned, 1.3, BEN, CEM, EVE)
    row = of(village.log, ANN)
    assert (row.work, row.cpu_ms, row.implausible.count) == (min(budget, FULL), 48_000, 0)
