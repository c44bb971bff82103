"""Daemons that work and are killed at random: at the end all hold the same, and nothing that was seen is lost.

``AUTORESEARCH_CHAOS_SECONDS`` (of each test), ``…_DAEMONS`` and ``…_SEED`` change what happens.
"""

from __future__ import annotations

import os
import random
import shutil
import signal
from pathlib import Path

import pytest

from tests.daemon.daemons import wait_for
from tests.daemon.net.namespaces import available, halves
from tests.daemon.net.swarm import SETTLE_SECONDS, Swarm, moments, running, swarm

SECONDS = float(os.environ.get("AUTORESEARCH_CHAOS_SECONDS", "20"))
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


@pytest.mark.parametrize("gossip", ["true", "false"])
def test_daemons_that_are_killed_and_restarted_lose_nothing(tmp_path: Path, gossip: str) -> None:
    chance = random.Random(SEED)
    with swarm(tmp_path, DAEMONS, AUTORESEARCH_NETWORK_GOSSIP=gossip) as made:
        made.work()
        for _ in moments(SECONDS, chance, 0.2, 4.0):
            made.look()
            kill_and_restart(made, chance)
        while len(made.gone) < KILLS:  # a slow machine had few moments
            kill_and_restart(made, chance)
        for daemon in made.daemons:
            if not running(daemon):
                daemon.start()
        made.settle()
        made.check()
        assert made.forks() == 0
        assert len(made.seen) > 5 * DAEMONS


def test_network_processes_that_are_killed_and_frozen_are_replaced_and_nothing_is_lost(tmp_path: Path) -> None:
    chance = random.Random(SEED)
    with swarm(tmp_path, DAEMONS) as made:
        made.work()
        daemons = [daemon.process.pid for daemon in made.daemons]
        for _ in moments(SECONDS, chance, 1.0, 8.0):
            made.look()
            made.hit_child(chance.choice(made.daemons), chance.choice([signal.SIGKILL, signal.SIGSTOP]))
        made.settle()
        made.check()
        assert [daemon.process.pid for daemon in made.daemons] == daemons, "a daemon went with its network process"
        assert made.forks() == 0


def test_a_daemon_on_an_old_backup_catches_up_and_does_not_fork(tmp_path: Path) -> None:
    with swarm(tmp_path, DAEMONS) as made:
        made.work()
        first = made.daemons[0]
        wait_for(lambda: len(first.runs()) >= 3)
        made.kill(first)
        backup = tmp_path / "backup"
        shutil.copytree(first.paths.data, backup)
        first.start()
        before = made.ids(first)
        wait_for(lambda: len(made.ids(first) - before) > 10)
        last = made.ids(first)
        wait_for(lambda: made.ids(made.daemons[1]) >= last)
        made.kill(first)
        made.look()

        shutil.rmtree(first.paths.data)
        shutil.copytree(backup, first.paths.data)
        first.start()
        wait_for(lambda: made.ids(first) >= last)
        made.settle()
        made.check()
        assert made.forks() == 0


@pytest.mark.skipif(not available(), reason="network namespaces need root and ip")
def test_two_halves_that_were_cut_apart_go_on_and_become_equal_again(tmp_path: Path) -> None:
    with halves(4) as network, swarm(tmp_path, 4, network.places) as made:
        left, right = made.daemons[:2], made.daemons[2:]
        made.work()
        made.settle()
        network.cut()
        before = set(made.seen)
        made.work()
        wait_for(lambda: all(len(made.ids(daemon) - before) > 12 for daemon in made.daemons), SETTLE_SECONDS)
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
