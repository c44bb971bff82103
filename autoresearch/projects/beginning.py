"""A new project: a folder with a minimal agent that runs at once."""

from __future__ import annotations

from pathlib import Path

from autoresearch.errors import Refused
from autoresearch.projects.components.installing import install
from autoresearch.projects.components.shelf import shipped_offer
from autoresearch.projects.model import INI, Project, load_project

_AGENT = '''\
"""The agent of this project: it puts environment, policy and trainer together."""

from autoresearch import Agent


class SimpleAgent(Agent):
    def train(self):
        self.trainer.train(self.policy)

    def advance(self):
        next_action = self.policy.decide(self.obs)
        self.obs, done, reward, info = self.environment.step(next_action)
'''
_INI = """\
# The components of this project. `autoresearch list` shows them, `autoresearch install` adds others.
# Below a component, every other key is an argument of its constructor.

[Agent]
class_name = agent:SimpleAgent
"""
_FIRST = (("environment", "corridor"), ("policy", "random"))


def make_project(folder: Path) -> Project:
    """Make the minimal project in a folder: a random policy in a corridor.

    Raises:
        Refused: there is a project already, or a file in its way.
    """
    for name in (INI, "agent.py"):
        if (folder / name).exists():
            hint = "autoresearch run runs the project that is there" if name == INI else "move it away"
            raise Refused(f"{folder / name} is there already", hint=hint)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "agent.py").write_text(_AGENT, "utf-8")
    (folder / INI).write_text(_INI, "utf-8")
    project = load_project(folder)
    for kind, name in _FIRST:
        offer = shipped_offer(kind, name)
        assert offer is not None
        project = install(project, offer, default=False)
    return project
