"""A training or benchmark run of a project, from its ``agent.ini`` to the folder that keeps it.

Also a component as a service in a process of its own, found by name on this machine.
"""

from __future__ import annotations

import os
import platform
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from autoresearch.errors import AutoresearchError, Refused, UsageError
from autoresearch.project import model
from autoresearch.project.child.messages import (
    ComponentChecked,
    Message,
    Mode,
    OrderDone,
    RunFigures,
    RunOrder,
    Served,
    ServeOrder,
    ServiceKind,
    ServiceStarted,
)
from autoresearch.project.components.trusting import Pythons, foreign_components, refuse_foreign, trusted_components
from autoresearch.project.modules import code_digest
from autoresearch.project.runs import kept
from autoresearch.project.runs.process import Box, RunStopped, box_here, run_boxed, run_order
from autoresearch.run.sandbox.job import Level
from autoresearch.run.sandbox.layout import Interpreter
from autoresearch.services import Announcement, Service, reserved
from autoresearch.text import counted, one_line

if TYPE_CHECKING:
    from autoresearch.services.links.sockets import KeyPair

LOG = "log.txt"
CHECK_LOG = "check.txt"
OWN = Pythons()
_PACKAGES = ("numpy", "torch", "gymnasium")


@dataclass(frozen=True, slots=True)
class Choices:
    """What a person chose for the project in ``path``: an ``agent.ini``, or its folder.

    ``assignments`` are parameters, as ``policy.hidden=64``. ``start`` is the run to go on from, empty for the newest.
    ``seed``: None for one that follows from that run in training, else 0. With ``trust`` other participants' components
    run without a sandbox.
    """

    path: Path
    assignments: Sequence[str] = ()
    start: str = ""
    seed: int | None = None
    trust: bool = False
    pythons: Pythons = OWN

    def project(self) -> model.Project:
        """The project with its parameters. Raises NotFound, or UsageError where a line or a parameter is wrong."""
        return model.with_parameters(model.load_project(self.path), self.assignments)

    def before(self, project: model.Project) -> kept.LocalRun | None:
        """The run to go on from; None where there is none yet. Raises NotFound where ``start`` names none."""
        return kept.find_run(project, self.start) if self.start else kept.head_run(project)


@dataclass(frozen=True, slots=True)
class RunInProgress:
    """A run of a project that was begun in ``folder``: what it goes on from, and what it is to do.

    ``trusted`` are other participants' components that may run without a sandbox. ``started`` is in Unix milliseconds.
    """

    project: model.Project
    folder: Path
    parent: kept.LocalRun | None
    order: RunOrder
    trusted: Sequence[str]
    python: Interpreter | None
    started: int

    def keep(self, done: OrderDone, *, level: int = 0) -> kept.LocalRun:
        """Keep what the run left in its folder, as the project's newest; ``level`` is the sandbox that it ran in.

        Raises AutoresearchError where a component's error ended it: what was learned before that is kept.
        """
        project, parent, order = self.project, self.parent, self.order
        kept.carry_state(parent, self.folder / kept.DATA)
        used = [each for each in project.all() if each.key in done.used]
        policy = f"policy.{project.defaults['policy']}" if "policy" in project.defaults else ""
        data = kept.RunData(
            mode=order.mode,
            status="stopped" if done.stopped else "ok",
            parent=parent.id if parent else "",
            started=self.started,
            seconds=round(done.seconds, 3),
            seed=order.seed,
            asked_episodes=order.episodes,
            metrics=done.metrics,
            totals=kept.totals_after(project, parent, policy, self.folder, order.mode, done.metrics),
            curve=done.curve,
            components={
                each.key: {"class": each.class_name, "sha256": code_digest(each, project), **each.pins} for each in used
            },
            files={},
            environment=_environment(self.python),
            sandbox=level,
            trusted=sorted(set(self.trusted) & set(done.used)),
            learns_on_run=project.learns_on_run,
            policy_changed=done.changed,
            policy=policy,
        )
        run = kept.keep_run(project, self.folder, data, model.parameters_text(used))
        if done.fault:
            back = f"autoresearch agent reset{f' --to {parent.id}' if parent else ''}"
            before = counted(int(done.metrics["episodes"]), "episode")
            raise AutoresearchError(done.fault, hint=f"what {before} taught is kept as run {run.id}; {back} undoes it")
        return run


