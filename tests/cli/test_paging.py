"""A pager shows what does not fit on the screen, to a person only, and only who wants one."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.cli.conftest import Cli, Process
from tests.cli.filling import Filled
from tests.terminals import on_terminal

COMMAND = [sys.executable, "-m", "autoresearch_cli"]


@pytest.fixture
def pager(tmp_path: Path) -> str:
    """A pager that says that it was there."""
    program = tmp_path / "a pager"
    program.write_text("#!/bin/sh\necho PAGED with $1\ncat\n")
    program.chmod(0o755)
    return f"'{program}' --nice"


@pytest.mark.parametrize(
    ("words", "lines", "is_paged"),
    [
        (["node", "config", "show"], "10", True),
        (["node", "config", "show", "--no-pager"], "10", False),
        (["node", "config", "show"], "1000", False),
        (["diff", "@"], "5", True),
        (["node", "records"], "5", True),
        (["show", "@"], "5", True),
    ],
)
def test_only_what_is_longer_than_the_screen_is_paged(
    filled: Filled, pager: str, words: list[str], lines: str, is_paged: bool
) -> None:
    screen = on_terminal([*COMMAND, *words], PAGER=pager, LINES=lines, COLUMNS="100", NO_COLOR="1")
    assert ("PAGED with --nice" in screen) == is_paged
    assert "Traceback" not in screen


@pytest.mark.parametrize("pager", ["", "cat", "no-such-program", "'never closed"])
def test_without_a_pager_everything_is_printed(filled: Filled, pager: str) -> None:
    screen = on_terminal([*COMMAND, "node", "config", "show"], PAGER=pager, LINES="5", COLUMNS="100", NO_COLOR="1")
    assert "work.nice" in screen


def test_a_pager_that_ends_early_is_no_failure(filled: Filled, tmp_path: Path) -> None:
    screen = on_terminal([*COMMAND, "node", "config", "show"], PAGER="true", LINES="5", COLUMNS="100")
    assert "Traceback" not in screen


def test_a_pipe_is_never_paged(process: Process, filled: Filled, pager: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PAGER", pager)
    monkeypatch.setenv("LINES", "2")
    assert "PAGED" not in process("node", "config", "show").stdout


@pytest.mark.parametrize("words", [("run", "list"), ("top",), ("node", "records"), ("task", "list")])
def test_a_list_in_a_pipe_has_a_header_where_one_is_wanted(cli: Cli, filled: Filled, words: tuple[str, ...]) -> None:
    plain, headed = cli(*words).stdout.splitlines(), cli(*words, "--header").stdout.splitlines()
    assert headed[1:] == plain
    names = headed[0].split("\t")
    assert len(set(names)) == len(names) > 2
    assert not plain or len(plain[0].split("\t")) == len(names)


def test_no_pager_may_stand_anywhere(cli: Cli, filled: Filled) -> None:
    assert cli("--no-pager", "node", "records").stdout == cli("node", "records", "--no-pager").stdout
