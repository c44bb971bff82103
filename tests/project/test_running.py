"""Training and benchmark runs in a process of their own: what is learned, kept, counted and carried on."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import yaml

from autoresearch.errors import AutoresearchError, NotFound, Refused
from autoresearch.project.components.finding import find_offer
from autoresearch.project.components.installing import install, make_project, use
from autoresearch.project.model import load_project
from autoresearch.project.runs.kept import find_run, head_run, kept_runs, set_head
from tests.project.making import bench, learner, plain, train

DICE = """
import numpy as np
from autoresearch.services.spaces import Discrete

class Dice:
    action_space = Discrete(2)

    def reset(self, *, seed=None, options=None):
        self.numbers, self.left = np.random.default_rng(seed), 10
        return 0, {}

    def step(self, action):
        self.left -= 1
        return 0, float(self.numbers.integers(1, 7) + action), self.left == 0, False, {}
"""


@pytest.mark.slow
def test_a_new_project_runs_at_once_and_has_no_trainer(tmp_path: Path) -> None:
    make_project(tmp_path)
    run = bench(tmp_path, 5)
    assert run.data.metrics["episodes"] == 5
    assert run.data.metrics["min_reward"] <= run.data.metrics["median_reward"] <= run.data.metrics["max_reward"] < 0
    with pytest.raises(AutoresearchError, match="this project has no trainer") as raised:
        train(tmp_path, 5)
    assert raised.value.hint == "autoresearch install trainer NAME"
    with pytest.raises(Refused, match=r"agent\.ini is there already"):
        make_project(tmp_path)


@pytest.mark.slow
def test_sarsa_solves_the_corridor_and_the_chain_adds_up(tmp_path: Path) -> None:
    first = train(learner(tmp_path), 200)
    measured = bench(tmp_path, 7)
    assert measured.data.metrics["mean_reward"] == measured.data.metrics["min_reward"] == -9  # the shortest way
    assert len(first.data.curve) == 64
    assert first.data.curve[0] < first.data.curve[-1]
    second = train(tmp_path, 10)
    assert [run.id for run in kept_runs(load_project(tmp_path))] == [first.id, measured.id, second.id]
    assert (first.data.parent, measured.data.parent, second.data.parent) == ("", first.id, measured.id)
    totals = second.data.totals
    assert (totals.training_episodes, totals.benchmark_episodes, totals.benchmark_steps) == (210, 7, 63)
    assert totals.training_steps == first.data.metrics["steps"] + second.data.metrics["steps"]
    child = train(tmp_path, 3, start=first.id[:6])
    assert (child.data.parent, child.data.totals.training_episodes) == (first.id, 203)
    assert sorted(path.name for path in child.folder.iterdir()) == [
        "agent.ini",
        "data",
        "parameters.yaml",
        "run_data.yaml",
    ]
    assert {path.suffix for path in (child.folder / "data").iterdir()} == {".json", ".safetensors"}


@pytest.mark.slow
def test_a_run_repeats_itself(tmp_path: Path) -> None:
    first, second = (train(learner(tmp_path / name), 20) for name in ("a", "b"))
    assert first.data.metrics == second.data.metrics
    assert first.data.curve == second.data.curve
    assert first.data.files == second.data.files
    assert first.data.components == second.data.components


@pytest.mark.slow
def test_a_benchmark_run_learns_nothing_and_records_no_experience(tmp_path: Path) -> None:
    learner(tmp_path)
    (tmp_path / "kept.py").write_text(
        textwrap.dedent("""
        from autoresearch import Dataset

        class Kept(Dataset):
            def __init__(self):
                self.rows = []
            def add(self, observation, action, reward, following, *, done):
                self.rows.append([observation, action, reward, following, done])
            def state_dict(self):
                return {"rows": self.rows}
            def load_state_dict(self, state):
                self.rows = state["rows"]
        """)
    )
    install(load_project(tmp_path), find_offer("dataset", str(tmp_path / "kept.py"), tmp_path), default=True)
    trained = train(tmp_path, 3)
    measured = bench(tmp_path, 3)

    def data(folder: Path) -> dict[str, bytes]:
        return {path.name: path.read_bytes() for path in (folder / "data").iterdir()}

    assert data(trained.folder) == data(measured.folder)
    rows = yaml.safe_load(data(trained.folder)["dataset.kept.json"])["rows"]
    assert len(rows) == trained.data.metrics["steps"]
    assert [row[4] for row in rows].count(True) <= 3
    assert rows[0][:1] == [0]


CHANGING = """
from autoresearch import Policy

class Changing(Policy):
    def __init__(self):
        self.seen = 0
    def decide(self, observation):
        self.seen += 1
        return 1
    def state_dict(self):
        return {"seen": self.seen}
    def load_state_dict(self, state):
        self.seen = state["seen"]
