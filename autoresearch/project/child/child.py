"""A project's own process: takes one order, trains or benchmarks, tells figures and the end on its link.

What components print goes to the run's log. The process ends with the one that started it, however that ends.
"""

from __future__ import annotations

import hashlib
import itertools
import math
import os
import random
import sys
import threading
import time
import traceback
from collections.abc import Callable, Collection, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from autoresearch.errors import AutoresearchError
from autoresearch.link import Link, keep_link
from autoresearch.project import acr
from autoresearch.project.child import messages
from autoresearch.project.child.members import Members, failed, use
from autoresearch.project.child.recording import (
    FIGURE_SECONDS,
    OFFLINE_UPDATES,
    Recorder,
    Stopped,
    Tally,
    compared_rewards,
    figures_of,
)
from autoresearch.project.components.finding import missing_methods
from autoresearch.project.interfaces import Agent
from autoresearch.project.learned import load_state, packed_text, save_state
from autoresearch.project.model import AGENT
from autoresearch.task.model import episode_seed

# An agent that advances so often without a step in its environment never ends its episode.
_MOST_IDLE = 10_000


class ProjectSession:
    """One run: its components, what it counted, and whether it is asked to end."""

    def __init__(
        self, order: messages.RunOrder, tell: Callable[[messages.RunFigures], None], stopping: Callable[[], bool]
    ) -> None:
        self._order = order
        self._tell = tell
        self._stopping = stopping
        self._began = self._reported_at = time.monotonic()
        self._tally = Tally(self._look, only_finite=True)
        self._learned = Path(order.learned) if order.learned else None
        self._states: dict[str, str] = {}  # what each policy, and the agent, knew at first
        self._updates = 0
        self.members = Members(order.project, seed=order.seed, made=self._made, isolated=order.isolated)
        use(self.members)
        random.seed(order.seed)
        np.random.seed(order.seed % 2**32)

    def run(self) -> messages.OrderDone:
        """Train or benchmark. What was learned is written when it ends, also when it was stopped.

        Raises:
            AutoresearchError: a component is missing, wrong, or raised an error, in training before an episode ended.
        """
        order, stopped, fault = self._order, False, ""
        agent = self._agent()
        self.members.default("environment")
        if order.mode == "train" and "trainer" in order.project.components:
            self.members.default("trainer")
        self._began = self._reported_at = time.monotonic()  # components are built, which may have loaded large packages
        try:
            if order.mode == "train":
                self._train(agent)
            else:
                self._bench(agent)
        except Stopped:
            stopped = True
        except AutoresearchError as error:
            if order.mode != "train" or not self._tally.rewards:
                raise
            traceback.print_exception(error)
            stopped, fault = True, str(error)
        seconds = time.monotonic() - self._began
        changed = self._changed()
        default = f"policy.{order.project.defaults.get('policy', '')}"
        metrics = self._tally.metrics()
        if self._updates and changed:
            metrics[OFFLINE_UPDATES] = self._updates
        if order.mode == "bench" and not stopped and "environment" in order.project.components:
            inner = self.members.default("environment").inner
            metrics |= guarded("environment", partial(compared_rewards, inner, order.seed))
        if order.mode == "train" or order.project.learns_on_run:
            # What a benchmark run did not change is no state of its own: nothing was learned.
            keep_learned(
                self.members, Path(order.out), without=() if order.mode == "train" else self._states.keys() - changed
            )
        return messages.OrderDone(
            metrics,
            self._tally.curve(),
            seconds,
            sorted(".".join(key) if key[0] != AGENT else AGENT for key in self.members.built),
            stopped,
            order.mode == "bench" and default in changed,
            fault,
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
            guarded(AGENT, train)
            if len(tally.rewards) == before:
                without += tally.steps == steps  # it may learn from a dataset alone: then its calls are counted
                self._updates = without
                steps = tally.steps
                tally.look()
                if without >= self._order.episodes:
                    return

    def _bench(self, agent: Any) -> None:  # noqa: ANN401
        tally, environment = self._tally, self.members.default("environment")
        advance = self._method(agent, "advance")
        for _ in range(self._order.episodes):
            finished, steps, idle = len(tally.rewards), tally.steps, 0
            agent.obs, _info = guarded("environment", environment.reset)
            while len(tally.rewards) == finished:
                guarded(AGENT, advance)
                idle = idle + 1 if tally.steps == steps else 0
                steps = tally.steps
                if idle > _MOST_IDLE:
                    raise AutoresearchError(
                        "the agent's advance() takes no step in the environment", hint="call self.environment.step"
                    )

    @staticmethod
    def _method(agent: Any, name: str) -> Callable[[], Any]:  # noqa: ANN401
        method: Callable[[], Any] | None = getattr(agent, name, None)
        if method is None:
            raise AutoresearchError(f"the agent has no {name}()", hint="derive it from autoresearch.Agent")
        return method

    def _made(self, kind: str, name: str, component: Any) -> Any:  # noqa: ANN401
        """Have a component that was just built go on from what it learned; count what happens in an environment."""
        go_on(self._learned, kind, name, component)
        if kind in ("policy", AGENT):
            key = kind if kind == AGENT else f"{kind}.{name}"
            self._states[key] = _digest_of(key, component)
        return Recorder(component, self._tally, self._seeds()) if kind == "environment" else component

    def _seeds(self) -> Iterator[int]:
        """Of an environment's episodes: each its own in a benchmark run, the first alone in training."""
        seed = self._order.seed
        return iter([seed]) if self._order.mode == "train" else map(partial(episode_seed, seed), itertools.count())

    def _look(self) -> None:
        if self._stopping():
            raise Stopped
        now = time.monotonic()
        if now - self._reported_at >= FIGURE_SECONDS:
            self._reported_at = now
            self._tell(figures_of(self._tally.rewards, self._tally.steps, now - self._began))

    def _changed(self) -> set[str]:
        """The policies, and the agent, that know something else than at first."""
        now = {key: _digest_of(key, self.members.get(*(key.split(".", 1) * 2)[:2])) for key in self._states}
        return {key for key, state in self._states.items() if state != now[key]}


def _digest_of(key: str, component: Any) -> str:  # noqa: ANN401
    state = guarded(key, component.state_dict) if hasattr(component, "state_dict") else {}
    return hashlib.sha256(packed_text(state)).hexdigest()


def guarded(key: str, call: Callable[[], Any]) -> Any:  # noqa: ANN401
    """What a component's code returns. Raises AutoresearchError where it raises anything."""
    try:
        return call()
    except AutoresearchError:
        raise
    except Exception as error:
        raise failed(key, error) from error


def keep_learned(members: Members, out: Path, *, without: Collection[str] = ()) -> None:
    """Write what each component has learned, but those of the keys ``without``.

    Raises AutoresearchError where it can't be written.
    """
    for (kind, name), component in members.built.items():
        key = kind if kind == AGENT else f"{kind}.{name}"
        if kind != "environment" and key not in without and hasattr(component, "state_dict"):
            save_state(out, key, guarded(key, component.state_dict))


def go_on(learned: Path | None, kind: str, name: str, component: Any) -> None:  # noqa: ANN401
    """Have a component go on from what it learned, if it did. Raises AutoresearchError where it can't."""
    key = kind if kind == AGENT else f"{kind}.{name}"
    state = load_state(learned, key) if learned else None
    if state is None or not hasattr(component, "load_state_dict"):
        return
    try:
        component.load_state_dict(state)
    except Exception as error:
        failure = failed(key, error)
        hint = "repeat the --set of that run; --from RUN takes another's state, autoresearch agent reset begins anew"
        raise AutoresearchError(f"{key} can't go on from what it learned before: {failure}", hint=hint) from error


def checked(order: messages.RunOrder) -> list[messages.ComponentChecked]:
    """Build each component and compare it with its interface; an error that one raises is told of that one."""
    members = Members(order.project, seed=order.seed, isolated=order.isolated)
    use(members)
    results: list[messages.ComponentChecked] = []
    for component in order.project.all():
        try:
            built = members.get(component.type, component.name)
        except AutoresearchError as error:
            results.append(messages.ComponentChecked(component.key, [], str(error), error.hint))
        else:
            inner = built.inner if isinstance(built, Recorder) else built
            results.append(messages.ComponentChecked(component.key, missing_methods(component.type, inner)))
    return results


def do_order(
    order: messages.RunOrder, tell: Callable[[messages.RunFigures], None], stopping: Callable[[], bool]
) -> Sequence[messages.OrderDone | messages.ComponentChecked]:
    """Do a run, or a check. Raises AutoresearchError where a component is missing, wrong, or raised an error."""
    if not order.episodes:
        return checked(order)
    done = ProjectSession(order, tell, stopping).run()
    if not all(map(math.isfinite, done.metrics.values())):
        raise AutoresearchError("a reward of the environment is no finite number", hint="see its step()")
    return [done]


def failure_message(error: Exception) -> messages.OrderFailed:
    """An error as it is told to who ordered the run; the log has its traceback."""
    traceback.print_exception(error)
    if isinstance(error, AutoresearchError):
        return messages.OrderFailed(str(error), error.hint, error.exit_status)
    return messages.OrderFailed(f"{type(error).__name__}: {error}", "", 1)


def main(descriptor: int) -> None:
    """Do what the first message asks for; a further one asks to stop, the end of the link to leave at once."""
    link: Link[messages.AnyOrder | messages.StopOrder] = Link(
        keep_link(descriptor), descriptor, messages.AnyOrder | messages.StopOrder
    )
    order, tell = link.receive(), link.send
    assert not isinstance(order, messages.StopOrder)
    os.chdir(order.project.folder)
    sys.modules["acr"] = acr
    stop = threading.Event()
    threading.Thread(target=_listen, args=(link, stop), daemon=True).start()
    try:
        if isinstance(order, messages.ServeOrder):
            from autoresearch.project.child.apart import ComponentHost  # with ZeroMQ, which runs do without

            ComponentHost(order).serve(tell, stop)
        elif isinstance(order, messages.ActOrder):
            from autoresearch.project.child.actors import Actor

            Actor(order).act(tell, stop)
        else:
            for message in do_order(order, tell, stop.is_set):
                tell(message)
    except Exception as error:  # noqa: BLE001 - whatever a stranger's code does becomes a sentence
        tell(failure_message(error))
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)  # a component's own threads must not hold it


def _listen(link: Link[messages.AnyOrder | messages.StopOrder], stop: threading.Event) -> None:
    for _ in link:
        stop.set()
    os._exit(1)
