"""The command line with a real daemon, on a task whose runs take milliseconds in the real sandbox."""

from __future__ import annotations

import json
import os
import pty
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import msgspec
import psutil
import pytest
from autoresearch_cli import starting
from autoresearch_cli.models import DemoAnswer, DownAnswer, OpenAnswer, UpAnswer
from autoresearch_cli.starting import is_alive
from autoresearch_exports.git import GitExportAnswer

from autoresearch.ask.node import Event, StatusAnswer
from autoresearch.ask.records import ShowAnswer, WithdrawnAnswer
from autoresearch.paths import Paths
from autoresearch.task.folders import pin_baseline
from tests.cli.conftest import Process
from tests.cli.test_command_cost import LARGE, SHOWING, THIRD, loaded
from tests.cli.test_json import strictly
from tests.daemon.toy import SLOW_TRAIN, write_toy_task

pytestmark = pytest.mark.slow
# Makes the terminal its own, so that Ctrl-C typed there is a signal, and becomes the command.
ADOPT = "import fcntl, os, sys, termios; fcntl.ioctl(0, termios.TIOCSCTTY, 0); os.execv(sys.argv[1], sys.argv[1:])"


@pytest.fixture
def toy(tmp_path: Path, process: Process, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A task folder that this home works on."""
    # Daemons that the command starts find the packages as the tests do.
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(sys.path))
    folder = write_toy_task(tmp_path / "toy")
    pin_baseline(folder)
    assert process("node", "config", "set", "work.task", str(folder)).returncode == 0
    return folder


@pytest.fixture
def daemon(toy: Path, process: Process) -> Iterator[int]:
    """A daemon that ``up`` started; its process number."""
    answer = strictly(process("up", "--json").stdout, UpAnswer)
    assert answer.state == "started"
    assert answer.pid
    yield answer.pid
    assert process("down").returncode == 0
    assert not is_alive(answer.pid)


def test_a_package_in_the_folder_that_somebody_works_in_is_not_run(
    process: Process, toy: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    decoy = tmp_path / "decoy" / "autoresearch_daemon"
    decoy.mkdir(parents=True)
    (decoy / "__init__.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')\n")
    monkeypatch.chdir(decoy.parent)
    assert process("up", python=("-P", "-m", "autoresearch_cli")).returncode == 0
    assert process("down").returncode == 0
    assert not (tmp_path / "ran").exists()


def test_up_and_down_may_be_said_twice_and_up_says_what_goes_on(process: Process, daemon: int) -> None:
    again = strictly(process("up", "--json").stdout, UpAnswer)
    assert (again.state, again.pid, again.working) == ("already_running", daemon, False)
    assert "autoresearch work" in process("up").stderr
    process("work")
    assert strictly(process("down", "--json").stdout, DownAnswer).state == "stopped"
    assert strictly(process("down", "--json").stdout, DownAnswer).state == "was_not_running"
    restarted = process("up")
    assert "autoresearch status" in restarted.stderr
    assert "autoresearch work" not in restarted.stderr
    assert strictly(process("up", "--json").stdout, UpAnswer).working


def test_a_running_daemon_shows_its_pages_and_is_told_what_to_do(
    process: Process, daemon: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    show_pages(process, monkeypatch)
    choose_name(process)
    pause_and_resume(process)
    for words in (("run", str(tmp_path)), ("work", str(tmp_path))):
        refused = process(*words)
        assert refused.returncode == 2
        assert str(tmp_path) in refused.stderr


def show_pages(process: Process, monkeypatch: pytest.MonkeyPatch) -> None:
    """Open says where the pages are, and gives the token in the fragment alone."""
    for name in ("DISPLAY", "WAYLAND_DISPLAY"):
        monkeypatch.delenv(name, raising=False)
    address = strictly(process("open", "--json").stdout, OpenAnswer).address
    assert address in process("open").stderr
    private = process("open", "--print").stdout.strip()
    token = private.removeprefix(f"{address}#token=")
    assert httpx.get(address).status_code == 200
    assert httpx.get(f"{address}v1/status").status_code == 401
    assert httpx.get(f"{address}v1/status", headers={"Authorization": f"Bearer {token}"}).status_code == 200


def test_work_starts_the_daemon_where_none_runs(process: Process, toy: Path) -> None:
    first = process("work", "--runs", "1", "--json")
    assert strictly(first.stdout, StatusAnswer).running
    assert "started the daemon" in first.stderr
    assert "started the daemon" not in process("work", "--runs", "2").stderr
    assert process("down").returncode == 0


def choose_name(process: Process) -> None:
    """A name is chosen and taken away."""

    def name() -> str:
        return strictly(process("status", "--json").stdout, StatusAnswer).participant.name

    assert process("node", "id", "name", "ann").returncode == 0
    assert name() == "ann"
    assert process("node", "id", "name", "--remove").returncode == 0
    assert name() == ""


def pause_and_resume(process: Process) -> None:
    """Pause, resume and finish change the state and say why."""
    paused = strictly(process("node", "pause", "--for", "2h", "--json").stdout, StatusAnswer)
    assert paused.state == "paused"
    assert paused.until_ms
    assert abs(paused.until_ms - time.time() * 1000 - 7_200_000) < 60_000
    assert "paused" in process("status").stdout
    assert strictly(process("node", "resume", "--json").stdout, StatusAnswer).state != "paused"
    assert process("node", "finish").returncode == 0


def test_a_run_goes_through_the_daemon_is_withdrawn_and_waits_while_it_is_paused(
    process: Process, daemon: int, toy: Path
) -> None:
    result = process("run", str(toy), "--json")
    assert result.returncode == 0, result.stderr
    answer = strictly(result.stdout, ShowAnswer)
    assert answer.run
    assert answer.run.run.value == pytest.approx(0.61)
    assert "this process" not in result.stderr
    run = answer.record.id
    assert process("top").stdout.count(run) == 1
    withdrawn = strictly(
        process("run", "withdraw", run, "--reason", "wrong data", "--yes", "--json").stdout, WithdrawnAnswer
    )
    assert (withdrawn.id, withdrawn.reason) == (run, "wrong data")
    assert run not in process("top").stdout
    assert strictly(process("show", run, "--json").stdout, ShowAnswer).withdrawn_reason == "wrong data"
    again = process("run", "withdraw", run, "--yes")
    assert (again.returncode, "is withdrawn already" in again.stderr) == (6, True)
    refused = process("node", "id", "merge")
    assert (refused.returncode, "Traceback" in refused.stderr) == (6, False), "the root key signs with the daemon down"

    process("node", "pause")
    command = [sys.executable, "-m", "autoresearch_cli", "run", str(toy)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as running:
        assert running.stderr
        assert "paused" in running.stderr.readline()
        assert process("node", "resume").returncode == 0
        assert running.wait() == 0


def test_a_fork_after_a_restored_copy_is_ended_and_the_daemon_goes_on(
    process: Process, toy: Path, paths: Paths, tmp_path: Path
) -> None:
    def run(number: int) -> str:
        assert process("up").returncode == 0
        answer = strictly(process("run", str(toy), "--replicate", str(number), "--json").stdout, ShowAnswer)
        assert process("down").returncode == 0
        return answer.record.id

    first = run(0)
    copy = shutil.copytree(paths.data, tmp_path / "copy")
    lost = run(1)
    assert process("run", "export", "--bundle", str(tmp_path / "lost.car")).returncode == 0
    shutil.rmtree(paths.data)
    shutil.copytree(copy, paths.data)
    other = run(2)
    assert process("node", "import", str(tmp_path / "lost.car")).returncode == 0
    assert "autoresearch node id merge" in process("node", "doctor").stderr
    assert process("node", "id", "merge").returncode == 0
    assert process("up").returncode == 0
    try:
        for record in (first, lost, other):
            reply = strictly(process("show", record, "--json").stdout, ShowAnswer)
            assert reply.run
            assert not reply.run.standing.forked
        status = strictly(process("status", "--json").stdout, StatusAnswer)
        assert status.task
        assert status.task.best
        assert status.task.best.reported_runs == 3
    finally:
        assert process("down").returncode == 0


def test_a_daemon_that_starts_slowly_is_waited_for(
    toy: Path, paths: Paths, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(starting, "UNREADY_SECONDS", 0.0)  # so long it has once it answers, and not before
    monkeypatch.setattr(starting, "SLOW_SECONDS", 0.0)
    try:
        starting.ensure_running()
        assert (
            "waiting for the daemon: it loads its program and the log, slowly on a busy machine; it has 180 s"
            in capsys.readouterr().err
        )
        assert starting.is_running()
    finally:
        starting.stop()


def test_up_says_what_is_wrong_and_what_to_do_when_the_daemon_does_not_start(process: Process, toy: Path) -> None:
    for name, value in (("mail.host", "smtp.example.org"), ("attestor.enabled", "true")):
        assert process("node", "config", "set", name, value).returncode == 0
    ended = process("up")
    assert ended.returncode == 2
    assert "did not start: mail.from_address is no mail address → autoresearch node config set" in ended.stderr


def test_work_runs_as_many_as_asked_and_tells_of_each(process: Process, daemon: int) -> None:
    status = strictly(process("work", "--runs", "3", "--json").stdout, StatusAnswer)
    assert status.state == "working"
    followed = followed_until("runs_done")
    events = [msgspec.json.decode(line, type=Event) for line in process("node", "events", "--json").stdout.splitlines()]
    finished = [event for event in events if event.kind == "run_finished"]
    assert len(finished) == 3
    assert {event.id for event in finished} <= {event.id for event in followed} | {event.id for event in events}
    assert [event.id for event in events] == sorted(event.id for event in events)
    later = process("node", "events", "--since", str(finished[0].id), "--json").stdout.splitlines()
    assert json.loads(later[0])["id"] == finished[0].id + 1
    assert strictly(process("status", "--json").stdout, StatusAnswer).state == "idle"
    assert len(process("node", "records", "--kind", "run").stdout.splitlines()) == 3
    command = [sys.executable, "-m", "autoresearch_cli", "work", "--runs", "1", "--follow", "--json"]
    with subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        # A job of a shell in the background ignores it.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # noqa: PLW1509 - starts no thread before
    ) as following:
        assert following.stdout
        assert following.stdout.readline(), "the status"
        first = msgspec.json.decode(following.stdout.readline(), type=Event)
        assert (first.kind, first.data["state"]) == ("state", "working"), (
            "nothing is missed, however quick the runs are"
        )
        following.send_signal(signal.SIGINT)
        assert "the work goes on: autoresearch status" in following.communicate(timeout=120)[1]


def followed_until(why: str) -> list[Event]:
    """Follow the events from the first on until the node's state has this reason."""
    command = [sys.executable, "-m", "autoresearch_cli", "node", "events", "--since", "0", "--follow", "--json"]
    seen = []
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as running:
        assert running.stdout
        for line in running.stdout:
            seen.append(msgspec.json.decode(line, type=Event))
            if seen[-1].kind == "state" and seen[-1].data["why"] == why:
                running.kill()
                break
    return seen


def test_run_works_without_a_daemon_and_fails_with_the_program(process: Process, toy: Path) -> None:
    good = process("run", str(toy), "--json")
    assert good.returncode == 0, good.stderr
    assert strictly(good.stdout, ShowAnswer).record.kind == "run"
    (toy / "train.py").write_text("raise SystemExit('no luck today')\n")
    bad = process("run", str(toy))
    assert bad.returncode == 1
    assert "crashed" in bad.stdout
    assert "no luck today" in process("show", bad.stdout.splitlines()[0].split("\t")[1], "--log").stdout


def test_settings_that_keep_the_daemon_from_starting_are_told(process: Process, toy: Path, paths: Paths) -> None:
    paths.settings.write_text("[work]\nworkerz = 1\n")
    for words in (("up",), ("demo",)):
        result = process(*words)
        assert result.returncode != 0
        assert "workers" in result.stderr
        assert "Traceback" not in result.stderr


def test_a_demo_ends_by_itself_and_what_it_asked_for_is_over_with_it(process: Process, toy: Path, paths: Paths) -> None:
    result = process("demo", "--runs", "2")
    assert result.returncode == 0, result.stderr
    lines = [line for line in result.stdout.splitlines() if line.startswith(("★", "✓", "·", "✗"))]
    assert len(lines) == 2
    assert "2 runs, 0 of them failed" in result.stderr
    assert "autoresearch best toy --code" in result.stderr
    assert not paths.socket.exists()
    lines = process("demo", "--runs", "1", "--json").stdout.splitlines()
    assert strictly(lines[-1], DemoAnswer).runs == 1
    kinds = [msgspec.json.decode(line, type=Event).kind for line in lines[:-1]]
    assert "run_finished" in kinds
    process("up")
    try:
        assert strictly(process("status", "--json").stdout, StatusAnswer).state == "idle"
    finally:
        process("down")


def test_a_demo_uses_a_daemon_that_runs_and_leaves_it_running(process: Process, daemon: int) -> None:
    assert process("demo", "--runs", "1").returncode == 0
    assert strictly(process("status", "--json").stdout, StatusAnswer).pid == daemon


def test_ctrl_c_ends_a_demo_on_a_terminal_within_ten_seconds(toy: Path, paths: Paths) -> None:
    (toy / "train.py").write_text(SLOW_TRAIN)
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "autoresearch_cli", "demo"]
    adopting = [sys.executable, "-c", ADOPT, *command]
    with subprocess.Popen(adopting, stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True) as demo:
        os.close(theirs)
        screen = read_until(ours, "the baseline")
        children = psutil.Process(demo.pid).children(recursive=True)
        os.write(ours, b"\x03")
        screen += read_until(ours, None)
        assert demo.wait(30) == 0
    os.close(ours)
    assert "1 run, 1 of them failed" in screen or "0 runs" in screen
    assert "autoresearch up --work" in screen
    assert not paths.socket.exists()
    _, alive = psutil.wait_procs(children, timeout=250)
    assert alive == []


