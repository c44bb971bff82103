"""An idea from the folder to the record: with the daemon and without, in the real sandbox on a task of milliseconds."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import psutil
import pytest

from autoresearch.ask.acts.suggesting import SuggestAnswer
from autoresearch.ask.acts.varying import VaryAnswer
from autoresearch.ask.node import ProposedAnswer, StatusAnswer
from autoresearch.ask.records import ShowAnswer
from autoresearch.face.columns.column import short
from autoresearch.task.folder_state import started_from
from autoresearch.task.folders import pin_baseline
from autoresearch.task.loading import load_task, shipped_task
from tests.cli.conftest import Process
from tests.cli.test_json import strictly
from tests.daemon.daemons import wait_for
from tests.daemon.toy import SLOW_TRAIN, TRAIN, write_toy_task

BETTER = TRAIN.replace("X = 0.9", "X = 0.5")
WORSE = TRAIN.replace("X = 0.9", "X = 1.0")


@pytest.fixture
def toy(tmp_path: Path, process: Process, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A task folder whose baseline is pinned."""
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(sys.path))
    folder = write_toy_task(tmp_path / "toy")
    pin_baseline(folder)
    return folder


def status_of(process: Process) -> StatusAnswer:
    return strictly(process("status", "--json").stdout, StatusAnswer)


def ran(process: Process, folder: Path, *words: str) -> ShowAnswer:
    return strictly(process("run", str(folder), "--json", *words).stdout, ShowAnswer)


def test_the_shipped_task_is_there_before_there_is_any_log(process: Process, tmp_path: Path) -> None:
    place = tmp_path / "mine"
    place.mkdir()
    done = process("task", "get", "grammar", str(place))
    assert (done.returncode, "edit" in done.stderr) == (0, True)
    (place / "train.py").write_text("x = 1\n")
    result = process("task", "show", str(place), "--json")
    assert shipped_task().digest.hex() in result.stdout
    unknown = process("task", "get", "nothing", str(tmp_path / "other"))
    assert (unknown.returncode, (tmp_path / "other").exists()) == (4, False)


def test_an_edit_is_a_change_of_the_run_before_and_only_a_better_one_is_built_upon(process: Process, toy: Path) -> None:
    baseline = ran(process, toy)
    (toy / "train.py").write_text(BETTER)
    result = process("run", str(toy), "--hypothesis", "nearer to the lowest point")
    assert "keep: better than its parent" in result.stderr
    better = started_from(toy)
    (toy / "train.py").write_text(WORSE)
    result = process("run", str(toy))
    assert "discard: not better than its parent" in result.stderr
    assert f"autoresearch run checkout {toy}" in result.stderr
    assert started_from(toy) == better
    first, second = (strictly(process("show", name, "--json").stdout, ShowAnswer) for name in (better, "@mine"))
    assert first.run
    assert second.run
    assert baseline.run
    assert (first.run.run.parent, first.run.run.title) == (baseline.record.id, "nearer to the lowest point")
    assert (second.record.id, first.run.run.task) == (better, baseline.run.run.task)


def test_a_folder_begins_with_the_program_of_a_run(process: Process, toy: Path, tmp_path: Path) -> None:
    ran(process, toy)
    (toy / "train.py").write_text(BETTER)
    best = ran(process, toy)
    place = tmp_path / "new"
    place.mkdir()
    assert process("task", "get", "toy", str(place), "--run", "@").returncode == 0
    assert ((place / "train.py").read_text(), started_from(place)) == (BETTER, best.record.id)
    again = process("task", "get", "toy", str(place), "--run", "@")
    assert (again.returncode, "exists already" in again.stderr) == (6, True)
    (place / "train.py").write_text(WORSE)
    child = ran(process, place)
    assert child.run
    assert child.run.run.parent == best.record.id


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["run", "propose"], "Missing argument"),
        (["run", "propose", "/nowhere"], "/nowhere can't be read"),
        (["run", "propose", "{bad}"], "line 1"),
        (["run", "{toy}", "--parent", "zzzz"], "is not an id"),
        (["run", "propose", "{toy}", "--parent", "zzzz"], "is not an id"),
        (["run", "claim", "{toy}/train.py", "--task", "{toy}", "--parent", "aaaaaaaa"], "There is no record aaaaaaaa"),
        (["run", "vary", "{toy}", "--set", "X=0.1", "--parent", "aaaaaaaa"], "There is no record aaaaaaaa"),
        (["run", "propose", "{toy}"], "autoresearch up"),
    ],
)
def test_a_wrong_idea_is_refused_with_a_sentence(
    process: Process, toy: Path, tmp_path: Path, words: list[str], message: str
) -> None:
    bad = tmp_path / "bad.py"
    bad.write_text("x = (")
    done = process(*(word.format(toy=toy, bad=bad) for word in words))
    assert done.returncode != 0
    assert message in done.stderr
    assert "Traceback" not in done.stderr


