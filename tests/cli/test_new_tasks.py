"""``task new`` in folders of other people: what is there is found, run, and written down."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from autoresearch.task.loading import load_task
from tests.cli.conftest import Process
from tests.cli.programs import CLASSIFIER, CPP, MODEL, POINTS, write_files
from tests.cli.test_ideas import ran
from tests.terminals import on_terminal

NOISY = """\
import os, random
random.seed(int(os.environ["AUTORESEARCH_SEED"]))
RATE = 0.1
print("loss:", RATE + random.random())
"""


def test_a_cpp_file_alone_is_built_and_its_header_fixed(process: Process, tmp_path: Path) -> None:
    header = {"bench.cpp": '#include "util.h"\n' + CPP, "util.h": "\n"}
    folder = write_files(tmp_path / "bench", header)
    told = process("task", "new", str(folder))
    assert told.returncode == 0, told.stderr
    assert "running bench.cpp twice" in told.stderr
    assert "both runs gave the same latency" in told.stderr
    task = load_task(folder)
    assert (task.recipe.command, task.recipe.build) == ("./bench", "g++ -O2 -o bench bench.cpp")
    assert (set(task.harness), task.metric.name, task.metric.noise) == ({"util.h"}, "latency", 0)
    assert task.limits.memory_mib < 4096
    run = ran(process, folder).run
    assert run
    assert run.run.value == pytest.approx(1.94)


def test_an_environment_that_has_the_packages_runs_the_program_and_is_written_down(
    process: Process, tmp_path: Path
) -> None:
    folder = write_files(tmp_path / "mine", {"train.py": 'import special\nprint("loss:", special.LOSS)\n'})
    told = process("task", "new", str(folder))
    assert (told.returncode, "--venv PATH" in told.stderr) == (2, True), told.stderr
    with tempfile.TemporaryDirectory(dir="/var/tmp") as venv:  # below /dev, where tests may lie, a run sees its own
        Path(venv).chmod(0o755)
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", venv], check=True)
        (site,) = Path(venv).glob("lib/python*/site-packages")
        (site / "special.py").write_text("LOSS = 0.5\n")
        told = process("task", "new", str(folder), "--venv", venv)
    assert told.returncode == 0, told.stderr
    assert "it printed loss: 0.5" in told.stderr
    task = load_task(folder)
    assert task.python
    assert task.python.venv == venv


def test_a_venv_that_is_none_is_refused_and_leaves_nothing(process: Process, tmp_path: Path) -> None:
    folder = write_files(tmp_path / "mine", {"train.py": 'print("loss:", 1)\n'})
    told = process("task", "new", str(folder), "--venv", str(tmp_path))
    assert (told.returncode != 0, "is no Python environment" in told.stderr) == (True, True), told.stderr
    assert not (folder / "task.toml").exists()


def test_two_runs_that_differ_give_a_first_guess_of_the_noise(process: Process, tmp_path: Path) -> None:
    folder = write_files(tmp_path / "noisy", {"train.py": NOISY})
    told = process("task", "new", str(folder))
    assert "a rough guess from so few runs" in told.stderr
    noise = load_task(folder).metric.noise
    assert noise
    assert 0 < noise < 1
    (folder / "task.toml").unlink()
    assert "running train.py once" in process("task", "new", str(folder), "--once").stderr
    assert load_task(folder).metric.noise is None


def test_files_that_are_named_may_change(process: Process, tmp_path: Path) -> None:
    files = {"train.py": CLASSIFIER, "model.py": MODEL, "points.csv": POINTS}
    folder = write_files(tmp_path / "points", files)
    told = process("task", "new", str(folder), "--edit", "train.py", "--edit", "model.py", "--once")
    assert told.returncode == 0, told.stderr
    task = load_task(folder)
    assert (task.recipe.edit, set(task.harness)) == (("train.py", "model.py"), {"points.csv"})
    assert (task.metric.name, task.metric.direction) == ("accuracy", "maximize")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--command", "no-such-command a.sh"), "no-such-command is not on this machine"),
        (("--command", "sh a.sh"), "printed no number with a name"),
        (("--command", "sh a.sh", "--metric", "score"), "printed no number score"),
        (("--edit", "b.sh"), "b.sh does not exist"),
        (("--command", "sh 'a.sh"), "can't be read"),
    ],
)
def test_what_can_be_no_task_is_refused_and_leaves_nothing(
    process: Process, tmp_path: Path, words: tuple[str, ...], said: str
) -> None:
    folder = write_files(tmp_path / "folder", {"a.sh": "echo hello\n"})
    told = process("task", "new", str(folder), *words)
    assert (told.returncode, said in told.stderr, "Traceback" in told.stderr) == (2, True, False), told.stderr
    assert [path.name for path in folder.iterdir()] == ["a.sh"]


def test_a_program_for_a_folder_that_is_not_there_is_refused(process: Process, tmp_path: Path) -> None:
    told = process("task", "new", str(tmp_path / "new"), "--command", "sh a.sh")
    assert (told.returncode, (tmp_path / "new").exists()) == (2, False)


def test_on_a_terminal_a_person_is_asked_with_the_guesses_as_defaults(tmp_path: Path, home: Path) -> None:
    script = 'echo "score: 4"; echo "steps: $((3 + 4))"\n'
    folder = write_files(tmp_path / "count", {"run.sh": script})
    command = [sys.executable, "-m", "autoresearch_cli", "task", "new", str(folder), "--once"]
    shown = on_terminal(command, typed="\nsteps\nmaximize\n9\n", AUTORESEARCH_HOME=str(home))
    assert "Command that runs the program [bash run.sh]:" in shown
    assert "Number to improve [score]:" in shown
    task = load_task(folder)
    assert (task.metric.name, task.metric.direction, task.budget.amount) == ("steps", "maximize", 9.0)