@pytest.mark.parametrize("answer", ["n", "y"])
def test_what_a_command_lacks_is_installed_only_if_a_person_says_so(answer: str, tmp_path: Path) -> None:
    pip = tmp_path / "pip.py"  # found before the real one
    pip.write_text("import sys\nprint('asked for', sys.argv[1:])\n")
    lacking = "import sys; sys.modules['mcp'] = None; from autoresearch_cli.main import main; main()"
    command, environment = (
        [sys.executable, "-c", lacking, "mcp"],
        os.environ | {"PYTHONPATH": str(tmp_path), "TERM": "xterm"},
    )
    ours, theirs = pty.openpty()
    with subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs, env=environment) as asking:
        os.close(theirs)
        read_until(ours, "Install it now?")
        os.write(ours, f"{answer}\n".encode())
        screen = read_until(ours, None)
        assert asking.wait(60) == 2
    os.close(ours)
    assert ("asked for ['install'" in screen) is (answer == "y")
    assert ("installed → the same command again" in screen) is (answer == "y")
    piped = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    assert piped.returncode == 2
    assert "→ pip install" in piped.stderr
    assert "Install it now?" not in piped.stderr


def read_until(descriptor: int, words: str | None) -> str:
    """What the terminal shows until these words, or until the last process has left it."""
    output = b""
    while words is None or words.encode() not in output:
        try:
            piece = os.read(descriptor, 65536)
        except OSError:
            break
        if not piece:
            break
        output += piece
    return output.decode(errors="replace")


