"""A training run of several processes: one learns, the others play and send it what happened.

Also an actor that plays for a trainer served elsewhere.
"""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path

import msgspec

from autoresearch.errors import AutoresearchError, UsageError
from autoresearch.project.child.messages import (
    ActOrder,
    Message,
    OrderDone,
    Played,
    RunFigures,
    RunOrder,
    ServeOrder,
    ServiceStarted,
)
from autoresearch.project.child.recording import FIGURE_SECONDS, figures_of, metrics_of
from autoresearch.project.components.trusting import refuse_foreign
from autoresearch.project.model import HIDDEN, Project
from autoresearch.project.runs.kept import LocalRun
from autoresearch.project.runs.process import ProjectProcess, RunStopped, ended, run_order, stop_asked
from autoresearch.project.runs.running import LOOPBACK, Choices, begun
from autoresearch.run.sandbox.capture import curve_of
from autoresearch.run.sandbox.layout import Interpreter
from autoresearch.services import Service, find_service
from autoresearch.task.model import episode_seed
from autoresearch.text import one_line


def train_with_actors(
    choices: Choices,
    episodes: int,
    actors: int,
    *,
    now_ms: Callable[[], int],
    on_figures: Callable[[RunFigures], None] = lambda _figures: None,
) -> LocalRun:
    """Train a project with one learner and several actors on this machine, and keep the run in its folder.

    It ends when the actors have played ``episodes`` together. Each actor has a seed of its own; as what reaches the
    learner first depends on the machine, two runs with the same seed differ.

    Raises:
        NotFound: no such project, run or component.
        UsageError: a line of ``agent.ini`` or a parameter is wrong.
        Refused: another command runs this project; others wrote some of it and there is no ``trust``.
        AutoresearchError: a component's code raised an error, or ended its process.
    """
    project = choices.project()
    for kind in ("environment", "policy", "trainer", "dataset"):
        project.component(kind)
    if not choices.trust:
        refuse_foreign(project, "a run with actors")
    with ExitStack() as stack:
        run = stack.enter_context(begun(project, "train", episodes, choices, now_ms))
        began, fleet = time.monotonic(), _Fleet(stack, run.python)
        learner = fleet.started(_learner(run.order), project.to_write(f"{HIDDEN}/log.txt"))
        port = fleet.port_of(learner)
        for number in range(actors):
            own = ActOrder(
                project=project,
                address=LOOPBACK,
                port=port,
                seed=episode_seed(run.order.seed, number) % 2**32,
                episodes=0,
                isolated=run.order.isolated,
            )
            fleet.started(own, project.to_write(f"{HIDDEN}/actor-{number + 1}.txt"))
        rewards, steps = _played(fleet, episodes, began, on_figures)
        done = fleet.finish(learner)
        metrics = metrics_of(rewards, steps) | {"actors": actors, "updates": done.metrics.get("updates", 0)}
        used = sorted({*done.used, project.component("environment").key})
        stopped = fleet.is_stopped and len(rewards) < episodes
        whole = msgspec.structs.replace(
            done, metrics=metrics, curve=curve_of(rewards), used=used, stopped=stopped, seconds=time.monotonic() - began
        )
        return run.keep(whole)


class _Fleet:
    """Processes of a project at once. They end with the stack, and are asked to stop by Ctrl-C."""

    def __init__(self, stack: ExitStack, python: Interpreter | None) -> None:
        self.is_stopped = False
        self._python = python
        self._children: list[ProjectProcess] = []
        self._inbox: queue.SimpleQueue[tuple[ProjectProcess, Message | AutoresearchError | None]] = queue.SimpleQueue()
        self._stack = stack
        stack.enter_context(stop_asked(self._stop))

    def started(self, order: ServeOrder | ActOrder, log: Path) -> ProjectProcess:
        """A further process. This thread must live as long as it."""
        child = ProjectProcess(order, log, self._python)
        self._stack.callback(child.close)
        self._children.append(child)
        threading.Thread(target=self._hear, args=(child,), daemon=True).start()
        return child

    def port_of(self, learner: ProjectProcess) -> int:
        """Where a learner that has just been started listens.

        Raises:
            RunStopped: a person stops it meanwhile.
            AutoresearchError: it fails.
        """
        for child, message in self.messages():
            if child is learner and isinstance(message, ServiceStarted):
                return message.port
        raise RunStopped("the training run was stopped before it began; nothing is kept of it")

    def messages(self) -> Iterator[tuple[ProjectProcess, Message]]:
        """What the processes tell. Raises AutoresearchError where one fails, or ends without being asked to."""
        while not self.is_stopped:
            try:
                child, message = self._inbox.get(timeout=FIGURE_SECONDS)
            except queue.Empty:
                continue
            if isinstance(message, AutoresearchError):
                raise message
            if message is None:
                raise ended(child.log)
            yield child, message

    def finish(self, learner: ProjectProcess) -> OrderDone:
        """Stop the actors, then the learner, so that it gets all they sent. Returns what it tells last."""
        waiting = set(self._children) - {learner}
        for child in waiting:
            child.stop()
        while True:
            child, message = self._inbox.get()
            if isinstance(message, AutoresearchError):
                raise message
            if child is learner and isinstance(message, OrderDone):
                return message
            if message is None and child is learner:
                raise ended(learner.log)
            if message is None:
                waiting.remove(child)
                if not waiting:
                    learner.stop()

    def _stop(self) -> None:
        self.is_stopped = True

    def _hear(self, child: ProjectProcess) -> None:
        try:
            for message in child.messages():
                self._inbox.put((child, message))
        except AutoresearchError as error:
            self._inbox.put((child, error))
        self._inbox.put((child, None))


