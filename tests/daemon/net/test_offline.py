"""Offline is normal: whatever happens to the network, the loop goes on, and later everybody has everything."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import psutil
import pytest

from tests.daemon.daemons import Daemon, wait_for
from tests.daemon.net.test_daemons import Start, ids, peers_of
from tests.daemon.net.test_daemons import start as start  # noqa: PLC0414 - a fixture
from tests.daemon.toy import TRAIN, write_toy_task

pytestmark = pytest.mark.slow
# Long enough for something to happen meanwhile.
UNHURRIED_TRAIN = TRAIN.replace("import prepare", "import time\n\nimport prepare\n\ntime.sleep(0.3)")


def kill_network_process(daemon: Daemon) -> bool:
    """Kill the process in which the daemon's libp2p lives; whether it was there."""
    for process in daemon.tree():
        with suppress(psutil.Error):  # it ended since it was listed
            if "autoresearch_daemon.net.host.child" in process.cmdline():
                process.kill()
                return True
    return False


def test_alone_a_node_works_on_and_gives_all_when_the_other_is_back(start: Start, tmp_path: Path) -> None:
    task = write_toy_task(tmp_path / "task", UNHURRIED_TRAIN)
    first = start()
    second = start(first)
    wait_for(lambda: peers_of(second).network.connected == 1)
    second.post("/v1/work", task=str(task))
    wait_for(lambda: len(second.runs()) >= 2)
    first.kill()
    wait_for(lambda: peers_of(second).network.connected == 0)
    second.stop()
    second.start()  # it was asked to work, and still is
    alone = len(second.runs())
    wait_for(lambda: len(second.runs()) >= alone + 5)
    status = second.status()
    assert (status.state, status.task.failed) == ("working", 0)

    first.start()
    second.post("/v1/finish")
    wait_for(lambda: second.status().state == "idle")
    wait_for(lambda: ids(first) == ids(second))
    assert len(first.runs()) >= alone + 5


def test_a_network_process_that_dies_again_and_again_stops_nothing(start: Start, tmp_path: Path) -> None:
    task = write_toy_task(tmp_path / "task", UNHURRIED_TRAIN)
    first = start()
    second = start(first)
    wait_for(lambda: peers_of(second).network.connected == 1)
    second.post("/v1/work", task=str(task))
    before = second.process.pid
    for _ in range(3):
        wait_for(lambda: kill_network_process(second))
        had = len(second.runs())
        wait_for(lambda had=had: len(second.runs()) >= had + 3)
    second.post("/v1/finish")
    wait_for(lambda: second.status().state == "idle")
    assert (second.process.pid, second.process.poll(), second.status().task.failed) == (before, None, 0)
    wait_for(lambda: ids(first) == ids(second))