@contextmanager
def begun(
    project: model.Project, mode: Mode, episodes: int, choices: Choices, now_ms: Callable[[], int]
) -> Iterator[RunInProgress]:
    """Begin a run; what is not kept is removed.

    Raises:
        NotFound: no such run to go on from.
        Refused: another command runs this project, or what that run had learned was changed.
    """
    with kept.new_run_folder(project) as folder:
        parent, seed, pythons = choices.before(project), choices.seed, choices.pythons
        if parent is not None:
            kept.check_state(parent)
        if seed is None:
            seed = zlib.crc32(parent.id.encode()) if mode == "train" and parent else 0
        order = RunOrder(
            project=project,
            mode=mode,
            episodes=episodes,
            seed=seed,
            learned=str(parent.folder / kept.DATA) if parent else "",
            out=str(folder / kept.DATA),
            isolated=pythons.executables,
        )
        trusted = trusted_components(project) + (foreign_components(project) if choices.trust else [])
        yield RunInProgress(project, folder, parent, order, trusted, pythons.main, now_ms())


def do_project_run(
    choices: Choices,
    mode: Mode,
    episodes: int,
    *,
    now_ms: Callable[[], int],
    box: Callable[[], Box] = box_here,
    on_figures: Callable[[RunFigures], None] = lambda _figures: None,
) -> kept.LocalRun:
    """Train a project, or benchmark it, and keep the run in its folder.

    The seed of each episode of a benchmark run is hashed from the run's and its number. Where other participants wrote
    some of the code it runs in the sandbox, unless there is ``trust``.

    Raises:
        NotFound: no such project, run or component.
        UsageError: a line of ``agent.ini`` or a parameter is wrong.
        Refused: another command runs this project, or it needs a sandbox and there is none.
        RunStopped: a benchmark run was stopped, or a run in the sandbox.
        AutoresearchError: a component's code raised an error, or ended the process.
    """
    project, pythons = choices.project(), choices.pythons
    model.require_parts(project, training=mode == "train")
    with begun(project, mode, episodes, choices, now_ms) as run:
        log, level = project.to_write(f"{model.HIDDEN}/{LOG}"), Level.NONE
        messages: Iterable[Message] = run_order(run.order, log, pythons.main)
        if foreign_components(project) and not choices.trust:
            walls = box()
            level, messages = walls.level, run_boxed(run.order, walls, log, pythons.for_sandbox, on_figures)
        *_, done = _endings(messages, on_figures)
        if done.stopped and mode == "bench":
            raise RunStopped("the benchmark run was stopped; nothing is kept of it", hint="autoresearch run")
        return run.keep(done, level=level)


def _endings(messages: Iterable[Message], on_figures: Callable[[RunFigures], None]) -> Iterator[OrderDone]:
    for message in messages:
        if isinstance(message, RunFigures):
            on_figures(message)
        elif isinstance(message, OrderDone):
            yield message


def _environment(python: Interpreter | None) -> dict[str, str]:
    machine = {"python": python.version if python else platform.python_version(), "machine": platform.machine()}
    versions = {name: python.version_of(name) if python else _version(name) for name in _PACKAGES}
    return machine | {name: each for name, each in versions.items() if each}


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def check_project(path: Path, *, box: Callable[[], Box] = box_here, pythons: Pythons = OWN) -> list[ComponentChecked]:
    """Load every component of a project in a process of its own, and tell what each lacks of its interface.

    Raises:
        NotFound: there is no such project.
        Refused: others wrote some of it, and there is no sandbox.
        UsageError: a line of ``agent.ini`` or ``parameters.yaml`` is wrong.
    """
    project = model.with_parameters(model.load_project(path))
    log = project.to_write(f"{model.HIDDEN}/{CHECK_LOG}")
    order = RunOrder(
        project=project, mode="bench", episodes=0, seed=0, learned="", out="", isolated=pythons.executables
    )
    messages: Iterable[Message] = run_order(order, log, pythons.main)
    if foreign_components(project):
        messages = run_boxed(order, box(), log, pythons.for_sandbox)
    return [each for each in messages if isinstance(each, ComponentChecked)]


# What each kind serves where no component is named.
USUAL: dict[ServiceKind, str] = {
    "env": "environment",
    "action": "environment",
    "inference": "policy",
    "trainer": "trainer",
}
LOOPBACK = "127.0.0.1"


