"""``task new`` in folders of other people: what is there is found, run, and written down."""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from autoresearch_cli.models import TaskAnswer

from autoresearch.propose.program.edits import patches_of
from autoresearch.propose.program.space import space_of
from autoresearch.run.sandbox.filters import LEAST_LANDLOCK, landlock_version
from autoresearch.task.loading import load_task
from tests.cli.conftest import Process
from tests.cli.programs import CLASSIFIER, CPP, MODEL, POINTS, write_files
from tests.cli.test_ideas import ran
from tests.cli.test_json import strictly
from tests.terminals import on_terminal

NOISY = """\
import os, random
random.seed(int(os.environ["AUTORESEARCH_SEED"]))
RATE = 0.1
print("loss:", RATE + random.random())
"""


def test_a_cpp_file_alone_is_built_and_its_header_fixed(process: Process, tmp_path: Path) -> None:
    header = {"bench.cpp": '#include "util.h"\n' + CPP, "util.h": "\n"}
    folder = write_files(tmp_path / "ベンチ", header)
    result = process("task", "new", str(folder))
    assert result.returncode == 0, result.stderr
    assert "running bench.cpp and compile_flags.txt twice" in result.stderr
    assert "both runs gave the same latency" in result.stderr
    assert "called task, as its folder's name has no Latin letters → write its name in task.toml first" in result.stderr
    task = load_task(folder)
    assert (task.recipe.command, task.recipe.build) == ("./bench", "g++ @compile_flags.txt -o bench bench.cpp")
    assert (set(task.harness), task.metric.name, task.metric.noise) == ({"util.h"}, "latency", 0)
    assert task.limits.memory_mib < 4096
    run = ran(process, folder).run
    assert run
    assert run.run.value == pytest.approx(1.94)


def test_an_environment_that_has_the_packages_runs_the_program_and_is_written_down(
    process: Process, tmp_path: Path
) -> None:
    folder = write_files(tmp_path / "mine", {"train.py": 'import special\nprint("loss:", special.LOSS)\n'})
    result = process("task", "new", str(folder))
    assert (result.returncode, f"--venv {folder}/.venv" in result.stderr) == (2, True), result.stderr
    with tempfile.TemporaryDirectory(dir="/var/tmp") as venv:  # below /dev, where tests may lie, a run sees its own
        Path(venv).chmod(0o755)
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", venv], check=True)
        (site,) = Path(venv).glob("lib/python*/site-packages")
        (site / "special.py").write_text("LOSS = 0.5\n")
        result = process("task", "new", str(folder), "--venv", venv)
    assert result.returncode == 0, result.stderr
    assert "it printed loss: 0.5" in result.stderr
    task = load_task(folder)
    assert task.python
    assert task.python.venv == venv


def test_a_venv_that_is_none_is_refused_and_leaves_nothing(process: Process, tmp_path: Path) -> None:
    folder = write_files(tmp_path / "mine", {"train.py": 'print("loss:", 1)\n'})
    result = process("task", "new", str(folder), "--venv", str(tmp_path))
    assert (result.returncode != 0, "is no Python environment" in result.stderr) == (True, True), result.stderr
    assert not (folder / "task.toml").exists()


def test_two_runs_that_differ_give_a_first_guess_of_the_noise(process: Process, tmp_path: Path) -> None:
    folder = write_files(tmp_path / "noisy", {"train.py": NOISY})
    result = process("task", "new", str(folder))
    assert "a rough guess from so few runs" in result.stderr
    noise = load_task(folder).metric.noise
    assert noise
    assert 0 < noise < 1
    (folder / "task.toml").unlink()
    assert "running train.py once" in process("task", "new", str(folder), "--once").stderr
    assert load_task(folder).metric.noise is None
    assert f"autoresearch run {folder} --seeds 5 measures it" in process("task", "show", str(folder)).stdout


