"""Several networks in one home with a real daemon: alone, work, a lab network with one's own runs, and back."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from autoresearch_cli.models import BroughtRunsAnswer, HomeNetworksAnswer, ImportAnswer, NetworkAnswer

from autoresearch.ask import publishing
from autoresearch.ask.client import Client
from autoresearch.ask.node import StatusAnswer
from autoresearch.ask.node_acts import Node
from autoresearch.ask.records import LogAnswer
from autoresearch.ask.requests import BringRequest
from autoresearch.log.log import Log
from autoresearch.paths import Paths
from autoresearch.record.encoding import format_id
from autoresearch.record.kinds import Run
from autoresearch.task.folders import pin_baseline
from autoresearch.trust.manifest_file import load_manifest
from tests.cli.conftest import Process
from tests.cli.test_importing import HEADER, ROWS
from tests.cli.test_json import strictly
from tests.daemon.daemons import wait_for
from tests.daemon.toy import SLOW_TRAIN, write_toy_task

pytestmark = pytest.mark.slow


@pytest.fixture
def toy(tmp_path: Path, process: Process, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A task folder that this home works on."""
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(sys.path))
    folder = write_toy_task(tmp_path / "toy")
    pin_baseline(folder)
    assert process("node", "config", "set", "work.task", str(folder)).returncode == 0
    return folder


@pytest.fixture
def alone(toy: Path, process: Process) -> Iterator[Path]:
    """A daemon that is in no network yet, and has done four runs; the task's folder."""
    assert process("up").returncode == 0
    assert process("work", "--runs", "4").returncode == 0
    wait_for(lambda: len(runs(process)) == 4 and status(process).state == "idle")
    yield toy
    assert process("down").returncode == 0


def runs(process: Process) -> list[str]:
    """The runs in the network in use, oldest first."""
    answer = strictly(process("node", "records", "--kind", "run", "--json").stdout, LogAnswer)
    return [record.id for record in sorted(answer.records, key=lambda record: record.seq)]


def status(process: Process) -> StatusAnswer:
    return strictly(process("status", "--json").stdout, StatusAnswer)


def found_lab(process: Process, folder: Path, *more: str) -> subprocess.CompletedProcess[str]:
    """Create a network and join it."""
    assert process("network", "new", "lab", "--for", "lab", "-o", str(folder / "lab.toml")).returncode == 0
    return process("network", "join", str(folder / "lab.toml"), "--json", *more)


def test_who_worked_alone_takes_the_runs_into_a_lab_and_goes_back(
    process: Process, alone: Path, tmp_path: Path
) -> None:
    before, was = runs(process), status(process)
    joined = found_lab(process, tmp_path, "--bring")
    assert strictly(joined.stdout, NetworkAnswer).name == "lab"
    assert "4 runs of commons brought here" in joined.stderr
    assert "back to the other one: autoresearch network use commons" in joined.stderr
    now = status(process)
    assert (now.network, now.pid, now.device_key, now.mine) == ("lab", was.pid, was.device_key, 6)
    assert len(runs(process)) == 4
    assert not set(runs(process)) & set(before)
    assert process("show", "@mine", "--code").returncode == 0
    assert process("network", "use", "commons").returncode == 0
    assert (status(process).network, runs(process)) == ("commons", before)
    assert process("work", "--runs", "1").returncode == 0
    wait_for(lambda: len(runs(process)) == 5)
    assert process("network", "use", "lab").returncode == 0
    answer = strictly(process("network", "bring", "commons", "--json").stdout, BroughtRunsAnswer)
    assert (answer.brought, len(runs(process))) == (1, 5)
    listed = strictly(process("network", "list", "--json").stdout, HomeNetworksAnswer).networks
    assert [(each.name, each.in_use, each.participants) for each in listed] == [("commons", False, 1), ("lab", True, 1)]
    refused = process("network", "forget", "lab", "--yes")
    assert (refused.returncode, "the daemon works in lab" in refused.stderr) == (6, True)
    assert process("network", "forget", "commons", "--yes").returncode == 0


def test_a_daemon_that_is_killed_while_it_brings_goes_on_without_duplicates(
    process: Process, alone: Path, tmp_path: Path
) -> None:
    found_lab(process, tmp_path)
    paths = Paths.from_environment(os.environ)
    assert Client(paths.socket).ask(publishing.bring, BringRequest(network="commons", most=2)).left == 2
    os.kill(status(process).pid or 0, signal.SIGKILL)
    wait_for(lambda: process("status", "--json").returncode == 0 and not status(process).running)
    assert process("up").returncode == 0
    assert status(process).network == "lab"
    assert "2 runs of commons brought here" in process("network", "bring", "commons").stderr
    with Log.open(paths.log, load_manifest(paths.manifest).network, read_only=True) as log:
        origins = [run.body.origin for run in log.records.newest(kind="run") if isinstance(run.body, Run)]
        assert log.devices.forks() == []
    assert process("network", "use", "commons").returncode == 0
    assert sorted(format_id(origin) for origin in origins if origin) == sorted(runs(process))


def test_what_is_in_hand_and_what_waits_stays_in_its_network(process: Process, alone: Path, tmp_path: Path) -> None:
    slow = tmp_path / "slow.py"
    slow.write_text(SLOW_TRAIN)
    assert process("run", "propose", str(slow), "--seeds", "2").returncode == 0
    wait_for(lambda: any(worker.run and worker.run.loss for worker in status(process).workers))
    daemon = psutil.Process(status(process).pid)
    before = daemon.children(recursive=True)
    joined = found_lab(process, tmp_path)
    assert "recorded there as cancelled" in joined.stderr
    assert status(process).queue == []
    assert daemon.is_running()
    # What the tests put beside a daemon, to start its children, is a zombie after the change.
    assert {each.status() for each in before if each.is_running()} <= {psutil.STATUS_ZOMBIE}
    assert process("network", "use", "commons").returncode == 0
    assert len(runs(process)) == 5
    assert len(Client(Paths.from_environment(os.environ).socket).ask(Node.proposals).queue) <= 1
    now = status(process)
    waiting = [worker.run for worker in now.workers if worker.run] + now.queue
    assert len(waiting) == 1, "the second proposal was not lost"


def test_past_work_is_imported_while_the_daemon_works(process: Process, alone: Path, tmp_path: Path) -> None:
    file = tmp_path / "results.tsv"
    file.write_text(HEADER + ROWS)
    process("work")
    for added in (3, 0):
        answer = strictly(process("node", "import", str(file), "--task", str(alone), "--json").stdout, ImportAnswer)
        assert (answer.added, answer.present) == (added, 3 - added)
    assert len(strictly(process("node", "records", "--kind", "note", "--json").stdout, LogAnswer).records) == 3
    assert status(process).state == "working"
