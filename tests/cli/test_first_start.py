"""The first start on a terminal asks what this machine may be used for; the settings can be edited as a file."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from autoresearch.paths import Paths
from autoresearch.settings import Settings, load_settings
from tests.cli.conftest import Cli
from tests.daemon.toy import write_toy_task
from tests.terminals import on_terminal

PROGRAM = [sys.executable, "-m", "autoresearch_cli"]


def in_force(paths: Paths) -> Settings:
    return load_settings(paths.settings, {})[0]


@pytest.mark.slow
def test_the_first_start_asks_once_and_computes_nothing_before_a_person_agrees(
    cli: Cli, paths: Paths, tmp_path: Path
) -> None:
    toy = write_toy_task(tmp_path / "toy")
    answers = ["not an invite", "", "/no/such/folder", str(toy), "0", "1", "4", "3", "n"]
    try:
        screen = on_terminal([*PROGRAM, "up"], typed="".join(f"{each}\n" for each in answers))
        assert "Nothing is computed until you say so" in screen
        assert "is not a file, an invite or an address" in screen
        assert "“0” is no number from 1 to" in screen
        assert "“4” is no number from 1 to 3" in screen
        assert "Begin to work now?" in screen
        status = json.loads(cli("status", "--json").stdout)
        assert (status["running"], status["state"]) == (True, "idle")
        work = in_force(paths).work
        assert (work.task, work.workers, work.hours) == (str(toy), 1, "mon-fri 19:00-07:00, sat-sun")
        cli("down")
        assert "Nothing is computed" not in on_terminal([*PROGRAM, "up"])
        again = on_terminal([*PROGRAM, "node", "setup"], typed="\n\n\n1\ny\n")
        assert f"[{toy}]" in again.replace("\n  ", "")
        assert in_force(paths).work.hours == ""
        assert json.loads(cli("status", "--json").stdout)["state"] != "idle"
    finally:
        cli("down")


def test_nobody_is_asked_without_a_terminal(cli: Cli, paths: Paths) -> None:
    refused = cli("node", "setup")
    assert (refused.exit_code, "this is no terminal" in refused.stderr) == (2, True)
    assert not paths.settings.exists()


@pytest.mark.slow
def test_an_edited_file_is_taken_whole_or_not_at_all(
    cli: Cli, paths: Paths, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def edited(program: str) -> tuple[int, str]:
        script = tmp_path / "editor"
        script.write_text(
            f"#!{sys.executable}\nimport os, pathlib, sys\nfile = pathlib.Path(sys.argv[-1])\n"
            f"text = file.read_text()\n{program}\nfile.write_text(text)\nos.utime(file, (2e9, 2e9))\n"
        )
        script.chmod(0o755)
        monkeypatch.setenv("EDITOR", str(script))
        done = cli("node", "config", "edit")
        return done.exit_code, done.stderr

    assert edited("pass") == (0, "nothing is changed\n")
    code, message = edited("sys.exit(1)")
    assert (code, message.startswith("the editor failed, and nothing is changed: ")) == (6, True)
    assert not paths.settings.exists()
    code, message = edited("text = text.replace('# workers = 1', 'workers = 2  # mine')")
    assert (code, message) == (0, "work.workers = 2\n")
    stored = paths.settings.read_text()
    assert "workers = 2  # mine" in stored
    assert "# nice = 10" in stored
    for wrong, sentence in (
        ("wrkers = 2", "did you mean work.workers?"),
        ("workers = 900", "work.workers takes a whole number from 0 to 64"),
        ("workers = ", "is not valid TOML"),
        ("task = '/no/such/folder'", "/no/such/folder"),
        ("hours = 'mon 25:00'", "hours"),
    ):
        code, message = edited(f"text = text.replace('workers = 2', {wrong!r})")
        assert code in (2, 4)
        assert sentence in message
        assert "/tmp" not in message
        assert paths.settings.read_text() == stored
    assert edited("text = text.replace('workers = 2', '')")[1] == "work.workers = 1\n"
    assert in_force(paths).work.workers == 1
    assert list(paths.settings.parent.iterdir()) == [paths.settings]


def test_the_schema_has_every_setting(cli: Cli) -> None:
    schema = json.loads(cli("node", "config", "schema").stdout)
    work = schema["$defs"]["Work"]["properties"]["workers"]
    assert (work["type"], work["default"], work["maximum"]) == ("integer", 1, 64)
