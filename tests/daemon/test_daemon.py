"""Whole daemons: they work, stop, are killed, and start again."""

from __future__ import annotations

import contextlib
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from autoresearch_daemon.local_state import LocalState

from autoresearch.ask.client import Client
from autoresearch.log.blobs import BlobStore
from autoresearch.words import RunStatus
from tests.daemon.daemons import Daemon, wait_for
from tests.daemon.toy import SLOW_TRAIN, TRAIN, write_toy_task
from tests.warm import PRELOADED, warm

pytestmark = pytest.mark.slow


@pytest.fixture
def daemon(tmp_path: Path) -> Iterator[Daemon]:
    made = Daemon(tmp_path / "home")
    yield made
    if made.process and made.process.poll() is None:
        made.stop()


def test_it_works_on_a_task_and_the_best_falls(daemon: Daemon, tmp_path: Path) -> None:
    task = write_toy_task(tmp_path / "task")
    daemon.start()
    answer = daemon.post("/v1/work", task=str(task), runs=12)
    assert answer.status_code == 200, answer.text

    wait_for(lambda: daemon.status().state == "idle")
    runs = daemon.runs()
    assert len(runs) == 12
    assert {run.status for run in runs} == {RunStatus.OK}
    first = runs[0].value
    best = min(run.value for run in runs)
    assert first == pytest.approx(0.61)
    assert best < first
    assert len({(run.source_digest, run.replicate) for run in runs}) == 12
    assert all(run.hypothesis for run in runs)
    assert daemon.status().task.best.reported < first


def test_a_baseline_that_does_not_run_here_is_no_record_and_the_node_waits(daemon: Daemon, tmp_path: Path) -> None:
    task = write_toy_task(tmp_path / "task", 'X = 0.9  # float [0.0, 1.0]\nraise SystemExit("no such thing")\n')
    daemon.start()
    daemon.post("/v1/work", task=str(task))
    wait_for(lambda: daemon.status().why == "cannot_run_here")

    status = daemon.status()
    assert status.state == "waiting"
    assert "the baseline of toy does not run on this machine" in status.reason
    assert "no such thing" in status.reason
    assert daemon.runs() == []
    with contextlib.closing(LocalState(daemon.paths.local)) as local:
        states = [event.data for event in local.events_since(0) or [] if event.kind == "state"]
    assert (states[-1]["why"], states[-1]["reason"]) == ("cannot_run_here", status.reason)

    (task / "train.py").write_text(TRAIN)
    daemon.post("/v1/resume")
    wait_for(lambda: len(daemon.runs()) > 0)


def test_programs_that_end_for_one_reason_do_not_fill_the_log(daemon: Daemon, tmp_path: Path) -> None:
    broken = TRAIN.replace("prepare.report(", "assert (X, Y) == (0.9, 0.1), 'no such card'\nprepare.report(")
    task = write_toy_task(tmp_path / "task", broken)
    daemon.start()
    daemon.post("/v1/work", task=str(task))
    wait_for(lambda: daemon.status().why == "failing")
    ended = [run.status for run in daemon.runs()]
    assert ended[:4] == [RunStatus.OK, RunStatus.CRASHED, RunStatus.CRASHED, RunStatus.COULD_NOT_RUN]


def test_it_stops_within_ten_seconds_in_the_middle_of_a_run_and_says_how_the_run_ended(
    daemon: Daemon, tmp_path: Path
) -> None:
    task = write_toy_task(tmp_path / "task", SLOW_TRAIN)
    daemon.start()
    daemon.post("/v1/work", task=str(task))
    wait_for(lambda: any(worker.run for worker in daemon.status().workers))
    tree = daemon.tree()

    assert daemon.stop() < 10
    assert [process for process in tree if process.is_running() and process.status() != psutil.STATUS_ZOMBIE] == []
    assert [run.status for run in daemon.runs()] == [RunStatus.CANCELLED]


def test_a_run_in_hand_when_it_was_killed_is_closed_as_abandoned_and_no_process_is_left(
    daemon: Daemon, tmp_path: Path
) -> None:
    task = write_toy_task(tmp_path / "task", SLOW_TRAIN)
    daemon.start()
    daemon.post("/v1/work", task=str(task))
    wait_for(lambda: any(worker.run for worker in daemon.status().workers))
    tree = daemon.kill()
    wait_for(lambda: not any(p.is_running() and p.status() != psutil.STATUS_ZOMBIE for p in tree))
    assert daemon.runs() == []
    [abandoned] = daemon.paths.spool.iterdir()
    (abandoned / "left").touch()  # the next run may have a folder of the same name
    (daemon.paths.spool / "w9-verification").mkdir()  # as a verification leaves it, which no record waits for
    (daemon.paths.task_data / "autoresearch-scratch-x").mkdir(parents=True)

    daemon.start()
    assert not (abandoned / "left").exists()
    assert not (daemon.paths.spool / "w9-verification").exists()
    assert not list(daemon.paths.task_data.glob("autoresearch-scratch-*"))
    assert [run.status for run in daemon.runs()] == [RunStatus.ABANDONED]
    wait_for(lambda: any(worker.run for worker in daemon.status().workers))  # it was asked to work, and still is
    daemon.post("/v1/pause")
    wait_for(lambda: len(daemon.runs()) == 2)
    assert daemon.runs()[1].status == RunStatus.CANCELLED


