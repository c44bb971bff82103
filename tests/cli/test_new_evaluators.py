"""``task new --referee``: an evaluator is written beside a program, runs at once, and gives cheats nothing."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from autoresearch.run.bench import Bench
from autoresearch.run.experiment import Experiment, plan_as_it_stands
from autoresearch.run.sandbox.job import JobOutcome, Level
from autoresearch.task.loading import load_task
from autoresearch.task.program import join_files, split_program
from tests.cli.conftest import Process
from tests.cli.programs import write_files

ACCURACY = 'CUT = 0.5\nprint("accuracy:", 0.25 + CUT)\n'
LOSS = 'RATE = 0.1\nprint("epoch 3 | val loss", RATE + 0.5)\n'


def measured(folder: Path, scratch: Path, changes: dict[str, str] | None = None) -> JobOutcome:
    """A run of a task, with other files of the program."""
    task = load_task(folder)
    source = join_files({**split_program(task.program.decode()), **(changes or {})})
    bench = Bench(Level.BUBBLEWRAP, 1, "cpu", scratch / "data", scratch / "scratch")
    return Experiment(task, plan_as_it_stands(task, source), bench).measure(own=True)


@pytest.mark.parametrize(
    ("kind", "program", "metric", "direction"),
    [("predictions", ACCURACY, "accuracy", "maximize"), ("model", LOSS, "val_loss", "minimize")],
)
def test_a_program_that_prints_its_number_is_measured_outside_of_it(
    process: Process, tmp_path: Path, kind: str, program: str, metric: str, direction: str
) -> None:
    folder = write_files(tmp_path / "mine", {"train.py": program})
    result = process("task", "new", str(folder), "--referee", kind, "--once", "--json")

    assert result.returncode == 0, result.stderr
    answer = json.loads(result.stdout)
    assert (answer["metric"], answer["direction"], answer["metric_source"]) == (metric, direction, "evaluator")
    assert (answer["evaluator"], answer["floor"]) == ("python referee.py", 1.0 if direction == "maximize" else 0.0)
    assert f"referee.py measured {metric} 0." in result.stderr
    assert (folder / "train.py").read_text().startswith(program)
    assert not load_task(folder).is_pinned


@pytest.mark.slow
def test_what_the_program_prints_is_no_measurement(process: Process, tmp_path: Path) -> None:
    toy = tmp_path / "toy"
    assert process("task", "new", str(toy), "--new", "--referee", "predictions").returncode == 0
    value = measured(toy, tmp_path).value
    assert value is not None
    printing = (toy / "train.py").read_text() + 'print("accuracy: 0.99")\n'
    assert measured(toy, tmp_path, {"train.py": printing}).value == value
    assert load_task(toy).hidden == {"answers.csv"}


CHEATS = {
    "too few": "[0.0]",
    "none": "[]",
    "nothing": "",
    "not finite": str([float("nan")] * 200).replace("nan", "NaN"),
    "infinite": str(["-Infinity"] * 200).replace("'", ""),
    "text": json.dumps(["1"] * 200),
    "true": json.dumps([True] * 200),
    "too large": json.dumps([10**400] * 200),
    "rows of rows": json.dumps([[1.0]] * 200),
    "an object": json.dumps({str(row): 1.0 for row in range(200)}),
    "a line that looks like a result": "\naccuracy: 0.99\n",
}


@pytest.mark.slow
@pytest.mark.parametrize("direction", ["minimize", "maximize"])
def test_what_is_no_list_of_predictions_has_no_value(process: Process, tmp_path: Path, direction: str) -> None:
    toy = tmp_path / "toy"
    options = ("--referee", "predictions", "--metric", "value", "--direction", direction)
    assert process("task", "new", str(toy), "--new", *options).returncode == 0
    for name, text in CHEATS.items():
        (toy / "predictions.json").write_text(text)
        ended = subprocess.run(
            [sys.executable, "referee.py"], cwd=toy, capture_output=True, text=True, timeout=60, check=False
        )
        assert (ended.returncode, ended.stdout) == (1, ""), name


@pytest.mark.slow
def test_a_model_s_answers_are_checked_and_its_questions_are_new(process: Process, tmp_path: Path) -> None:
    """The metric is a loss: two draws of questions have one accuracy in every seventieth case."""
    toy = tmp_path / "toy"
    options = ("--referee", "model", "--metric", "loss", "--direction", "minimize")
    assert process("task", "new", str(toy), "--new", *options).returncode == 0
    assert "referee.py" in load_task(toy).hidden
    first, second = measured(toy, tmp_path), measured(toy, tmp_path)
    assert first.value is not None
    assert second.value is not None
    assert first.value != second.value
    assert first.value == pytest.approx(second.value, abs=0.1)
    answer = (toy / "answer.py").read_text()
    changed = answer.replace('model["level"] * (x + y)', "float('nan')")
    assert changed != answer
    assert measured(toy, tmp_path, {"answer.py": changed}).value is None


def test_fixed_files_are_pinned_anew_until_the_baseline_is(process: Process, tmp_path: Path) -> None:
    toy = tmp_path / "toy"
    assert process("task", "new", str(toy), "--new", "--referee", "predictions", "--metric", "psnr").returncode == 0
    (toy / "answers.csv").write_text("1\n" * 200)
    assert process("run", str(toy)).returncode != 0
    pinned = process("task", "pin", str(toy))
    assert (pinned.returncode, "pinned anew, as they are now: answers.csv" in pinned.stderr) == (0, True), pinned.stderr
    assert load_task(toy).is_pinned
    assert "no baseline yet" not in (toy / "task.toml").read_text()
    before = (toy / "task.toml").read_text()
    (toy / "answers.csv").write_text("0\n" * 200)
    again = process("task", "pin", str(toy))
    assert again.returncode != 0
    assert "answers.csv is not the file" in again.stderr
    assert (toy / "task.toml").read_text() == before


def test_pinning_a_folder_that_is_broken_otherwise_leaves_it_as_it_is(process: Process, tmp_path: Path) -> None:
    toy = tmp_path / "toy"
    assert process("task", "new", str(toy), "--new", "--referee", "predictions").returncode == 0
    (toy / "answers.csv").write_text("1\n")
    broken = (toy / "task.toml").read_text().replace("[limits]", "[limits]\nsecnds = 3")
    (toy / "task.toml").write_text(broken)
    result = process("task", "pin", str(toy))
    assert result.returncode != 0
    assert "secnds" in result.stderr
    assert (toy / "task.toml").read_text() == broken


def test_a_program_in_another_language_is_told_what_to_leave(process: Process, tmp_path: Path) -> None:
    folder = write_files(tmp_path / "sh", {"run.sh": 'RATE=3\necho "score: $RATE"\n'})
    result = process("task", "new", str(folder), "--referee", "predictions", "--once")
    assert result.returncode == 0, result.stderr
    assert "have run.sh leave predictions.json" in result.stderr
    assert (folder / "run.sh").read_text() == 'RATE=3\necho "score: $RATE"\n'


@pytest.mark.parametrize(
    ("files", "options", "hint"),
    [
        ({"train.py": ACCURACY, "referee.py": "mine"}, ("--once",), "referee.py exists already"),
        ({"train.py": ACCURACY, "answers.csv": "1\n"}, ("--once",), "answers.csv exists already"),
        ({"train.py": "print('nothing')\n"}, ("--once",), "printed no result"),
        ({"train.py": ACCURACY, "task.toml": ""}, (), "exists already"),
        ({}, ("--new", "--metric", "foo"), "whether more or less of it is better"),
        ({}, (), "no folder"),
    ],
)
def test_where_it_is_refused_the_folder_stays_as_it_was(
    process: Process, tmp_path: Path, files: dict[str, str], options: tuple[str, ...], hint: str
) -> None:
    folder = tmp_path / "mine"
    if files:
        write_files(folder, files)
    result = process("task", "new", str(folder), "--referee", "predictions", *options)
    assert result.returncode != 0
    assert hint in result.stderr
    assert "Traceback" not in result.stderr
    assert folder.exists() == bool(files)
    if files:
        assert {path.name: path.read_text() for path in folder.iterdir()} == files
