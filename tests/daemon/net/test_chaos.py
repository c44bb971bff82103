"""Daemons that work and are killed at random: at the end all hold the same, and nothing that was seen is lost.

``AUTORESEARCH_CHAOS_SECONDS`` (of each test), ``…_DAEMONS`` and ``…_SEED`` change what happens.
"""

from __future__ import annotations

import os
import random
from pathlib import Path

import pytest

from tests.daemon.daemons import wait_for
from tests.daemon.net.namespaces import available, halves
from tests.daemon.net.swarm import SETTLE_SECONDS, Swarm, moments, running, swarm

SECONDS = float(os.environ.get("AUTORESEARCH_CHAOS_SECONDS", "10"))
DAEMONS = int(os.environ.get("AUTORESEARCH_CHAOS_DAEMONS", "3"))
KILLS = 4
SEED = int(os.environ.get("AUTORESEARCH_CHAOS_SEED", "1"))

pytestmark = [pytest.mark.slow, pytest.mark.timeout(SECONDS + 4 * SETTLE_SECONDS)]


def kill_and_restart(made: Swarm, chance: random.Random) -> None:
    """Kill one, or start one that was killed; at least one runs."""
    up = [daemon for daemon in made.daemons if running(daemon)]
    down = [daemon for daemon in made.daemons if not running(daemon)]
    if down and (len(up) < 2 or chance.random() < 0.6):
        chance.choice(down).start()
    else:
        made.kill(chance.choice(up))


def test_daemons_that_are_killed_and_restarted_lose_nothing(tmp_path: Path) -> None:
    chance = random.Random(SEED)
    with swarm(tmp_path, DAEMONS) as made:
        made.work()
        for _ in moments(SECONDS, chance, 0.2, 4.0):
            made.look()
            kill_and_restart(made, chance)
        while len(made.gone) < KILLS:  # a slow machine had few moments
            kill_and_restart(made, chance)
        for daemon in made.daemons:
            if not running(daemon):
                daemon.start()
        wait_for(lambda: len(set().union(*map(made.ids, made.daemons))) > 5 * DAEMONS)
        made.settle()
        made.check()
        assert made.forks() == 0


@pytest.mark.skipif(not available(), reason="network namespaces need root and ip")
def test_two_halves_that_were_cut_apart_go_on_and_become_equal_again(tmp_path: Path) -> None:
    # Without gossip: the exchange alone has to find what the others lack.
    with halves(4) as network, swarm(tmp_path, 4, network.places, AUTORESEARCH_NETWORK_GOSSIP="false") as made:
        left, right = made.daemons[:2], made.daemons[2:]
        made.work()
        made.settle()
        network.cut()
        before = set(made.seen)
        made.work()
        wait_for(lambda: all(len(made.ids(daemon) - before) > 8 for daemon in made.daemons), SETTLE_SECONDS)
        for daemon in made.daemons:
            daemon.post("/v1/finish")
        wait_for(lambda: all(daemon.status().state == "idle" for daemon in made.daemons), SETTLE_SECONDS)
        for half in (left, right):
            wait_for(lambda half=half: made.ids(half[0]) == made.ids(half[1]), SETTLE_SECONDS)
        news = [made.ids(half[0]) - before for half in (left, right)]
        assert news[0].isdisjoint(news[1])
        network.mend()
        made.settle()
        made.check()
        assert made.forks() == 0
