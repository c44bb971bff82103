"""Several daemons in a demo: what is told of them, and that they share the work and leave nothing behind."""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import psutil
import pytest
from autoresearch_cli.demo import show
from autoresearch_cli.demo.display import DemoState, done_twice, holding, row, standing
from autoresearch_cli.demo.plan import QUICK_RUNS, free_cores, parts_of
from autoresearch_cli.models import DemoAnswer

from autoresearch.ask.node import Event, StatusAnswer, TaskStatus
from autoresearch.ask.requests import WorkRequest
from autoresearch.log.standing.answers import ProgramView
from autoresearch.record.encoding import format_id, short_id
from autoresearch.task.loading import load_task
from tests.cli.conftest import Cli, Process
from tests.cli.test_json import strictly
from tests.daemon.daemons import wait_for
from tests.daemon.toy import SECOND_TRAIN, write_toy_task
from tests.record.making import key, run_body, sealed
from tests.warm import open_command

with_network = pytest.mark.skipif(find_spec("libp2p") is None, reason="needs the extra network")


def event(kind: str, **data: object) -> Event:
    return Event(id=1, kind=kind, time_ms=0, text="text", data=data)


def test_a_flock_tells_who_does_what_and_who_has_everything() -> None:
    state = DemoState.of(["peer-1", "peer-2"])
    state.hear("peer-1", event("run_started", assignment="search-1"))
    state.hear("peer-1", event("progress", assignment="search-1", fraction=0.5, step=7, loss=2.0))
    first, two = state.members.values()
    assert (first.doing, first.in_hand, first.fraction, two.in_hand) == ("text", True, 0.5, False)
    done = state.hear("peer-1", event("run_finished", status="ok", title="x", reported=1.5, is_best=True))
    assert done
    assert done.text.startswith("peer-1  ★ 1.5000 reported")
    failed = state.hear("peer-2", event("run_finished", status="crashed", title="y", reason="why"))
    assert failed
    assert "✗ crashed" in failed.text
    gave_way = state.hear("peer-2", event("run_finished", status="cancelled", title="z"))
    assert gave_way
    assert "leaves “z” to another" in gave_way.text
    assert (state.runs, state.failed, state.gave_way) == (2, 1, 1)

    state.compare({"peer-1": frozenset({b"a", b"b"}), "peer-2": frozenset({b"b", b"c"})})
    assert (holding(first), state.is_equal()) == ("2 records, 1 behind, 0 peers", False)
    assert "0 of 2 logs equal" in standing(state)
    state.compare({"peer-1": frozenset({b"a"}), "peer-2": frozenset({b"a"})})
    assert (holding(first), state.is_equal()) == ("1 record, equal, 0 peers", True)


def test_what_is_told_while_the_next_is_checked_ends_nothing() -> None:
    state = DemoState.of(["peer-1"])
    member = state.members["peer-1"]
    this, other = b"a" * 32, b"b" * 32
    for kind, run in (("verified", other), ("committed", this)):
        text = f"checking {short_id(this)}: wider"
        state.hear("peer-1", Event(id=1, kind="check_started", time_ms=0, text=text, data={}))
        state.hear("peer-1", event("progress", fraction=0.5, step=7, loss=2.0))
        assert state.hear("peer-1", event(kind, run=format_id(run)))
        assert member.in_hand == (run is other)
        assert member.doing == (text if member.in_hand else "choosing the next change")


def test_a_check_that_is_stopped_is_no_failed_run() -> None:
    state = DemoState.of(["peer-1"])
    state.hear("peer-1", Event(id=1, kind="check_started", time_ms=0, text="checking b3xk: wider", data={}))
    line = state.hear("peer-1", Event(id=2, kind="run_failed", time_ms=0, text="evaluate of b3xk: stopped", data={}))
    assert line is not None
    assert line.text == "◇ peer-1  evaluate of b3xk: stopped"
    assert (state.runs, state.failed, state.members["peer-1"].in_hand) == (0, 0, False)


def program(mean: float) -> ProgramView:
    text = {"id": "", "source_digest": "", "title": "", "author": "", "state": "reported"}
    return ProgramView(position=0, reported_runs=1, reported=mean, score=mean, parent=None, time_ms=0, **text)