def test_a_daemon_in_the_foreground_ends_with_its_terminal_command(toy: Path, paths: Paths) -> None:
    command = [sys.executable, "-m", "autoresearch_cli", "up", "--foreground", "--json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as running:
        assert running.stdout
        assert strictly(running.stdout.readline(), UpAnswer).state == "started"
        running.terminate()
        assert running.wait(30) == 0
    assert not paths.socket.exists()


def test_a_followed_git_export_has_each_run_soon_after_it_ended(process: Process, daemon: int, toy: Path) -> None:
    assert process("run", str(toy)).returncode == 0
    repo = toy.parent / "repo"
    command = [sys.executable, "-m", "autoresearch_cli", "task", "export", "--git", str(repo), "--follow", "--json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as running:
        assert running.stdout
        assert running.stderr
        first = strictly(running.stdout.readline(), GitExportAnswer)
        assert (first.runs, first.commits) == (1, 1)
        assert process("work", "--runs", "3").returncode == 0
        new = 0
        while new < 3:
            answer = strictly(running.stdout.readline(), GitExportAnswer)
            new += answer.commits
        assert (new, answer.runs) == (3, 4)
        process("down")
        assert running.wait(30) == 3
        assert "the daemon has ended" in running.stderr.read()
    reply = strictly(process("show", "@", "--json").stdout, ShowAnswer)
    assert answer.main == reply.record.id
    assert process("show", "@", "--code").stdout == (repo / "train.py").read_text()
    assert process("task", "show", str(repo)).returncode == 0


def test_an_answer_of_the_daemon_loads_what_shows_it_and_no_more(process: Process, toy: Path, daemon: int) -> None:
    del daemon
    record = json.loads(process("run", str(toy), "--json").stdout)["record"]["id"]
    for words in (
        ["status"],
        ["best"],
        ["top"],
        ["top", "-n", "3", "--budget", "0.5"],
        ["show", record],
    ):
        ours, packages = loaded(process, *words)
        assert ours <= SHOWING, (words, ours - SHOWING)
        assert packages - sys.stdlib_module_names <= THIRD, words
        assert not packages & LARGE, words
