"""Published components in a project: one's own by name, other participants' in the sandbox or by a person's word."""

from __future__ import annotations

import shutil
from pathlib import Path

import msgspec
import pytest
from autoresearch_cli.agent import models
from autoresearch_cli.agent.models import ProjectRunAnswer

from autoresearch.ask.acts.notebook import Notebook
from autoresearch.paths import Paths
from autoresearch.run.sandbox import probes
from autoresearch.run.sandbox.job import Level
from autoresearch.trust.keys import KeyPair
from tests.cli.conftest import Cli
from tests.cli.test_components import publish
from tests.cli.test_json import strictly
from tests.walls import best_level

LAZY = "class Lazy:\n    def decide(self, observation):\n        return 0\n"


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cli: Cli) -> Path:
    folder = tmp_path / "agent"
    folder.mkdir()
    monkeypatch.chdir(folder)
    assert cli("init").exit_code == 0
    return folder


@pytest.fixture
def lazy(tmp_path: Path) -> Path:
    place = tmp_path / "lazy"
    place.mkdir()
    (place / "main.py").write_text(LAZY)
    (place / "component.ini").write_text("[component]\ntype = policy\nversion = 1.0.0\ndescription = does nothing\n")
    return place


@pytest.mark.slow
def test_an_own_component_is_installed_by_its_name_and_comes_back(cli: Cli, project: Path, lazy: Path) -> None:
    made = publish(cli, lazy).release
    done = cli("install", "policy", "lazy", "--default")
    assert done.exit_code == 0, done.output
    ini = (project / "agent.ini").read_text()
    assert (f"release = {made.id}" in ini, "version = 1.0.0" in ini) == (True, True)
    file = project / ".autoresearch/components/policy/lazy/main.py"
    assert file.read_text() == LAZY
    assert cli("list", "--check").exit_code == 0
    shutil.rmtree(file.parent)
    assert cli("install").exit_code == 0
    assert file.read_text() == LAZY
    assert cli("run", "--json").exit_code == 0


@pytest.fixture
def other(cli: Cli, lazy: Path, paths: Paths) -> None:
    """Another participant's policy ``other`` in the log."""
    publish(cli, lazy)
    with Notebook(paths) as notebook:
        release = notebook.log.records.newest(kind="release", limit=1)[0]
        notebook.log.writer.append(
            KeyPair.generate(), "release", msgspec.structs.replace(release.body, name="other"), now_ms=release.time
        )


def walls(cli: Cli, *words: str) -> tuple[int, list[str]]:
    """A benchmark run's level of the sandbox, and which components it trusted."""
    done = cli("run", "-n", "2", "--json", *words)
    assert done.exit_code == 0, done.output
    run = strictly(done.stdout.splitlines()[-1], ProjectRunAnswer).run
    return run.sandbox, run.trusted


@pytest.mark.slow
@pytest.mark.skipif(best_level() < Level.LANDLOCK, reason="this machine has no sandbox that holds")
@pytest.mark.usefixtures("other")
def test_another_participants_component_runs_in_the_sandbox_or_by_choice_without(cli: Cli, project: Path) -> None:
    level = int(best_level())
    done = cli("install", "policy", "other")
    assert (done.exit_code, "other is another participant's: it runs in the sandbox" in done.stderr) == (0, True)
    ini = (project / "agent.ini").read_text()
    assert walls(cli) == (level, [])
    assert cli("list", "--check").exit_code == 0
    assert walls(cli, "--trust") == (0, ["policy.other"])
    assert cli("install", "policy", "other", "--trust").exit_code == 0
    assert (project / "agent.ini").read_text() == ini  # what a person trusts is not passed on with the project
    assert walls(cli) == (0, ["policy.other"])
    listed = cli("list", "--runs").stdout.splitlines()
    assert [line.split("\t")[7] for line in listed] == [f"S{level}", *["none, by choice: policy.other"] * 2]
    assert "none, by choice: policy.other" in cli("run", "-n", "1").stdout
    assert cli("uninstall", "policy", "other").exit_code == 0
    assert walls(cli) == (0, [])


@pytest.mark.slow
@pytest.mark.skipif(best_level() < Level.LANDLOCK, reason="this machine has no sandbox that holds")
@pytest.mark.usefixtures("other")
def test_the_settings_bound_what_runs_in_the_sandbox(cli: Cli, project: Path) -> None:
    assert cli("install", "policy", "other").exit_code == 0
    (project / ".autoresearch/components/policy/other/main.py").write_text("while True:\n    pass\n")
    assert cli("node", "config", "set", "work.max_seconds", "2").exit_code == 0
    for words in (("run",), ("list", "--check")):
        ended = cli(*words)
        assert ended.exit_code == 1
        assert "the run in the sandbox failed: stopped after 2 s" in ended.stderr
        assert "autoresearch node config set work.max_seconds" in ended.stderr
    assert cli("node", "config", "set", "work.minimum_sandbox", "2").exit_code == 0
    assert cli("run").exit_code == (1 if best_level() == Level.BUBBLEWRAP else 6)


def without_sandbox(_: object = ()) -> tuple[Level, tuple[()]]:
    """What a machine finds that has none."""
    return Level.NONE, ()


@pytest.mark.slow
@pytest.mark.usefixtures("other")
def test_without_a_sandbox_another_participants_component_needs_a_word(
    cli: Cli, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(probes, "detect_level", without_sandbox)
    monkeypatch.setattr(models, "detect_level", without_sandbox)
    refused = cli("install", "policy", "other")
    assert (refused.exit_code, "--trust" in refused.stderr) == (6, True)
    assert "[Policy.other]" not in (project / "agent.ini").read_text()
    assert cli("install", "policy", "other", "--trust").exit_code == 0
    assert walls(cli) == (0, ["policy.other"])
    (project / ".autoresearch/trusted.txt").unlink()
    for words in (("run",), ("train", "3"), ("list", "--check"), ("agent", "serve", "inference")):
        refused = cli(*words)
        assert (refused.exit_code, "--trust" in refused.stderr) == (6, True), words
        assert "sandbox" in refused.stderr
    assert walls(cli, "--trust") == (0, ["policy.other"])


def test_a_name_that_nobody_published_is_told(cli: Cli, project: Path) -> None:
    nothing = cli("install", "policy", "marvel")
    assert (nothing.exit_code, "marvel" in nothing.stderr) == (4, True)
