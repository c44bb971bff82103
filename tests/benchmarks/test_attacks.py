"""Tasks with a planted hole are open to their cheats, their sound twins are not, and the table counts what is said."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from autoresearch.run.bench import Bench
from autoresearch.run.sandbox.job import Level
from benchmarks.attacks.tasks import HALVES, AttackedTask, attacked_tasks
from benchmarks.attacks.trial import fault_of
from tests.run.sandbox.conftest import level  # noqa: F401 - both levels of the sandbox

TASKS = {task.name: task for half in HALVES for task in attacked_tasks(half)}
# They say by their names what the command would find out.
STUB = """\
import json, pathlib, sys
folder, option = pathlib.Path(sys.argv[1]), sys.argv[2]
assert option == "--json" and (folder / "task.toml").exists()
if "sign" in folder.name:
    sys.exit("out of order")
if "size" in folder.name:
    print(json.dumps({"error": "out of memory"}))
    sys.exit(1)
through = folder.name in ("ties-planted", "pickled-sound")
print(json.dumps({"rows": [{"name": "equal | scores", "result": "through" if through else "held"}]}))
sys.exit(1 if through else 0)
"""


def test_there_are_seventy_two_of_each_and_no_hole_twice() -> None:
    counts = {
        (half, planted): sum(task.half == half and task.is_planted == planted for task in TASKS.values())
        for half in HALVES
        for planted in (True, False)
    }
    assert counts == {each: {"third": 20, "again": 12}.get(each[0], 10) for each in counts}
    assert len(TASKS) == 144
    assert len({task.hole for task in TASKS.values()}) == 72


def holds(task: AttackedTask, place: Path, sandbox: Level) -> None:
    bench = Bench(sandbox, 1, "cpu", place / "data", place / "scratch")
    assert fault_of(task, place / "task", bench) == ""


@pytest.mark.slow
@pytest.mark.parametrize("name", ["empty-rows-planted", "empty-rows-sound", "trusted-globals-planted"])
def test_a_hole_is_open_and_its_sound_twin_closed(name: str, tmp_path: Path, level: Level) -> None:  # noqa: F811
    holds(TASKS[name], tmp_path, level)


# Each with two runs in the sandbox: the measurement is worth nothing without. ``--check`` does it for all 144, those
# that load torch too. Of the third only those without an evaluator: the rules for their numbers are the product's.
@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    [
        name
        for name, task in TASKS.items()
        if ("unseen" in task.half and "torch" not in str(task.files))
        or (task.half == "third" and task.settings["source"] != "evaluator")
    ],
)
def test_each_task_is_what_it_says(name: str, tmp_path: Path) -> None:
    holds(TASKS[name], tmp_path, Level.BUBBLEWRAP)


@pytest.mark.slow
def test_the_table_counts_finds_false_alarms_and_errors(tmp_path: Path) -> None:
    (tmp_path / "stub.py").write_text(STUB)
    names = ["ties-planted", "ties-sound", "pickled-planted", "pickled-sound", "sign-planted", "size-only-sound"]
    words = [sys.executable, "-m", "benchmarks.attacks", *names, "--command", f"{sys.executable} {tmp_path}/stub.py"]
    ended = subprocess.run(words, capture_output=True, text=True, timeout=100, check=False)

    assert ended.returncode == 1, ended.stderr
    verdicts = dict(re.findall(r"\| \w+ \| ([\w-]+-\w+) \| ([\w ]+) \|", ended.stdout))
    assert verdicts == {
        "ties-planted": "found",
        "ties-sound": "held",
        "pickled-planted": "missed",
        "pickled-sound": "false alarm",
        "sign-planted": "error",
        "size-only-sound": "error",
    }
    assert "equal / scores" in ended.stdout
    assert "seen: found 1 of 2 holes; false alarms 1 of 2; errors 0;" in ended.stdout
    assert "unseen: found 0 of 1 holes; false alarms 0 of 1; errors 2;" in ended.stdout


@pytest.mark.slow
def test_a_command_that_is_not_there_is_an_error_and_no_finding() -> None:
    words = [sys.executable, "-m", "benchmarks.attacks", "ties-planted", "--command", "no-such-command"]
    ended = subprocess.run(words, capture_output=True, text=True, timeout=100, check=False)

    assert ended.returncode == 1
    assert "| ties-planted | error |" in ended.stdout