@pytest.mark.slow
@pytest.mark.parametrize(
    ("printed", "named", "better"),
    [
        ("Validation: loss 0.4 acc 0.7\nTest: loss 0.3 acc 0.8", "Test_acc is of the test data", "Validation_acc"),
        ("test_loss: 0.3", "test_loss is of the test data", "number of validation data"),
        ("train_loss: 0.3", "train_loss is of the training data", "number of validation data"),
        ("val_loss: 0.3 train_loss 0.1 test_loss 0.4", "", ""),
        ("loss: 0.3", "", ""),
    ],
)
def test_a_number_of_data_by_which_nothing_should_be_chosen_is_told(
    process: Process, tmp_path: Path, printed: str, named: str, better: str
) -> None:
    folder = write_files(tmp_path / "mine", {"train.py": f"print({printed!r})\n"})
    result = process("task", "new", str(folder))
    assert result.returncode == 0, result.stderr
    sentences = [line for line in result.stderr.splitlines() if re.search(r"is of the \w+ data: ", line)]
    assert [(named in line, better in line) for line in sentences] == ([(True, True)] if named else [])


def test_a_comment_counts_that_is_written_into_a_settings_file_later(process: Process, tmp_path: Path) -> None:
    source = "import tomllib\nm = tomllib.load(open('config.toml', 'rb'))['m']\n"
    source += "print('val_loss:', 1 + (m['width'] - 20) ** 2 + m['rate'] + m['decay'])\n"
    settings = "[m]\nwidth = 12{}\nrate = 0.01{}\ndecay = 0.1\n"
    folder = write_files(tmp_path / "set", {"train.py": source, "config.toml": settings.format("", "")})
    assert process("task", "new", str(folder), "--once").returncode == 0
    digest = load_task(folder).digest

    def searched() -> dict[str, str]:
        answer = strictly(process("task", "show", str(folder), "--json").stdout, TaskAnswer)
        return {constant.name: constant.range for constant in answer.search}

    before = searched()
    assert before.keys() == {"m.width", "m.rate", "m.decay"}
    (folder / "config.toml").write_text(settings.format("  # fixed", "  # 0.005 .. 0.02"))
    assert searched() == {"m.rate": "0.005 .. 0.02", "m.decay": before["m.decay"]}
    task = load_task(folder)
    assert task.digest == digest
    space = space_of(task.baseline.decode(), patches_of(task))
    assert {name: str(parameter.range) for name, parameter in space.parameters.items()} == searched()
    (folder / "config.toml").write_text(settings.format("", "").replace("12", "16"))
    assert searched() == before, "another value is an edit and says nothing of the ranges"


def test_files_that_are_named_may_change(process: Process, tmp_path: Path) -> None:
    files = {"train.py": CLASSIFIER, "model.py": MODEL, "points.csv": POINTS}
    folder = write_files(tmp_path / "points", files)
    result = process("task", "new", str(folder), "--edit", "train.py", "--edit", "model.py", "--once")
    assert result.returncode == 0, result.stderr
    task = load_task(folder)
    assert (task.recipe.edit, set(task.harness)) == (("train.py", "model.py"), {"points.csv"})
    assert (task.metric.name, task.metric.direction) == ("accuracy", "maximize")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--command", "no-such-command a.sh"), "no-such-command is not on this machine"),
        (("--command", "sh a.sh"), "printed no result with a name"),
        (("--command", "sh a.sh", "--metric", "score"), "printed no number score"),
        (("--edit", "b.sh"), "b.sh does not exist"),
        (("--command", "sh 'a.sh"), "can't be read"),
    ],
)
def test_what_can_be_no_task_is_refused_and_leaves_nothing(
    process: Process, tmp_path: Path, words: tuple[str, ...], message: str
) -> None:
    folder = write_files(tmp_path / "folder", {"a.sh": "echo hello\n"})
    result = process("task", "new", str(folder), *words)
    assert (result.returncode, message in result.stderr, "Traceback" in result.stderr) == (2, True, False), (
        result.stderr
    )
    assert [path.name for path in folder.iterdir()] == ["a.sh"]


@pytest.mark.parametrize(
    ("source", "words", "message"),
    [
        (
            "print(len(open('../data.csv').read()))\n",
            (),
            "its runs see the task's folder and no ../data.csv: copy that",
        ),
        (
            "import sys\nsys.exit(len(sys.argv[1:]))\n",
            ("--command", "python train.py && python train.py a"),
            "&& is a word of it: --command \"bash -c 'python train.py && python train.py a'\"",
        ),
    ],
)
def test_a_program_that_lacks_a_shell_or_what_lies_beside_its_folder_is_told_so(
    process: Process, tmp_path: Path, source: str, words: tuple[str, ...], message: str
) -> None:
    (tmp_path / "data.csv").write_text("1\n")
    folder = write_files(tmp_path / "folder", {"train.py": source})
    result = process("task", "new", str(folder), *words)
    assert (result.returncode, message in result.stderr) == (2, True), result.stderr


