"""Packages of a task as a person meets them: lock, doctor, run, what goes wrong. Real pip and sandbox, no network."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
from pathlib import Path

import pytest
from autoresearch_cli.models import DoctorAnswer, PackagesAnswer

from autoresearch.paths import Paths
from autoresearch.task.loading import load_task
from tests.cli.conftest import Cli
from tests.cli.test_json import strictly
from tests.run.packages.conftest import write_folder
from tests.run.packages.wheels import write_sources, write_wheel


def failed(said_json: str) -> tuple[str, str, str]:
    """The check that failed: its name, what was found, what to do."""
    checks = [check for check in strictly(said_json, DoctorAnswer).checks if check.result == "failed"]
    assert len(checks) == 1
    return checks[0].name, checks[0].detail, checks[0].fix


@pytest.mark.slow
def test_from_a_missing_package_to_a_run(folder: Path, wheels: Path, cli: Cli, paths: Paths) -> None:
    name, detail, fix = failed(cli("node", "doctor", "task", str(folder), "--json").stdout)
    assert (name, detail) == ("imports", "not installed: tiny_a")
    assert f"autoresearch task lock {folder}" in fix
    assert "[python] venv" in fix

    (folder / "requirements.in").write_text("tiny_a  # the only one\n")
    answer = strictly(cli("task", "lock", str(folder), "--json").stdout, PackagesAnswer)
    assert answer.packages == ["tiny_a==1.0", "tiny_b==1.2"]
    assert (answer.installed, answer.source) == (False, str(wheels))
    assert failed(cli("node", "doctor", "task", str(folder), "--json").stdout) == (
        "packages",
        "2 packages not installed here yet",
        f"autoresearch task allow {folder}",
    )

    ran = cli("run", str(folder), "--json")
    assert ran.exit_code == 0, ran.stderr
    run = json.loads(ran.stdout)["run"]["run"]
    assert run["value"] == 4.0
    assert "torch" not in run["environment"], "the node's own torch did not run it"
    doctor = strictly(cli("node", "doctor", "task", str(folder), "--json").stdout, DoctorAnswer)
    assert doctor.healthy
    assert strictly(cli("task", "allow", str(folder), "--json").stdout, PackagesAnswer).installed


@pytest.mark.slow
def test_a_loose_requirements_txt_is_locked_in_place_and_kept(folder: Path, wheels: Path, cli: Cli) -> None:
    (folder / "requirements.txt").write_text("tiny_b\n")
    assert "by pip: tiny_b==1.2" in cli("task", "lock", str(folder)).stderr
    assert (folder / "requirements.in").read_text() == "tiny_b\n"
    first = load_task(folder).digest

    write_wheel(wheels, "tiny_b", "1.3", "VALUE = 2\n")
    assert cli("task", "lock", str(folder)).exit_code == 0
    assert [package.version for package in load_task(folder).packages] == ["1.3"]
    assert load_task(folder).digest != first

    (folder / "requirements.in").unlink()
    assert "locked already: 1 package" in cli("task", "lock", str(folder)).stderr


@pytest.mark.slow
def test_a_list_that_is_not_locked_is_refused(locked: Path, cli: Cli) -> None:
    loose = "tiny_a\n"
    (locked / "requirements.txt").write_text(loose)
    text = (locked / "task.toml").read_text()
    pin = hashlib.sha256(loose.encode()).hexdigest()
    old = next(line for line in text.splitlines() if line.startswith('"requirements.txt"'))
    (locked / "task.toml").write_text(text.replace(old, f'"requirements.txt" = "{pin}"'))
    result = cli("run", str(locked))
    assert result.exit_code == 2
    assert "requirements.txt is not locked: line 1, “tiny_a”" in result.stderr
    assert "autoresearch task lock" in result.stderr


@pytest.mark.slow
def test_a_file_with_another_hash_is_not_installed(locked: Path, wheels: Path, cli: Cli, paths: Paths) -> None:
    write_wheel(wheels, "tiny_b", "1.2", "VALUE = 1000\n")
    result = cli("run", str(locked))
    assert result.exit_code == 6
    assert "another hash than the lock says, so nothing was installed" in result.stderr
    assert [each for each in paths.environments.iterdir() if each.is_dir()] == []


@pytest.mark.slow
def test_sources_are_never_built(folder: Path, wheels: Path, cli: Cli, place: Path, paths: Paths) -> None:
    built = place / "built"
    archive = write_sources(wheels, "only_sources", "1.0", built)
    (folder / "requirements.in").write_text("only_sources\n")
    result = cli("task", "lock", str(folder))
    assert result.exit_code == 6
    assert "No matching distribution found for only_sources" in result.stderr

    digest = hashlib.sha256(archive.read_bytes()).hexdigest()
    (folder / "requirements.in").unlink()
    (folder / "requirements.txt").write_text(f"only_sources==1.0 --hash=sha256:{digest}\n")
    assert cli("task", "lock", str(folder)).exit_code == 0
    assert cli("run", str(folder)).exit_code == 6
    assert not built.exists()


@pytest.mark.slow
def test_offline_is_a_sentence(folder: Path, wheels: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PIP_NO_INDEX")
    monkeypatch.delenv("PIP_FIND_LINKS")
    monkeypatch.setenv("PIP_INDEX_URL", "http://127.0.0.1:9/simple")
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    (folder / "requirements.in").write_text("tiny_a\n")
    result = cli("task", "lock", str(folder))
    assert result.exit_code == 6
    assert "this machine seems to be offline" in result.stderr


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (None, "requirements.txt can't be read"),
        ("# nothing\n", "names no package"),
        ("tiny_a\ntiny_b @ {}", "line 2, “tiny_b @ file:"),
        ("-e .", "line 1, “-e .”, is no package's name"),
        ("--index-url https://example.org", "“--index-url"),
        ("git+https://example.org/a", "“git+https"),
        ("./tiny_a", "“./tiny_a”"),
        ("tiny_a --global-option=x", "is no package's name"),
    ],
)
def test_what_cannot_be_locked_is_explained(
    folder: Path, wheels: Path, cli: Cli, content: str | None, sentence: str
) -> None:
    if content is not None:
        wheel = next(wheels.glob("tiny_a*")).as_uri()
        (folder / "requirements.in").write_text(content.format(wheel))
    before = {file.name: file.read_bytes() for file in folder.iterdir() if file.is_file()}
    result = cli("task", "lock", str(folder))
    assert result.exit_code == 2
    assert sentence in result.stderr
    assert {file.name: file.read_bytes() for file in folder.iterdir() if file.is_file()} == before


@pytest.mark.slow
def test_nothing_in_the_folder_of_a_task_is_run_to_lock_it(locked: Path, cli: Cli, place: Path) -> None:
    for name in ("json.py", "pip.py", "sitecustomize.py", "setup.py"):
        (locked / name).write_text(f"open({str(place / 'seen')!r}, 'w')\n")
    (locked / "requirements.in").write_text("tiny_a>=1,<2\n")
    (locked / "pyproject.toml").write_text("[tool.uv]\nindex-url = 'https://example.org'\n")
    result = cli("task", "lock", str(locked))
    assert result.exit_code == 0, result.stderr
    assert not (place / "seen").exists()


@pytest.mark.slow
def test_an_environment_of_this_machine_runs_the_program(folder: Path, wheels: Path, cli: Cli, place: Path) -> None:
    mine = place / "mine"
    with (folder / "task.toml").open("a") as file:
        file.write(f'\n[python]\nvenv = "{mine}"\n')
    result = cli("run", str(folder))
    assert result.exit_code == 6
    assert f"{mine} is no Python environment" in result.stderr

    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(mine)], check=True)
    assert "nobody allowed that here" in cli("run", str(folder)).stderr
    assert cli("task", "allow", str(folder), "--yes").exit_code == 0
    name, detail, fix = failed(cli("node", "doctor", "task", str(folder), "--json").stdout)
    assert (name, detail) == ("imports", "not installed: tiny_a")
    assert fix.startswith(f"{mine}/bin/python -m pip install tiny_a")

    install = [sys.executable, "-m", "pip", "--python", str(mine / "bin/python"), "install", "-q", "tiny_a"]
    subprocess.run(install, check=True)
    ran = cli("run", str(folder), "--json")
    assert ran.exit_code == 0, ran.stderr
    assert json.loads(ran.stdout)["run"]["run"]["value"] == 4.0


@pytest.mark.slow
@pytest.mark.parametrize("base", [False, True])
def test_the_nodes_own_packages_are_there_with_base_alone(place: Path, wheels: Path, cli: Cli, base: bool) -> None:
    folder = write_folder(place / "numpy-task", "import tiny_b\nimport numpy\nprint(f'score: {tiny_b.VALUE}')\n")
    (folder / "requirements.in").write_text("tiny_b\n")
    locked = cli("task", "lock", str(folder))
    assert locked.exit_code == 0
    assert "the list lacks numpy, which the files of the task import" in locked.stderr
    checks = cli("node", "doctor", "task", str(folder), "--json").stdout
    assert "its list of packages lacks numpy" in checks
    if base:
        with (folder / "task.toml").open("a") as file:
            file.write("base = true\n")
    ran = cli("run", str(folder))
    assert ran.exit_code == (0 if base else 6)
    assert base or "No module named 'numpy'" in ran.stderr


@pytest.mark.slow
def test_a_new_folder_whose_program_lacks_a_package_is_told_the_way(place: Path, cli: Cli) -> None:
    (place / "new").mkdir()
    (place / "new" / "train.py").write_text("import tiny_a\nprint('score: 1')\n")
    result = cli("task", "new", str(place / "new"))
    assert result.exit_code == 2
    assert "the Python of this node lacks: tiny_a" in result.stderr
    assert f"autoresearch task lock {place / 'new'}" in result.stderr
