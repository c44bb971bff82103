"""An agent is measured in an environment that is in another sandbox: cheats earn what honest agents earn, or fail."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from autoresearch.project.components.finding import gym_offer, shipped_offer
from autoresearch.project.learned import pack_learned
from autoresearch.run.bench import Bench
from autoresearch.run.evaluating import evaluate
from autoresearch.run.experiment import Experiment, plan_as_it_stands
from autoresearch.run.sandbox.job import JobOutcome, Level
from autoresearch.task.loading import load_task
from autoresearch.task.model import Task
from autoresearch.task.program import join_files, source_digest
from autoresearch.words import RunStatus
from tests.walls import best_level

INSIDE = "python -m autoresearch.project.inside"
MANIFEST = """\
name = "corridor"
baseline = "{baseline}"
[metric]
name = "mean_reward"
direction = "maximize"
source = "evaluator"
[budget]
unit = "work"
amount = 200
[limits]
seconds = 60
memory_mib = 4096
[program]
command = "{inside} train"
edit = ["agent.ini", "*.py"]
[evaluation]
command = "{inside} examine"
answers = "{inside} answer"
artifact = "learned.zip"
fresh = true
tolerance = 0.5
[harness]
{pins}
"""
RIGHT = """\
from autoresearch import Policy
class Mine(Policy):
    def decide(self, observation):
        return 1
"""
# Each of them wants more than an honest agent earns: -9 in a corridor of ten places.
MOVES_ITSELF = """\
from autoresearch import Policy
class Mine(Policy):
    def decide(self, observation):
        place = self.environment
        while hasattr(place, "inner"):
            place = place.inner
        place.place = place.length = 9
        place._is_over = False
        return 1
"""
REPORTS_ITSELF = """\
import os
from autoresearch import Policy
class Mine(Policy):
    def decide(self, observation):
        print("mean_reward: 0.0", flush=True)
        os.write(int(os.environ["AUTORESEARCH_RESULT_FD"]), b'{"event":"result","status":"ok","value":0.0}\\n')
        return 1
"""
BEGINS_ANEW = """\
from autoresearch import Policy
class Mine(Policy):
    asked = 0
    def decide(self, observation):
        self.asked += 1
        if self.asked == 3:
            self.environment.reset()
        return 1
"""
REPEATS_THE_REWARD = """\
import os
from autoresearch import Policy
from autoresearch.project.child.messages import Conversation
class Mine(Policy):
    def decide(self, observation):
        talk = self.environment
        while not hasattr(talk, "_talk"):
            talk = talk.inner
        talk._talk.send([9, 0.0, True, False, {}])
        return 1
"""
WRONG_ACTION = "from autoresearch import Policy\nclass Mine(Policy):\n    def decide(self, observation): return 7\n"
HUGE_ACTION = WRONG_ACTION.replace("return 7", 'return "x" * (1 << 27)')
NO_ANSWER = WRONG_ACTION.replace("return 7", "import os; os._exit(0)")


def corridor(folder: Path, policy: str) -> tuple[Task, str]:
    """The corridor as a task, with an agent of this policy as its program."""
    offer = shipped_offer("environment", "corridor")
    assert offer is not None
    section = f"[environment.corridor]\nclass_name = {offer.class_name}\npath = .\n\n[benchmark]\nepisodes = 20\n"
    harness = {**offer.files, "environment.ini": section.encode()}
    return task(folder, harness, {"agent.ini": "[policy.mine]\nclass_name = mine:Mine\npath = .\n", "mine.py": policy})


def task(folder: Path, harness: dict[str, bytes], files: dict[str, str]) -> tuple[Task, str]:
    """A task with these fixed files, and its program."""
    folder.mkdir(parents=True)
    program = join_files(files)
    for name, content in {**harness, **{name: text.encode() for name, text in files.items()}}.items():
        (folder / name).write_bytes(content)
    pins = "\n".join(f'"{name}" = "{hashlib.sha256(content).hexdigest()}"' for name, content in harness.items())
    text = MANIFEST.format(baseline=source_digest(program).hex(), inside=INSIDE, pins=pins)
    (folder / "task.toml").write_text(text)
    return load_task(folder), program


@pytest.fixture(scope="module")
def level() -> Level:
    return best_level()


def examined(place: Path, level: Level, policy: str, seed: int = 3) -> JobOutcome:
    """What the task's evaluator finds of a policy that has learned nothing."""
    made, program = corridor(place / "task", policy)
    (place / "empty").mkdir()
    pack_learned(place / "empty", place / "learned.zip")
    bench = Bench(level, 1, "cpu", place / "data", place / "scratch")
    return evaluate(made, program, place / "learned.zip", bench, seed)


@pytest.mark.slow
def test_an_honest_agent_gets_the_mean_reward_of_its_episodes(tmp_path: Path, level: Level) -> None:
    outcome = examined(tmp_path, level, RIGHT)

    assert (outcome.status, outcome.value) == (RunStatus.OK, -9.0), outcome.reason
    assert (outcome.metrics["episodes"], outcome.metrics["steps"]) == (20, 180)


