"""Training and benchmark runs inside a project's own process."""

from __future__ import annotations

import hashlib
import itertools
import random
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from autoresearch.errors import AutoresearchError, NotFound
from autoresearch.projects.interfaces import Agent
from autoresearch.projects.loading import failed
from autoresearch.projects.members import Members, use
from autoresearch.projects.messages import Done, Figures, Order
from autoresearch.projects.model import AGENT
from autoresearch.projects.recording import Recorder, Stopped, Tally
from autoresearch.projects.state import load_state, packed_text, save_state

FIGURE_SECONDS = 0.5
RECENT = 100
# An agent that advances so often without a step in its environment never ends its episode.
_MOST_IDLE = 10_000


class Session:
    """One run: its components, what it counted, and whether it is asked to end."""

    def __init__(self, order: Order, tell: Callable[[Figures], None], stopping: Callable[[], bool]) -> None:
        self._order = order
        self._tell = tell
        self._stopping = stopping
        self._began = self._told = time.monotonic()
        self._tally = Tally(self._look)
        self._learned = Path(order.learned) if order.learned else None
        self.members = Members(order.project, seed=order.seed, made=self._made)
        use(self.members)
        random.seed(order.seed)
        np.random.seed(order.seed % 2**32)

    def run(self) -> Done:
        """Train or benchmark. What was learned is written when it ends, also when it was stopped.

        Raises:
            AutoresearchError: a component is missing, wrong, or raised an error.
        """
        order, stopped = self._order, False
        agent = self._agent()
        before = "" if order.mode == "train" else self._state_of_policy()
        self.members.default("environment")
        if order.mode == "train" and "trainer" in order.project.components:
            self.members.default("trainer")
        self._began = self._told = time.monotonic()  # components are built, which may have loaded large packages
        try:
            if order.mode == "train":
                self._train(agent)
            else:
                self._bench(agent)
        except Stopped:
            stopped = True
        seconds = time.monotonic() - self._began
        changed = order.mode == "bench" and before != self._state_of_policy()
        if order.mode == "train" or order.project.learns_on_run:
            self._save()
        return Done(
            self._tally.metrics(),
            self._tally.curve(),
            seconds,
            sorted(".".join(key) if key[0] != AGENT else AGENT for key in self.members.built),
            stopped,
            changed,
        )

    def _agent(self) -> Any:  # noqa: ANN401
        if AGENT in self._order.project.components:
            return self.members.get(AGENT, AGENT)
        self.members.built[AGENT, AGENT] = Agent()
        return self.members.built[AGENT, AGENT]

    def _train(self, agent: Any) -> None:  # noqa: ANN401
        tally, steps, without = self._tally, 0, 0
        if "dataset" in self._order.project.components:
            tally.remember = getattr(self.members.default("dataset"), "add", None)
        train = self._method(agent, "train")
        while len(tally.rewards) < self._order.episodes:
            before = len(tally.rewards)
            self._guarded(AGENT, train)
            if len(tally.rewards) == before:
                without += tally.steps == steps  # it may learn from a dataset alone: then its calls are counted
                steps = tally.steps
                tally.look()
                if without >= self._order.episodes:
                    return

    def _bench(self, agent: Any) -> None:  # noqa: ANN401
        tally, environment = self._tally, self.members.default("environment")
        advance = self._method(agent, "advance")
        for _ in range(self._order.episodes):
            finished, steps, idle = len(tally.rewards), tally.steps, 0
            agent.obs, _info = self._guarded("environment", environment.reset)
            while len(tally.rewards) == finished:
                self._guarded(AGENT, advance)
                idle = idle + 1 if tally.steps == steps else 0
                steps = tally.steps
                if idle > _MOST_IDLE:
                    raise AutoresearchError(
                        "the agent's advance() takes no step in the environment", hint="call self.environment.step"
                    )

    @staticmethod
    def _method(agent: Any, name: str) -> Callable[[], Any]:  # noqa: ANN401
        found: Callable[[], Any] | None = getattr(agent, name, None)
        if found is None:
            raise AutoresearchError(f"the agent has no {name}()", hint="derive it from autoresearch.Agent")
        return found

    @staticmethod
    def _guarded(key: str, call: Callable[[], Any]) -> Any:  # noqa: ANN401
        try:
            return call()
        except AutoresearchError:
            raise
        except Exception as error:
            raise failed(key, error) from error

    def _made(self, kind: str, name: str, component: Any) -> Any:  # noqa: ANN401
        """Have a component that was just built go on from what it learned; count what happens in an environment."""
        key = kind if kind == AGENT else f"{kind}.{name}"
        state = load_state(self._learned, key) if self._learned else None
        if state is not None and hasattr(component, "load_state_dict"):
            try:
                component.load_state_dict(state)
            except Exception as error:
                told = failed(key, error)
                hint = "autoresearch reset begins anew; --from RUN takes the state of another run"
                raise AutoresearchError(f"{key} can't go on from what it learned before: {told}", hint=hint) from error
        return Recorder(component, self._tally, self._seeds()) if kind == "environment" else component

    def _seeds(self) -> Iterator[int]:
        """Of an environment's episodes: each its own in a benchmark run, the first alone in training."""
        seed = self._order.seed
        return iter([seed]) if self._order.mode == "train" else itertools.count(seed)

    def _look(self) -> None:
        if self._stopping():
            raise Stopped
        now = time.monotonic()
        if now - self._told >= FIGURE_SECONDS:
            self._told = now
            recent = self._tally.rewards[-RECENT:]
            mean = sum(recent) / len(recent) if recent else None
            self._tell(Figures(len(self._tally.rewards), self._tally.steps, now - self._began, mean))

    def _state_of_policy(self) -> str:
        try:
            policy = self.members.default("policy")
        except NotFound:  # an agent may do without
            return ""
        state = self._guarded("policy", policy.state_dict) if hasattr(policy, "state_dict") else {}
        return hashlib.sha256(packed_text(state)).hexdigest()

    def _save(self) -> None:
        out = Path(self._order.out)
        for (kind, name), component in self.members.built.items():
            key = kind if kind == AGENT else f"{kind}.{name}"
            if kind != "environment" and hasattr(component, "state_dict"):
                save_state(out, key, self._guarded(key, component.state_dict))


def check(order: Order) -> Iterator[tuple[str, object]]:
    """Build each component; yield its key with the object, or with the error that it raised."""
    members = Members(order.project, seed=order.seed)
    use(members)
    for component in order.project.all():
        try:
            found = members.get(component.type, component.name)
        except AutoresearchError as error:
            found = error
        yield component.key, found
