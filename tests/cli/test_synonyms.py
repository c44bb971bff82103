"""Words and options of other tools lead on to the command that does it here; a task is an argument where none is."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer
from autoresearch_cli import synonyms
from autoresearch_cli.main import app

from tests.cli.conftest import Cli
from tests.cli.filling import Filled


def walk(group: Any, words: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Every command of the application that has no others below it, by its words."""
    context = typer.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        if hasattr(command, "list_commands"):
            yield from walk(command, (*words, name))
        else:
            yield (*words, name), command


EVERY = dict(walk(typer.main.get_command(app)))


def options(command: Any) -> set[str]:
    return {option for parameter in command.params for option in parameter.opts}


@pytest.mark.parametrize("line", sorted(set(synonyms.LINES.values())))
def test_a_word_of_another_tool_gets_the_line_to_type(
    cli: Cli, line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for word in (word for word, meant in synonyms.LINES.items() if meant == line):
        result = cli(*word.split())
        assert (result.exit_code, result.stdout) == (2, "")
        assert f"There is no command {word!r}.\n→ autoresearch {line}\n" == result.stderr
    words = re.match(r"([a-z]+ ?)*", line)
    assert words
    assert line == "--help" or cli(*words[0].split()[:3], "--help").exit_code == 0


@pytest.mark.parametrize(
    ("words", "line"),
    [
        ("help stop", "down"),
        ("logs -f", "node logs"),
        ("version", "node version"),
        ("task ls", "task list"),
        ("network ls", "network peers"),
        ("note ls", "note list"),
        ("network create tea", "network new NAME"),
        ("task describe .", "task show"),
        ("run ls", "run list"),
        ("run show @", "show"),
        ("run log @", "show ID --log"),
        ("run logs @", "show ID --log"),
        ("run stop", "run cancel NAME"),
        ("task top", "top"),
        ("node restart", "down && autoresearch up"),
        ("node status", "status"),
        ("agent start", "up"),
    ],
)
def test_a_word_after_a_noun_leads_on_too(
    cli: Cli, words: str, line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    result = cli(*words.split())
    assert (result.exit_code, f"→ autoresearch {line}\n" in result.stderr) == (2, True), result.stderr


def test_a_folder_of_such_a_name_is_run(cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "ls").mkdir()
    assert "task.toml" in cli("run", "ls").stderr


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        ("up --port 8421", "→ autoresearch node config set api.port PORT"),
        ("work --threads 2", "→ autoresearch node config set work.threads N"),
        ("node logs --lines 3", "Did you mean --limit?"),
        ("work --duration 2h", "Did you mean --for?"),
        ("work --trials 5", "Did you mean --runs?"),
        ("status --format json", "Did you mean --json?"),
        ("run withdraw @ --force", "Did you mean --yes?"),
        ("node events --tail", "Did you mean --follow?"),
        ("up --jobs 2", "Did you mean --workers?"),
        ("work moons 5", "Did you mean --runs 5?"),
        ("work moons --n 5", "Did you mean --runs?"),
        ("node pause 2h", "Did you mean --for 2h?"),
        ("best moons 5", "unexpected extra argument"),
        ("work --task moons", "→ autoresearch work TASK"),
        ("run --task moons", "→ autoresearch run DIR"),
        ("task get --name moons", "→ autoresearch task get TASK"),
        ("show --run x", "→ autoresearch show ID"),
        ("up --detach", "→ autoresearch up"),
        ("train --learner", "→ autoresearch agent serve trainer"),
        ("status --watch", "→ autoresearch node events --follow"),
        ("node events --watch", "Did you mean --follow?"),
        ("-v", "Did you mean --version?"),
        ("show", "→ autoresearch show @, for the best run"),
        ("run lineage --json", "→ autoresearch run lineage @, for the best run"),
        ("node config list", "→ autoresearch node config\n"),
        ("node id whoami", "→ autoresearch node id show"),
        (
            "node config work.workers 2",
            "→ autoresearch node config get work.workers, autoresearch node config set work.",
        ),
        ("run export --csv", "Did you mean --format?"),
        ("run info @", "→ autoresearch show ID"),
        ("best --verbos", "No such option: --verbos"),
    ],
)
def test_an_option_of_another_tool_leads_on(cli: Cli, words: str, hint: str) -> None:
    result = cli(*words.split())
    assert (result.exit_code, hint in result.stderr) == (2, True), result.stderr


