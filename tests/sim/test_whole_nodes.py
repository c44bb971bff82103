"""Whole nodes search and verify through crashes, partitions and lies: once healed all say the same of every run."""

import tempfile
from collections import Counter
from pathlib import Path

import pytest

from autoresearch.words import RunState
from tests.sim.test_convergence import MEMORY
from tests.sim.world import World

BELIEVED = {RunState.CONFIRMED, RunState.PROVISIONAL}


def story(seed, *, hours=2):
    """The states of honest and of cheating runs after a healed story, and what was told."""
    with tempfile.TemporaryDirectory(dir=MEMORY) as folder:
        world = World(seed, Path(folder))
        try:
            world.live(hours)
            world.heal()
            first, *others = world.answers()
            for other in others:
                assert other == first, f"seed {seed}: nodes that hold the same say different things"
            states = world.states()
            assert not BELIEVED & set(states["cheating"]), f"seed {seed}: a lie passed"
            return {who: Counter(run_states) for who, run_states in states.items()}, first["tables"]
        finally:
            world.close()


@pytest.mark.slow
def test_a_story_is_a_function_of_its_seed():
    assert story(5, hours=1) == story(5, hours=1)


@pytest.mark.slow
def test_the_stories_meet_what_they_are_for():
    """Nodes agree once healed, honest runs pass, lies are found out."""
    honest, cheating = Counter(), Counter()
    for seed in (10, 11):
        states, _ = story(seed)
        honest += states["honest"]
        cheating += states["cheating"]
    assert sum(honest[state] for state in BELIEVED) >= 6
    assert cheating[RunState.REFUTED] + cheating[RunState.DISPUTED] >= 3
