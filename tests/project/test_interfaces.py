"""Components in code: acr, the members of an agent, values in either order, the checker, what a state may hold."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from autoresearch.errors import UsageError
from autoresearch.project.child.recording import Recorder, Tally, five
from autoresearch.project.components.finding import find_offer, shipped_offers
from autoresearch.project.components.installing import install, make_project
from autoresearch.project.learned import load_state, save_state
from autoresearch.project.model import load_project
from autoresearch.project.runs.running import check_project
from tests.project.making import bench, learner, plain, train

# As the design document of AgentOS' component registry prints it, but for the first line.
SIMPLE_AGENT = """
from autoresearch import Agent

class SimpleAgent(Agent):
    def train(self):
        self.trainer.train(self.policy)

    def advance(self):
        next_action = self.policy.decide(self.obs)
        self.obs, done, reward, info  = self.environment.step(next_action)
"""


def python(script: str, folder: Path) -> str:
    """What a script prints that runs in a folder."""
    return subprocess.run(
        [sys.executable, "-c", script],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        check=True,
    ).stdout


@pytest.mark.slow
def test_the_agent_of_the_design_document_trains_and_runs(tmp_path: Path) -> None:
    learner(tmp_path)
    (tmp_path / "agent.py").write_text(SIMPLE_AGENT)
    train(tmp_path, 200)
    assert bench(tmp_path, 5).data.metrics["mean_reward"] == -9


@pytest.mark.slow
def test_components_are_reached_by_name_attribute_and_default(tmp_path: Path) -> None:
    pytest.importorskip("gymnasium")
    learner(tmp_path)
    for name in ("2048", "gym:CartPole-v1"):
        install(load_project(tmp_path), find_offer("environment", name, tmp_path), default=False)
    printed = python(
        """
from autoresearch import acr, Agent
print(list(acr.environment), len(acr.policy), "dqn" in acr.policy, acr.policy)
acr.environment["2048"].reset(seed=1)
print(len(acr.environment["2048"].step(0)), acr.environment["2048"] is getattr(acr.environment, "2048"))
acr.environment.cartpole.reset()
print(len(acr.environment.cartpole.step(0)), acr.environment.cartpole.action_space)
agent = Agent()
print(agent.policy is acr.policy.default is acr.policy.q_table, agent.trainer is acr.trainer.sarsa)
print(agent.environment.inner is acr.environment.default)
class Mine: pass
acr.register("policy", "mine", Mine)
print(type(acr.policy.mine).__name__, acr.policy.default is acr.policy["q_table"], hasattr(acr.policy, "other"))
""",
        tmp_path,
    )
    assert printed.splitlines() == [
        "['corridor', '2048', 'cartpole'] 2 False <policy: random, q_table>",
        "5 True",
        "5 Discrete(2)",
        "True True",
        "True",
        "Mine True False",
    ]


@pytest.mark.slow
def test_plain_import_acr_works_inside_a_project(tmp_path: Path) -> None:
    make_project(tmp_path)
    (tmp_path / "agent.py").write_text(
        """
import acr
from autoresearch import Agent

class Lefty:
    def decide(self, observation):
        return 0

class SimpleAgent(Agent):
    def __init__(self):
        acr.register("policy", "lefty", Lefty)
    def advance(self):
        self.obs, *_ = acr.environment.default.step(acr.policy.lefty.decide(self.obs))