@pytest.mark.parametrize(
    ("name", "source", "words"),
    [
        ("a.c", '#include <stdio.h>\nint main() { puts("hello"); return 0; }\n', ()),
        ("a.cpp", "int main() { return 3; }\n", ()),
        ("a.c", "int main() { no C\n", ()),
        ("train.py", "print('loss:', 1)\n", ("--metric", "no name", "--seconds", "3")),
        ("train.py", "raise SystemExit(1)\n", ()),
    ],
)
def test_a_task_that_fails_leaves_the_folder_as_it_was(
    process: Process, tmp_path: Path, name: str, source: str, words: tuple[str, ...]
) -> None:
    folder = write_files(tmp_path / "folder", {name: source})
    result = process("task", "new", str(folder), *words)
    assert (result.returncode, "Traceback" in result.stderr) == (2, False), result.stderr
    assert [path.name for path in folder.iterdir()] == [name]


KARPATHY = {
    "prepare.py": """\
import os
CACHE_DIR = os.path.join(os.path.expanduser("~"), ".cache", "tiny")
TIME_BUDGET = BUDGET
def load():
    path = os.path.join(CACHE_DIR, "data.txt")
    assert os.path.exists(path), "No data. Run prepare.py first"
    return open(path).read()
""",
    "train.py": 'import time, prepare\nprepare.load()\nprint("start")\ntime.sleep(WAIT)\nprint("val_bpb: 2.5")\n',
}


def karpathy(folder: Path, *, budget: float, wait: float) -> Path:
    values = {"BUDGET": f"{budget:g}", "WAIT": f"{wait:g}"}
    files = {name: re.sub("BUDGET$|WAIT", lambda match: values[match[0]], text, flags=re.MULTILINE)
             for name, text in KARPATHY.items()}  # fmt: skip
    return write_files(folder, files)


