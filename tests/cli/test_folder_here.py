"""A question that names no task is about the task of the folder that it is typed in."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest
from autoresearch_cli.catalogue import Task
from autoresearch_cli.groups import _command

from autoresearch.ask.commands import COMMANDS
from autoresearch.paths import Paths
from tests.cli import filling
from tests.cli.conftest import Cli
from tests.cli.filling import Filled
from tests.terminals import AUTORESEARCH, on_terminal

QUESTIONS = {
    "best": (),
    "top": (),
    "show": ("@",),
    "diff": ("@~1", "@"),
    "run lineage": ("@",),
    "run list": (),
    "run claims": (),
    "task effects": (),
    "task reports": (),
    "note list": (),
    "note ask": ("which X were tried?",),
    "note add": ("@mine", "what it shows"),
    "search": ("lower",),
    "status": ("--since", "3649d"),
    "verify": ("--list",),
    "run star": ("@",),
    "run unstar": ("@",),
    "run believe": ("@",),
    "run withdraw": ("@mine", "--yes"),
    "get": ("@", "copy"),
    "task export": ("--html", "pages", "--json"),
}
WRITING = {"note add", "run star", "run unstar", "run believe", "run withdraw"}
TASK = {"task reports": "my-task"}


@pytest.fixture
def last(filled: Filled, paths: Paths, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Filled:
    """The task that was worked on last; this is the folder of another, ``my-task``."""
    monkeypatch.chdir(filled.task.folder)
    monkeypatch.setattr(filling, "START_MS", filling.START_MS + 3_600_000)
    return filling.fill(paths, tmp_path / "other")


def test_these_are_all_commands_that_are_about_the_task_worked_on_last() -> None:
    about = next(each for each in Task.__metadata__).help
    having = {path for path in COMMANDS for each in _command(path).params if getattr(each, "help", "") == about}
    assert having | {"task reports"} == set(QUESTIONS)


def test_the_folder_says_which_task_is_meant(
    cli: Cli, last: Filled, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(home, tmp_path / "kept")
    for name in ("none", "named"):
        (tmp_path / name).mkdir()

    def typed(path: str, *more: str) -> str:
        result = cli(*path.split(), *QUESTIONS[path], *more)
        assert result.exit_code == 0, result.output
        if path in WRITING:
            shutil.rmtree(home)
            shutil.copytree(tmp_path / "kept", home)
        plain = result.output.replace(str(Path.cwd()), "").replace(" --task my-task", "")
        return re.sub(r"^\w+ is published", "", plain)

    in_folder = {path: typed(path) for path in QUESTIONS}
    monkeypatch.chdir(tmp_path / "none")
    without = {path: typed(path) for path in QUESTIONS}
    monkeypatch.chdir(tmp_path / "named")
    assert in_folder == {path: typed(path, TASK.get(path, "--task=my-task")) for path in QUESTIONS}
    assert [path for path in QUESTIONS if in_folder[path] == without[path]] == []


def test_an_id_is_enough_and_a_named_task_goes_before(cli: Cli, last: Filled) -> None:
    Path("task.toml").write_text("not = TOML =")
    assert cli("show", last.best, "--field", "id").stdout == f"{last.best}\n"
    assert cli("show", "@", "--task", "other", "--field", "id").stdout == f"{last.best}\n"
    broken = cli("best")
    assert broken.exit_code == 2
    assert "is not TOML" in broken.stderr
    assert broken.stderr.endswith("another task: --task NAME\n")


def test_the_program_may_be_broken_and_the_task_new(cli: Cli, last: Filled) -> None:
    Path("train.py").write_text("def (")
    assert cli("best").stdout.startswith("task\tmy-task")
    Path("task.toml").write_text(Path("task.toml").read_text().replace("my-task", "mine"))
    new = cli("top")
    assert new.exit_code == 4
    assert "no run on mine, the task of this folder, is here yet\n→ autoresearch run; another" in new.stderr
    assert cli("search", "lower").exit_code == 0


def test_a_terminal_says_that_it_is_another_than_the_last(last: Filled) -> None:
    sentence = "on my-task, the task of this folder; the one worked on last: --task other"
    assert sentence in on_terminal([*AUTORESEARCH, "run", "claims"])
    assert "the task of this folder" not in on_terminal([*AUTORESEARCH, "run", "claims", "--task", "other"])


def test_of_a_task_that_was_changed_nothing_is_told_under_its_old_name(cli: Cli, last: Filled) -> None:
    text = Path("task.toml").read_text()
    Path("task.toml").write_text(text + "# with another amount\n")
    assert cli("best").stdout.startswith("task\tmy-task"), "a comment makes no other task"
    Path("task.toml").write_text(re.sub(r"(?m)^amount = .*", "amount = 7", text))
    changed = cli("best")
    assert (changed.exit_code, "no run on my-task, the task of this folder" in changed.stderr) == (4, True)
    digest = re.search(r"as it was before task.toml changed: --task (\w{12})", changed.stderr)
    assert digest
    assert cli("best", "--task", digest[1]).exit_code == 0
