"""Packages that components ask for: resolved before anything is written, locked, installed once, used by runs."""

from __future__ import annotations

import shutil
from pathlib import Path

import msgspec
import pytest
from autoresearch_cli.acts.task_folders import cached_folder
from autoresearch_cli.agent.models import ProjectRunAnswer

from autoresearch.ask.acts.notebook import Notebook
from autoresearch.ask.records import ShowAnswer
from autoresearch.ask.runs.answers import TopAnswer
from autoresearch.paths import Paths
from autoresearch.project.components.trusting import mark_fetched
from autoresearch.project.model import load_project
from autoresearch.record.encoding import parse_id
from autoresearch.record.kinds import Run
from autoresearch.run.package_locks import has_packages
from autoresearch.run.sandbox.job import Level
from autoresearch.task.loading import load_task
from autoresearch.task.needs import program_packages
from autoresearch.trust.keys import KeyPair
from tests.cli.conftest import Cli
from tests.cli.test_components import publish
from tests.cli.test_json import strictly
from tests.run.packages.wheels import write_wheel
from tests.walls import best_level

POLICY = "import tiny_a\n\nclass {name}:\n    def decide(self, observation):\n        return tiny_a.VALUE - {less}\n"
needs_sandbox = pytest.mark.skipif(best_level() < Level.LANDLOCK, reason="this machine has no sandbox that holds")


@pytest.fixture
def project(place: Path, wheels: Path, monkeypatch: pytest.MonkeyPatch, cli: Cli) -> Path:
    """A new project; packages come from a folder of wheels."""
    folder = place / "agent"
    folder.mkdir()
    monkeypatch.chdir(folder)
    assert cli("init").exit_code == 0
    return folder


def component(place: Path, cli: Cli, name: str, wants: str, *, less: int = 7) -> str:
    """Publish a policy that asks for packages; returns its release. It walks right with VALUE = less + 1."""
    folder = place / name
    folder.mkdir()
    (folder / "main.py").write_text(POLICY.format(name=name.capitalize(), less=less))
    (folder / "requirements.txt").write_text(wants)
    (folder / "component.ini").write_text("[component]\ntype = policy\nversion = 1.0.0\ndescription = needs packages\n")
    return publish(cli, folder).release.id


