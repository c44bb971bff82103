"""Programs of other commands and of several files, from the folder to the record, in the real sandbox."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from autoresearch.ask.records import ShowAnswer
from autoresearch.ask.runs.answers import TopAnswer
from autoresearch.task.folder_state import started_from
from autoresearch.task.folders import pin_baseline
from tests.cli.conftest import Process
from tests.cli.programs import CPP, MODEL, SHELL, cpp_task, python_task, shell_task
from tests.cli.test_ideas import ran
from tests.cli.test_json import strictly
from tests.daemon.daemons import wait_for


@pytest.fixture(autouse=True)
def _path(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(sys.path))


def made(write: Callable[[Path], Path], folder: Path) -> Path:
    """A task folder whose baseline is pinned."""
    pin_baseline(write(folder))
    return folder


@pytest.mark.slow
def test_a_cpp_program_is_built_run_edited_compared_and_taken_back(process: Process, tmp_path: Path) -> None:
    folder = made(cpp_task, tmp_path / "bench")
    baseline = ran(process, folder)
    assert baseline.run
    assert baseline.run.run.value == pytest.approx(1.94)
    assert process("show", "@mine", "--log").stdout.splitlines()[-2:] == ["fixed", "latency: 1.940000"]

    (folder / "bench.cpp").write_text(CPP.replace("BLOCK = 8", "BLOCK = 18"))
    result = process("run", str(folder), "--hypothesis", "larger blocks")
    assert "better than its parent: 0.5400" in result.stderr
    assert "edit bench.cpp and run.sh" in result.stderr
    diff = process("diff", "@mine").stdout
    assert "/bench.cpp\n" in diff
    assert "-const int BLOCK = 8;" in diff
    assert "run.sh" not in diff
    assert "==== autoresearch file: run.sh ====\ncat note.txt\n" in process("show", "@mine", "--code").stdout

    again = tmp_path / "again"
    assert process("task", "get", "bench", str(again), "--run", "@").returncode == 0
    assert (again / "bench.cpp").read_text() == CPP.replace("BLOCK = 8", "BLOCK = 18")
    assert started_from(again) == started_from(folder) != ""
    assert process("task", "export", "--git", str(tmp_path / "repo")).returncode == 0
    assert (tmp_path / "repo" / "bench.cpp").read_text() == CPP.replace("BLOCK = 8", "BLOCK = 18")
    assert (tmp_path / "repo" / "run.sh").exists()
    (folder / "bench.cpp").write_text("int main( {}\n")
    broken = process("run", str(folder))
    assert (broken.returncode, "the build failed" in broken.stdout) == (1, True)


def test_a_classifier_in_two_files_reads_pinned_data_and_names_the_file_of_a_mistake(
    process: Process, tmp_path: Path
) -> None:
    folder = made(python_task, tmp_path / "points")
    baseline = ran(process, folder)
    assert baseline.run
    assert baseline.run.run.value == pytest.approx(10 / 12)
    (folder / "model.py").write_text(MODEL.replace("STEPS = 4", "STEPS = 6"))
    assert "better than its parent: 1" in process("run", str(folder)).stderr
    (folder / "model.py").write_text("def fit(:\n")
    wrong = process("run", str(folder))
    assert (wrong.returncode, f"{folder / 'model.py'}: line 1" in wrong.stderr) == (2, True)


def test_a_shell_script_is_a_program_and_a_file_of_it_can_be_proposed(process: Process, tmp_path: Path) -> None:
    folder = made(shell_task, tmp_path / "count")
    first = ran(process, folder)
    assert first.run
    assert first.run.run.value == 3
    output = process("task", "show", str(folder)).stdout
    assert "runs\tsh count.sh\nmay change\tcount.sh\n" in output
    assert "searched\tSIZE = 3: 1 .. 9" in output


def test_doctor_names_a_compiler_that_is_not_there(process: Process, tmp_path: Path) -> None:
    folder = made(cpp_task, tmp_path / "bench")
    manifest = folder / "task.toml"
    manifest.write_text(manifest.read_text().replace("g++ -O1", "no-such-compiler -O1"))
    result = process("node", "doctor", "task", str(folder))
    assert result.returncode == 1
    assert "no-such-compiler is not on this machine" in result.stdout
    assert "install no-such-compiler" in result.stdout


@pytest.mark.slow
def test_the_search_improves_a_cpp_program_and_the_daemon_takes_proposed_files(
    process: Process, tmp_path: Path
) -> None:
    folder, script = made(cpp_task, tmp_path / "bench"), made(shell_task, tmp_path / "count")
    assert process("up").returncode == 0
    try:
        assert process("work", str(folder), "--runs", "60").returncode == 0

        def best() -> float:
            programs = strictly(process("top", "--task", "bench", "--json").stdout, TopAnswer).programs
            return programs[0].reported if programs else 1.94

        wait_for(lambda: process("task", "list").stdout.startswith("bench"))
        wait_for(lambda: best() < 1.0)
        other = tmp_path / "other.sh"
        other.write_text(SHELL.replace("SIZE=3", "SIZE=7"))
        result = process("run", "propose", str(other), "--task", str(script))
        assert result.returncode == 0, result.stderr
        wrong = process("run", "propose", str(other), "--task", str(folder))
        assert (wrong.returncode, "the program of bench has several files" in wrong.stderr) == (2, True)
    finally:
        process("down")


def test_what_a_run_published_is_shown_as_it_is(process: Process, tmp_path: Path) -> None:
    folder = made(shell_task, tmp_path / "count")
    ran(process, folder)
    answer = strictly(process("show", "@mine", "--json").stdout, ShowAnswer)
    assert answer.run
    assert process("show", "@mine", "--code").stdout == f"==== autoresearch file: count.sh ====\n{SHELL}"