def test_first_come_runs_of_seconds_and_a_number_of_runs_is_kept() -> None:
    def runs_of(runs: int | None, *, quick: bool = True) -> list[tuple[str, int | None]]:
        parts = parts_of(WorkRequest(runs=runs, verify_share=0.5), quick=quick)
        assert {part.verify_share for part in parts} == {0.5}
        return [(load_task(Path(part.task)).name if part.task else "", part.runs) for part in parts]

    assert runs_of(None) == [("moons", QUICK_RUNS), ("grammar", None)]
    assert runs_of(3) == [("moons", 3)]
    assert runs_of(QUICK_RUNS + 2) == [("moons", QUICK_RUNS), ("grammar", 2)]
    assert runs_of(3, quick=False) == [("", 3)]


def test_half_a_free_core_counts_as_one_and_there_is_always_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1, 3})
    for busy, free in (([0, 0, 0, 0], 3), ([100, 100, 0, 100], 1), ([50, 90, 0, 0], 2), ([0, 40, 90, 0], 3)):
        monkeypatch.setattr(psutil, "cpu_percent", lambda *, busy=busy, **_: busy)
        assert free_cores() == free


def test_a_value_is_that_of_the_task_in_work_and_afterwards_of_the_last_that_has_one() -> None:
    state = DemoState.of(["peer-1", "peer-2"])

    def seen(name: str, task: str, best: float | None) -> None:
        status = TaskStatus(
            name=task,
            digest=task,
            metric="loss",
            direction="minimize",
            baseline=2.0,
            best=None if best is None else program(best),
        )
        state.see(name, StatusAnswer(state="working", why="", reason="", task=status))

    state.task = "moons"
    seen("peer-1", "moons", 0.5)
    seen("peer-2", "grammar", None)
    assert "best 0.5000" in standing(state)
    state.task = "grammar"
    seen("peer-1", "moons", 0.4)
    assert "best" not in standing(state)
    seen("peer-1", "grammar", None)
    assert (task := state.task_to_name())
    assert task.name == "moons"
    seen("peer-1", "grammar", 2.0)
    assert (task := state.task_to_name())
    assert task.name == "moons", "on grammar there is no gain yet"
    seen("peer-1", "grammar", 1.9)
    assert (task := state.task_to_name())
    assert task.name == "grammar"


def test_a_lost_daemon_is_told_once_and_the_rest_counts() -> None:
    state = DemoState.of(["peer-1", "peer-2", "peer-3"])
    lost = state.lose("peer-2", "was killed (SIGKILL)")
    assert lost
    assert lost.text == "✗ peer-2 was killed (SIGKILL); 2 daemons go on"
    assert state.lose("peer-2", "was killed (SIGKILL)") is None
    state.compare({name: frozenset({b"a"} if name != "peer-2" else ()) for name in state.members})
    assert state.is_equal()
    assert not state.is_over()
    for name in ("peer-1", "peer-3"):
        state.hear(name, event("state", why="runs_done", reason="done"))
    assert state.is_over()


def test_nobody_says_that_all_are_equal_when_one_is_lost(capsys: pytest.CaptureFixture[str]) -> None:
    state = DemoState.of(["peer-1", "peer-2", "peer-3"])
    everything = frozenset({b"a"})
    state.compare(dict.fromkeys(state.members, everything))
    assert standing(state).endswith("all logs equal")
    state.lose("peer-2", "was killed (SIGKILL)")
    state.compare({"peer-1": everything, "peer-2": frozenset(), "peer-3": everything})
    assert standing(state).endswith("the 2 logs left equal")
    assert row(state.members["peer-2"]) == "peer-2  was killed (SIGKILL)  0 records, 1 behind"
    for left, equal, message in (
        (3, True, "all hold the same records and the same best"),
        (2, True, "those that are left hold the same records and the same best"),
        (2, False, "stopped before those that are left had everything"),
    ):
        show.sum_up(DemoAnswer(runs=1, failed=0, peers=3, peers_left=left, equal=equal))
        assert message in capsys.readouterr().err.splitlines()


def test_runs_that_repeat_others_are_counted_and_stopped_ones_are_not() -> None:
    bodies = [run_body(1.0), run_body(1.0), run_body(1.0, replicate=1), run_body(1.0, source=b"other")]
    bodies.append(run_body(None, status="cancelled", reason="stopped"))
    assert done_twice([sealed(key(number), body) for number, body in enumerate(bodies, 1)]) == 1


