"""What the policy of a run has seen, whatever way it learned."""

from __future__ import annotations

from pathlib import Path

import pytest

from autoresearch.errors import Refused
from autoresearch.project.components.finding import find_offer
from autoresearch.project.components.installing import install, use
from autoresearch.project.model import load_project
from autoresearch.project.runs.kept import LocalRun, Totals, set_head
from autoresearch.project.runs.records import prepare_run, title_of
from tests.project.making import bench, learner, train

LEARNS = """
from autoresearch import Agent, acr

class Learns(Agent):
    def __init__(self, rate: float = 0.5, other: str = ""):
        self.rate, self.other = rate, other
    def train(self):
        self.trainer.train(acr.policy[self.other] if self.other else self.policy)
    def advance(self):
        seen, action = self.obs, self.policy.decide(self.obs)
        self.obs, done, reward, info = self.environment.step(action)
        if hasattr(self.policy, "add"):
            self.policy.add(seen, action, self.rate * reward)
"""
OFFLINE = """
from autoresearch import Trainer

class Offline(Trainer):
    def train(self, policy):
        policy.add(3, 1, 1.0)
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A project whose agent learns also in benchmark runs."""
    learner(tmp_path)
    (tmp_path / "agent.py").write_text(LEARNS)
    ini = tmp_path / "agent.ini"
    ini.write_text(ini.read_text().replace("SimpleAgent", "Learns\nlearns_on_run = yes"))
    return tmp_path


def totals(run: LocalRun) -> tuple[int, int]:
    return run.data.totals.training_episodes, run.data.totals.benchmark_episodes


def title(folder: Path, run: LocalRun) -> str:
    return title_of(prepare_run(load_project(folder), run))


@pytest.mark.slow
def test_a_benchmark_run_that_changed_what_was_learned_is_training(folder: Path) -> None:
    first = bench(folder, 30)
    assert totals(first) == (30, 0)
    assert first.data.totals.training_steps == first.data.metrics["steps"]
    assert title(folder, first) == "q_table + sarsa, 30 training episodes"
    still = bench(folder, 5, "agent.rate=0")
    assert totals(still) == (30, 5), "nothing changed in it"
    assert totals(train(folder, 7)) == (37, 5)
    assert totals(bench(folder, 2)) == (39, 5)
    assert totals(bench(folder, 2, start=still.id)) == (32, 5)
    set_head(load_project(folder), None)
    assert totals(bench(folder, 3, "agent.rate=0")) == (0, 3)
    assert title(folder, bench(folder, 3, "agent.rate=0")) == "q_table, not trained"


@pytest.mark.slow
def test_what_a_policy_learned_while_another_was_the_default_counts(folder: Path) -> None:
    project = install(load_project(folder), find_offer("policy", "q_table", folder, name="second"), default=False)
    trained = train(folder, 40, "agent.other=second")
    assert totals(trained) == (40, 0)
    use(project, "policy", "second")
    measured = bench(folder, 3, "agent.rate=0")
    assert totals(measured) == (40, 3)
    use(project, "policy", "random")
    assert totals(bench(folder, 3, "agent.rate=0")) == (0, 3)


@pytest.mark.slow
def test_learning_without_an_environment_counts_each_call(folder: Path) -> None:
    (folder / "offline.py").write_text(OFFLINE)
    install(load_project(folder), find_offer("trainer", str(folder / "offline.py"), folder), default=True)
    run = train(folder, 9)
    assert totals(run) == (9, 0)
    assert title(folder, run) == "q_table + offline, 9 training episodes"
    assert Totals().plus("train", {"episodes": 0, "steps": 57}).training_episodes == 1, "one that was cut"


@pytest.mark.slow
@pytest.mark.parametrize("change", ["another", "more", "gone"])
def test_a_state_that_was_put_in_by_hand_is_refused(folder: Path, change: str) -> None:
    trained = train(folder, 20)
    text = (trained.folder / "data/policy.q_table.safetensors").read_bytes()
    set_head(load_project(folder), None)
    run = train(folder, 1)
    file = run.folder / "data/policy.q_table.safetensors"
    file.unlink()
    if change == "another":
        file.write_bytes(text)
    elif change == "more":
        (run.folder / "data/policy.other.safetensors").write_bytes(text)
    for act in (lambda: bench(folder, 1), lambda: train(folder, 1), lambda: prepare_run(load_project(folder), run)):
        with pytest.raises(Refused, match=r"is not what run .* had learned"):
            act()
    assert totals(bench(folder, 1, "agent.rate=0", start=trained.id)) == (20, 1)