"""
    )
    assert bench(tmp_path, 2).data.metrics["mean_reward"] == -200


def test_importing_the_package_loads_none_of_it() -> None:
    script = "import sys, autoresearch; print([n for n in sys.modules if n.startswith(('autoresearch.', 'numpy'))])"
    assert python(script, Path.cwd()) == "['autoresearch.version']\n"
    script = "import sys; from autoresearch import Agent, acr; print({'torch', 'gymnasium'} & set(sys.modules))"
    assert python(script, Path.cwd()) == "set()\n"


@pytest.mark.parametrize(
    ("returned", "seen"),
    [
        (("o", 1.5, True, {}), ("o", 1.5, True, False, {})),
        (("o", True, 1.5, {}), ("o", 1.5, True, False, {})),
        (("o", False, 0, {}), ("o", 0, False, False, {})),
        (("o", np.bool_(True), np.float64(2), {}), ("o", 2, True, False, {})),
        (("o", 1, True, {"TimeLimit.truncated": True}), ("o", 1, False, True, {"TimeLimit.truncated": True})),
    ],
)
def test_older_environments_return_reward_and_done_in_either_order(returned: Any, seen: Any) -> None:
    assert five(returned) == seen


def test_an_episode_without_end_is_cut() -> None:
    class Endless:
        def reset(self) -> int:
            return 0

        def step(self, action: int) -> tuple[int, float, bool, bool, dict[str, Any]]:
            return 0, 1.0, False, False, {}

    tally = Tally()
    recorder = Recorder(Endless(), tally)
    assert recorder.reset() == (0, {})
    count = 1
    while not recorder.step(0)[3]:
        count += 1
    assert tally.metrics()["mean_reward"] == count == tally.steps >= 100_000


@pytest.mark.slow
def test_the_checker_names_what_is_missing_and_forbids_nothing(tmp_path: Path) -> None:
    plain(tmp_path)
    (tmp_path / "agent.ini").write_text(
        (tmp_path / "agent.ini").read_text() + "[Memory.notes]\nclass_name = still:Still\n"
    )
    checks = {each.key: (each.missing, each.error) for each in check_project(tmp_path)}
    assert checks == {
        "environment.light": (["action_space", "observation_space"], ""),
        "policy.still": (["state_dict", "load_state_dict"], ""),
        "memory.notes": ([], ""),
    }
    (tmp_path / "still.py").write_text("from autoresearch import Policy\nclass Still(Policy):\n    pass\n")
    assert {each.key: each.missing for each in check_project(tmp_path)}["policy.still"] == ["decide"]
    (tmp_path / "light.py").write_text("raise ValueError('dark')")
    assert (
        "light.py, line 1: ValueError: dark"
        in {each.key: each.error for each in check_project(tmp_path)}["environment.light"]
    )


@pytest.mark.slow
def test_every_component_that_ships_has_its_interface(tmp_path: Path) -> None:
    project = make_project(tmp_path)
    gym = find_offer("environment", "gym:CartPole-v1", tmp_path)
    for offer in [*shipped_offers(), gym]:
        if (offer.type, offer.name) != ("trainer", "dqn_sgd"):  # it needs a dqn as the default
            project = install(project, offer, default=(offer.type, offer.name) == ("policy", "dqn"))
    install(project, find_offer("trainer", "dqn_sgd", tmp_path), default=False)
    checks = check_project(tmp_path)
    assert len(checks) == 1 + len(shipped_offers()) + 1
    unnamed = ("environment.remote", [], "no service is named")
    assert [(each.key, each.missing, each.error) for each in checks if each.missing or each.error] == [unnamed]


LEAVES = st.none() | st.booleans() | st.integers(-(2**60), 2**60) | st.floats(allow_nan=False) | st.text(max_size=5)
ARRAYS = st.lists(st.floats(-9, 9, width=32), max_size=4).map(lambda each: np.array(each, np.float32))
KEYS = st.text(max_size=4) | st.integers() | st.tuples(st.integers(), st.integers())
STATES = st.recursive(
    LEAVES | ARRAYS,
    lambda inner: st.lists(inner, max_size=3) | st.tuples(inner, inner) | st.dictionaries(KEYS, inner, max_size=3),
    max_leaves=8,
)


@given(st.dictionaries(st.text(min_size=1, max_size=4), STATES, min_size=1, max_size=3))
def test_a_state_comes_back_as_it_was(tmp_path_factory: pytest.TempPathFactory, state: dict[str, Any]) -> None:
    folder = tmp_path_factory.mktemp("state")
    save_state(folder, "policy.one", state)
    loaded = load_state(folder, "policy.one")
    assert same(loaded, state)
    assert {path.suffix for path in folder.iterdir()} <= {".json", ".safetensors"}


def same(first: Any, second: Any) -> bool:
    if isinstance(second, np.ndarray):
        return isinstance(first, np.ndarray) and first.dtype == second.dtype and np.array_equal(first, second)
    if isinstance(second, Mapping):
        return first.keys() == second.keys() and all(same(first[key], second[key]) for key in second)
    if isinstance(second, list | tuple):
        return type(first) is type(second) and len(first) == len(second) and all(map(same, first, second))
    return bool(first == second)


@pytest.mark.slow
def test_tensors_come_back_as_tensors_and_objects_are_refused(tmp_path: Path) -> None:
    import torch

    optimizer = torch.optim.Adam([torch.nn.Parameter(torch.ones(2, 3))])
    state = {"w": torch.arange(6).reshape(2, 3), "count": torch.tensor(3.0), "optimizer": optimizer.state_dict()}
    save_state(tmp_path, "trainer.x", state)
    loaded = load_state(tmp_path, "trainer.x")
    assert loaded
    assert torch.equal(loaded["w"], state["w"])
    assert (loaded["count"].shape, float(loaded["count"])) == ((), 3.0)
    optimizer.load_state_dict(loaded["optimizer"])
    for wrong in (object(), {1, 2}, np.array([object()]), lambda: 0):
        with pytest.raises(UsageError, match=r"the state of trainer\.x can't be kept"):
            save_state(tmp_path, "trainer.x", {"wrong": wrong})
    assert load_state(tmp_path, "other") is None