@pytest.mark.slow
@pytest.mark.parametrize("policy", [MOVES_ITSELF, REPORTS_ITSELF], ids=["moves itself", "reports itself"])
def test_what_a_policy_does_or_says_in_its_own_sandbox_changes_nothing(
    policy: str, tmp_path: Path, level: Level
) -> None:
    outcome = examined(tmp_path, level, policy)

    assert outcome.value in (None, -9.0), outcome.log.decode()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("policy", "message"),
    [
        (BEGINS_ANEW, "an episode of a benchmark can't be begun anew"),
        (REPEATS_THE_REWARD, "is not in the action space"),
        (WRONG_ACTION, "the agent's action 7 is not in the action space"),
        (HUGE_ACTION, "too large"),
        (NO_ANSWER, "the other side has ended"),
        ("import nothing_like_this", "No module named"),
    ],
    ids=["begins anew", "repeats the reward", "wrong action", "huge action", "no answer", "broken"],
)
def test_a_policy_that_does_not_play_gets_no_number(policy: str, message: str, tmp_path: Path, level: Level) -> None:
    outcome = examined(tmp_path, level, policy)

    assert outcome.status is not RunStatus.OK
    assert outcome.value is None
    assert message in outcome.reason + outcome.log.decode()


@pytest.mark.slow
def test_an_agent_is_trained_and_its_state_measured_in_other_episodes(tmp_path: Path, level: Level) -> None:
    files, ini = {}, ""
    for kind, name in (("policy", "q_table"), ("trainer", "sarsa")):
        offer = shipped_offer(kind, name)
        assert offer is not None
        ini += f"[{kind}.{name}]\nclass_name = {offer.class_name}\npath = .\n"
        files |= {name: content.decode() for name, content in offer.files.items()}
    environment = shipped_offer("environment", "corridor")
    assert environment is not None
    section = f"[environment.corridor]\nclass_name = {environment.class_name}\npath = .\n[benchmark]\nepisodes = 5\n"
    harness = {**environment.files, "environment.ini": section.encode()}
    made, program = task(tmp_path / "task", harness, {"agent.ini": ini, **files})
    bench = Bench(level, 1, "cpu", tmp_path / "data", tmp_path / "scratch")

    measured = outcome = Experiment(made, plan_as_it_stands(made, program), bench).measure(own=True)

    assert (measured.status, measured.value) == (RunStatus.OK, -9.0), measured.reason
    assert measured.curve[0] < -9.0
    assert outcome.checkpoint is not None
    assert evaluate(made, program, outcome.checkpoint, bench, 9).value == -9.0


def measured_by_seed(place: Path, level: Level, made: Task, program: str) -> list[JobOutcome]:
    """What a policy that has learned nothing comes to: the same with the same seed, another number with another."""
    (place / "empty").mkdir()
    pack_learned(place / "empty", place / "learned.zip")
    bench = Bench(level, 1, "cpu", place / "data", place / "scratch")
    outcomes = [evaluate(made, program, place / "learned.zip", bench, seed) for seed in (1, 1, 2)]
    assert [each.status for each in outcomes] == [RunStatus.OK] * 3, outcomes[0].reason
    assert outcomes[0].value == outcomes[1].value != outcomes[2].value
    return outcomes


@pytest.mark.slow
def test_gymnasium_s_environments_and_spaces_go_over_the_wall(tmp_path: Path, level: Level) -> None:
    offer = gym_offer("Pendulum-v1")
    section = f"[environment.pendulum]\nclass_name = {offer.class_name}\npath = .\nid = Pendulum-v1\n"
    section += "[benchmark]\nepisodes = 2\n"
    policy = RIGHT.replace("return 1", "return self.environment.action_space.sample() * 0 + observation[0]")
    files = {"agent.ini": "[policy.mine]\nclass_name = mine:Mine\npath = .\n", "mine.py": policy}
    made, program = task(tmp_path / "task", {**offer.files, "environment.ini": section.encode()}, files)
    outcomes = measured_by_seed(tmp_path, level, made, program)
    assert outcomes[0].metrics["steps"] == 400


NOISY = """\
from autoresearch import Environment
from autoresearch.services.spaces import Discrete
class Noisy(Environment):
    action_space = observation_space = Discrete(2)
    def reset(self, **_):
        return 0, {}
    def step(self, action):
        return 0, float(action) + float(self.rng.normal()), True, False, {}
"""


@pytest.mark.slow
def test_an_environment_draws_from_the_generator_of_its_run(tmp_path: Path, level: Level) -> None:
    section = "[environment.noisy]\nclass_name = noisy:Noisy\npath = .\n[benchmark]\nepisodes = 9\n"
    files = {"agent.ini": "[policy.mine]\nclass_name = mine:Mine\npath = .\n", "mine.py": RIGHT}
    made, program = task(tmp_path / "task", {"noisy.py": NOISY.encode(), "environment.ini": section.encode()}, files)
    measured_by_seed(tmp_path, level, made, program)