"""


@pytest.mark.slow
def test_a_policy_that_changes_in_a_benchmark_run_is_told_and_kept_only_where_the_ini_says_so(tmp_path: Path) -> None:
    make_project(tmp_path)
    (tmp_path / "changing.py").write_text(CHANGING)
    install(load_project(tmp_path), find_offer("policy", str(tmp_path / "changing.py"), tmp_path), default=True)
    run = bench(tmp_path, 1)
    assert (run.data.policy_changed, run.data.learns_on_run) == (True, False)
    assert not list((run.folder / "data").iterdir())
    ini = tmp_path / "agent.ini"
    ini.write_text(ini.read_text().replace("[Agent]\n", "[Agent]\nlearns_on_run = yes\n"))
    run = bench(tmp_path, 1)
    assert (run.data.policy_changed, run.data.learns_on_run) == (True, True)
    assert (run.folder / "data/policy.changing.json").read_text() == '{"seen":9}'
    assert (bench(tmp_path, 1).folder / "data/policy.changing.json").read_text() == '{"seen":18}'


@pytest.mark.slow
def test_the_state_of_a_component_that_is_not_used_is_carried_along(tmp_path: Path) -> None:
    learner(tmp_path)
    trained = train(tmp_path, 5)
    use(load_project(tmp_path), "policy", "random")
    measured = bench(tmp_path, 2)
    assert "policy.q_table" not in measured.data.components
    assert (measured.folder / "data/policy.q_table.json").read_bytes() == (
        trained.folder / "data/policy.q_table.json"
    ).read_bytes()


@pytest.mark.slow
def test_classes_that_derive_from_nothing_and_older_interfaces_work(tmp_path: Path) -> None:
    run = bench(plain(tmp_path), 4)
    assert run.data.metrics == {
        "episodes": 4,
        "steps": 12,
        "mean_reward": -3.0,
        "median_reward": -3.0,
        "max_reward": -3.0,
        "min_reward": -3.0,
        "std_reward": 0.0,
    }


@pytest.mark.slow
def test_an_agent_that_takes_no_step_is_stopped(tmp_path: Path) -> None:
    plain(tmp_path)
    (tmp_path / "idle.py").write_text("class Idle:\n    def advance(self):\n        pass\n")
    install(load_project(tmp_path), find_offer("agent", str(tmp_path / "idle.py"), tmp_path), default=True)
    with pytest.raises(AutoresearchError, match=r"advance\(\) takes no step"):
        bench(tmp_path, 1)


@pytest.mark.slow
def test_a_trainer_without_an_environment_is_called_so_often(tmp_path: Path) -> None:
    learner(tmp_path)
    (tmp_path / "offline.py").write_text(
        "from autoresearch import Trainer\nclass Offline(Trainer):\n    calls = 0\n"
        "    def train(self, policy):\n        self.calls += 1\n"
        "    def state_dict(self):\n        return {'calls': self.calls}\n"
    )
    install(load_project(tmp_path), find_offer("trainer", str(tmp_path / "offline.py"), tmp_path), default=True)
    run = train(tmp_path, 7)
    assert run.data.metrics == {"episodes": 0, "steps": 0}
    assert (run.folder / "data/trainer.offline.json").read_text() == '{"calls":7}'


@pytest.mark.slow
def test_two_commands_do_not_run_one_project(tmp_path: Path) -> None:
    with training(tmp_path), pytest.raises(Refused, match="another command"):
        bench(tmp_path, 1)


@pytest.mark.slow
def test_a_killed_run_leaves_the_project_usable(tmp_path: Path) -> None:
    before = train(learner(tmp_path), 5)
    with training(tmp_path) as process:
        child = children(process.pid)
        assert child
        process.kill()
        process.wait()
    wait_gone(child)
    assert [path.name for path in (tmp_path / ".autoresearch/runs").glob(".*")]
    assert bench(tmp_path, 2).data.parent == before.id
    assert not list((tmp_path / ".autoresearch/runs").glob(".*"))
    assert len(kept_runs(load_project(tmp_path))) == 2


@pytest.mark.slow
def test_an_interrupt_keeps_what_was_learned(tmp_path: Path) -> None:
    learner(tmp_path)
    with training(tmp_path) as process:
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == 0
    head = head_run(load_project(tmp_path))
    assert head
    assert head.data.status == "stopped"
    assert 0 < head.data.metrics["episodes"] < 10**8
    assert bench(tmp_path, 2).data.metrics["mean_reward"] == -9


FAILING = """
from autoresearch.project.shipped.sarsa import Sarsa
class Failing(Sarsa):
    calls = 0
    def train(self, policy):
        self.calls += 1
        if self.calls == {call}:
            raise RuntimeError("boom")
        super().train(policy)
