"""Published components in a project: one's own by name, other participants' with a person's word alone."""

from __future__ import annotations

import shutil
from pathlib import Path

import msgspec
import pytest

from autoresearch.identity import KeyPair
from autoresearch.notebook import Notebook
from autoresearch.paths import Paths
from tests.cli.conftest import Cli
from tests.cli.test_components import publish

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


def test_another_participants_component_needs_a_word(cli: Cli, project: Path, lazy: Path, paths: Paths) -> None:
    publish(cli, lazy)
    with Notebook(paths) as notebook:
        release = notebook.log.records.newest(kind="release", limit=1)[0]
        notebook.log.writer.append(
            KeyPair.generate(), "release", msgspec.structs.replace(release.body, name="other"), now_ms=release.time
        )
    refused = cli("install", "policy", "other")
    assert (refused.exit_code, "--trust" in refused.stderr) == (6, True)
    assert "[Policy.other]" not in (project / "agent.ini").read_text()
    assert cli("install", "policy", "other", "--trust").exit_code == 0
    assert "[Policy.other]" in (project / "agent.ini").read_text()


def test_a_name_that_nobody_published_is_told(cli: Cli, project: Path) -> None:
    nothing = cli("install", "policy", "marvel")
    assert (nothing.exit_code, "marvel" in nothing.stderr) == (4, True)