def test_a_daemon_that_stops_leaves_no_socket_and_for_a_long_home_no_folder_elsewhere(tmp_path: Path) -> None:
    for home in (tmp_path / "home", tmp_path / ("long" * 25)):
        daemon = Daemon(home, {"AUTORESEARCH_NETWORK_ENABLED": "true"})
        daemon.start()
        assert daemon.paths.socket.exists()
        daemon.stop()
        assert not [file for file in home.rglob("*") if file.is_socket()]
        assert daemon.paths.socket.parent == home / "run" or not daemon.paths.socket.parent.exists()


def test_a_killed_worker_is_replaced_and_its_run_closed(daemon: Daemon, tmp_path: Path) -> None:
    task = write_toy_task(tmp_path / "task", SLOW_TRAIN)
    daemon.start()
    daemon.post("/v1/work", task=str(task))
    wait_for(lambda: any(worker.run for worker in daemon.status().workers))
    worker = next(p for p in daemon.tree() if "autoresearch_daemon.workers.assignment" in " ".join(p.cmdline()))
    worker.kill()

    [abandoned] = daemon.paths.spool.iterdir()
    wait_for(lambda: [run.status for run in daemon.runs()] == [RunStatus.ABANDONED])
    wait_for(lambda: not abandoned.exists())
    wait_for(lambda: any(w.run for w in daemon.status().workers))


def test_two_workers_share_the_work_without_repeating_each_other(daemon: Daemon, tmp_path: Path) -> None:
    task = write_toy_task(tmp_path / "task")
    daemon.start("--workers", "2")
    daemon.post("/v1/work", task=str(task), runs=10)

    wait_for(lambda: daemon.status().state == "idle")
    runs = daemon.runs()
    assert len(runs) == len({(run.source_digest, run.replicate) for run in runs}) == 10


def test_a_node_at_work_goes_by_changed_settings_at_once(daemon: Daemon, tmp_path: Path) -> None:
    task = write_toy_task(tmp_path / "task", train=SLOW_TRAIN)
    daemon.start()
    daemon.post("/v1/work", task=str(task), runs=5)
    wait_for(lambda: [bool(worker.run) for worker in daemon.status().workers] == [True])

    changed = daemon.post("/v1/settings", name="work.workers", value="2").json()
    assert (changed["settings"][0]["value"], changed["settings"][0]["live"], changed["note"]) == (
        2,
        True,
        "the daemon goes by it from now on",
    )
    wait_for(lambda: [bool(worker.run) for worker in daemon.status().workers] == [True, True])
    command = [sys.executable, "-m", "autoresearch_cli", "node", "config", "set", "work.verify_share", "0.4"]
    subprocess.run(command, env={**os.environ, "AUTORESEARCH_HOME": str(daemon.home)}, check=True)
    assert daemon.status().verifying.asked_share == 0.4

    refused = daemon.post("/v1/settings", name="work.verify_share", value="1")
    assert (refused.status_code, daemon.status().verifying.asked_share) == (400, 0.4)
    later = daemon.post("/v1/settings", name="work.threads", value="2").json()
    assert "from its next start" in later["note"]
    assert "verify_share = 0.4" in daemon.paths.settings.read_text()


def test_what_a_refusal_of_a_task_names_allows_it_at_once(daemon: Daemon, tmp_path: Path) -> None:
    task = write_toy_task(tmp_path / "task")
    daemon.paths.settings.parent.mkdir(parents=True, exist_ok=True)
    daemon.paths.settings.write_text("[work]\nmax_memory_mib = 64\n")
    daemon.start()
    refused = daemon.post("/v1/work", task=str(task), runs=1)
    assert refused.status_code == 409, refused.text
    allows = re.search(r"node config set (\S+) (\d+)", refused.json()["hint"])
    assert allows
    daemon.post("/v1/settings", name=allows[1], value=allows[2])
    assert daemon.post("/v1/work", task=str(task), runs=1).status_code == 200
    wait_for(lambda: len(daemon.runs()) == 1)

    daemon.post("/v1/settings", name=allows[1], value="64")
    assert daemon.post("/v1/work", task=str(task), runs=1).status_code == 409


def test_a_proposed_program_is_run(daemon: Daemon, tmp_path: Path) -> None:
    task = write_toy_task(tmp_path / "task")
    daemon.start()
    answer = daemon.post("/v1/proposals", task=str(task), program=(task / "train.py").read_text())
    assert answer.status_code == 200, answer.text

    wait_for(lambda: len(daemon.runs()) == 1)
    assert daemon.runs()[0].value == pytest.approx(0.61)