@pytest.mark.parametrize(
    ("words", "typed"),
    [
        ("top 5", "top --limit 5"),
        ("run list 12", "run list --limit 12"),
        ("node records 3", "node records --limit 3"),
        ("status 2h", "status --since 2h"),
        ("node records 7d", "node records --since 7d"),
    ],
)
def test_a_number_or_a_time_is_no_name_of_a_task(cli: Cli, filled: Filled, words: str, typed: str) -> None:
    result = cli(*words.split())
    assert (result.exit_code, f"→ autoresearch {typed}\n" in result.stderr) == (2, True), result.stderr


def test_a_word_with_several_meanings_names_each_with_what_it_does(cli: Cli) -> None:
    output = cli("export").stderr
    assert "Did you mean run export or task export?" in output
    assert re.search(r"→ autoresearch run export: Write the runs.* autoresearch task export: Write a task", output)


@pytest.mark.parametrize("words", [words for words, command in EVERY.items() if "--task" in options(command)])
def test_a_task_is_an_argument_where_there_is_no_other(
    cli: Cli, filled: Filled, words: tuple[str, ...], tmp_path: Path
) -> None:
    arguments = [each for each in EVERY[words].params if each.param_type_name == "argument"]
    if [each.name for each in arguments] != ["named_task"]:
        assert arguments
        return
    name = filled.task.name
    words = (*words, "--git", str(tmp_path / "repository")) if words == ("task", "export") else words
    named = cli(*words, name, "--json")
    assert named.exit_code == 0, named.output
    assert cli(*words, name, "--task", name, "--json").exit_code == 0
    twice = cli(*words, name, "--task", "moons", "--json")
    assert (twice.exit_code, json.loads(twice.stdout)["error"]) == (2, f"two tasks are named: {name} and moons")
    missing = cli(*words, "no-such-task")
    assert (missing.exit_code, "There is no task no-such-task here" in missing.stderr) == (4, True), missing.output


def test_a_task_in_place_of_a_run_or_a_folder_leads_on(cli: Cli, filled: Filled) -> None:
    name = filled.task.name
    assert f"→ the best run of the task {name}: @ --task {name}\n" in cli("show", name).stderr
    assert (
        "→ autoresearch work grammar works on the task; autoresearch task get grammar" in cli("run", "grammar").stderr
    )
    assert json.loads(cli("task", "show", "moons", "--json").stdout)["name"] == "moons"


def test_a_task_that_ships_is_known_before_its_first_run(cli: Cli, filled: Filled) -> None:
    assert "→ autoresearch work moons" in cli("best", "moons").stderr
    output = cli("work", "nosuch").stderr
    assert all(name in output for name in (filled.task.name, "grammar", "gpt-small", "moons"))
    assert "did you mean grammar?" in cli("top", "gramar").stderr


@pytest.mark.parametrize("words", [words for words, command in EVERY.items() if "--yes" in options(command)])
def test_what_can_not_be_undone_needs_yes_without_a_terminal(cli: Cli, words: tuple[str, ...]) -> None:
    assert "Don't ask." in cli(*words, "--help").stdout or words in {("init",), ("task", "allow")}


@pytest.mark.parametrize("words", [("best", ""), ("task", "new", ""), ("task", "get", ""), ("work", ""), ("top", "")])
def test_an_empty_name_is_no_wish_for_the_default(cli: Cli, filled: Filled, words: tuple[str, ...]) -> None:
    result = cli(*words)
    assert (result.exit_code, "“” names no" in result.stderr) == (2, True)


def test_a_task_after_up_leads_to_work(cli: Cli) -> None:
    assert "→ autoresearch work TASK" in cli("up", "moons").stderr


def test_a_run_is_not_withdrawn_unasked(cli: Cli, filled: Filled) -> None:
    result = cli("run", "withdraw", "@mine")
    assert (result.exit_code, "say --yes where no person can be asked" in result.stderr) == (2, True)
    assert "withdrawn" not in cli("show", "@mine").stdout


@pytest.mark.parametrize("reference", ["", ".", "..", "~", "@x", "g3x!", "/etc", "moons"])
@pytest.mark.parametrize("command", ["show", "diff", "run lineage", "run star"])
def test_what_is_no_id_is_said_in_the_words_of_a_person(cli: Cli, filled: Filled, command: str, reference: str) -> None:
    result = cli(*command.split(), reference)
    assert result.exit_code == 2
    assert reference in result.stderr
    assert "API" not in result.stderr
    assert "→" in result.stderr
