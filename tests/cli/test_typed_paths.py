"""A path that no file can have gives a sentence, wherever a path is typed."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
from pathlib import Path

import pytest

from tests.cli.conftest import Cli
from tests.cli.filling import Filled
from tests.terminals import AUTORESEARCH

NAMES = {
    "300 characters": "x" * 300,
    "5,000 characters": "x" * 5_000,
    "100,000 characters": "x" * 100_000,
    "deep": "x/" * 2_500,
    "a null byte": "a\0b",
    "a null byte in a home": "~\0",
    "a new line": "/proc/no such\nfolder\x1b[2J",
    "bytes that are no text": "/proc/\udcff",
}
COMMANDS = [
    ("run", "PATH"),
    ("work", "PATH"),
    ("work", "./PATH"),
    ("task", "show", "PATH"),
    ("task", "new", "PATH"),
    ("task", "get", "PATH"),
    ("task", "get", "task", "PATH"),
    ("node", "import", "PATH"),
    ("node", "import", "/dev/null", "--task", "PATH"),
    ("run", "export", "-o", "PATH"),
    ("run", "export", "--bundle", "PATH"),
    ("show", "@", "--checkpoint", "PATH"),
    ("network", "join", "PATH"),
    ("network", "new", "tea", "-o", "PATH"),
    ("node", "id", "backup", "PATH"),
    ("node", "id", "restore", "PATH"),
]


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_a_sentence_and_no_file(
    cli: Cli, filled: Filled, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...]
) -> None:
    monkeypatch.setenv("AUTORESEARCH_PASSPHRASE", "correct horse battery")
    for kind, name in NAMES.items():
        result = cli(*(word.replace("PATH", name) for word in words))
        assert result.exit_code in (1, 2, 3, 4, 6), (kind, result.output)
        assert "bug in autoresearch" not in result.output, kind
        assert "Traceback" not in result.output
        assert "\x1b" not in result.output
        # What can't be is not repeated in full.
        assert 0 < len(result.stderr) < 1_000, kind


def test_a_setting_may_hold_one_too(cli: Cli, filled: Filled, monkeypatch: pytest.MonkeyPatch) -> None:
    assert cli("node", "config", "set", "work.task", "x" * 300).exit_code == 2
    monkeypatch.setenv("AUTORESEARCH_WORK_TASK", "x" * 300)
    for words in (
        ("task", "show"),
        ("run",),
        (
            "node",
            "doctor",
        ),
    ):
        result = cli(*words)
        assert "can't be a path: it is too long" in result.output
        assert "bug in autoresearch" not in result.output


def test_a_next_step_can_be_pasted_whatever_the_folder_is_called(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    name = "Zoë's $2 tests"
    for words, status in (
        (("task", "get", "moons", name), 0),
        (("task", "show", name), 0),
        (("task", "pin", name), 6),
        (("task", "new", f"{name}/new", "--new"), 0),
        (("task", "attack", f"{name}/.."), 2),
        (("network", "new", "tea", "--for", "lab", "-o", f"{name}/tea.toml"), 0),
        (("run", "checkout", f"{name}/.autoresearch"), 2),
        (("challenge", "new", f"{name}/.autoresearch", "--ends", "7d", "--for", "lab"), 2),
    ):
        result = cli(*words)
        assert result.exit_code == status, result.output
        step = re.search("^→ .*?(autoresearch [^;,&]*?)( makes .*|[;,&].*)?$", result.stderr, re.M)
        assert step, result.stderr
        assert any(name in word for word in shlex.split(step[1])), step[0]


@pytest.mark.parametrize("words", [("run",), ("challenge", "new", "--ends", "7d", "--for", "lab")], ids=" ".join)
def test_a_folder_that_is_none_is_not_told_to_become_a_task(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("train.py").touch()
    missing, file = cli(*words, "nosuch"), cli(*words, "train.py")
    assert (missing.exit_code, file.exit_code) == (4, 2)
    assert f"there is no folder {tmp_path}/nosuch" in missing.stderr
    assert f"{tmp_path}/train.py is not a folder\n→ give its folder: {tmp_path}" in file.stderr


@pytest.mark.parametrize(
    "words",
    [("run", "export", "-o"), ("run", "export", "--bundle"), ("network", "new", "tea", "--for", "lab", "-o")],
    ids=" ".join,
)
def test_what_is_written_as_a_whole_takes_no_device_away(
    cli: Cli, filled: Filled, tmp_path: Path, words: tuple[str, ...]
) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "file").write_text("mine\n")
    (tmp_path / "link").symlink_to(tmp_path / "new")
    for name, sentence in {
        "pipe": f"{tmp_path}/pipe is a device or a pipe",
        "file/x": f"there is no folder {tmp_path}/file",
        "no/x": f"there is no folder {tmp_path}/no",
        ".": f"{tmp_path} is a folder",
    }.items():
        result = cli(*words, str(tmp_path / name))
        assert result.exit_code == 2, result.output
        assert sentence in result.stderr
        assert "→ " in result.stderr
    assert cli(*words, str(tmp_path / "link")).exit_code == 0
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "new").stat().st_size > 0
    assert (tmp_path / "pipe").is_fifo()
    assert sorted(path.name for path in tmp_path.iterdir() if path.name[0] == ".") == []


def test_a_format_of_an_extension_takes_no_device_away_and_goes_to_the_end_of_a_link(
    cli: Cli, filled: Filled, tmp_path: Path
) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "old.db").write_text("old")
    (tmp_path / "link").symlink_to(tmp_path / "old.db")
    export = ("run", "export", "--format", "sqlite", "-o")
    refused = cli(*export, str(tmp_path / "pipe"))
    assert (refused.exit_code, "is a device or a pipe" in refused.stderr) == (2, True)
    assert (tmp_path / "pipe").is_fifo()
    assert cli(*export, str(tmp_path / "link")).exit_code == 0
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "old.db").read_bytes().startswith(b"SQLite")


@pytest.mark.parametrize("words", [("task", "get", "moons"), ("task", "new", "--new"), ("init", "--yes")], ids=" ".join)
def test_a_file_in_the_place_of_a_folder_is_named(cli: Cli, tmp_path: Path, words: tuple[str, ...]) -> None:
    (tmp_path / "file").touch()
    for place in (tmp_path / "file", tmp_path / "file" / "below"):
        result = cli(*words, str(place))
        assert result.exit_code in (2, 6), result.output
        assert f"{tmp_path}/file is not a folder\n→ " in result.stderr


@pytest.mark.parametrize(
    ("words", "manifest"),
    [
        (("task", "get", "moons", "."), "task.toml"),
        (("task", "get", "my-task", "."), "task.toml"),
        (("task", "new", ".", "--new"), "task.toml"),
        (("get", "@", "."), "task.toml"),
        (("task", "export", "--html", "."), "index.html"),
    ],
    ids=" ".join,
)
def test_the_empty_folder_of_the_shell_is_filled_and_not_replaced(
    cli: Cli, filled: Filled, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...], manifest: str
) -> None:
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    result = cli(*words)
    assert result.exit_code == 0, result.output
    assert Path(manifest).is_file()
    assert [path.name for path in tmp_path.iterdir() if path.name[0] == "."] == []


@pytest.mark.slow
def test_a_folder_that_can_not_be_written_to_its_end_is_not_there(tmp_path: Path) -> None:
    limit = f"ulimit -f 1; PYTHONDONTWRITEBYTECODE=1 {shlex.join(AUTORESEARCH)} task new {tmp_path}/mine --new"
    ended = subprocess.run(["bash", "-c", limit], capture_output=True, text=True, check=False)
    assert ended.returncode == 2, ended.stderr
    assert "can't be written: File too large" in ended.stderr
    assert not list(tmp_path.glob("*mine*"))
