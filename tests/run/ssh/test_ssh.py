"""Runs on another machine: a real server on loopback, real connections, what comes back and what is not believed."""

from __future__ import annotations

import os
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from autoresearch_executors.ssh import Ssh, parse_processes

from autoresearch.errors import Refused, TimedOut, UsageError
from autoresearch.run.executors import executor_name, executor_of
from autoresearch.run.folder import (
    CHECKPOINT,
    EVENTS,
    LOG,
    OUTCOME,
    Fault,
    RunReply,
    checkpoint_of,
    log_of,
    read_outcome,
    write_outcome,
)
from autoresearch.settings import ExecutorSection
from tests.daemon.daemons import Daemon, kill, wait_for
from tests.daemon.toy import SLOW_TRAIN, TRAIN
from tests.run.chaos import CHAOS_SECONDS, Chaos
from tests.run.ssh.sshd import Sshd
from tests.run.test_folder import written
from tests.warm import run_command


def on_leash(folder: Path, train: str = TRAIN) -> Path:
    """The folder of a run for the executor ``ssh``."""
    return written(folder, train, "ssh:lab")[0]


def make_remote_folder(sshd: Sshd, folder: Path) -> Path:
    """The folder of a run on the other machine, as if it were there."""
    place = sshd.remote_home / "runs" / folder.name
    place.mkdir(parents=True)
    return place


def test_a_name_says_the_executor_and_its_host() -> None:
    by_ssh = ExecutorSection(name="ssh", host="gpu1", python="/opt/python", folder="/scratch/runs")
    assert executor_name(by_ssh) == "ssh:gpu1"
    assert executor_name(by_ssh, host="gpu2") == "ssh:gpu2"
    assert executor_name(by_ssh, "here") == executor_name(ExecutorSection()) == ""
    assert executor_name(ExecutorSection(), host="me@gpu2") == "ssh:me@gpu2"
    made = executor_of(by_ssh, "ssh:gpu2")
    assert isinstance(made, Ssh)
    assert (made.host, made.python, made.folder, made.noun) == ("gpu2", "/opt/python", "/scratch/runs", "gpu2 process")


