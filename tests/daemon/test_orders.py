"""Orders on whole daemons: counted exactly though it is killed, cancelled at once, overtaken by what a person asks."""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from autoresearch.log.log import Log
from autoresearch.record.record import DEFAULT_NETWORK
from autoresearch.task.loading import load_task
from autoresearch.words import UNFINISHED, RunStatus
from tests.daemon.daemons import Daemon, wait_for
from tests.daemon.toy import HARNESS, TRAIN, write_toy_task

pytestmark = pytest.mark.slow

SILENT_TRAIN = TRAIN.replace("import prepare", "import time\n\nimport prepare\n\ntime.sleep(50)")
NO_CARD = 'X = 0.9  # float [0.0, 1.0]\nraise SystemExit("no such card")\n'
KILLS = 10


@pytest.fixture
def daemon(tmp_path: Path) -> Iterator[Daemon]:
    made = Daemon(tmp_path / "home")
    yield made
    if made.process and made.process.poll() is None:
        made.stop()


def other_task(folder: Path, train: str) -> Path:
    return write_toy_task(folder, train, f"{HARNESS}\n# of {folder.name}\n")


def done(daemon: Daemon) -> Counter[bytes]:
    """How many runs of each task came to their end."""
    return Counter(run.task for run in daemon.runs() if run.status not in UNFINISHED)


def test_two_orders_are_counted_exactly_though_the_daemon_is_killed_ten_times(daemon: Daemon, tmp_path: Path) -> None:
    chance = random.Random(49)
    first, second = write_toy_task(tmp_path / "first"), other_task(tmp_path / "second", TRAIN)
    impossible = other_task(tmp_path / "impossible", NO_CARD)
    daemon.start()
    daemon.post("/v1/work", task=str(impossible), runs=2)
    daemon.post("/v1/work", task=str(first), runs=12)
    daemon.post("/v1/work", task=str(second), runs=7)
    for _ in range(KILLS):
        time.sleep(chance.uniform(0.1, 3.0))
        daemon.kill()
        daemon.start()
    # The daemon tries it once more after each start: until then it is not passed over.
    wait_for(lambda: [(order.runs_left, order.state) for order in daemon.status().orders] == [(2, "passed over")])
    (order,) = daemon.status().orders
    assert "no such card" in order.reason
    assert done(daemon) == {load_task(first).digest: 12, load_task(second).digest: 7}
    assert daemon.post("/v1/orders/cancel", number=order.number).json()["orders"] == []
    assert daemon.post("/v1/orders/cancel", number=order.number).status_code == 404


def test_what_a_person_asks_for_interrupts_the_search_once_and_its_run_is_made_later(
    daemon: Daemon, tmp_path: Path
) -> None:
    slow, quick = other_task(tmp_path / "slow", SILENT_TRAIN), write_toy_task(tmp_path / "quick")
    daemon.start()
    daemon.post("/v1/work", task=str(slow), runs=1)
    wait_for(lambda: any(worker.run for worker in daemon.status().workers))
    for program in (TRAIN, TRAIN.replace("0.9", "0.8")):
        answer = daemon.post("/v1/proposals", task=str(quick), program=program)
        assert answer.status_code == 200, answer.text
    wait_for(lambda: done(daemon)[load_task(quick).digest] == 2)
    with Log.open(daemon.paths.log, DEFAULT_NETWORK, read_only=True) as log:
        (interrupted,) = [run.body for run in log.records.newest(kind="run", limit=9) if run.body.status == "cancelled"]
    assert "goes first; it is run later" in interrupted.reason
    wait_for(lambda: done(daemon)[load_task(slow).digest] == 1)
    again = [run for run in daemon.runs() if run.task == interrupted.task and run.status == RunStatus.OK]
    assert [run.source_digest for run in again] == [interrupted.source_digest]
    assert daemon.status().orders == []


def test_an_order_that_is_cancelled_ends_its_run_at_once_and_instead_ends_them_all(
    daemon: Daemon, tmp_path: Path
) -> None:
    slow, quick = other_task(tmp_path / "slow", SILENT_TRAIN), write_toy_task(tmp_path / "quick")
    daemon.start()
    daemon.post("/v1/work", task=str(slow))
    wait_for(lambda: any(worker.run for worker in daemon.status().workers))
    (order,) = daemon.status().orders
    daemon.post("/v1/orders/cancel", number=order.number)
    wait_for(lambda: [run.status for run in daemon.runs()] == ["cancelled"])
    daemon.post("/v1/work", task=str(slow), runs=3)
    daemon.post("/v1/work", task=str(slow), for_ms=3_600_000)
    orders = daemon.post("/v1/work", task=str(quick), runs=1, instead=True).json()["orders"]
    assert [(each["task"], each["runs"]) for each in orders] == [("toy", 1)]
    wait_for(lambda: done(daemon) == {load_task(quick).digest: 1})
