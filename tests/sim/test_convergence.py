"""Whatever happened before: a few rounds of pairwise exchanges and all nodes hold the same records and answer alike."""

import tempfile
from pathlib import Path

import pytest

from autoresearch.log.log import Log
from tests.sim.network import Simulation, quota
from tests.sim.node import NETWORK

MEMORY = "/dev/shm" if Path("/dev/shm").is_dir() else None
ROUNDS = 5
STEPS = 80


@pytest.fixture(scope="module")
def template():
    """An empty log to copy: making one costs more than all else that a node does here."""
    with tempfile.TemporaryDirectory(dir=MEMORY) as folder:
        Log.open(Path(folder) / "log.sqlite", NETWORK).close()
        yield Path(folder)


def simulate(seed, template):
    """Rounds until all were equal, the largest log, forks seen, appends refused as the log was behind."""
    with tempfile.TemporaryDirectory(dir=MEMORY) as folder:
        simulation = Simulation(seed, Path(folder), template)
        try:
            simulation.disturb(STEPS)
            union = simulation.union()
            rounds = simulation.repair(ROUNDS)
            assert rounds <= ROUNDS, f"seed {seed} is not equal after {ROUNDS} rounds"
            assert simulation.union() == quota(union)
            forks = len(simulation.nodes[0].log.devices.forks())
            return rounds, len(union), forks, sum(node.refused_to_fork for node in simulation.nodes)
        finally:
            simulation.close()


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(8))
def test_nodes_become_equal(seed, template):
    simulate(seed, template)


@pytest.mark.slow
def test_a_simulation_is_a_function_of_its_seed(template):
    assert simulate(3, template) == simulate(3, template)


@pytest.mark.slow
def test_the_simulations_meet_what_they_are_for(template):
    """Forks, restored logs that refuse to fork, quotas and disorder do occur."""
    outcomes = [simulate(seed, template) for seed in range(8, 24)]
    assert max(rounds for rounds, _, _, _ in outcomes) >= 2
    assert min(records for _, records, _, _ in outcomes) >= 10
    assert sum(forks > 0 for _, _, forks, _ in outcomes) >= 8
    assert sum(refused for _, _, _, refused in outcomes) >= 1


@pytest.mark.slow
@pytest.mark.parametrize("start", [24, 44])
def test_many_networks_become_equal(start, template):
    for seed in range(start, start + 20):
        simulate(seed, template)