class ServiceEnded(msgspec.Struct, frozen=True):
    """What became of a service; ``run`` keeps what a trainer has learned in it, where it learned anything."""

    service: Service
    run: kept.LocalRun | None


@dataclass(frozen=True, slots=True)
class ServiceChoices:
    """What a person chose for a service. Left out: the usual component of its kind, under its own name.

    With ``key_file`` clients need a key: those of the file and of ``clients`` are accepted, and those in the file
    ``own_machines``, which the daemon keeps.
    """

    kind: str
    component_type: str = ""
    component: str = ""
    name: str = ""
    address: str = LOOPBACK
    port: int = 0
    key_file: Path | None = None
    clients: Sequence[str] = ()
    own_machines: Path | None = None


def serve_component(
    choices: Choices,
    chosen_service: ServiceChoices,
    *,
    folder: Path,
    now_ms: Callable[[], int],
    on_started: Callable[[Service], None],
) -> ServiceEnded:
    """Serve a component until Ctrl-C. Returns what became of it.

    Its file is in ``folder`` meanwhile. It knows what the run to go on from had learned.

    Raises:
        NotFound: no such project, run or component.
        UsageError: a kind, name or key is none, or a line of ``agent.ini`` or a parameter is wrong.
        Refused: a service of this name runs; the port is taken; other machines could use it without a key; others
            wrote some of it and there is no ``trust``.
        AutoresearchError: the component's code raised an error, or ended the process.
    """
    usual, address = _service_kind(chosen_service.kind), chosen_service.address
    clients, own_machines = chosen_service.clients, chosen_service.own_machines
    if address not in (LOOPBACK, "localhost", "::1") and not clients and own_machines is None:
        reason = f"at {one_line(address, 60)} anybody who reaches this machine could use it, so it needs keys"
        raise Refused(
            reason, hint="--allow own for your other machines, or --allow KEY, as agent services --key shows it"
        )
    project = choices.project()
    if not choices.trust:
        refuse_foreign(project, "a service")
    chosen = project.component(chosen_service.component_type or USUAL[usual], chosen_service.component)
    title = chosen_service.name or chosen.name
    own = _own_key(chosen_service.key_file) if chosen_service.key_file else None
    with ExitStack() as stack:
        file = stack.enter_context(reserved(folder, title))
        log = project.to_write(f"{model.HIDDEN}/serve-{title}.txt")
        hand: RunInProgress | None = None
        if usual == "trainer":
            project.component("policy")
            project.component("dataset")
            hand = stack.enter_context(begun(project, "train", 0, replace(choices, seed=0), now_ms))
        parent = hand.parent if hand else choices.before(project)
        order = ServeOrder(
            project=project,
            kind=usual,
            component=(chosen.type, chosen.name),
            learned=str(parent.folder / kept.DATA) if parent else "",
            out=hand.order.out if hand else "",
            address=address,
            port=chosen_service.port,
            secret=own.secret.hex() if own else "",
            public=own.public.hex() if own else "",
            clients=[*clients, own.public.hex()] if own else [],
            own_machines=str(own_machines or ""),
            isolated=choices.pythons.executables,
        )
        announcement: Announcement | None = None
        run: kept.LocalRun | None = None
        for message in run_order(order, log, choices.pythons.main):
            if isinstance(message, Served):
                assert announcement is not None
                announcement.answered(message.requests)
            elif isinstance(message, OrderDone):
                if hand and message.metrics.get("updates"):
                    run = hand.keep(message)
            elif isinstance(message, ServiceStarted):
                service = Service(
                    name=title,
                    kind=usual,
                    component=chosen.key,
                    project=str(project.folder),
                    address=address,
                    port=message.port,
                    pid=os.getpid(),
                    since_ms=now_ms(),
                    public_key=order.public,
                    for_own_machines=own_machines is not None,
                )
                announcement = Announcement(file, service)
                on_started(service)
        assert announcement is not None
        return ServiceEnded(announcement.service, run)


def _own_key(path: Path) -> KeyPair:
    from autoresearch.services.links.sockets import (
        KeyPair,  # with ZeroMQ, which other commands about projects do without
    )

    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    return KeyPair.from_file(path)


def _service_kind(kind: str) -> ServiceKind:
    for usual in USUAL:
        if kind == usual:
            return usual
    hint = f"it is one of {', '.join(USUAL)}"
    raise UsageError(f"there is no kind of service “{one_line(kind, 20)}”", hint=hint)
