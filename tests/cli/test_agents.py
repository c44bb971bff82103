"""A coding agent in a task folder: what it is told, what it keeps or discards, and how it comes to the best program."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from autoresearch_cli.models import NextAnswer

from autoresearch.log.connection import lock_device
from autoresearch.paths import Paths
from autoresearch.task.folder_state import started_from
from autoresearch.task.folders import pin_baseline
from autoresearch.task.loading import load_task
from tests.cli.conftest import Cli, Process
from tests.cli.test_ideas import daemon  # noqa: F401 - a fixture
from tests.cli.test_json import strictly
from tests.daemon.toy import TRAIN, write_toy_task


def with_x(x: float) -> str:
    return TRAIN.replace("X = 0.9", f"X = {x}")


@pytest.fixture
def toy(tmp_path: Path) -> Path:
    """A task folder whose baseline is pinned."""
    folder = write_toy_task(tmp_path / "toy")
    pin_baseline(folder)
    return folder


def brought(cli: Cli, *words: str) -> NextAnswer:
    return strictly(cli("run", "checkout", *words, "--json").stdout, NextAnswer)


@pytest.mark.slow
def test_an_agent_goes_round_the_loop_and_repeats_nothing(process: Process, cli: Cli, toy: Path) -> None:
    """It reads only what the folder and the commands say: the loop of AGENTS.md."""
    assert cli("run", "checkout", str(toy)).exit_code == 0
    assert "autoresearch run . --hypothesis" in (toy / "AGENTS.md").read_text()
    assert process("run", str(toy)).returncode == 0
    ideas, messages = [0.7, 1.0, 0.5, 0.7], []
    for x in ideas:
        if f"X = {x}" in (toy / "history.md").read_text():
            continue
        (toy / "train.py").write_text(with_x(x))
        ran = process("run", str(toy))
        decided = re.search(r"^(keep|discard): .*", ran.stderr, re.M)
        assert decided, ran.stderr
        messages.append(decided[1])
        assert f"X = {x}" in (toy / "history.md").read_text()
        if decided[1] == "discard":
            assert cli("run", "checkout", str(toy)).exit_code == 0
            assert (toy / "train.py").read_text() == with_x(0.7)
    assert messages == ["keep", "discard", "keep"]
    steps = json.loads(cli("run", "lineage", "@", "--json").stdout)["steps"]
    assert [step["run"]["run"]["value"] for step in steps] == pytest.approx([0.61, 0.41, 0.29])

    again = process("run", str(toy))
    assert again.returncode == 6
    assert "run with this seed before" in again.stderr
    assert "0.2900" in again.stderr
    assert "--seeds 2" in again.stderr
    repeated = process("run", str(toy), "--replicate", "1")
    assert (repeated.returncode, "(mean of 2)" in repeated.stderr) == (0, True)
    assert "--seeds 2" in process("run", str(toy), "--replicate", "1").stderr
    assert process("run", str(toy), "--again").returncode == 0


def test_a_difference_within_the_noise_is_to_be_measured_again(process: Process, toy: Path) -> None:
    process("run", str(toy))
    (toy / "train.py").write_text(with_x(0.8999))
    output = process("run", str(toy)).stderr
    assert "keep: better than its parent, within the noise" in output
    assert "--replicate 1" in output


def test_a_program_that_fails_is_discarded_and_stands_in_the_history(process: Process, cli: Cli, toy: Path) -> None:
    process("run", str(toy))
    cli("run", "checkout", str(toy))
    (toy / "train.py").write_text(with_x(0.5).replace("prepare.report", "1 / 0\nprepare.report"))
    ran = process("run", str(toy), "--hypothesis", "divide it")
    assert ran.returncode == 1
    assert "discard: the program stopped with an error" in ran.stderr
    looked = re.search(r"→ autoresearch (show \S+ --log) has what it printed; then mend train.py", ran.stderr)
    assert looked, ran.stderr
    assert "1 / 0" in cli(*looked[1].split()).stdout
    assert "## Failed" in (toy / "history.md").read_text()
    again = process("run", str(toy))
    assert (again.returncode, "the program stopped with an error" in again.stderr) == (6, True)
    back = brought(cli, str(toy))
    assert (back.changed, back.backup, (toy / "train.py").read_text()) == (True, None, TRAIN)


def test_a_command_in_a_task_folder_is_about_that_task(cli: Cli, toy: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(toy)
    assert brought(cli).folder == json.loads(cli("task", "show", "--json").stdout)["folder"] == str(toy)
    assert cli("task", "pin").stderr.endswith(f"→ autoresearch run {toy}\n")
    monkeypatch.chdir("..")
    assert cli("run", "checkout").exit_code == 2
    assert f"→ autoresearch publish task {toy}" in cli("publish", str(toy)).stderr


def test_a_command_beside_another_one_of_the_home_says_to_wait(cli: Cli, paths: Paths, toy: Path) -> None:
    paths.create()
    with lock_device(paths.keys / "device.key"):
        beside = cli("run", str(toy))
    assert beside.exit_code == 6
    assert "→ wait until it has ended, then type this again" in beside.stderr


@pytest.mark.slow
def test_an_edit_that_was_never_run_is_kept(cli: Cli, filled: object, toy: Path) -> None:
    for number, edit in enumerate((with_x(0.4), "x = (", "", with_x(0.4) + "# only a comment\n")):
        (toy / "train.py").write_text(edit)
        result = cli("run", "checkout", str(toy))
        assert result.exit_code == 0, result.stderr
        assert "your edit was never run; it is kept: cp " in result.stderr
        stored = list((toy / ".autoresearch" / "kept").iterdir())
        assert (len(stored), (toy / "train.py").read_text()) == (number + 1, TRAIN)
        assert edit in [file.read_text() for file in stored]
    assert "already is the baseline" in cli("run", "checkout", str(toy)).stderr
    (toy / "train.py").unlink()
    assert brought(cli, str(toy)).backup is None
    assert (toy / "train.py").read_text() == TRAIN


def test_next_goes_to_the_best_run_or_to_the_one_that_is_named(process: Process, cli: Cli, toy: Path) -> None:
    process("run", str(toy))
    (toy / "train.py").write_text(with_x(0.5))
    process("run", str(toy))
    best = started_from(toy)
    first = brought(cli, str(toy), "--run", "@~1")
    assert (first.title, first.value, first.changed, first.backup) == (
        "the baseline, unchanged",
        pytest.approx(0.61),
        True,
        None,
    )
    assert ((toy / "train.py").read_text(), started_from(toy)) == (TRAIN, first.run)
    again = brought(cli, str(toy))
    assert (again.run, again.value, (toy / "train.py").read_text()) == (best, pytest.approx(0.29), with_x(0.5))
    assert again.history == str(toy / "history.md")
    (toy / "train.py").write_text(with_x(0.3))
    child = cli("run", "checkout", str(toy), "--run", "@mine")
    assert "kept: cp" in child.stderr


@pytest.mark.parametrize(
    ("words", "status", "message"),
    [
        ([], 2, "is no folder to work in"),
        (["/nowhere"], 4, "there is no folder /nowhere"),
        (["{toy}", "--run", "zzzz"], 2, "is not an id"),
        (["{toy}", "--run", "@"], 4, "No run on toy has a value yet"),
        (["{toy}", "--run", "{other}"], 2, "is no run on the task toy"),
        (["{empty}"], 2, "task.toml"),
        (["{loose}"], 6, "autoresearch task pin"),
    ],
)
def test_a_wrong_place_is_refused_and_nothing_changes(
    cli: Cli, filled: object, toy: Path, tmp_path: Path, words: list[str], status: int, message: str
) -> None:
    (tmp_path / "empty").mkdir()
    loose = write_toy_task(tmp_path / "loose")
    (toy / "train.py").write_text("my edit = (")
    # The toy has no run here; all runs are on the task of the filled log.
    places = {"toy": toy, "empty": tmp_path / "empty", "loose": loose, "other": filled.best}  # type: ignore[attr-defined]
    result = cli("run", "checkout", *(word.format(**places) for word in words))
    assert result.exit_code == status, result.stderr
    assert message in result.stderr
    assert (toy / "train.py").read_text() == "my edit = ("
    assert not (toy / "history.md").exists()


@pytest.mark.slow
def test_a_folder_gets_both_files_and_stays_the_same_task(cli: Cli, tmp_path: Path) -> None:
    place = tmp_path / "grammar"
    result = cli("task", "get", "grammar", str(place))
    assert (result.exit_code, "AGENTS.md" in result.stderr) == (0, True)
    assert "What is known of the task grammar" in (place / "history.md").read_text()
    digest = load_task(place).digest
    (place / "AGENTS.md").write_text("mine")
    (place / "history.md").unlink()
    assert load_task(place).digest == digest
    again = cli("task", "get", "grammar", str(place))
    assert "AGENTS.md is not by autoresearch, so it stays as it is" in again.stderr
    assert ((place / "AGENTS.md").read_text(), (place / "history.md").exists()) == ("mine", True)


@pytest.mark.slow
def test_a_persons_own_files_are_never_overwritten(process: Process, cli: Cli, tmp_path: Path) -> None:
    folder = tmp_path / "mine"
    folder.mkdir()
    (folder / "train.py").write_text("RATE = 0.1\nprint('loss:', RATE)\n")
    for name in ("AGENTS.md", "history.md"):
        (folder / name).write_text(f"my {name}\n")
    made = cli("task", "new", str(folder), "--metric", "loss")
    assert made.exit_code == 0, made.stderr
    assert made.stderr.count("is not by autoresearch") == 2
    assert process("run", str(folder)).returncode == 0
    assert cli("run", "checkout", str(folder)).exit_code == 0
    for name in ("AGENTS.md", "history.md"):
        assert (folder / name).read_text() == f"my {name}\n"


def test_a_run_writes_no_history_where_nobody_wants_one(process: Process, toy: Path) -> None:
    assert process("run", str(toy)).returncode == 0
    assert not (toy / "history.md").exists()


@pytest.mark.slow
@pytest.mark.usefixtures("daemon")
def test_the_loop_goes_through_a_daemon_as_well(process: Process, toy: Path) -> None:
    assert process("run", "checkout", str(toy)).returncode == 0
    assert process("run", str(toy)).returncode == 0
    (toy / "train.py").write_text(with_x(0.5))
    assert "keep: " in process("run", str(toy), "--hypothesis", "nearer").stderr
    assert process("run", str(toy)).returncode == 6
    (toy / "train.py").write_text(with_x(0.4))
    moved = strictly(process("run", "checkout", str(toy), "--json").stdout, NextAnswer)
    assert (moved.title, moved.value) == ("nearer", pytest.approx(0.29))
    assert moved.backup
    assert "nearer" in (toy / "history.md").read_text()
