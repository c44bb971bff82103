"""A cloned folder with links out of it, by the commands of a person: nothing of the owner is read or changed."""

from __future__ import annotations

from pathlib import Path

import pytest

from autoresearch.task.loading import load_task
from tests.cli.conftest import Process
from tests.cli.programs import write_files
from tests.daemon.toy import TRAIN, write_toy_task
from tests.links import CANARY

READER = """\
LR = 0.1
try:
    print("it read", len(open("data/points.csv").read()))
except OSError:
    print("it has no data")
print("val_loss:", LR)
"""


@pytest.fixture
def secret(tmp_path: Path) -> Path:
    place = tmp_path / "owner/.ssh/id"
    place.parent.mkdir(parents=True)
    place.write_bytes(CANARY)
    return place


def nothing_came_through(home: Path, secret: Path) -> bool:
    """Whether no file of the node has the secret, and its folder is as it was."""
    files = (path for path in home.rglob("*") if path.is_file() and not path.is_symlink())
    is_elsewhere = any(CANARY.strip() in path.read_bytes() for path in files)
    return not is_elsewhere and secret.read_bytes() == CANARY and [*secret.parent.iterdir()] == [secret]


def test_data_that_is_a_link_out_is_left_out_and_that_is_said(
    process: Process, home: Path, tmp_path: Path, secret: Path
) -> None:
    folder = write_files(tmp_path / "clone", {"train.py": READER})
    write_files(folder / "data", {"readme.txt": "points\n"})
    (folder / "data/points.csv").symlink_to(f"../../{secret.relative_to(tmp_path)}")
    result = process("task", "new", str(folder), "--once")
    assert result.returncode == 0, result.stderr
    reason = f"a link that leads out of the folder; to show it to runs: --mount {secret}"
    assert f"left out: data/points.csv, {reason}" in result.stderr
    assert process("publish", "task", str(folder)).returncode == 0
    assert CANARY not in load_task(folder).harness.values()
    assert nothing_came_through(home, secret)


@pytest.mark.parametrize("name", ["train.py", "settings.json", "prepare.py", "task.toml"])
@pytest.mark.parametrize("words", [("run",), ("publish", "task")])
def test_a_task_with_a_link_out_is_refused_with_where_it_leads(
    process: Process, home: Path, tmp_path: Path, secret: Path, name: str, words: tuple[str, ...]
) -> None:
    folder = write_toy_task(tmp_path / "clone")
    manifest = (folder / "task.toml").read_text()
    (folder / "task.toml").write_text(f'{manifest}\n[program]\nedit = ["train.py", "*.json"]\n')
    (folder / name).unlink(missing_ok=True)
    (folder / name).symlink_to(secret)
    result = process(*words, str(folder))
    assert (result.returncode, result.stdout) == (2, "")
    assert f"{folder / name} can't be read: a link leads out of the folder, to {secret}" in result.stderr
    assert "→ copy the file there" in result.stderr
    assert nothing_came_through(home, secret)


def test_a_program_is_checked_out_over_no_link(process: Process, home: Path, tmp_path: Path, secret: Path) -> None:
    folder = write_toy_task(tmp_path / "clone")
    assert process("task", "pin", str(folder)).returncode == 0
    assert process("run", str(folder)).returncode == 0
    (folder / "train.py").unlink()
    (folder / "train.py").symlink_to(secret)
    assert process("run", "checkout", str(folder)).returncode == 0
    assert (folder / "train.py").is_file()
    assert not (folder / "train.py").is_symlink()
    (folder / ".autoresearch").rename(tmp_path / "moved")
    (folder / ".autoresearch").symlink_to(secret.parent)
    result = process("run", "checkout", str(folder))
    assert result.returncode == 2
    assert f"can't be written: a link leads out of the folder, to {secret.parent}" in result.stderr
    assert "→ replace that link by a folder or a file" in result.stderr
    assert (folder / "train.py").read_text() == TRAIN
    assert nothing_came_through(home, secret)


@pytest.mark.parametrize("name", ["main.py", "lib"])
def test_a_component_with_a_link_is_not_published(
    process: Process, home: Path, tmp_path: Path, secret: Path, name: str
) -> None:
    folder = write_files(tmp_path / "clone", {"policy.py": "class Policy:\n    pass\n"})
    (folder / name).symlink_to(secret if name == "main.py" else secret.parent)
    if name == "main.py":
        result = process("publish", "component", str(folder / name), "--type", "policy", "--version", "1.0")
        assert (result.returncode, "main.py can't be read: it is a link, and no plain file" in result.stderr) == (
            2,
            True,
        )
    result = process("publish", "component", str(folder), "--type", "policy", "--version", "1.0")
    assert result.returncode == 2
    assert f"{folder / name} is a link, to " in result.stderr
    assert "→ copy the file there" in result.stderr
    assert nothing_came_through(home, secret)