@pytest.mark.parametrize(("executor", "host", "message"), [("ssh", "", "no host"), ("slurm", "gpu1", "has no host")])
def test_what_names_no_machine_is_refused(executor: str, host: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        executor_name(ExecutorSection(), executor, host)


def test_runners_are_known_by_their_folder() -> None:
    printed = (
        "   12 /usr/bin/python3 -P -m autoresearch.run .cache/autoresearch/runs/search-1-ab\n"
        "  13 python3 -P -m autoresearch.run .cache/autoresearch/runs/search-1-ab\n"
        " 14 sh -c python3 -m autoresearch.run /runs/search-2-cd 2>&1\n"
        "17 python3 -P -m autoresearch.run /elsewhere/search-4-aa\n"
        "15 python3 -m autoresearch.run.examinee /runs/search-3-ef\n"
        "16 vi notes\n\nhalf"
    )
    processes = parse_processes(printed, Path(".cache/autoresearch/runs"))
    assert {run: process.native for run, process in processes.items()} == {"search-1-ab": "12"}


def test_an_unknown_key_of_the_machine_is_refused(sshd: Sshd, lab: Ssh) -> None:
    sshd.trust((sshd.home / ".ssh" / "id_ed25519.pub").read_text())
    with pytest.raises(Refused, match="the key of lab is not the one in"):
        lab.capacity()
    (sshd.home / ".ssh" / "known_hosts").unlink()
    (sshd.home / ".ssh" / "config").open("a").write("  UserKnownHostsFile none\n  StrictHostKeyChecking no\n")
    with pytest.raises(Refused, match="stands in none"):
        lab.capacity()


def test_without_a_key_that_it_accepts_nothing_is_asked(sshd: Sshd, lab: Ssh) -> None:
    (sshd.home / ".ssh" / "id_ed25519").rename(sshd.folder / "lost")
    with pytest.raises(Refused, match="accepts none of your keys") as refused:
        lab.capacity()
    assert "ssh lab true" in refused.value.hint


@pytest.mark.slow
def test_a_machine_that_is_off_loses_no_run(sshd: Sshd, lab: Ssh, tmp_path: Path) -> None:
    folder = on_leash(tmp_path)
    assert lab.capacity() == 4
    sshd.kill()
    lab.absences.seconds = 0.0
    assert [lab.look([folder])[folder].state for _ in range(3)] == ["unknown"] * 3
    with pytest.raises(TimedOut):
        lab.start(folder)
    sshd.start()
    assert lab.look([folder])[folder].state == "lost", "it is there again, and has nothing of it"


def test_a_connection_that_breaks_while_a_command_runs_refuses_nothing(sshd: Sshd, tmp_path: Path) -> None:
    started = tmp_path / "started"
    lab = Ssh(ExecutorSection(name="ssh", host="lab", python=f"touch {started}; sleep 60 #"), "lab")
    with ThreadPoolExecutor() as pool:
        printed = pool.submit(lab.printed_machine)
        wait_for(started.exists)
        for connection in sshd.connections():
            kill(connection)
        with pytest.raises(TimedOut, match="lab: the connection broke"):
            printed.result()
    lab.close()


@pytest.mark.slow
def test_what_lies_there_comes_home_and_goes_away(sshd: Sshd, lab: Ssh, tmp_path: Path) -> None:
    folder = on_leash(tmp_path)
    place = make_remote_folder(sshd, folder)
    (place / EVENTS).write_bytes(b'{"event": "progress", "fraction": 0.5}\n')
    seen = lab.look([folder])[folder]
    assert seen.state == "unknown"
    assert (folder / EVENTS).exists()
    (place / LOG).write_bytes(b"words")
    (place / CHECKPOINT).write_bytes(bytes(3_000_000))
    write_outcome(place, RunReply(run=folder.name, level=2, fault=Fault(sentence="no disk")))
    assert lab.look([folder])[folder].state == "ended"
    ended, checkpoint = read_outcome(folder), checkpoint_of(folder)
    assert ended
    assert checkpoint
    assert (ended.level, log_of(folder), checkpoint.stat().st_size) == (2, b"words", 3_000_000)
    lab.forget(folder)
    assert not place.exists()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "kind"),
    [(LOG, "link"), (CHECKPOINT, "large"), (CHECKPOINT, "pipe"), (OUTCOME, "link"), (OUTCOME, "large")],
)
def test_what_is_no_plain_file_stays_there(sshd: Sshd, lab: Ssh, tmp_path: Path, name: str, kind: str) -> None:
    folder = on_leash(tmp_path)
    place = make_remote_folder(sshd, folder)
    write_outcome(place, RunReply(run=folder.name, level=2, fault=Fault(sentence="no disk")))
    (place / name).unlink(missing_ok=True)
    if kind == "large":
        with (place / name).open("wb") as file:
            file.truncate(2 << 40)
    else:
        {"link": lambda path: path.symlink_to("/etc/passwd"), "pipe": os.mkfifo}[kind](place / name)
    assert lab.look([folder])[folder].state == "ended"
    assert (log_of(folder), checkpoint_of(folder)) == (b"", None)
    if name == OUTCOME:
        with pytest.raises(Refused, match="can't be read"):
            read_outcome(folder)


@pytest.mark.slow
def test_a_machine_without_the_program_says_so_at_once(sshd: Sshd, lab: Ssh, tmp_path: Path) -> None:
    lab.python = "/no/such/python"
    with pytest.raises(Refused, match="/no/such/python") as refused:
        lab.machine()
    assert "executor.python" in refused.value.hint
    folder = on_leash(tmp_path)
    lab.start(folder)
    wait_for(lambda: lab.look([folder])[folder].state == "ended")
    ended = read_outcome(folder)
    assert ended
    assert ended.fault
    assert "/no/such/python" in ended.fault.sentence