@pytest.fixture
def data_in_home(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    with tempfile.TemporaryDirectory(dir="/var/tmp") as home:  # below /dev, where tests may lie, a run sees its own
        Path(home).chmod(0o755)
        (Path(home) / ".cache" / "tiny").mkdir(parents=True)
        (Path(home) / ".cache" / "tiny" / "data.txt").write_text("words")
        monkeypatch.setenv("HOME", home)
        yield Path(home)


def test_a_cache_is_mounted_when_it_is_named_and_the_baseline_runs_to_its_number(
    process: Process, tmp_path: Path, data_in_home: Path
) -> None:
    folder = karpathy(tmp_path / "gpt", budget=1, wait=0)
    result = process("task", "new", str(folder))
    assert (result.returncode, "--mount ~/.cache/tiny" in result.stderr) == (2, True), "a cache may hold keys"
    result = process("task", "new", str(folder), "--mount", "~/.cache/tiny")
    assert result.returncode == 0, result.stderr
    task = load_task(folder)
    assert (dict(task.mounts), task.metric.name) == ({"tiny": "~/.cache/tiny"}, "val_bpb")
    assert task.limits.memory_mib == 1024
    checked = process("node", "doctor", "task", str(folder))
    assert (checked.returncode, "val_bpb 2.5" in checked.stdout) == (0, True), checked.stdout


def test_of_a_program_that_takes_minutes_a_first_part_is_run(
    process: Process, tmp_path: Path, data_in_home: Path
) -> None:
    folder = karpathy(tmp_path / "gpt", budget=300, wait=0)
    result = process("task", "new", str(folder), "--mount", "~/.cache/tiny")
    assert result.returncode == 0, result.stderr
    assert "of the 300 s that a run takes" in result.stderr
    assert load_task(folder).limits.memory_mib == 1024
    (folder / "task.toml").unlink()
    (data_in_home / ".cache" / "tiny" / "data.txt").unlink()
    result = process("task", "new", str(folder), "--mount", "~/.cache/tiny")
    assert (result.returncode, "No data. Run prepare.py first" in result.stderr) == (2, True), result.stderr
    assert not (folder / "task.toml").exists()


def test_a_folder_that_is_no_cache_is_mounted_when_it_is_named(
    process: Process, tmp_path: Path, data_in_home: Path
) -> None:
    (data_in_home / "sets").mkdir()
    (data_in_home / "sets" / "a.txt").write_text("0.5")
    program = 'import os\nprint("loss:", float(open(os.path.expanduser("~/sets/a.txt")).read()))\n'
    folder = write_files(tmp_path / "mine", {"train.py": program})
    result = process("task", "new", str(folder))
    assert (result.returncode, "--mount ~/sets" in result.stderr) == (2, True), result.stderr
    result = process("task", "new", str(folder), "--mount", str(data_in_home / "sets"))
    assert result.returncode == 0, result.stderr
    assert dict(load_task(folder).mounts) == {"sets": "~/sets"}
    (folder / "task.toml").unlink()
    result = process("task", "new", str(folder), "--mount", str(data_in_home))
    assert (result.returncode, "your whole home folder" in result.stderr) == (2, True), result.stderr


@pytest.mark.parametrize(
    ("program", "message"),
    [
        ('print("loss: 1.5")\nraise SystemExit(3)\n', "ended with status 3"),
        ('print("loss: nan")\n', "diverged: the last it printed of loss is no number up to 1e+100: “loss: nan”"),
    ],
)
def test_a_program_that_fails_is_refused_even_with_a_number(
    process: Process, tmp_path: Path, program: str, message: str
) -> None:
    folder = write_files(tmp_path / "mine", {"train.py": program})
    result = process("task", "new", str(folder))
    assert (result.returncode, message in result.stderr) == (2, True), result.stderr
    assert not (folder / "task.toml").exists()


@pytest.mark.skipif(landlock_version() < LEAST_LANDLOCK, reason="needs landlock")
def test_without_bubblewrap_it_says_why_a_compiled_program_does_not_start(
    process: Process, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    script = "printf '#!/bin/sh\\necho loss: 1\\n' > made\nchmod +x made\n./made\n"
    result = process(
        "task", "new", str(write_files(tmp_path / "mine", {"run.sh": script})), "--command", "/bin/sh run.sh"
    )
    assert (result.returncode, "get bubblewrap" in result.stderr) == (2, True), result.stderr


POOL = """\
from concurrent.futures import ProcessPoolExecutor
def work(x):
    return x * 0.5
if __name__ == "__main__":
    with ProcessPoolExecutor(2) as pool:
        print("loss:", sum(pool.map(work, range(4))))
"""
# Its own word for how long it runs stands in the command line.
ENDLESS = """\
import argparse, itertools
words = argparse.ArgumentParser()
words.add_argument("--max-steps", type=int, default=-1)
last = words.parse_args().max_steps
for step in itertools.takewhile(lambda step: step != last, itertools.count()):
    if step % 100000 == 0: print("iter", step)
print("loss: 0.5")
"""
HINTS = {
    "a program without end": (ENDLESS, 2, "--command 'python train.py --max-steps N'", "g++"),
    "worker processes": (POOL, 0, "it printed loss: 3", "bubblewrap"),
    "a typing error": ('print("loss:", lenn([]))\n', 2, "NameError", "g++"),
    "the network": (
        'import urllib.request\nurllib.request.urlopen("http://example.org")\n', 2, "has no network", "--mount /"
    ),
    "a set outside": ('print("loss:", float(open("SETS/a b.csv").read()))\n', 2, "--mount SETS", "g++"),
    "a lie": ('print("/x: Permission denied")\nraise SystemExit(1)\n', 2, "ended with status 1", "g++"),
    "text without end": ('import time\nwhile True: print("iter 3"); time.sleep(0.1)\n', 2, "“iter 3”", "g++"),
}  # fmt: skip


@pytest.mark.parametrize("walls", ["bubblewrap", "landlock"])
@pytest.mark.slow
@pytest.mark.parametrize("what", HINTS)
def test_what_a_program_meets_at_a_wall_is_said_as_what_it_is(
    process: Process, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, what: str, walls: str
) -> None:
    if walls == "landlock":
        if landlock_version() < LEAST_LANDLOCK:
            pytest.skip("needs landlock")
        monkeypatch.setenv("PATH", str(tmp_path))
    program, status, message, never = HINTS[what]
    with tempfile.TemporaryDirectory(dir="/var/tmp") as sets:
        Path(sets).chmod(0o755)
        Path(sets, "a b.csv").write_text("0.5")
        folder = write_files(tmp_path / "mine", {"train.py": program.replace("SETS", sets)})
        result = process("task", "new", str(folder), "--once", "--seconds", "3")
    assert (result.returncode, message.replace("SETS", sets) in result.stderr) == (status, True), result.stderr
    assert never not in result.stderr
    assert "Traceback" not in result.stderr


@pytest.mark.slow
def test_a_long_log_is_no_reason_to_refuse_a_program(process: Process, tmp_path: Path) -> None:
    program = (
        'for i in range(80_000):\n    print(f"step {i} loss: {1 / (i + 1):.6f}", "." * 60)\nprint("val_loss: 0.5")\n'
    )
    folder = write_files(tmp_path / "mine", {"train.py": program})
    result = process("task", "new", str(folder), "--once")
    assert result.returncode == 0, result.stderr
    assert ran(process, folder).run


def test_a_program_for_a_folder_that_is_not_there_is_refused(process: Process, tmp_path: Path) -> None:
    result = process("task", "new", str(tmp_path / "new"), "--command", "sh a.sh")
    assert (result.returncode, (tmp_path / "new").exists()) == (2, False)


def test_on_a_terminal_a_person_is_asked_with_the_guesses_as_defaults(tmp_path: Path, home: Path) -> None:
    script = 'echo "score: 4"; echo "steps: $((3 + 4))"\n'
    folder = write_files(tmp_path / "count", {"run.sh": script})
    command = [sys.executable, "-m", "autoresearch_cli", "task", "new", str(folder), "--once"]
    screen = on_terminal(command, typed="\nsteps\nmaximize\n9\n", AUTORESEARCH_HOME=str(home))
    assert "Command that runs the program [bash run.sh]:" in screen
    assert "Number to improve [score]:" in screen
    task = load_task(folder)
    assert (task.metric.name, task.metric.direction, task.budget.amount) == ("steps", "maximize", 9.0)


COMMANDED = """import argparse
parser = argparse.ArgumentParser()
train = parser.add_subparsers(dest="cmd", required=True).add_parser("train")
train.add_argument("--lr", type=float, default=0.1)
print("loss:", parser.parse_args().lr)
"""


@pytest.mark.parametrize(
    ("name", "text", "hint"),
    [
        ("", "", "→ give it what it wants: --command 'python main.py …'"),
        ("train.sh", "set -e\npython main.py train --lr 0.3\n", "--command 'python main.py train --lr 0.3'"),
        ("Makefile", "train:\n\tpython3 main.py train\n", "--command 'python3 main.py train'"),
        ("sweep.sh", "X=0 python main.py train --lr 0.3 | tee log\n", "--command 'python main.py train --lr 0.3'"),
        ("README.md", "`python -m pip install .`, `python setup.py x`, `python lost.py`\n", "→ give it what it wants"),
        ("README.md", "`python -m venv v`, then `python main.py train`.\n", "--command 'python main.py train'"),
        ("README.md", "Run `python -m main train`.\n", "--command 'python -m main train'"),
        ("README.md", "Run `python main.py train`.\n", "--command 'python main.py train'"),
        ("train.sh", 'python main.py train --lr "$LR"\n', "→ give it what it wants"),
        ("train.sh", "LR=0.3\npython main.py train --lr $LR\n", "--command 'python main.py train --lr 0.3'"),
        ("train.sh", "${PYTHON:-python3} main.py train ${LR}\n", "→ give it what it wants"),
        ("Makefile", "PY ?= python3 # any\nrun:\n\t$(PY) main.py train\n", "--command 'python3 main.py train'"),
    ],
)
def test_a_program_that_wants_arguments_is_started_as_the_folder_says(
    process: Process, tmp_path: Path, name: str, text: str, hint: str
) -> None:
    folder = tmp_path / "commanded"
    folder.mkdir()
    (folder / "main.py").write_text(COMMANDED)
    if name:
        (folder / name).write_text(text)
    refused = process("task", "new", str(folder), "--metric", "loss")
    assert refused.returncode == 2
    assert "the following arguments are required: cmd" in refused.stderr
    assert hint in refused.stderr
    if "--command 'python main.py train" in hint:
        command = re.search(r"--command '([^']*)'", hint)
        assert command
        made = process("task", "new", str(folder), "--metric", "loss", "--once", "--command", command[1])
        assert made.returncode == 0, made.stderr
