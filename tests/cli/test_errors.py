"""Bad input ends in a sentence, a hint and the right exit code, never in a traceback."""

from __future__ import annotations

import ast
import importlib
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from autoresearch_cli.groups import _command
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from autoresearch.ask.commands import COMMANDS
from autoresearch.paths import Paths
from autoresearch.record.encoding import parse_id, short_id
from tests.cli.conftest import Cli, Process
from tests.cli.filling import Filled

WRONG: list[tuple[int, tuple[str, ...]]] = [
    (2, ("statu",)),
    (2, ("status", "--colour")),
    (4, ("status", "extra")),
    (2, ("status", "extra", "more")),
    (2, ("show",)),
    (2, ("show", "")),
    (2, ("show", "@best")),
    (2, ("show", "no such thing")),
    (2, ("show", "1810")),
    (2, ("show", "../../etc/passwd")),
    (2, ("show", "@~x")),
    (4, ("show", "ezzzzzzz")),
    (2, ("show", "zzzz")),
    (4, ("show", "@~999")),
    (2, ("show", "@", "--code", "--log")),
    (2, ("top", "-n", "0")),
    (2, ("top", "-n", "many")),
    (2, ("node", "records", "--kind", "poem")),
    (2, ("run", "export", "--format", "xml")),
    (2, ("node", "config", "set", "work.workers", "-1")),
    (2, ("node", "config", "set", "work.workers", "two")),
    (2, ("node", "config", "set", "work.worker", "2")),
    (2, ("node", "config", "get", "nothing")),
    (2, ("node", "config", "frobnicate")),
    (2, ("node", "pause", "--for", "soon")),
    (2, ("work", "--for", "0s")),
    (2, ("work", "--for", "")),
    (2, ("work", "")),
    (2, ("node", "pause", "--for", "")),
    (2, ("demo", "--for", "")),
    (2, ("work", "--runs", "0")),
    (
        3,
        (
            "node",
            "pause",
        ),
    ),
    (
        3,
        (
            "node",
            "resume",
        ),
    ),
    (
        3,
        (
            "node",
            "finish",
        ),
    ),
    (
        3,
        (
            "node",
            "events",
        ),
    ),
    (4, ("run", "/no/such/folder")),
    (2, ("run", "/")),
    (4, ("task", "show", "/no/such/folder")),
    (2, ("task", "show", "/dev/null")),
    (2, ("task", "new", "/dev/null")),
    (4, ("node", "import", "/no/such/file.tsv")),
    (2, ("node", "import", "/")),
    (2, ("--color", "sometimes", "status")),
    (2, ("diff",)),
    (2, ("show", "@", "--field")),
    (2, ("run", "list", "--group", "NOTHING")),
    (2, ("run", "wait", "x", "--timeout", "0s")),
    (4, ("join", "nothing.toml")),
]


@pytest.mark.parametrize(("code", "words"), WRONG)
def test_wrong_input_has_its_exit_code_and_a_sentence(
    cli: Cli, filled: Filled, code: int, words: tuple[str, ...]
) -> None:
    result = cli(*words)
    assert result.exit_code == code, result.output
    assert "\n→ " in result.stderr
    assert "Traceback" not in result.output
    assert "bug in autoresearch" not in result.output
    assert result.stdout == ""


@pytest.mark.parametrize(("code", "words"), WRONG)
def test_with_json_a_failure_is_one_document(cli: Cli, filled: Filled, code: int, words: tuple[str, ...]) -> None:
    if words[0] == "--color":
        words = (*words[2:], *words[:2])
    failure = json.loads(cli(*words, "--json").stdout)
    assert failure["schema"] == "autoresearch.failure/1"
    assert failure["exit_status"] == code
    assert failure["error"]


