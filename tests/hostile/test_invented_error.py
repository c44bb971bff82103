"""An author that invents how exact its value is has no wider tolerance; an honest one is refuted by nobody's luck."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from statistics import fmean, stdev

import pytest

from autoresearch.log.standing.verification import judgement
from autoresearch.words import RunState
from tests.log.standing.test_agents import AGENTS
from tests.log.standing.village import ANN, BEN, CEM, Village
from tests.record.making import BLOB

EPISODES = 100


@pytest.fixture
def corridor(tmp_path: Path) -> Iterator[Village]:
    made = Village.at(tmp_path, definition=AGENTS)
    yield made
    made.log.close()


def state(corridor: Village, claim: float, stated: float, *measured: tuple[float, float], name: str = "") -> RunState:
    """The state of a run after three verifiers came to these values with these standard errors."""
    metrics = {"standard_error": stated, "evaluated": 1.0, "std_reward": 10 * stated, "episodes": 1e15}
    run = corridor.run(claim, f"agent {name}", mode="train", budget=300.0, checkpoint=BLOB, metrics=metrics)
    for who, (value, error) in zip((ANN, BEN, CEM), measured, strict=True):
        corridor.evaluate(run, value, who, error=error)
    return judgement(corridor.log, run.id).state


@pytest.mark.parametrize("stated", [0.0, 100.0, 1000.0, 1e9, 1e99])
def test_an_invented_error_widens_nothing(corridor: Village, stated: float) -> None:
    noisy = [(1000.0 + shift, 100.0) for shift in (-60.0, 0.0, 60.0)]
    assert state(corridor, 4900.0, stated, *noisy) is RunState.DISPUTED
    assert state(corridor, 1700.0, stated, *noisy, name="nearer") is RunState.DISPUTED
    # The environment is deterministic: verifiers measure the same in every episode.
    assert state(corridor, -5.5, stated, *[(-9.0, 0.0)] * 3, name="exact") is RunState.DISPUTED
    assert state(corridor, -8.4, stated, *[(-9.0, 0.0)] * 3, name="exact, nearer") is RunState.DISPUTED


def draw(chance: random.Random, rare: float | None) -> tuple[float, float]:
    """The mean of the episodes of one honest evaluation, and its standard error."""
    if rare is None:
        rewards = [chance.gauss(200.0, 80.0) for _ in range(EPISODES)]
    else:  # as good as it gets, but for an episode now and then
        rewards = [500.0 if chance.random() > rare else chance.uniform(100.0, 490.0) for _ in range(EPISODES)]
    return fmean(rewards), stdev(rewards) / EPISODES**0.5


@pytest.mark.slow
@pytest.mark.parametrize("rare", [None, 0.002, 0.01, 0.1])
def test_honest_agents_keep_being_confirmed(corridor: Village, rare: float | None) -> None:
    chance = random.Random(5)
    states = []
    for number in range(25):
        claim, stated = draw(chance, rare)
        states.append(state(corridor, claim, stated, *(draw(chance, rare) for _ in range(3)), name=str(number)))
    assert states.count(RunState.CONFIRMED) >= 24