"""


@pytest.mark.slow
def test_an_error_in_training_keeps_what_the_episodes_before_taught_and_names_its_component(tmp_path: Path) -> None:
    learner(tmp_path)
    (tmp_path / "failing.py").write_text(FAILING.format(call=4))
    install(load_project(tmp_path), find_offer("trainer", str(tmp_path / "failing.py"), tmp_path), default=True)

    with pytest.raises(AutoresearchError, match=r"trainer\.failing: failing\.py, line 8: RuntimeError: boom") as caught:
        train(tmp_path, 9)

    head = head_run(load_project(tmp_path))
    assert head
    assert (head.data.status, head.data.metrics["episodes"]) == ("stopped", 3)
    assert f"what 3 episodes taught is kept as run {head.id}; autoresearch agent reset undoes it" in caught.value.hint
    (tmp_path / "failing.py").write_text(FAILING.format(call=1))
    with pytest.raises(AutoresearchError, match="boom"):
        train(tmp_path, 9)
    assert len(kept_runs(load_project(tmp_path))) == 1, "nothing was learned before"


@pytest.mark.slow
def test_a_reward_that_is_no_number_ends_the_training_in_its_episode(tmp_path: Path) -> None:
    learner(tmp_path)
    spoilt = """
from autoresearch.project.shipped.corridor import Corridor
class Spoilt(Corridor):
    count = 0
    def reset(self, **options):
        self.count += 1
        return super().reset(**options)
    def step(self, action):
        observation, reward, *rest = super().step(action)
        return observation, float("nan") if self.count == 3 else reward, *rest
"""
    (tmp_path / "spoilt.py").write_text(spoilt)
    install(load_project(tmp_path), find_offer("environment", str(tmp_path / "spoilt.py"), tmp_path), default=True)

    with pytest.raises(AutoresearchError, match="is no finite number: nan, in step 1 of episode 3"):
        train(tmp_path, 10**6)
    assert [run.data.metrics["episodes"] for run in kept_runs(load_project(tmp_path))] == [2]


@pytest.mark.slow
def test_a_changed_run_is_not_read_and_an_unknown_one_is_named(tmp_path: Path) -> None:
    run = train(learner(tmp_path), 5)
    project = load_project(tmp_path)
    text = (run.folder / "run_data.yaml").read_text()
    (run.folder / "run_data.yaml").write_text(text.replace("training_episodes: 5", "training_episodes: 50"))
    assert head_run(project) is None
    with pytest.raises(NotFound, match="this project has no run"):
        find_run(project, run.id)
    (run.folder / "run_data.yaml").write_text(text)
    assert find_run(project, run.id[:4]).data == run.data
    set_head(project, None)
    assert train(tmp_path, 1).data.parent == ""


SCRIPT = """
import sys
from pathlib import Path
from tests.project.making import now_ms
from autoresearch.project.runs.running import Choices, do_project_run
print("ready", flush=True)
choices = Choices(Path(sys.argv[1]))
do_project_run(choices, "train", 10**8, now_ms=now_ms, on_figures=lambda told: print(told.episodes, flush=True))
"""


@contextmanager
def training(folder: Path) -> Iterator[subprocess.Popen[str]]:
    """A process that trains for ever, as soon as it has told its first figure."""
    if not (folder / "agent.ini").exists():
        learner(folder)
    process = subprocess.Popen(
        [sys.executable, "-c", SCRIPT, str(folder)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout
    try:
        assert process.stdout.readline() == "ready\n"
        assert int(process.stdout.readline()) > 0
        yield process
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


def children(parent: int) -> list[int]:
    """The processes that a process started."""
    import psutil

    return [each.pid for each in psutil.Process(parent).children()]


def wait_gone(processes: list[int]) -> None:
    """Wait until they have ended."""
    import psutil

    alive = [psutil.Process(each) for each in processes if psutil.pid_exists(each)]
    assert not psutil.wait_procs(alive, timeout=250)[1]


@pytest.mark.slow
def test_two_agents_play_the_same_episodes(tmp_path: Path) -> None:
    (tmp_path / "dice.py").write_text(DICE)
    rewards = {}
    for more in (0, 1):
        (tmp_path / "still.py").write_text(f"class Still:\n    def decide(self, observation):\n        return {more}\n")
        (tmp_path / "agent.ini").write_text(
            "[Environment]\nclass_name = dice:Dice\n[Policy]\nclass_name = still:Still\n"
        )
        rewards[more] = bench(tmp_path, 20).data.metrics
    # Ten throws an episode, each a point more: chance is no part of the difference.
    assert rewards[1]["mean_reward"] - rewards[0]["mean_reward"] == pytest.approx(10)
    assert rewards[0]["std_reward"] == rewards[1]["std_reward"] > 0
    assert rewards[0]["random_reward"] == rewards[1]["random_reward"]
    assert 0 < rewards[0]["random_standard_error"] < 5
