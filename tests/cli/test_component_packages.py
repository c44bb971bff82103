"""Components as a person composes them: helper files of one name, packages, what they need."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec
import pytest

from autoresearch.ask.acts.notebook import Notebook
from autoresearch.paths import Paths
from autoresearch.run.sandbox.job import Level
from autoresearch.trust.keys import KeyPair
from tests.ask.registry.conftest import wheels  # noqa: F401 - fixture
from tests.cli.conftest import Cli
from tests.walls import best_level

needs_sandbox = pytest.mark.skipif(best_level() < Level.LANDLOCK, reason="this machine has no sandbox that holds")
WORLD = """
from utils import STEP_REWARD

class World:
    action_space = observation_space = None
    def reset(self):
        self.left = 10
        return 0
    def step(self, action):
        self.left -= 1
        return 0, self.left == 0, STEP_REWARD, {}
"""
POLICY = """
class Pol:
    def decide(self, observation):
        from utils import STEP_REWARD
        return STEP_REWARD
"""
DEEP = """
from .util import right
from inner.util import right as same

class Opt:
    def decide(self, observation):
        return right(observation) if same is right else 0
"""


def write(folder: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder


def ini(kind: str, **keys: str) -> str:
    lines = {"type": kind, "version": "1.0.0", **keys}
    return "[component]\n" + "".join(f"{key} = {value}\n" for key, value in lines.items())


TRAINER = "class Learn:\n    def train(self, policy):\n        self.environment.reset()\n"
LIST = "[project]\nname = 'newn'\ndependencies = ['tiny_b>=2']\n"


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cli: Cli) -> Path:
    folder = tmp_path / "agent"
    folder.mkdir()
    monkeypatch.chdir(folder)
    assert cli("init").exit_code == 0
    return folder


@pytest.fixture
def world(tmp_path: Path) -> Path:
    files = {"world.py": WORLD, "utils.py": "STEP_REWARD = 1.0\n", "component.ini": ini("environment", name="tenworld")}
    return write(tmp_path / "w", {**files, "component.ini": files["component.ini"] + "class_name = world:World\n"})


@pytest.fixture
def policy(tmp_path: Path) -> Path:
    files = {"pol.py": POLICY, "utils.py": "STEP_REWARD = 100.0\n", "component.ini": ini("policy", name="zero")}
    return write(tmp_path / "p", files)


def ok(cli: Cli, *words: str) -> str:
    done = cli(*words)
    assert done.exit_code == 0, done.output
    return done.stdout


def mean(cli: Cli) -> float:
    run = json.loads(ok(cli, "run", "-n", "2", "--json").splitlines()[-1])["run"]
    return run["metrics"]["mean_reward"]


def as_of_a_stranger(paths: Paths, name: str, other: str) -> None:
    """Have another participant publish the release of a name as ``other``."""
    with Notebook(paths) as notebook:
        records = notebook.log.records.newest(kind="release", limit=9)
        body = next(each.body for each in records if each.body.name == name)
        renamed = msgspec.structs.replace(body, name=other)
        notebook.log.writer.append(KeyPair.generate(), "release", renamed, now_ms=records[0].time)


@pytest.mark.slow
def test_local_components_with_helpers_of_one_name(cli: Cli, project: Path, world: Path, policy: Path) -> None:
    ok(cli, "install", "environment", str(world), "--default")
    (policy / "random.py").write_text("raise SystemExit\n")
    done = cli("install", "policy", str(policy), "--default")
    assert "policy.zero has a file random.py: “import random” means Python's own" in done.stderr
    assert "installed policy zero, the default" in done.stderr
    assert mean(cli) == 10


@pytest.mark.slow
@needs_sandbox
def test_two_strangers_components_are_run_and_published(
    cli: Cli, project: Path, world: Path, policy: Path, paths: Paths, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for folder, kind, name, other in ((world, "environment", "tenworld", "ten"), (policy, "policy", "zero", "nil")):
        ok(cli, "publish", "component", str(folder))
        as_of_a_stranger(paths, name, other)
        assert "runs in the sandbox" in cli("install", kind, other, "--default").stderr
    assert mean(cli) == 10
    made = json.loads(ok(cli, "publish", "--json"))
    assert made["run"]["run"]["value"] == 10
    theirs = tmp_path / "theirs"
    ok(cli, "get", made["record"]["id"], str(theirs))
    assert (theirs / ".autoresearch/components/policy/nil/utils.py").read_text() == "STEP_REWARD = 100.0\n"
    monkeypatch.chdir(theirs)
    assert mean(cli) == 10


@pytest.mark.slow
def test_a_package_keeps_its_qualified_class_and_its_root(cli: Cli, project: Path, tmp_path: Path) -> None:
    right = "def right(observation):\n    return 1\n"
    package = write(tmp_path / "pkg", {"inner/__init__.py": "", "inner/deep.py": DEEP, "inner/util.py": right})
    ok(cli, "install", "policy", str(package), "--class", "inner.deep:Opt", "--default")
    text = (project / "agent.ini").read_text()
    assert "path = ../pkg\nclass_name = inner.deep:Opt\n" in text
    assert mean(cli) == -9
    ok(cli, "install", "policy", str(package / "inner/deep.py"), "--name", "same", "--default")
    text = (project / "agent.ini").read_text()
    assert text.count("path = ../pkg\nclass_name = inner.deep:Opt\n") == 2
    assert mean(cli) == -9
    (package / "component.ini").write_text(ini("policy", name="optimist", class_name="inner.deep:Opt"))
    ok(cli, "publish", "component", str(package))
    ok(cli, "install", "policy", "optimist", "--default")
    assert mean(cli) == -9


@pytest.mark.slow
def test_a_missing_module_of_a_package_is_no_advice_to_install_something(
    cli: Cli, project: Path, tmp_path: Path
) -> None:
    deep = DEEP.replace("from inner.util import", "from inner.gone import")
    package = write(tmp_path / "pkg", {"inner/__init__.py": "", "inner/deep.py": deep, "inner/util.py": "right = 1\n"})
    ok(cli, "install", "policy", str(package), "--class", "inner.deep:Opt", "--default")
    done = cli("run")
    assert "policy.opt imports inner.gone, which is not among its files (deep.py, line 3)" in done.stderr
    assert ("pip" in done.stderr, done.exit_code) == (False, 1)


@pytest.mark.slow
@pytest.mark.usefixtures("wheels")
def test_a_local_folder_counts_as_a_release_does(cli: Cli, project: Path, policy: Path, tmp_path: Path) -> None:
    (policy / "requirements.txt").write_text("tiny_b<2\n")
    other = write(tmp_path / "other", {"learn.py": TRAINER, "pyproject.toml": LIST})
    ok(cli, "install", "policy", str(policy))
    assert "tiny_b<2  # policy.zero\n" in (project / "requirements.in").read_text()
    before = (project / "agent.ini").read_text()
    done = cli("install", "trainer", str(other))
    assert (done.exit_code, "its packages don't fit" in done.stderr, "tiny_b>=2" in done.stderr) == (6, True, True)
    assert (project / "agent.ini").read_text() == before
    (policy / "requirements.txt").write_text("tiny_b>=1\n")
    ok(cli, "install", "policy", str(policy))
    ok(cli, "install", "trainer", str(other))
    assert "tiny_b==2.0" in (project / "requirements.txt").read_text()
    wrong = cli("install", "environment", str(policy))
    assert (wrong.exit_code, "of type policy, not environment" in wrong.stderr) == (2, True)


@pytest.mark.slow
@pytest.mark.usefixtures("wheels")
def test_what_a_component_needs_is_installed_with_it(cli: Cli, project: Path, policy: Path, tmp_path: Path) -> None:
    (policy / "requirements.txt").write_text("tiny_b<2\n")
    ok(cli, "publish", "component", str(policy))
    needy = write(tmp_path / "needy", {"learn.py": TRAINER, "requirements.txt": "tiny_b>=2\n"})
    (needy / "component.ini").write_text(ini("trainer", name="needy", needs="policy/zero==1.0.0 dataset/replay"))
    before = (project / "agent.ini").read_text()
    done = cli("install", "trainer", str(needy))
    assert (done.exit_code, (project / "agent.ini").read_text()) == (6, before)
    assert "zero 1.0.0 is not installed: its requirements don't fit" in done.stderr
    (needy / "requirements.txt").unlink()
    done = cli("install", "trainer", str(needy))
    assert "installed policy zero, which trainer needy needs" in done.stderr
    listed = json.loads(ok(cli, "list", "--json"))["components"]
    assert {"zero", "replay", "needy"} <= {each["name"] for each in listed}
    assert [each["name"] for each in listed if each["type"] == "policy" and each["is_default"]] == ["random"]
    ok(cli, "publish", "component", str(needy), "--version", "1.0.0")
    (needy / "component.ini").write_text(ini("trainer", name="more", needs="policy/zero==2.0.0"))
    done = cli("install", "trainer", str(needy))
    assert "trainer.more needs policy zero 2.0.0, and this project has 1.0.0" in done.stderr
    assert (done.exit_code, "more" in (project / "agent.ini").read_text()) == (6, False)


@pytest.mark.parametrize(
    "need",
    ["policy/./evil.py", "policy/../x", "zero", "policy/", "agent/x", "policy/gym:A-v0", "policy/nobody", "/x", "A/b"],
)
def test_a_need_that_is_no_component_is_refused(cli: Cli, project: Path, policy: Path, need: str) -> None:
    write(project, {"evil.py": POLICY})
    (policy / "component.ini").write_text(ini("policy", name="zero", needs=need))
    before = (project / "agent.ini").read_text()
    done = cli("install", "policy", str(policy))
    assert done.exit_code in (2, 4)
    assert done.stderr.strip().count("\n") <= 3
    assert (project / "agent.ini").read_text() == before
