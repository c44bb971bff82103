"""Peers that look for the same at once seldom run the same: claims, a moment's wait, and one claim wins."""

import tempfile
from pathlib import Path
from typing import NamedTuple

import pytest

from autoresearch.task.program import source_digest
from tests.sim.race import IDEAS, Race
from tests.sim.test_convergence import MEMORY

MOST = 0.05


class Rates(NamedTuple):
    runs: int
    twice: int
    ideas: int
    ideas_twice: int
    stopped: int

    def __str__(self):
        return (
            f"{self.runs} runs, {self.twice} of them duplicates ({self.twice / self.runs:.1%}); {self.ideas} runs of "
            f"ideas, {self.ideas_twice} duplicates; {self.stopped} runs stopped after they began"
        )


def race(seed, minutes, *, cut=None, **how):
    """What five peers ran in so many minutes; from ``cut[0]`` to ``cut[1]`` two of them reach the others not."""
    with tempfile.TemporaryDirectory(dir=MEMORY) as folder:
        world = Race(seed, Path(folder), **how)
        try:
            if cut:
                world.live(cut[0] / 60)
                world.part([0, 0, 0, 1, 1])
                world.live((cut[1] - cut[0]) / 60)
                world.part([0] * 5)
            world.live((minutes - (cut[1] if cut else 0)) / 60)
            world.heal()
            done, stopped = world.ended()
            programs = {source_digest(source) for source in world.ideas}
            ideas = [run for run in done if run[0] in programs and run[1] == 0]
            return Rates(len(done), len(done) - len(set(done)), len(ideas), len(ideas) - len(set(ideas)), stopped)
        finally:
            world.close()


def rates(name, seeds, minutes, **how):
    counts = Rates(*map(sum, zip(*(race(seed, minutes, **how) for seed in seeds), strict=True)))
    print(f"{name}: {counts}")
    return counts


@pytest.mark.slow
def test_models_that_think_of_the_same_ten_ideas_seldom_run_one_twice():
    counts = rates("models", range(2), 2, ideas=IDEAS, thinking_ms=(2000, 3000))
    assert counts.ideas >= 15
    assert counts.ideas_twice <= MOST * counts.ideas


@pytest.mark.slow
def test_searches_that_start_at_once_seldom_run_the_same():
    counts = rates("search", range(2), 2)
    assert counts.runs >= 30
    assert counts.twice <= MOST * counts.runs


CASES = {
    "models": (4, {"ideas": IDEAS}),
    "models, runs of 2 to 5 s": (1, {"ideas": IDEAS, "thinking_ms": (2000, 3000), "run_ms": (2000, 5000)}),
    "models, 1 of 10 minutes parted": (10, {"ideas": IDEAS, "cut": (1, 2)}),
    "search, runs of 2 to 5 s": (1, {"run_ms": (2000, 5000)}),
    "search, runs of 5 minutes": (40, {"run_ms": (200_000, 400_000)}),
    "search, 1 of 6 minutes parted": (6, {"cut": (2, 3)}),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_few_duplicates(name):
    minutes, how = CASES[name]
    counts = rates(name, [100], minutes, **how)
    assert counts.twice <= MOST * counts.runs
    if "cut" not in how:
        assert counts.ideas_twice <= MOST * counts.ideas
