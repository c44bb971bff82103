"""Packages of another participant's task: nothing is installed before a person agrees, for this very list."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest
from autoresearch_cli.models import PackagesAnswer

from autoresearch.ask.acts.edited_program import Idea, run_once
from autoresearch.ask.acts.notebook import Notebook
from autoresearch.log.blobs import BlobStore
from autoresearch.log.log import Log
from autoresearch.paths import Paths
from autoresearch.record.encoding import format_id
from autoresearch.run.packages import may_install
from autoresearch.settings import Work
from autoresearch.task.loading import load_task
from autoresearch.trust.manifest_file import load_manifest
from autoresearch.words import Why
from tests.cli.conftest import Cli, Process
from tests.cli.test_json import strictly
from tests.daemon.daemons import Daemon, wait_for
from tests.run.packages.wheels import write_wheel
from tests.warm import COMMAND, warm_command

NOW_MS = 1_790_000_000_000


@pytest.fixture
def foreign(locked: Path, place: Path, paths: Paths) -> Path:
    """A folder here with the task, which another participant published first; its run, too, is in this log."""
    task, theirs = load_task(locked), Paths.from_environment({"AUTORESEARCH_HOME": str(place / "theirs")})
    run_once(Idea(task, task.program.decode()), theirs, now_ms=lambda: NOW_MS, work=Work())
    paths.create()
    with (
        Notebook(theirs) as source,
        Log.open(paths.log, load_manifest(paths.manifest).network) as log,
    ):
        records = list(reversed(source.log.records.newest(limit=100)))
        log.writer.ingest([(record.raw, record.signature) for record in records], now_ms=NOW_MS)
    with BlobStore(paths.blobs) as blobs:
        for content in (task.baseline, *task.harness.values()):
            blobs.put(content)
    return locked


def environments(paths: Paths) -> list[str]:
    return [folder.name for folder in paths.environments.iterdir()] if paths.environments.exists() else []


@pytest.mark.slow
@pytest.mark.parametrize("command", ["run", "work"])
def test_without_a_terminal_the_answer_is_no(foreign: Path, command: str, cli: Cli, paths: Paths) -> None:
    result = cli(command, str(foreign))
    assert result.exit_code == 6
    assert "needs 2 Python packages from" in result.stderr
    assert "tiny_a 1.0, tiny_b 1.2" in result.stderr
    assert f"--allow-packages, or: autoresearch task allow {foreign}" in result.stderr
    assert environments(paths) == []


@pytest.mark.slow
def test_an_option_or_a_setting_says_yes(foreign: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AUTORESEARCH_WORK_ALLOW_PACKAGES", "all")
    assert cli("run", str(foreign)).exit_code == 0


@pytest.mark.slow
def test_a_budget_says_yes_until_it_is_used_up(foreign: Path, paths: Paths) -> None:
    task, work = load_task(foreign), Work(packages_mib=1)
    with Log.open(paths.log, load_manifest(paths.manifest).network, read_only=True) as log:
        assert not may_install(task, paths, Work(), log, None, NOW_MS)
        assert may_install(task, paths, work, log, None, NOW_MS)
        paths.environments.mkdir(parents=True)
        large = paths.environments / "large"
        large.write_bytes(bytes(1 << 20))
        assert not may_install(task, paths, work, log, None, NOW_MS)
        large.write_bytes(bytes(1 << 19))
        (paths.environments / "the-same").hardlink_to(large)
        assert may_install(task, paths, work, log, None, NOW_MS), "a file that two environments share counts once"


@pytest.mark.slow
def test_what_was_allowed_is_this_list_and_no_other(foreign: Path, wheels: Path, cli: Cli, paths: Paths) -> None:
    assert cli("run", str(foreign), "--allow-packages").exit_code == 0
    assert len([name for name in environments(paths) if not name.endswith(".lock")]) == 1
    assert cli("run", str(foreign), "--again").exit_code == 0, "it is here now"
    subprocess.run(["rm", "-r", str(paths.environments)], check=True)
    assert cli("run", str(foreign), "--again").exit_code == 0, "and stays allowed"

    write_wheel(wheels, "tiny_b", "1.3", "VALUE = 2\n")
    text = (foreign / "task.toml").read_text()
    assert cli("task", "lock", str(foreign)).exit_code == 0
    assert (foreign / "task.toml").read_text() != text
    # The program is still the other participant's, so the new list needs an agreement of its own.
    refused = cli("run", str(foreign))
    assert refused.exit_code == 6, refused.stderr


def answered(answer: str, *words: str) -> tuple[int, str]:
    """The exit status of a command that is asked on a terminal and given this answer, and what was on the screen."""
    ours, theirs = pty.openpty()
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "TERM": "dumb"}
    places = dict.fromkeys(range(3), theirs)
    process = warm_command(words).start(COMMAND, *words, descriptors=places, environment=environment)
    os.close(theirs)
    os.write(ours, f"{answer}\n".encode())
    screen = b""
    try:
        while piece := os.read(ours, 65536):
            screen += piece
    except OSError:  # the last process has closed the terminal
        pass
    finally:
        os.close(ours)
    return process.wait(), screen.decode()


@pytest.mark.slow
def test_on_a_terminal_a_person_is_asked(foreign: Path, paths: Paths) -> None:
    status, screen = answered("n", "run", str(foreign))
    assert (status, environments(paths)) == (6, [])
    assert "Install them?" in screen
    assert "nothing was installed, and nothing runs" in screen
    status, screen = answered("y", "task", "allow", str(foreign))
    assert status == 0, screen
    assert "2 packages of my-task installed" in screen


@pytest.mark.slow
def test_ones_own_task_needs_no_question(locked: Path, cli: Cli) -> None:
    assert cli("run", str(locked)).exit_code == 0


@pytest.mark.slow
def test_a_daemon_waits_for_the_consent_and_says_so(
    foreign: Path, paths: Paths, process: Process, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(sys.path))
    daemon = Daemon(paths.config.parent).start()
    try:
        with Log.open(paths.log, load_manifest(paths.manifest).network, read_only=True) as log:
            run = format_id(log.records.newest(kind="run", limit=1)[0].id)
        assert daemon.post("/v1/work", task=str(foreign), runs=1).status_code == 200
        wait_for(lambda: daemon.status().why == Why.CANNOT_RUN_HERE)
        assert "needs 2 Python packages that nobody allowed here" in daemon.status().reason
        assert "autoresearch task allow" in process("status").stdout + process("status").stderr
        assert environments(paths) == []

        refused = process("verify", run)
        assert refused.returncode == 6
        assert "--allow-packages" in refused.stderr

        allowed = process("task", "allow", str(foreign), "--yes", "--json")
        assert strictly(allowed.stdout, PackagesAnswer).installed, allowed.stderr
        wait_for(lambda: len(daemon.runs()) > 1)
        assert daemon.runs()[-1].status == "ok"
    finally:
        daemon.stop()


@pytest.mark.slow
def test_a_worker_installs_what_is_allowed(
    locked: Path, paths: Paths, process: Process, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(sys.path))
    daemon = Daemon(paths.config.parent).start()
    try:
        ran = process("run", str(locked), "--json")
        assert ran.returncode == 0, ran.stderr
        assert daemon.runs()[-1].value == 4.0
    finally:
        daemon.stop()


def test_an_unknown_value_of_the_setting_is_refused(cli: Cli, place: Path) -> None:
    result = cli("node", "config", "set", "work.allow_packages", "some")
    assert result.exit_code == 2
    assert "work.allow_packages" in result.stderr
