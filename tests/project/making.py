"""Projects for tests."""

from __future__ import annotations

import time
from pathlib import Path

from autoresearch.project.components.finding import find_offer
from autoresearch.project.components.installing import install, make_project
from autoresearch.project.runs.kept import LocalRun
from autoresearch.project.runs.running import Choices, do_project_run

SHIPPED = Path(__file__).parents[2] / "autoresearch/project/shipped"
ENVIRONMENT = """
class Light:
    def __init__(self, length: int = 3, price: float = 1.0, name: str = "light", on: bool = True):
        self.length, self.price, self.name, self.on = length, price, name, on
        self.action_space = None

    def reset(self):
        self.left = self.length
        return self.left

    def step(self, action):
        self.left -= 1
        return self.left, self.left == 0, -self.price, {}
"""
POLICY = """
class Still:
    def decide(self, observation):
        return 0
"""


def now_ms() -> int:
    return time.time_ns() // 1_000_000


def learner(folder: Path) -> Path:
    """A project with the corridor, a q_table and sarsa."""
    project = make_project(folder)
    for kind, name in (("policy", "q_table"), ("trainer", "sarsa")):
        project = install(project, find_offer(kind, name, folder), default=True)
    return folder


def plain(folder: Path) -> Path:
    """A project of the person's own classes, which derive from nothing."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "light.py").write_text(ENVIRONMENT)
    (folder / "still.py").write_text(POLICY)
    (folder / "agent.ini").write_text("[Environment]\nclass_name = light:Light\n[Policy]\nclass_name = still:Still\n")
    return folder


def train(folder: Path, episodes: int, *assignments: str, start: str = "") -> LocalRun:
    return do_project_run(Choices(folder, assignments, start), "train", episodes, now_ms=now_ms)


def bench(folder: Path, episodes: int = 10, *assignments: str, start: str = "") -> LocalRun:
    return do_project_run(Choices(folder, assignments, start), "bench", episodes, now_ms=now_ms)