def state(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.slow
def test_a_component_brings_its_packages_and_takes_them_away(
    project: Path, place: Path, cli: Cli, paths: Paths
) -> None:
    component(place, cli, "needy", "tiny_a>=1\n")
    done = cli("install", "policy", "needy", "--default")
    assert done.exit_code == 0, done.output
    assert (project / "requirements.in").read_text() == "tiny_a>=1  # policy.needy\n"
    locked = (project / "requirements.txt").read_text()
    assert [line.split()[0] for line in locked.splitlines() if "==" in line] == ["tiny_a==1.0", "tiny_b==1.2"]
    assert locked.count("--hash=sha256:") == 2
    assert len([each for each in paths.environments.iterdir() if each.is_dir()]) == 1
    assert cli("list", "--check").exit_code == 0
    run = strictly(cli("run", "-n", "2", "--json").stdout.splitlines()[-1], ProjectRunAnswer).run
    assert (run.metrics["mean_reward"], run.sandbox) == (-9, 0)
    shutil.rmtree(project / ".autoresearch/components/policy/needy")
    assert cli("install").exit_code == 0
    assert (project / "requirements.txt").read_text() == locked
    assert cli("uninstall", "policy", "needy").exit_code == 0
    assert not list(project.glob("requirements.*"))


@pytest.mark.slow
@needs_sandbox
def test_an_agent_is_published_with_its_packages_and_another_participant_installs_them(
    project: Path, place: Path, cli: Cli, paths: Paths, monkeypatch: pytest.MonkeyPatch
) -> None:
    component(place, cli, "needy", "tiny_a>=1\n")
    assert cli("install", "policy", "needy", "--default").exit_code == 0
    assert cli("run", "-n", "2").exit_code == 0
    published = cli("publish", "--json")
    assert published.exit_code == 0, published.output
    record = strictly(published.stdout.splitlines()[-1], ShowAnswer).record.id
    with Notebook(paths) as notebook:
        (row,) = notebook.log.tasks.all()
        assert load_task(cached_folder(notebook, row.digest)).packages == []
        body = notebook.log.records.get(parse_id(record)).body
        assert isinstance(body, Run)
        brought = program_packages(notebook.blobs.get(body.source.sha256).decode())
    assert [(each.name, each.version) for each in brought] == [("tiny_a", "1.0"), ("tiny_b", "1.2")]

    assert cli("use", "policy", "random").exit_code == 0
    assert cli("uninstall", "policy", "needy").exit_code == 0
    assert cli("run", "-n", "3").exit_code == 0
    without = cli("publish", "--json")
    assert without.exit_code == 0, without.output
    board = strictly(cli("top", "--task", "corridor", "--json").stdout, TopAnswer)
    assert [row.title for row in board.programs] == ["needy, not trained", "random, not trained"]
    assert board.programs[0].id == record, "what an agent needs is no other question"

    bundle, project_copy = place / "bundle", place / "there"
    assert cli("run", "export", "--bundle", str(bundle), "--blobs", "all").exit_code == 0
    monkeypatch.setenv("AUTORESEARCH_HOME", str(place / "other"))
    assert cli("node", "import", str(bundle)).exit_code == 0
    waits = cli("work", "corridor")
    assert "nobody allowed here 1 list of packages that agents of corridor bring" in waits.stderr, waits.output
    assert cli("down").exit_code == 0
    got = cli("get", record, str(project_copy))
    assert got.exit_code == 0, got.output
    assert (project_copy / "requirements.in").read_text() == "tiny_a>=1  # policy.needy\n"
    refused = cli("run", "-n", "2", "--file", str(project_copy))
    assert (refused.exit_code, "nobody allowed here" in refused.stderr) == (6, True), refused.output
    done = cli("run", "-n", "2", "--file", str(project_copy), "--allow-packages", "--json")
    assert done.exit_code == 0, done.output
    assert strictly(done.stdout.splitlines()[-1], ProjectRunAnswer).run.metrics["mean_reward"] == -9


@pytest.mark.slow
@pytest.mark.skipif(has_packages(["box2d"]), reason="Box2D is here")
def test_an_environment_of_gymnasium_brings_the_packages_of_its_group(
    project: Path, cli: Cli, paths: Paths, wheels: Path
) -> None:
    before = state(project)
    without = cli("install", "environment", "gym:LunarLander-v3")
    assert (without.exit_code, "its packages don't fit" in without.stderr) == (6, True), without.output
    assert state(project) == before
    write_wheel(wheels, "box2d", "2.3.10", "")
    write_wheel(wheels, "pygame_ce", "2.5.8", "")

    done = cli("install", "environment", "gym:LunarLander-v3")
    assert done.exit_code == 0, done.output
    lines = (project / "requirements.in").read_text().splitlines()
    assert {line.partition("=")[0].rstrip("><!~") for line in lines} == {"box2d", "pygame-ce"}
    assert {line.partition("#")[2] for line in lines} == {" environment.lunarlander"}
    assert len([each for each in paths.environments.iterdir() if each.is_dir()]) == 1
    assert cli("uninstall", "environment", "lunarlander").exit_code == 0
    assert not list(project.glob("requirements.*"))


@pytest.mark.slow
def test_what_does_not_fit_together_is_told_in_the_resolvers_words_and_nothing_is_written(
    project: Path, place: Path, cli: Cli, wheels: Path
) -> None:
    write_wheel(wheels, "tiny_b", "0.5", "VALUE = 0\n")
    component(place, cli, "needy", "tiny_a>=1\n")
    component(place, cli, "older", "tiny_b<1\n")
    assert cli("install", "policy", "needy").exit_code == 0
    before = state(project)
    for words in (("older",), ("older", "--name", "other", "--default")):
        refused = cli("install", "policy", *words)
        assert refused.exit_code == 6
        assert "older 1.0.0 is not installed: its requirements don't fit" in refused.stderr
        assert "tiny" in refused.stderr
    assert state(project) == before
    assert "install it --isolated" in refused.stderr
    # A newer needy in its own place does not stand in its own way.
    assert cli("install", "policy", "needy").exit_code == 0


OLD = """
import os
import tiny_b
from autoresearch import Environment
from autoresearch.services.spaces import Discrete

class Old(Environment):
    action_space = Discrete(2)
    version = tiny_b.VALUE

    def reset(self, **_):
        return 0, {"process": os.getpid()}

    def step(self, action):
        return 0, float(action) + tiny_b.VALUE, True, False, {}
"""
BOTH = """
import os
import tiny_b
from autoresearch import Policy

class Both(Policy):
    def decide(self, observation):
        assert (tiny_b.VALUE, self.environment.version) == (1, 0)
        assert self.environment.reset()[1]["process"] != os.getpid()
        return 1
"""


@pytest.mark.slow
def test_two_versions_of_a_package_are_side_by_side(project: Path, place: Path, cli: Cli, wheels: Path) -> None:
    write_wheel(wheels, "tiny_b", "0.5", "VALUE = 0\n")
    for kind, name, code, wants in (("policy", "both", BOTH, "tiny_b>1\n"), ("environment", "old", OLD, "tiny_b<1\n")):
        folder = place / name
        folder.mkdir()
        (folder / "main.py").write_text(code)
        (folder / "requirements.txt").write_text(wants)
        (folder / "component.ini").write_text(
            f"[component]\ntype = {kind}\nversion = 1.0.0\ndescription = needs packages\n"
        )
        publish(cli, folder)
    assert cli("install", "policy", "both", "--default").exit_code == 0
    assert cli("install", "environment", "old", "--default").exit_code == 6
    before = state(project)
    done = cli("install", "environment", "old", "--default", "--isolated")
    assert done.exit_code == 0, done.output
    assert "isolated = yes" in (project / "agent.ini").read_text()
    for name in ("requirements.in", "requirements.txt"):
        assert (project / name).read_bytes() == before[name]
    assert "tiny_b==0.5" in (project / ".autoresearch/isolated/environment.old.lock").read_text()
    measured = cli("run", "-n", "3", "--json")
    assert measured.exit_code == 0, measured.output
    assert strictly(measured.stdout.splitlines()[-1], ProjectRunAnswer).run.metrics["mean_reward"] == 1
    assert cli("list", "--check").exit_code == 0
    refused = cli("publish")
    assert (refused.exit_code, "environment.old" in refused.stderr) == (6, True), refused.output
    shutil.rmtree(project / ".autoresearch/components/environment/old")
    assert cli("install").exit_code == 0
    assert cli("run", "-n", "1").exit_code == 0
    assert cli("uninstall", "environment", "old").exit_code == 0
    assert not list((project / ".autoresearch/isolated").iterdir())


@pytest.mark.slow
def test_isolated_is_for_published_components_that_ask_for_packages(project: Path, place: Path, cli: Cli) -> None:
    before = state(project)
    component(place, cli, "plain", "")
    for name in ("plain", "q_table", "./agent.py"):
        refused = cli("install", "policy", name, "--class", "SimpleAgent", "--isolated")
        assert refused.exit_code == 2, name
        assert "→" in refused.stderr
    assert state(project) == before


@pytest.mark.slow
def test_lines_of_ones_own_are_locked_by_install(project: Path, cli: Cli) -> None:
    (project / "requirements.in").write_text("# mine\ntiny_b\n")
    stale = cli("run")
    assert (stale.exit_code, "autoresearch install locks it anew" in stale.stderr) == (2, True)
    assert cli("install").exit_code == 0
    assert "tiny_b==1.2" in (project / "requirements.txt").read_text()
    assert cli("run", "-n", "1").exit_code == 0
    (project / "requirements.in").write_text("nothing_like_it\n")
    missing = cli("install")
    assert (missing.exit_code, "requirements.in can't be locked" in missing.stderr) == (6, True)
    assert "tiny_b==1.2" in (project / "requirements.txt").read_text()
    (project / "requirements.in").write_text("-e git+https://example.org\n")
    assert cli("run").exit_code == 2


@pytest.mark.slow
def test_a_list_of_ones_own_is_not_written_over(project: Path, place: Path, cli: Cli) -> None:
    component(place, cli, "needy", "tiny_a>=1\n")
    (project / "requirements.txt").write_text("numpy\n")
    before = state(project)
    refused = cli("install", "policy", "needy")
    assert (refused.exit_code, "rename it to requirements.in" in refused.stderr) == (6, True)
    assert state(project) == before
    assert cli("run", "-n", "1").exit_code == 0


@pytest.mark.slow
def test_what_the_nodes_python_has_is_not_installed_again(
    project: Path, place: Path, cli: Cli, paths: Paths, wheels: Path
) -> None:
    assert has_packages(["numpy>=1", "msgspec", "nothing_like_it ; python_version < '3'"])
    for line in ("numpy>=99", "nothing_like_it", "msgspec[toml]", "no requirement at all"):
        assert not has_packages([line]), line
    write_wheel(wheels, "msgspec", "99.0", "VALUE = 1\n")
    (project / "requirements.in").write_text("msgspec\n")
    assert cli("install").exit_code == 0
    assert "msgspec==99.0" in (project / "requirements.txt").read_text()
    assert cli("run", "-n", "1").exit_code == 0
    assert not paths.environments.exists()


@pytest.mark.slow
@needs_sandbox
def test_a_strangers_component_has_its_packages_in_the_sandbox(
    project: Path, place: Path, cli: Cli, paths: Paths
) -> None:
    component(place, cli, "needy", "tiny_a>=1\n")
    with Notebook(paths) as notebook:
        release = notebook.log.records.newest(kind="release", limit=1)[0]
        other = msgspec.structs.replace(release.body, name="other")
        notebook.log.writer.append(KeyPair.generate(), "release", other, now_ms=release.time)
    assert cli("install", "policy", "other", "--default").exit_code == 0
    run = strictly(cli("run", "-n", "2", "--json").stdout.splitlines()[-1], ProjectRunAnswer).run
    assert (run.metrics["mean_reward"], run.sandbox) == (-9, int(best_level()))
    assert cli("list", "--check").exit_code == 0


@pytest.mark.slow
@needs_sandbox
def test_the_packages_of_a_fetched_project_need_a_word(
    project: Path, place: Path, cli: Cli, paths: Paths, monkeypatch: pytest.MonkeyPatch
) -> None:
    component(place, cli, "needy", "tiny_a>=1\n")
    assert cli("install", "policy", "needy", "--default").exit_code == 0
    mark_fetched(load_project(project), "run1")
    shutil.rmtree(paths.environments)
    shutil.rmtree(paths.allowed)
    assert cli("task", "allow", str(project), "--yes").exit_code == 0, "its own code, and no package"
    for words in (("run",), ("train", "2"), ("list", "--check")):
        result = cli(*words)
        assert (result.exit_code, "needs 2 Python packages that nobody allowed here" in result.stderr) == (6, True)
        assert "tiny_a 1.0, tiny_b 1.2" in result.stderr
    assert not paths.environments.exists()
    assert cli("run", "-n", "1", "--allow-packages").exit_code == 0
    assert cli("run", "-n", "1").exit_code == 0
    shutil.rmtree(paths.environments)
    shutil.rmtree(paths.allowed)
    assert cli("task", "allow", str(project), "--yes").exit_code == 0
    assert cli("node", "config", "set", "work.allow_packages", "all").exit_code == 0
    assert cli("run", "-n", "1").exit_code == 0
