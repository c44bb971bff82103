"""Components in processes of their own: the same runs as in one process, and what goes wrong is a sentence."""

from __future__ import annotations

import sys
import textwrap
from pathlib import Path

import pytest

from autoresearch.errors import AutoresearchError
from autoresearch.project.child.messages import Mode
from autoresearch.project.components.finding import find_offer
from autoresearch.project.components.installing import install
from autoresearch.project.components.trusting import Pythons, mark_fetched
from autoresearch.project.model import load_project
from autoresearch.project.runs.kept import LocalRun
from autoresearch.project.runs.running import Choices, check_project, do_project_run
from autoresearch.run.sandbox.job import Level
from autoresearch.run.sandbox.layout import Interpreter, interpreter_folders, package_folders
from tests.project.making import learner, now_ms, plain
from tests.walls import best_level

# The Python of these tests takes the place of an environment's; those are in tests/run/packages.
HERE = Interpreter(Path(sys.executable), "3", interpreter_folders(), package_folders())
COUNTING = """
import os
import numpy as np
from autoresearch import Policy

class Counting(Policy):
    def __init__(self):
        self.actions = self.environment.action_space.n
        self.process = os.getpid()
        self.table = np.zeros(20)
    def decide(self, observation):
        return int(self.table[observation] >= 0)
    def improve(self, observation, reward):
        self.table[observation] += reward + 1
    def state_dict(self):
        return {"table": self.table}
    def load_state_dict(self, state):
        self.table = state["table"]
"""
IMPROVING = """
import os
from autoresearch import Trainer

class Improving(Trainer):
    rate = 0.5
    def train(self, policy):
        assert policy.process != os.getpid() and policy.actions == 2 and not hasattr(policy, "nothing")
        observation, _ = self.environment.reset()
        done = False
        while not done:
            action = policy.decide(observation)
            observation, reward, *ends, _ = self.environment.step(action)
            policy.improve(observation, reward)
            done = any(ends)
"""


@pytest.fixture
def counting(tmp_path: Path) -> Path:
    """A project whose policy passes arrays, and whose trainer calls it by methods of its own."""
    folder = learner(tmp_path / "counting")
    for kind, code in (("policy", COUNTING), ("trainer", IMPROVING)):
        name = "counting" if kind == "policy" else "improving"
        (folder / f"{name}.py").write_text(code)
        install(load_project(folder), find_offer(kind, str(folder / f"{name}.py"), folder), default=True)
    return folder


def apart(*keys: str) -> Pythons:
    return Pythons(isolated=dict.fromkeys(keys, HERE))


def run(folder: Path, mode: Mode, *keys: str, episodes: int = 5) -> LocalRun:
    return do_project_run(Choices(folder, pythons=apart(*keys)), mode, episodes, now_ms=now_ms)


@pytest.mark.slow
@pytest.mark.parametrize(
    "keys",
    [("environment.corridor",), ("trainer.improving",), ("environment.corridor", "trainer.improving")],
    ids=["environment", "trainer", "all"],
)
def test_a_run_is_the_same_with_components_in_processes_of_their_own(
    counting: Path, tmp_path: Path, keys: tuple[str, ...]
) -> None:
    alone = run(counting, "train", *{"policy.counting", *keys})
    measured = run(counting, "bench", "policy.counting", *keys)
    assert measured.data.metrics["mean_reward"] == -9
    other = learner(tmp_path / "other")
    for name in ("counting.py", "improving.py"):
        (other / name).write_text((counting / name).read_text().replace("policy.process != os.getpid() and ", ""))
    (other / "agent.ini").write_text((counting / "agent.ini").read_text())
    together = run(other, "train")
    assert together.data.metrics == alone.data.metrics
    for path in (together.folder / "data").iterdir():
        assert path.read_bytes() == (alone.folder / "data" / path.name).read_bytes()
    assert sorted(alone.data.components) == sorted(together.data.components)


@pytest.mark.slow
def test_what_a_component_draws_is_the_same(tmp_path: Path) -> None:
    folder = learner(tmp_path / "a")
    install(load_project(folder), find_offer("policy", "random", folder), default=True)
    assert run(folder, "bench").data.metrics == run(folder, "bench", "policy.random").data.metrics


@pytest.mark.slow
def test_classes_that_derive_from_nothing_and_interfaces(tmp_path: Path) -> None:
    folder = plain(tmp_path)
    measured = run(folder, "bench", "environment.light", "policy.still")
    assert measured.data.metrics["mean_reward"] == -3
    checks = check_project(folder, pythons=apart("environment.light", "policy.still"))
    assert [(each.key, each.missing) for each in checks] == [(each.key, each.missing) for each in check_project(folder)]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("decide", "message"),
    [
        ("return 1 / 0", r"policy\.still: still\.py, line 4: ZeroDivisionError"),
        ("return object()", r"what decide gives can't be passed to another process"),
        ("return self.missing", r"AttributeError"),
        ("return self.environment.price_of(3)", r"environment\.light has no price_of"),
        ("import os; os._exit(3)", r"policy\.still: its process ended"),
    ],
)
def test_what_goes_wrong_over_there_is_a_sentence(tmp_path: Path, decide: str, message: str) -> None:
    folder = plain(tmp_path)
    code = (
        f"from autoresearch import Policy\nclass Still(Policy):\n    def decide(self, observation):\n        {decide}\n"
    )
    (folder / "still.py").write_text(textwrap.dedent(code))
    with pytest.raises(AutoresearchError, match=message) as raised:
        run(folder, "bench", "policy.still")
    assert raised.value.hint


@pytest.mark.slow
@pytest.mark.skipif(best_level() < Level.LANDLOCK, reason="this machine has no sandbox that holds")
def test_in_the_sandbox_too(counting: Path) -> None:
    mark_fetched(load_project(counting), "run1")
    run(counting, "train", "policy.counting", "environment.corridor")
    measured = run(counting, "bench", "policy.counting")
    assert (measured.data.metrics["mean_reward"], measured.data.sandbox) == (-9, int(best_level()))