def _played(
    fleet: _Fleet, episodes: int, began: float, on_figures: Callable[[RunFigures], None]
) -> tuple[list[float], int]:
    """The rewards and steps of the actors' episodes, until there are enough or a person stops it."""
    rewards: list[float] = []
    steps, shown_at = 0, began
    for _, message in fleet.messages():
        if isinstance(message, Played):
            rewards.append(message.reward)
            steps += message.steps
        now = time.monotonic()
        if now - shown_at >= FIGURE_SECONDS:
            shown_at = now
            on_figures(figures_of(rewards, steps, now - began))
        if len(rewards) >= episodes:
            break
    return rewards, steps


def _learner(order: RunOrder) -> ServeOrder:
    project: Project = order.project
    trainer = project.component("trainer")
    return ServeOrder(
        project=project,
        kind="trainer",
        component=(trainer.type, trainer.name),
        learned=order.learned,
        out=order.out,
        address=LOOPBACK,
        port=0,
        secret="",
        public="",
        clients=[],
        isolated=order.isolated,
    )


class Acted(msgspec.Struct, frozen=True):
    """What an actor did for a learner at ``place``; ``stopped`` before all its episodes."""

    place: str
    metrics: dict[str, int | float]
    stopped: bool


def act_for_learner(
    choices: Choices,
    learner: str,
    episodes: int,
    *,
    key_file: Path,
    server_key: str = "",
    elsewhere: Callable[[], Sequence[Service]] = tuple,
    on_figures: Callable[[RunFigures], None] = lambda _figures: None,
) -> Acted:
    """Play episodes of a project for a learner that ``serve trainer`` serves, and send it every transition.

    ``learner`` is the name of a service on this machine or ``elsewhere``, or HOST:PORT. One with a key is asked with
    that of ``key_file``. Nothing is kept here: what was learned stays with the learner.

    Raises:
        NotFound: no such project, service or component.
        UsageError: a key is none, or a line of ``agent.ini`` or a parameter is wrong.
        Refused: others wrote some of it and there is no ``trust``.
        AutoresearchError: no learner answers, or a component's code raised an error.
    """
    project = choices.project()
    for kind in ("environment", "policy", "trainer"):
        project.component(kind)
    if not choices.trust:
        refuse_foreign(project, "playing for a trainer elsewhere")
    host, colon, digits = learner.rpartition(":")
    if colon and digits.isdecimal() and int(digits) < 1 << 16:
        address, port = host.strip("[]"), int(digits)
    else:
        service = find_service(learner, elsewhere=elsewhere)
        if service.kind != "trainer":
            reason = f"{one_line(learner, 40)} is a service of the kind {service.kind}, not a trainer"
            raise UsageError(reason, hint="autoresearch agent services")
        (address, port), server_key = service.place, service.public_key
    secret = public = ""
    if server_key:
        from autoresearch.services import client_keys  # with ZeroMQ, which other commands do without
        from autoresearch.services.links.sockets import KeyPair

        client_keys(server_key, key_file)  # refuses a wrong one here
        own = KeyPair.from_file(key_file)
        secret, public = own.secret.hex(), own.public.hex()
    order = ActOrder(
        project=project,
        address=address,
        port=port,
        seed=choices.seed or 0,
        episodes=episodes,
        server_key=server_key,
        secret=secret,
        public=public,
        isolated=choices.pythons.executables,
    )
    rewards: list[float] = []
    steps, began = 0, time.monotonic()
    reported_at = began
    for message in run_order(order, project.to_write(f"{HIDDEN}/actor.txt"), choices.pythons.main):
        if isinstance(message, Played):
            rewards.append(message.reward)
            steps += message.steps
        now = time.monotonic()
        if now - reported_at >= FIGURE_SECONDS or isinstance(message, OrderDone):
            reported_at = now
            on_figures(figures_of(rewards, steps, now - began))
    return Acted(f"{address}:{port}", metrics_of(rewards, steps), len(rewards) < episodes)