def test_what_was_run_is_not_run_again_where_any_run_of_it_will_do(daemon: Daemon, tmp_path: Path) -> None:
    task = write_toy_task(tmp_path / "task")
    proposal = {"task": str(task), "program": (task / "train.py").read_text()}
    daemon.start()
    for shared in (False, True, False):
        (name,) = daemon.post("/v1/proposals", **proposal, shared=shared).json()["proposed"]
        ended = Client(daemon.paths.socket).ended(name, seconds=60)
        assert ended is not None
        assert ("left to another" in ended.text) == shared
    assert len(daemon.runs()) == 2


def test_a_task_that_cannot_be_read_is_refused_with_a_sentence(daemon: Daemon, tmp_path: Path) -> None:
    task = write_toy_task(tmp_path / "task")
    (task / "prepare.py").write_text("print('changed')")
    daemon.start()
    answer = daemon.post("/v1/work", task=str(task))

    assert answer.status_code == 400
    assert "prepare.py" in answer.json()["error"]


def test_a_second_daemon_on_the_same_home_is_refused(daemon: Daemon) -> None:
    daemon.start()
    environment = {**os.environ, "AUTORESEARCH_HOME": str(daemon.home)}
    second = warm(PRELOADED).run("autoresearch_daemon", environment=environment)

    assert second.returncode == 6
    assert "Another process" in second.stderr
    assert "Traceback" not in second.stderr
    assert daemon.answers("/healthz")


BROKEN = {
    "raise ValueError('broken on purpose')": (RunStatus.CRASHED, "broken on purpose"),
    "print('done and gone')": (RunStatus.CRASHED, "done and gone"),
    "for _ in range(1000): print('x' * 10000)\nraise ValueError('after much text')": (
        RunStatus.CRASHED,
        "after much text",
    ),
    "hog = [bytes([1]) * (1 << 20) for _ in range(4096)]": (RunStatus.OUT_OF_MEMORY, ""),
}


def test_a_program_that_fails_is_a_record_with_its_reason_and_its_log(daemon: Daemon, tmp_path: Path) -> None:
    task = write_toy_task(tmp_path / "task")
    daemon.start()
    for number, (program, (status, message)) in enumerate(BROKEN.items(), 1):
        daemon.post("/v1/proposals", task=str(task), program=program)
        wait_for(lambda number=number: len(daemon.runs()) == number)
        run = daemon.runs()[-1]
        assert run.status == status
        assert run.reason
        assert run.value is None
        with BlobStore(daemon.paths.blobs, read_only=True) as blobs:
            assert blobs.get(run.source.sha256).decode() == program
            assert message in (blobs.get(run.log.sha256).decode(errors="replace") if run.log else "")
    wait_for(lambda: daemon.status().state == "idle")


def test_a_search_goes_on_past_failures_and_does_not_repeat_them(daemon: Daemon, tmp_path: Path) -> None:
    half_broken = """
import prepare

X = 0.9  # float [0.0, 1.0]
Y = 0.1  # float [0.0, 1.0]
if X < 0.5:
    raise ValueError("X is too small")
prepare.report((X - 0.5) ** 2 + (Y - 0.6) ** 2, steps=1)
"""
    task = write_toy_task(tmp_path / "task", half_broken)
    daemon.start()
    daemon.post("/v1/work", task=str(task), runs=20)

    def is_over() -> bool:
        status = daemon.status()
        if status.why == "failing":  # a person who has it go on, where it would wait a minute
            daemon.post("/v1/resume")
        return status.state == "idle"

    wait_for(is_over)
    runs = daemon.runs()
    assert {run.status for run in runs} - {RunStatus.COULD_NOT_RUN} == {RunStatus.OK, RunStatus.CRASHED}
    ended = [run for run in runs if run.status != RunStatus.COULD_NOT_RUN]  # else it may be tried again
    assert len({(run.source_digest, run.replicate) for run in ended}) == len(ended)
    assert len(runs) == 20
    assert daemon.status().task.failed == sum(run.status == RunStatus.CRASHED for run in runs)


def test_a_path_that_no_file_can_have_is_answered_with_a_sentence(daemon: Daemon) -> None:
    daemon.start()
    names = (
        "x" * 300,
        "x" * 5_000,
        "x" * 100_000,
        "x/" * 2_000,
        "a\0b",
        "~\0",
        "/no/such\nfolder",
        "\U0001f4a5" * 4_000,
    )
    for name in names:
        for path, body in (
            ("/v1/proposals", {"task": name, "program": "x = 1"}),
            ("/v1/proposals", {"program": "x = 1", "parent": name}),
            ("/v1/proposals/drop", {"name": name}),
            ("/v1/work", {"task": name}),
            ("/v1/peers", {"address": name}),
            ("/v1/peers/block", {"peer": name}),
            ("/v1/verify", {"run": name}),
            ("/v1/name", {"name": name}),
        ):
            answer = daemon.post(path, **body)
            assert 400 <= answer.status_code < 500, (path, name[:20], answer.text[:500])
            assert 0 < len(answer.json()["error"]) < 5_000, path
    assert daemon.status().state == "idle"
    assert "Traceback" not in daemon.paths.daemon_log.read_text()