def test_without_libp2p_one_line_says_what_to_install_and_one_daemon_goes_on(
    cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    from autoresearch_cli.commands import demo

    from autoresearch.errors import install_command

    class Reached(Exception):
        pass

    def single(_: object) -> None:
        raise Reached

    monkeypatch.setattr(demo, "can_connect", lambda: False)
    monkeypatch.setattr(demo, "demo_daemon", single)
    handlers = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGHUP)}
    try:
        result = cli("demo", "--peers", "3")
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
    first = result.stderr.splitlines()[0]
    assert install_command("network") in first
    assert "one" in first
    assert "Reached" in result.output


@pytest.fixture
def shared(tmp_path: Path, process: Process, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A task whose runs take a second, on which this home works."""
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(sys.path))
    folder = write_toy_task(tmp_path / "toy", SECOND_TRAIN)
    assert process("node", "config", "set", "work.task", str(folder)).returncode == 0
    return folder


class Demo:
    """A demo of three as a process, its lines read as they come."""

    def __init__(self, *words: str) -> None:
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
        self.process = open_command("demo", "--peers", "3", "--json", *words, environment=environment)

    def lines(self) -> Iterator[dict[str, object]]:
        for line in self.process.stdout:
            yield json.loads(line)

    def daemons(self) -> list[psutil.Process]:
        children = psutil.Process(self.process.pid).children()
        return [child for child in children if "autoresearch_daemon" in child.cmdline()]

    def family(self) -> list[psutil.Process]:
        return psutil.Process(self.process.pid).children(recursive=True)


@pytest.mark.slow
@with_network
def test_three_daemons_share_the_work_and_end_with_one_best(shared: Path, process: Process) -> None:
    result = process("demo", "--peers", "3", "--runs", "7", "--workers", "1", "--json")
    assert result.returncode == 0, result.stderr
    events = [json.loads(line) for line in result.stdout.splitlines()]
    answer = strictly(result.stdout.splitlines()[-1], DemoAnswer)
    assert (answer.runs, answer.peers, answer.peers_left) == (7, 3, 3)
    assert answer.equal
    assert answer.done_twice == 0
    workers = {event["data"]["peer"] for event in events[:-1] if event["kind"] == "run_finished"}
    assert workers == {"peer-1", "peer-2", "peer-3"}


@pytest.mark.slow
@with_network
def test_when_one_is_killed_the_others_go_on_and_ctrl_c_ends_all(shared: Path) -> None:
    demo = Demo("--workers", "1")
    finished: list[object] = []
    killed = family = None
    for line in demo.lines():
        if line["kind"] != "run_finished":
            continue
        finished.append(line["data"]["peer"])
        if killed is None and len(set(finished)) == 3:
            family = demo.family()
            killed = next(child for child in demo.daemons() if "/peer-1/" in str(child.open_files()))
            killed.kill()
            finished.clear()
        elif killed and finished.count("peer-2") > 1 and finished.count("peer-3") > 1:
            demo.process.send_signal(signal.SIGINT)
            break
    assert killed
    assert family
    out, err = demo.process.communicate()
    answer = strictly(out.splitlines()[-1], DemoAnswer)
    assert (demo.process.returncode, answer.peers_left) == (0, 2), err
    wait_for(lambda: not any(child.is_running() for child in family))


@pytest.mark.slow
@with_network
def test_a_demo_that_is_killed_leaves_no_daemon_behind(shared: Path) -> None:
    demo = Demo("--workers", "1")
    next(line for line in demo.lines() if line["kind"] == "run_started")
    family = demo.family()
    assert len(family) >= 6
    demo.process.kill()
    demo.process.wait()
    wait_for(lambda: not any(child.is_running() and child.status() != psutil.STATUS_ZOMBIE for child in family))


@pytest.mark.slow
@with_network
def test_four_participants_get_from_nothing_to_a_confirmed_run(
    tmp_path: Path, process: Process, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With two attestors, a mail server and a toy task: attested by mail, then verified by each other."""
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(sys.path))
    folder = write_toy_task(tmp_path / "toy")
    assert process("node", "config", "set", "work.task", str(folder)).returncode == 0
    demo = Demo("--attested", "--peers", "4", "--runs", "9")
    out, err = demo.process.communicate()
    assert demo.process.returncode == 0, err
    answer = strictly(out.splitlines()[-1], DemoAnswer)
    assert (answer.peers, answer.peers_left, answer.attested, answer.runs) == (6, 6, 4, 9)
    assert err.count("attested after") == 4
    assert answer.states["confirmed"] >= 1
    assert ".example" not in out