@pytest.mark.parametrize(
    "words",
    [
        ("show",),
        ("diff",),
        (
            "run",
            "lineage",
        ),
        ("best",),
        ("node", "config", "get"),
        ("task", "show"),
    ],
)
@given(text=st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1))
@settings(max_examples=8, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_text_as_an_argument_gives_an_answer_or_a_sentence(
    cli: Cli, filled: Filled, words: tuple[str, ...], text: str
) -> None:
    result = cli(*words, "--", text)
    assert result.exit_code in (0, 1, 2, 4, 5)
    assert "bug in autoresearch" not in result.stderr
    assert result.exit_code == 0 or result.stderr.strip()
    assert "\x1b" not in result.output


def test_an_ambiguous_prefix_lists_the_candidates(cli: Cli, filled: Filled) -> None:
    result = cli("show", "bafyrei")
    assert result.exit_code == 5
    assert short_id(parse_id(filled.best)) in result.stderr
    assert filled.best not in result.stderr, "ten whole ids are no help"


@pytest.mark.parametrize("command", ["status", "node records", "top", "best", "run export"])
def test_a_damaged_log_is_a_sentence(cli: Cli, paths: Paths, command: str) -> None:
    paths.create()
    paths.log.write_bytes(b"this is no database at all, by far" * 100)
    result = cli(*command.split())
    assert result.exit_code in (1, 6)
    assert "bug in autoresearch" not in result.stderr
    assert result.stderr.strip()


@pytest.mark.parametrize("name", ["log", "manifest", "settings"])
@pytest.mark.parametrize("command", ["top", "network credit", "verify @", "node config show"])
def test_a_file_that_cannot_be_read_is_a_sentence_with_a_hint(cli: Cli, paths: Paths, name: str, command: str) -> None:
    paths.create()
    place = getattr(paths, name)
    place.mkdir()  # permissions keep nobody out who may do everything
    result = cli(*command.split())
    if (name == "settings") == (command == "node config show"):
        assert result.exit_code in (2, 6)
        assert str(place) in result.stderr
        assert "→" in result.stderr
    assert "bug in autoresearch" not in result.stderr


def test_settings_that_are_no_toml_are_a_sentence(cli: Cli, paths: Paths) -> None:
    paths.create()
    paths.settings.write_text("work = [")
    result = cli("node", "config", "show")
    assert result.exit_code == 2
    assert str(paths.settings) in result.stderr


def test_a_socket_file_without_a_daemon_counts_as_not_running(cli: Cli, filled: Filled, paths: Paths) -> None:
    paths.socket.parent.mkdir(parents=True, exist_ok=True)
    paths.socket.touch()
    assert cli("node", "pause").exit_code == 3
    assert cli("status").exit_code == 0


def test_an_unexpected_error_is_a_sentence_unless_debug_is_asked_for(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> None:
        raise ZeroDivisionError("by hand")

    monkeypatch.setattr("autoresearch_cli.commands.work.stopped", broken)
    result = cli("status")
    assert result.exit_code == 1
    assert "ZeroDivisionError: by hand" in result.stderr
    assert "--debug" in result.stderr
    assert isinstance(cli("status", "--debug").exception, ZeroDivisionError)


def test_a_misspelt_command_gets_a_suggestion(cli: Cli) -> None:
    assert "status" in cli("stauts").stderr


@pytest.mark.slow
def test_a_reader_that_goes_away_gets_no_complaint(filled: Filled) -> None:
    command = [sys.executable, "-m", "autoresearch_cli", "run", "export", "--format", "jsonl"]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment) as running:
        assert running.stdout
        assert running.stderr
        running.stdout.close()
        assert running.stderr.read() == b""


@pytest.mark.slow
def test_output_survives_a_locale_without_our_characters(
    process: Process, filled: Filled, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONIOENCODING", "ascii")
    monkeypatch.setenv("PYTHONUTF8", "0")
    for words in (
        ("status",),
        (
            "node",
            "records",
        ),
        ("show", filled.stranger),
    ):
        result = process(*words, python=("-m", "autoresearch_cli"))
        assert result.returncode == 0, result.stderr


def test_what_commands_refuse_comes_with_a_next_step() -> None:
    """An ambiguous id has its own: the candidates."""
    silent = [
        f"{file}:{node.lineno}"
        for package in ("autoresearch_cli", "autoresearch.ask", "autoresearch.project")
        for file in Path(str(importlib.import_module(package).__file__)).parent.rglob("*.py")
        for node in ast.walk(ast.parse(file.read_text("utf-8")))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
        if node.func.id in ("UsageError", "NotFound", "Refused", "TimedOut", "CannotRunHere")
        if not any(keyword.arg in ("hint", None) for keyword in node.keywords)
    ]
    assert silent == []


def test_a_file_that_is_no_text_is_told_with_its_line(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    cli("init", "walker")
    names = ("walker/agent.ini", "walker/parameters.yaml", "network.toml", "notes.tsv", "program/train.py", "policy.py")
    for name in names:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(b"one\ntwo\xff\n")
    listed = cli("list", "walker")
    (tmp_path / "walker/agent.ini").write_text("[Agent]\nclass_name = agent:SimpleAgent\n")
    for result in (
        *(listed, cli("run", "walker"), cli("join", "network.toml"), cli("node", "import", "notes.tsv")),
        cli("task", "new", "program"),
    ):
        assert (result.exit_code, "line 2 is not UTF-8" in result.stderr) == (2, True), result.stderr
        assert "\n→ " in result.stderr
    monkeypatch.chdir(tmp_path / "walker")
    result = cli("install", "policy", "../policy.py")
    assert (result.exit_code, "codec" in result.stderr, "\n→ " in result.stderr) == (2, False, True), result.stderr


def test_bytes_that_are_no_text_are_a_sentence(
    process: Process, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = tmp_path / os.fsdecode(b"b\xffd")
    place.mkdir()
    (place / "train.py").write_text("print('loss:', 1.0)\n")
    for words in (["show", str(place)], ["task", "new", str(place), "--json"], ["run", str(place), "--json"]):
        done = process(*words)
        assert (done.returncode, "b�d" in done.stderr, "bug" in done.stderr) == (2, True, False), done.stderr
        assert "\n→ " in done.stderr
        assert done.stdout.startswith('{"schema":"autoresearch.failure/1"') is ("--json" in words)
    monkeypatch.setenv("AUTORESEARCH_HOME", str(place))
    done = process("status")
    assert (done.returncode, "b�d/run" in done.stderr, "is not UTF-8" in done.stderr) == (2, True, True), done.stderr


# Root may read and write everything.
WITHOUT_POWERS = ("setpriv", "--bounding-set=-dac_override,-dac_read_search", "--inh-caps=-dac_override") * (
    not os.geteuid()
)


@pytest.mark.slow
@pytest.mark.skipif(not shutil.which("setpriv"), reason="no setpriv")
def test_what_is_closed_is_named_before_anything_is_done(filled: Filled, paths: Paths, tmp_path: Path) -> None:
    def complaint(*words: str) -> str:
        command = [*WITHOUT_POWERS, sys.executable, "-m", "autoresearch_cli", *words]
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
        done = subprocess.run(
            command, env=environment, capture_output=True, text=True, timeout=60, check=False, cwd=tmp_path
        )
        assert done.returncode not in (0, -1), done.stderr
        return done.stderr

    closed = tmp_path / "closed"
    closed.mkdir()
    (closed / "train.py").write_text("print('loss:', 1.0)\n")
    closed.chmod(0o555)
    sentence = complaint("task", "new", "closed")
    assert (sentence.count("\n"), "is closed to you or read only" in sentence) == (2, True), sentence
    sentence = complaint("run", "export", "-o", "closed/a.tsv")
    assert sentence == f"{closed}/a.tsv can't be written: Permission denied\n→ name a file elsewhere\n"
    for words in (["init", "closed/a"], ["task", "get", "moons", "closed/a"]):
        sentence = complaint(*words)
        assert sentence == f"{closed} is closed to you or read only\n→ let it be written, or name another\n", words
    paths.keys.chmod(0o500)
    (paths.keys / "device.key.lock").unlink(missing_ok=True)
    assert "→ let it be written, or set AUTORESEARCH_HOME" in complaint("note", "add", "two words")
    paths.data.chmod(0)
    assert f"{paths.in_use} can't be read: Permission denied\n→ let it be read" in complaint("status")
    for place in (paths.data, paths.keys, closed):
        place.chmod(0o700)


def test_an_unreadable_folder_is_a_sentence(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "task.toml").mkdir()
    (tmp_path / "train.py").write_text("x = 1\n")
    result = cli("task", "show", str(tmp_path))
    assert result.exit_code == 2
    assert "bug" not in result.stderr


@pytest.mark.slow
@pytest.mark.parametrize("closed", [">&-", "2>&-", "<&-", "<&- >&- 2>&-"])
@pytest.mark.parametrize("words", ["show @", "node records --json"])
def test_streams_that_the_caller_closed_are_no_bug(filled: Filled, words: str, closed: str) -> None:
    command = f"{sys.executable} -m autoresearch_cli {words} {closed}"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    ended = subprocess.run(
        ["sh", "-c", command], env=environment, capture_output=True, text=True, timeout=250, check=False
    )
    assert (ended.returncode, "bug" in ended.stderr) == (0, False), ended.stderr


def test_a_value_that_is_no_number_is_told_which_numbers_are(cli: Cli) -> None:
    numbers = [
        (path, each)
        for path in COMMANDS
        for each in _command(path).params
        if each.param_type_name == "option" and each.metavar in ("N", "X")
    ]
    assert len(numbers) > 30
    for path, option in numbers:
        result = cli(*path.split(), option.opts[0], "x")
        assert result.exit_code == 2, (path, option.name)
        assert re.search("“x” is no (whole )?number( from .* to .*| of .* and more)?$", result.stderr, re.M), (
            result.stderr
        )
        assert "Input should" not in result.stderr
    assert "“0” is no whole number from 1 to 200" in cli("top", "-n", "0").stderr
    assert "“inf” is no number" in cli("work", "--until", "inf").stderr


def test_what_is_missing_is_shown_by_an_example(cli: Cli) -> None:
    needing = [path for path in COMMANDS if any(each.required for each in _command(path).params)]
    assert len(needing) > 20
    for path in needing:
        result = cli(*path.split())
        hint = result.stderr.splitlines()[-1]
        assert hint.startswith((f"→ such as: autoresearch {path} ", f"→ autoresearch {path} @")), result.stderr