def test_a_wrong_parent_is_said_before_the_program_is_compared_with_others(process: Process, toy: Path) -> None:
    ran(process, toy)
    again = process("run", str(toy))
    assert (again.returncode, "was run with this seed before" in again.stderr) == (6, True)
    done = process("run", str(toy), "--parent", "aaaaaaaa")
    assert (done.returncode, "There is no record aaaaaaaa" in done.stderr) == (4, True)


def test_a_folder_without_a_pin_says_so_and_can_be_pinned(process: Process, tmp_path: Path) -> None:
    folder = write_toy_task(tmp_path / "loose")
    assert "autoresearch task pin" in process("run", str(folder)).stderr
    assert process("task", "pin", str(folder)).returncode == 0
    assert "task pin" not in process("run", str(folder), "--replicate", "1").stderr
    assert process("task", "pin", str(folder)).returncode == 6


STRANGERS = """
LEARNING_RATE = 0.1
w = 0.0
for step in range(50):
    w -= LEARNING_RATE * (w - 3)
print("loss:", (w - 3) ** 2)
print("accuracy:", max(0.0, 1 - abs(w - 3) / 3))
"""


def test_a_strangers_program_becomes_a_task_with_the_number_that_it_prints(process: Process, tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(STRANGERS)
    made = process("task", "new", str(tmp_path))
    assert made.returncode == 0, made.stderr
    assert "it printed accuracy: " in made.stderr
    assert "the search can change LEARNING_RATE" in made.stderr
    task = load_task(tmp_path)
    assert (task.metric.name, task.metric.direction, task.metric.source) == ("accuracy", "maximize", "stdout")
    result = ran(process, tmp_path)
    assert result.run
    assert result.run.run.value == pytest.approx(0.9948, abs=1e-3)
    again = process("task", "new", str(tmp_path))
    assert (again.returncode, "exists already" in again.stderr) == (6, True)


@pytest.mark.parametrize(
    ("program", "words", "message"),
    [
        ("print('hello')", (), "printed no result with a name"),
        ("raise SystemExit('no data')", (), "no data"),
        ("while True: pass", ("--seconds", "1"), "--metric NAME"),
        ("x = (", (), "line 1"),
    ],
)
def test_a_program_without_a_number_makes_no_task(
    process: Process, tmp_path: Path, program: str, words: tuple[str, ...], message: str
) -> None:
    (tmp_path / "train.py").write_text(program)
    done = process("task", "new", str(tmp_path), *words)
    assert done.returncode == 2
    assert message in done.stderr
    assert not (tmp_path / "task.toml").exists()


@pytest.fixture
def daemon(toy: Path, process: Process) -> Iterator[None]:
    assert process("up").returncode == 0
    yield
    assert process("down").returncode == 0


@pytest.mark.slow
def test_whoever_waits_for_a_run_that_this_machine_cannot_begin_is_told_and_may_ask_again(
    process: Process, toy: Path, daemon: None
) -> None:
    broken = write_toy_task(toy.parent / "broken", f"import not_here_yet\n{TRAIN}")
    waiting = lambda: [each.name for each in status_of(process).queue]  # noqa: E731

    ran_broken = process("run", str(broken))
    assert ran_broken.returncode == 6
    assert "the baseline of toy does not run on this machine" in ran_broken.stderr
    assert "No module named 'not_here_yet'" in ran_broken.stderr
    assert waiting() == [], "as without a daemon"

    proposed = lambda: process("run", "propose", str(broken), "--json")  # noqa: E731
    assert proposed().returncode == 0
    wait_for(lambda: any(each.obstacle for each in status_of(process).queue))
    again = strictly(proposed().stdout, ProposedAnswer).proposed
    waited = process("run", "wait", *again)
    assert (waited.returncode, waiting()) == (6, again), "the one before it is taken back"
    assert "No module named 'not_here_yet'" in waited.stderr


@pytest.mark.slow
def test_proposals_wait_behind_a_busy_worker_survive_a_restart_and_are_run(
    process: Process, toy: Path, daemon: None
) -> None:
    status = partial(status_of, process)
    (toy / "train.py").write_text(SLOW_TRAIN)
    assert process("run", "propose", str(toy)).returncode == 0
    wait_for(lambda: any(worker.run and worker.run.kind == "given" for worker in status().workers))
    (toy / "train.py").write_text(BETTER)
    proposed = strictly(
        process("run", "propose", str(toy), "--hypothesis", "nearer", "--seeds", "3", "--json").stdout, ProposedAnswer
    )
    assert [each.name for each in proposed.queue] == proposed.proposed
    assert len(proposed.proposed) == 3
    (toy / "train.py").write_text(WORSE)
    dropped = process("run", "cancel", proposed.proposed[1])
    assert dropped.returncode == 0
    assert process("run", "cancel", proposed.proposed[1]).returncode == 4
    assert "for the end of" in process("status").stdout

    assert process("down").returncode == 0
    assert process("up").returncode == 0

    wait_for(lambda: status().state == "idle" and not status().queue)
    runs = [strictly(line, ShowAnswer).run for line in process("run", "export", "--json").stdout.splitlines()]
    ended = {(view.run.title, view.run.replicate, view.run.status) for view in runs if view}
    assert {("nearer", 0, "ok"), ("nearer", 2, "ok")} <= ended
    assert ("nearer", 1, "ok") not in ended


@pytest.mark.slow
def test_a_run_whose_daemon_is_stopped_is_not_begun_again_and_one_whose_daemon_is_killed_is(
    process: Process, toy: Path, daemon: None
) -> None:
    status = partial(status_of, process)
    (toy / "train.py").write_text(SLOW_TRAIN)
    command = [sys.executable, "-m", "autoresearch_cli", "run", str(toy)]
    for stop, words in (
        (
            lambda: process("down"),
            "the daemon was stopped before the run ended\n→ autoresearch up",
        ),
        (lambda: psutil.Process(status().pid).kill(), "the daemon is not running: this process does it"),
    ):
        with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as running:
            wait_for(lambda: any(worker.run and worker.run.loss for worker in status().workers))
            stop()
            assert running.stderr
            printed = ""
            while words not in printed and (line := running.stderr.readline()):
                printed += line
            running.terminate()
        assert words in printed
        assert process("up").returncode == 0


@pytest.mark.slow
def test_what_waits_is_not_queued_again_and_stays_where_the_daemon_is_killed(
    process: Process, toy: Path, daemon: None
) -> None:
    status = partial(status_of, process)
    (toy / "train.py").write_text(SLOW_TRAIN)
    assert process("run", "propose", str(toy)).returncode == 0
    wait_for(lambda: any(worker.run and worker.run.loss for worker in status().workers))
    twice = process("run", "propose", str(toy))
    assert (twice.returncode, "waits or runs here with this seed already" in twice.stderr) == (6, True), twice.stderr
    (toy / "train.py").write_text(BETTER)
    command = [sys.executable, "-m", "autoresearch_cli", "run", str(toy)]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as running:
        wait_for(lambda: status().queue)
        waiting = status().queue[0].name
        again = process("run", str(toy))
        assert (again.returncode, f"already: {waiting}" in again.stderr) == (6, True), again.stderr
        psutil.Process(status().pid).kill()
        printed = running.communicate()[1]
    assert running.returncode == 1
    assert f"stays in its queue\n→ autoresearch up, then: autoresearch run wait {waiting}" in printed
    assert process("up").returncode == 0
    assert process("run", "wait", waiting, "--timeout", "60s").returncode == 0
    runs = [strictly(line, ShowAnswer).run for line in process("run", "export", "--json").stdout.splitlines()]
    assert len([view for view in runs if view and view.run.status == "ok"]) == 1


def test_a_claim_is_there_for_all_to_read_until_it_ends(process: Process, toy: Path, daemon: None) -> None:
    (toy / "train.py").write_text(BETTER)
    claimed = process("run", "claim", str(toy), "--hypothesis", "nearer", "--minutes", "5")
    assert claimed.returncode == 0
    assert "claimed “nearer”" in claimed.stderr
    _, _, command = claimed.stderr.rpartition("autoresearch ")
    assert command.split() == ["run", "claims", load_task(toy).name]  # another task may be the one worked on last
    assert "nearer" in process(*command.split()).stdout
    assert process("run", "claim", str(toy / "nothing.py")).returncode != 0
    ran(process, toy)
    refused = process("run", "claim", str(toy))
    assert (refused.returncode, "was run here before: " in refused.stderr) == (6, True), refused.stderr


@pytest.mark.slow
def test_a_proposed_run_can_be_waited_for_and_stopped(process: Process, toy: Path, daemon: None) -> None:
    def proposed(program: str) -> str:
        (toy / "train.py").write_text(program)
        return strictly(process("run", "propose", str(toy), "--json").stdout, ProposedAnswer).proposed[0]

    slow = proposed(SLOW_TRAIN)
    wait_for(
        lambda: any(
            each.proposal == slow and each.run
            for each in strictly(process("status", "--json").stdout, StatusAnswer).workers
        )
    )
    better = proposed(BETTER)
    late = process("run", "wait", better, "--timeout", "1s")
    assert (late.returncode, f"{better} has not ended within 1s" in late.stderr) == (7, True)
    third = proposed(WORSE)
    assert process("run", "cancel", third).returncode == 0
    dropped = process("run", "wait", third)
    assert (dropped.returncode, "taken out of the queue before it began" in dropped.stderr) == (1, True)

    assert process("run", "cancel", slow).returncode == 0
    stopped = process("run", "wait", slow)
    assert stopped.returncode == 1
    ended = strictly(process("run", "wait", better, "--json").stdout, ShowAnswer)
    assert ended.run
    assert ended.outcome
    assert (ended.run.run.status, ended.outcome.run) == ("ok", short(ended.record.id))
    assert process("run", "cancel", better).returncode == 4
    unknown = process("run", "wait", "proposal-999")
    assert (unknown.returncode, "waits, runs or has ended lately" in unknown.stderr) == (4, True)


@pytest.mark.slow
def test_an_experiment_runs_every_combination_once_and_says_what_each_value_did(
    process: Process, toy: Path, daemon: None
) -> None:
    words = ("run", "vary", str(toy), "--set", "X=0.3,0.5", "--set", "Y=0.1,0.4", "--seeds", "2")
    begun = strictly(process(*words, "--json").stdout, VaryAnswer)
    assert (len(begun.variants), len(begun.proposed), begun.to_go) == (4, 8, 8)
    again = strictly(process(*words, "--wait", "--json").stdout, VaryAnswer)
    assert (again.proposed, again.to_go) == ([], 0)
    changes = [level.change for level in again.levels]
    assert changes == [None, pytest.approx(0.2**2), None, pytest.approx(0.2**2 - 0.5**2)]
    result = process(*words, "--show")
    assert "all runs have ended" in result.stderr
    assert len(result.stdout.splitlines()) == 4
    suggested = strictly(process("run", "suggest", str(toy), "-n", "2", "--json").stdout, SuggestAnswer).suggestions
    baseline, change = suggested
    assert (baseline.change, bool(change.change)) == ({}, True)
    assert change.low <= change.expected <= change.high
    expected = process("run", "suggest", str(toy), "--set", "X=0.45")
    assert (expected.returncode, "X 0.3 → 0.45" in expected.stdout) == (0, True), expected.stdout
    several = process("run", "suggest", str(toy), "--set", "X=0.3,0.5")
    assert (several.returncode, "run vary" in several.stderr) == (2, True)
    unknown = process("run", "vary", str(toy), "--set", "Z=1,2")
    assert (unknown.returncode, "turns no setting Z" in unknown.stderr) == (2, True)


@pytest.mark.parametrize("option", ["--replicate", "--seeds", "--seed", "--episodes"])
def test_a_number_that_nothing_can_hold_is_refused_with_its_option(process: Process, toy: Path, option: str) -> None:
    result = process("run", str(toy), option, "9" * 20)
    assert result.returncode == 2
    assert f"'{option}'" in result.stderr
    assert "is no whole number from" in result.stderr


def test_the_list_of_components_in_a_task_says_where_its_runs_are(
    process: Process, toy: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(toy)
    result = process("list")
    assert result.returncode == 4
    assert "autoresearch run list" in result.stderr
