"""Runs of milliseconds displace each other faster than three nodes verify: runs are confirmed all the same."""

import tempfile
from pathlib import Path

import pytest

from tests.sim.climb import Climb
from tests.sim.test_convergence import MEMORY


@pytest.mark.slow
def test_short_runs_are_confirmed_while_better_ones_come():
    with tempfile.TemporaryDirectory(dir=MEMORY) as folder:
        world = Climb(1, Path(folder), peers=3, run_ms=(50, 150))
        try:
            world.live(4 / 60)
            world.heal()
            result = world.confirmations()
            print(result)
            assert result.runs >= 200
            assert len(result.seconds) >= 2
            assert result.seconds[0] <= 120
        finally:
            world.close()
