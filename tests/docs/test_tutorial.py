"""What the tutorial and the README tell a reader to type works as it stands, on a task that takes milliseconds."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.daemon.toy import write_toy_task
from tests.warm import run_command, warm_shell

ROOT = Path(__file__).parents[2]
FILE = r"<!-- file: (?P<file>[\w./-]+) -->\n```(?:python|yaml|cpp|text)\n(?P<text>.*?)^```$"
CONSOLE = r"(?P<skip><!-- not run by the test: [^\n]+ -->\n)?```console\n(?P<console>.*?)^```$"


def steps(text: str) -> Iterator[str]:
    """A page as a shell program, a command or file at a time; blocks behind a marker with a reason are left out."""
    for block in re.finditer(f"{FILE}|{CONSOLE}", text, re.DOTALL | re.MULTILINE):
        if block["file"]:
            if (folder := Path(block["file"]).parent) != Path():
                yield f"mkdir -p {folder}"
            yield f"cat > {block['file']} <<'END'\n{block['text']}END"
        elif not block["skip"]:
            for line in block["console"].splitlines():
                assert line.startswith("$ "), f"no command: {line}"
                yield line.removeprefix("$ ")


def section(page: str, heading: str) -> str:
    """The part of a page below one heading."""
    match = re.search(rf"^## {re.escape(heading)}\n(.*?)(?=^## |\Z)", page, re.DOTALL | re.MULTILINE)
    assert match, heading
    return match[1]


def played(program: list[str], folder: Path) -> list[str]:
    """Run the commands one after the other in one shell until one fails; return those that succeeded."""
    task = write_toy_task(folder / "toy")
    done = folder / "done.txt"
    done.write_text("")
    environment = {name: value for name, value in os.environ.items() if not name.startswith("AUTORESEARCH_")}
    environment |= {
        "HOME": str(folder),
        "AUTORESEARCH_HOME": str(folder / "first"),
        "AUTORESEARCH_WORK_TASK": str(task),
        "AUTORESEARCH_NETWORK_LISTEN": "/ip4/127.0.0.1/tcp/0",
        "AUTORESEARCH_NETWORK_LAN": "false",
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "PYTHONPATH": os.pathsep.join(sys.path),
    }
    script = "".join(f"{step}\necho '{number}' >> '{done}'\n" for number, step in enumerate(program))
    # Here the first home is named; a reader has the usual one where none is.
    script = script.replace("unset AUTORESEARCH_HOME", f"export AUTORESEARCH_HOME={folder}/first")
    try:
        with warm_shell() as programs:
            shell = subprocess.run(
                ["bash", "-e", "-o", "pipefail", "-c", script],
                cwd=folder,
                env={**environment, "PATH": f"{programs}:{environment['PATH']}"},
                capture_output=True,
                text=True,
                timeout=1500,
                check=False,
            )
    finally:
        for home in (folder / "first", folder / "second"):
            if home.exists():
                run_command("down", environment={**environment, "AUTORESEARCH_HOME": str(home)})
    succeeded = len(done.read_text().split())
    assert shell.returncode == 0, f"{program[succeeded]}\n{shell.stdout[-2000:]}\n{shell.stderr[-2000:]}"
    return program[:succeeded]


def test_a_block_behind_a_marker_is_left_out_and_a_file_is_written() -> None:
    page = (
        "<!-- not run by the test: it needs a second machine -->\n```console\n$ never\n```\n\n"
        "<!-- file: a.py -->\n```python\nX = 1\n```\n\n```console\n$ one\n$ two\n```\n"
    )
    assert list(steps(page)) == ["cat > a.py <<'END'\nX = 1\nEND", "one", "two"]


@pytest.mark.slow
def test_a_command_that_fails_fails_the_page(tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match=r"^false"):
        played(["true", "false", "true"], tmp_path)
    with pytest.raises(AssertionError, match=r"^cd nowhere"):
        played(["cd nowhere"], tmp_path)


@pytest.mark.slow
def test_the_tutorial_can_be_followed_to_its_end(tmp_path: Path) -> None:
    pytest.importorskip("libp2p")
    program = list(steps((ROOT / "docs/tutorial.md").read_text()))
    assert len(program) > 25

    assert played(program, tmp_path) == program


@pytest.mark.slow
def test_the_tutorial_about_projects_can_be_followed(tmp_path: Path) -> None:
    pytest.importorskip("libp2p")
    program = list(steps((ROOT / "docs/tutorial-projects.md").read_text()))
    assert len(program) > 50

    assert played(program, tmp_path) == program


@pytest.mark.slow
def test_three_programs_become_tasks_as_the_page_says(tmp_path: Path) -> None:
    pytest.importorskip("sklearn")
    if shutil.which("g++") is None:
        pytest.skip("needs g++")
    program = list(steps((ROOT / "docs/how-to/three-programs.md").read_text()))
    assert len(program) == 18

    assert played(program, tmp_path) == program
    assert 'tiny = "~/.cache/tiny"' in (tmp_path / "gpt" / "task.toml").read_text()


@pytest.mark.slow  # five commands, each a process, with runs in the sandbox
def test_a_program_is_measured_outside_of_it_as_the_page_says(tmp_path: Path) -> None:
    program = list(steps((ROOT / "docs/how-to/evaluate-outside-the-program.md").read_text()))
    program += ["autoresearch show @mine --json | tee shown.json"]
    assert len(program) == 16

    assert played(program, tmp_path) == program
    assert '"value":0.75' in (tmp_path / "shown.json").read_text().replace(": ", ":")


@pytest.mark.slow
def test_an_environment_elsewhere_can_be_used_as_the_page_says(tmp_path: Path) -> None:
    pytest.importorskip("gymnasium")
    program = list(steps((ROOT / "docs/how-to/remote-environments.md").read_text()))
    assert len(program) > 10

    assert played(program, tmp_path) == program


@pytest.mark.slow
def test_experience_is_kept_as_the_page_says(tmp_path: Path) -> None:
    pytest.importorskip("google_crc32c")
    program = list(steps((ROOT / "docs/how-to/keep-experience.md").read_text()))
    assert len(program) == 8

    assert played(program, tmp_path) == program


@pytest.mark.slow
def test_several_actors_train_as_the_page_says(tmp_path: Path) -> None:
    program = list(steps((ROOT / "docs/how-to/train-with-several-actors.md").read_text()))
    assert len(program) > 10

    assert played(program, tmp_path) == program


@pytest.mark.slow
def test_five_minutes_of_the_readme_can_be_followed(tmp_path: Path) -> None:
    program = list(steps(section((ROOT / "README.md").read_text(), "Five minutes")))
    assert len(program) > 5

    assert played(program, tmp_path) == program
