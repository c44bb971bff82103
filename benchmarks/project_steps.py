"""Environment steps in training, beside the same loop written by hand; and how long deep Q-learning takes.

Both loops run in this process, one after the other: a busy machine slows both.
"""

from __future__ import annotations

import resource
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

from autoresearch.project.child.child import ProjectSession
from autoresearch.project.child.members import Members, use
from autoresearch.project.child.messages import RunOrder
from autoresearch.project.components.finding import find_offer
from autoresearch.project.components.installing import install, make_project
from autoresearch.project.model import load_project
from autoresearch.project.runs.running import Choices, do_project_run

ROUNDS = 5
LEARNING_EPISODES = 300
# Of each environment so many episodes.
ASKED = {"corridor": 20_000, "2048": 100, "gym:CartPole-v1": 2_000}


def measure_steps(*, quick: bool) -> dict[str, float]:
    """Steps a second by hand, and the share of it that training has, for environments of different speed."""
    figures: dict[str, float] = {}
    for wanted, episodes in ASKED.items():
        asked = max(1, episodes // 100) if quick else episodes
        hand, ratios = [], []
        with tempfile.TemporaryDirectory() as place:
            folder = learner(Path(place) / "project", wanted)
            for number in range(1 if quick else ROUNDS):
                loops = (_by_hand, _trained) if number % 2 else (_trained, _by_hand)
                found = {loop: loop(folder, asked) for loop in loops}
                hand.append(found[_by_hand])
                ratios.append(found[_trained] / found[_by_hand])
        name = wanted.rpartition(":")[2].partition("-")[0].lower()
        figures[f"steps_per_second_by_hand_{name}"] = statistics.median(hand)
        figures[f"steps_ratio_{name}"] = statistics.median(ratios)
    return figures


def learner(folder: Path, environment: str) -> Path:
    """A project with an environment, a table of values and SARSA."""
    project = make_project(folder)
    for kind, name in (("policy", "q_table"), ("trainer", "sarsa"), ("environment", environment)):
        project = install(project, find_offer(kind, name, folder), default=True)
    return folder


def measure_learning(*, quick: bool) -> dict[str, float]:
    """Seconds of processor time in which deep Q-learning trains on CartPole, and the mean reward that it comes to."""
    with tempfile.TemporaryDirectory() as place:
        project = make_project(Path(place) / "project")
        for kind, name in (("environment", "gym:CartPole-v1"), ("policy", "dqn"), ("trainer", "dqn_sgd")):
            project = install(project, find_offer(kind, name, project.folder), default=True)
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        do_project_run(Choices(project.folder), "train", 10 if quick else LEARNING_EPISODES, now_ms=_now_ms)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        played = do_project_run(Choices(project.folder), "bench", 50, now_ms=_now_ms)
    return {
        "dqn_cartpole_s": after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime,
        "dqn_cartpole_reward": played.data.metrics["mean_reward"],
    }


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


def _by_hand(folder: Path, episodes: int) -> float:
    """Steps a second of SARSA as a person writes it, around the bare environment."""
    members = Members(load_project(folder))
    use(members)
    environment: Any = members.default("environment").inner
    policy, trainer = members.default("policy"), members.default("trainer")
    rate, discount, steps = trainer.learning_rate, trainer.discount, 0
    began = time.monotonic()
    for _ in range(episodes):
        observation, _ = environment.reset()
        action, done = trainer.choose(policy, observation), False
        while not done:
            following, reward, terminated, truncated, _ = environment.step(action)
            steps += 1
            next_action = trainer.choose(policy, following)
            future = 0.0 if terminated else policy.values(following)[next_action]
            values = policy.values(observation)
            values[action] += rate * (reward + discount * future - values[action])
            observation, action, done = following, next_action, terminated or truncated
    return steps / (time.monotonic() - began)


def _trained(folder: Path, episodes: int) -> float:
    order = RunOrder(
        project=load_project(folder), mode="train", episodes=episodes, seed=0, learned="", out=str(folder / "out")
    )
    session = ProjectSession(order, lambda _figures: None, lambda: False)
    for kind in ("environment", "policy", "trainer"):
        session.members.default(kind)
    done = session.run()
    return float(done.metrics["steps"]) / done.seconds