def status_of(folder: Path) -> str:
    ended = read_outcome(folder)
    assert ended
    assert ended.outcome, ended
    return ended.outcome.status


@pytest.mark.slow
def test_a_run_is_carried_there_and_its_outcome_comes_back(sshd: Sshd, lab: Ssh, tmp_path: Path) -> None:
    folder = on_leash(tmp_path)
    lab.start(folder)
    lab.start(folder)
    wait_for(lambda: lab.look([folder])[folder].state == "ended")
    assert status_of(folder) == "ok"


@pytest.mark.slow
@pytest.mark.parametrize("end", ["it is cancelled", "the connection breaks"])
def test_a_run_stops_with_its_leash_and_leaves_its_outcome(sshd: Sshd, lab: Ssh, tmp_path: Path, end: str) -> None:
    folder = on_leash(tmp_path, SLOW_TRAIN)
    lab.start(folder)
    wait_for(lambda: lab.look([folder])[folder].progress is not None)
    seen = lab.look([folder])[folder]
    assert (seen.state, lab.capacity()) == ("running", 3)
    assert seen.native.isdigit()
    if end == "it is cancelled":
        lab.cancel(folder)
    else:
        for connection in sshd.connections():
            kill(connection)
    wait_for(lambda: lab.look([folder])[folder].state == "ended")
    assert status_of(folder) == "cancelled"
    lab.start(folder)
    wait_for(lambda: not lab.listed())
    assert status_of(folder) == "cancelled", "what was begun is not begun again"


@pytest.mark.slow
def test_the_doctor_says_what_the_machine_is(sshd: Sshd) -> None:
    words = ["node", "doctor", "executor", "--host", "lab"]
    settings = {**os.environ, "AUTORESEARCH_HOME": str(sshd.folder / "node")}
    for python, message in ((None, "bubblewrap"), ("/no/python", "executor.python PATH")):
        settings["AUTORESEARCH_EXECUTOR_PYTHON"] = python or sys.executable
        done = run_command(*words, environment=settings)
        assert message in done.stdout, done.stdout + done.stderr
        assert done.returncode == int(python is not None)
        assert "it answers and takes 8 more runs" in done.stdout


@pytest.mark.slow
def test_work_for_a_machine_that_is_off_is_refused_at_once(sshd: Sshd) -> None:
    sshd.kill()
    daemon = Daemon(sshd.folder / "node").start()
    words = ["work", "--executor", "ssh", "--host", "lab"]
    settings = {**os.environ, "AUTORESEARCH_HOME": str(sshd.folder / "node")}
    try:
        refused = run_command(*words, environment=settings)
        assert refused.returncode == 7, refused.stdout + refused.stderr
        assert "no work was begun: ssh can't be reached: lab: " in refused.stderr
        assert "autoresearch node doctor executor --host lab, then" in refused.stderr
        assert daemon.status().state == "idle"
        sshd.start()
        assert run_command(*words, "--runs", "1", environment=settings).returncode == 0
        assert daemon.status().state == "working"
    finally:
        daemon.stop()


@pytest.mark.slow
@pytest.mark.timeout(CHAOS_SECONDS + 600)
def test_whatever_is_killed_each_run_has_one_record(sshd: Sshd, tmp_path: Path) -> None:
    settings = {"AUTORESEARCH_EXECUTOR_PYTHON": sys.executable}
    settings["AUTORESEARCH_EXECUTOR_FOLDER"] = str(sshd.remote_home / "runs")
    chaos = Chaos(sshd.folder / "node", settings, executor="ssh", host="lab")
    chaos.place = str(sshd.remote_home)

    def kill_connection() -> None:
        if connections := sshd.connections():
            kill(chaos.random.choice(connections))

    def kill_machine() -> None:
        sshd.kill()
        sshd.start()

    chaos.kills |= {"connection": kill_connection, "machine": kill_machine}
    chaos.play()
    chaos.end(lambda: list((sshd.remote_home / "runs").iterdir()))
