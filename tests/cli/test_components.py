"""Components on the command line: published, found, shown, yanked; without a daemon."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from autoresearch_cli.models import RegistryAnswer

from autoresearch.ask.acts.notebook import Notebook
from autoresearch.ask.records import SearchAnswer
from autoresearch.ask.registry.components import ReleaseAnswer, YankedAnswer
from autoresearch.paths import Paths
from tests.ask.registry.making import repository
from tests.cli.conftest import Cli
from tests.cli.test_json import strictly


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    place = tmp_path / "q_table"
    place.mkdir()
    (place / "main.py").write_text("class QTable:\n    pass\n")
    (place / "component.ini").write_text("[component]\ntype = policy\nversion = 1.0.0\ndescription = small worlds\n")
    return place


def publish(cli: Cli, folder: Path, *words: str) -> ReleaseAnswer:
    done = cli("publish", "component", str(folder), *words, "--json")
    assert done.exit_code == 0, done.output
    return strictly(done.stdout, ReleaseAnswer)


def test_a_component_is_published_found_and_shown(cli: Cli, folder: Path) -> None:
    made = publish(cli, folder).release
    assert (made.type, made.name, made.version, made.class_name) == ("policy", "q_table", "1.0.0", "main:QTable")
    for words in ("", "policy", "small worlds", "policy q_table", "--type policy small", "--kind component"):
        [component] = strictly(cli("search", *words.split(), "--json").stdout, SearchAnswer).components
        assert (component.id, component.own, component.summary) == (made.id, True, "small worlds")
    for words in (("large", "worlds"), ("--type", "robot")):
        nothing = cli("search", *words)
        assert (nothing.exit_code, nothing.stdout) == (0, "")
        assert "publish component DIR" in nothing.stderr
    others = cli("search", "--type", "environment").stdout.splitlines()
    assert "shipped\tenvironment\t2048\tThe game 2048: slide and merge tiles." in others
    assert all(line.startswith("shipped\tenvironment\t") for line in others), "what ships is not what was published"
    result = cli("show", made.id)
    for part in ("policy q_table 1.0.0", "main:QTable in main.py", made.tree, "1.0.0"):
        assert part in result.stdout, part
    assert json.loads(cli("show", made.id, "--json").stdout)["release"]["bundle"] == made.bundle


def test_a_version_is_published_once(cli: Cli, folder: Path) -> None:
    publish(cli, folder)
    again = cli("publish", "component", str(folder))
    assert (again.exit_code, "q_table 1.0.0 is published already, as " in again.stderr) == (6, True)
    (folder / "main.py").write_text("class QTable:\n    SIZE = 2\n")
    other = cli("publish", "component", str(folder))
    assert (other.exit_code, "with other files" in other.stderr, "--version" in other.stderr) == (6, True, True)
    differs = cli("publish", "component", str(folder), "--version", "1.0.1")
    assert (differs.exit_code, "component.ini says version = 1.0.0" in differs.stderr) == (2, True)
    (folder / "component.ini").write_text("[component]\ntype = policy\n")
    publish(cli, folder, "--version", "1.0.1")
    assert strictly(cli("search", "q_table", "--json").stdout, SearchAnswer).components[0].version == "1.0.1"


def test_a_yanked_release_is_hidden_and_shown_with_its_reason(cli: Cli, folder: Path) -> None:
    made = publish(cli, folder).release
    done = cli("agent", "yank", made.id[7:15], "--reason", "wrong reward", "--yes", "--json")
    assert strictly(done.stdout, YankedAnswer).reason == "wrong reward"
    assert strictly(cli("search", "--kind", "component", "--json").stdout, SearchAnswer).components == []
    assert made.id in cli("search", "--yanked").stdout
    output = cli("show", made.id).stdout
    assert "its publisher yanked it: “wrong reward”" in output
    assert cli("agent", "yank", made.id, "--yes").exit_code == 6


def test_only_an_own_release_is_yanked(cli: Cli, paths: Paths, folder: Path) -> None:
    assert cli("agent", "yank", "g3xk").exit_code == 4
    made = publish(cli, folder).release
    with Notebook(paths) as notebook:
        identity = notebook.log.records.newest(kind="identity", limit=1)[0]
    from autoresearch.record.encoding import format_id

    wrong = cli("agent", "yank", format_id(identity.id))
    assert (wrong.exit_code, "no component" in wrong.stderr) == (6, True)
    paths.keys.rename(paths.keys.with_name("other"))
    stranger = cli("agent", "yank", made.id, "--yes")
    assert (stranger.exit_code, "another participant" in stranger.stderr) == (6, True)


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (("nowhere",), 4),
        (("--from", "nowhere.yaml"), 2),
        (("x", "--from", "y.yaml"), 2),
        (("{folder}", "--class", "main:Other"), 2),
        (("{folder}", "--type", "Policy"), 2),
        (("{folder}", "--requirements", "nothing.txt"), 2),
        (("{folder}", "--name", "../x"), 2),
    ],
)
def test_what_can_not_be_published_changes_nothing(cli: Cli, folder: Path, words: tuple[str, ...], code: int) -> None:
    done = cli("publish", "component", *(word.format(folder=folder) for word in words))
    assert (done.exit_code, done.stdout) == (code, "")
    assert "→" in done.stderr
    assert strictly(cli("search", "--kind", "component", "--json").stdout, SearchAnswer).components == []


def test_a_registry_file_says_what_became_of_each_release(cli: Cli, tmp_path: Path) -> None:
    commit = repository(tmp_path / "host")
    file = tmp_path / "registry.yaml"
    release = f"releases: [{{name: 1.0.0, hash: {commit}, github_url: 'file://{tmp_path}/host'}}]"
    file.write_text(f"components:\n  corridor: {{type: environment, {release}}}\n")
    done = cli("publish", "component", "--from", str(file), "--json")
    [row] = strictly(done.stdout, RegistryAnswer).releases
    assert (row.name, row.id) == ("corridor", "")
    assert "git fetches from https addresses alone" in row.reason
    assert (done.exit_code, "0 of 1 releases of registry.yaml are published" in done.stderr) == (1, True)
