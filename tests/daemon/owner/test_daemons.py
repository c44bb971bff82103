"""Whole daemons give the machine back to its owner, and say why in one sentence everywhere."""

from __future__ import annotations

import contextlib
import html
import os
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from autoresearch_daemon.local_state import LocalState
from autoresearch_daemon.owner.host import DEADLINE_SECONDS
from autoresearch_daemon.owner.watch import LOOK_SECONDS

from autoresearch.hours import DAYS
from tests.daemon.daemons import Daemon, wait_for
from tests.daemon.owner.fake_host import Session, fake_logind
from tests.daemon.toy import SLOW_TRAIN, write_toy_task

pytestmark = pytest.mark.slow


@pytest.fixture
def daemon(tmp_path: Path) -> Iterator[Daemon]:
    made = Daemon(tmp_path / "home")
    yield made
    made.stop()


def is_running(daemon: Daemon) -> bool:
    return any(worker.run for worker in daemon.status().workers)


def cores_of_runs(daemon: Daemon) -> set[frozenset[int]]:
    """The cores that the threads of workers and sandboxes may use."""
    [worker] = [
        candidate for candidate in daemon.tree() if "autoresearch_daemon.workers.assignment" in candidate.cmdline()
    ]
    processes = [worker, *worker.children(recursive=True)]
    return {frozenset(os.sched_getaffinity(thread.id)) for process in processes for thread in process.threads()}


def test_all_runs_together_use_so_many_cores_from_now_on(daemon: Daemon, tmp_path: Path) -> None:
    usable = sorted(os.sched_getaffinity(0))
    daemon.start()
    daemon.post("/v1/work", task=str(write_toy_task(tmp_path / "task", SLOW_TRAIN)))
    wait_for(lambda: is_running(daemon))
    assert cores_of_runs(daemon) == {frozenset(usable)}
    daemon.post("/v1/settings", name="work.cores", value="1")
    wait_for(lambda: cores_of_runs(daemon) == {frozenset(usable[-1:])})
    assert is_running(daemon)
    daemon.post("/v1/settings", name="work.cores", value="0")
    wait_for(lambda: cores_of_runs(daemon) == {frozenset(usable)})


def test_outside_its_hours_a_daemon_stops_its_run_and_in_them_it_goes_on(daemon: Daemon, tmp_path: Path) -> None:
    daemon.start()
    daemon.post("/v1/work", task=str(write_toy_task(tmp_path / "task", SLOW_TRAIN)))
    wait_for(lambda: is_running(daemon))
    daemon.post("/v1/settings", name="work.hours_end", value="stop")
    other_day = DAYS[(datetime.now(UTC).weekday() + 3) % 7]
    changed = daemon.post("/v1/settings", name="work.hours", value=other_day)
    assert changed.json()["note"] == "the daemon goes by it from now on"
    wait_for(lambda: not is_running(daemon))

    status = daemon.status()
    assert (status.state, status.why) == ("waiting", "outside_hours")
    assert status.reason.startswith(f"outside the hours of work.hours ({other_day}); runs go on at 2")
    page = html.unescape(daemon.get("/node").text)
    assert status.reason in page
    assert f"{other_day}, then stop" in page
    assert "autoresearch node config set work.hours" in page
    with contextlib.closing(LocalState(daemon.paths.local)) as local:
        assert status.reason in {event.data.get("reason") for event in local.events_since(0) or []}
    assert f'"reason": "{status.reason}"' in daemon.paths.daemon_log.read_text()
    assert [run.status for run in daemon.runs()] == ["cancelled"]

    assert daemon.post("/v1/settings", name="work.hours", value="someday").status_code == 400
    daemon.post("/v1/settings", name="work.hours", value="")
    wait_for(lambda: is_running(daemon))


def test_a_daemon_stops_its_run_soon_after_its_owner_comes_back(daemon: Daemon, tmp_path: Path) -> None:
    """Within a look and its deadline, and a share of what a busy machine takes for that."""
    with fake_logind(tmp_path) as logind:
        logind.sessions = {"1": Session(idle_since_ms=1)}
        daemon.settings = {"DBUS_SYSTEM_BUS_ADDRESS": logind.address, "AUTORESEARCH_WORK_ONLY_IDLE": "1"}
        daemon.start()
        daemon.post("/v1/work", task=str(write_toy_task(tmp_path / "task", SLOW_TRAIN)))
        wait_for(lambda: is_running(daemon))  # a minute after the last use of a terminal of the machine of the test
        logind.sessions["1"].idle_since_ms, came = 0, time.monotonic()
        wait_for(lambda: not is_running(daemon))
        assert time.monotonic() - came < LOOK_SECONDS + DEADLINE_SECONDS + 20
        status = daemon.status()
        assert "by the session of anna on seat0 (work.only_idle); runs go on after 1 min" in status.reason
        assert (status.machine.owner.used_by, status.machine.owner.unknown) == ("the session of anna on seat0", "")
        assert abs(status.machine.owner.used_ms - 1000 * time.time()) < 60_000
        logind.silent = True
        wait_for(lambda: "use unknown: systemd-logind did not answer" in html.unescape(daemon.get("/node").text))
