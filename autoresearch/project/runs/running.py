"""A training or benchmark run of a project, from its ``agent.ini`` to the folder that keeps it.

Also a component as a service in a process of its own, found by name on this machine.
"""

from __future__ import annotations

import os
import platform
import zlib
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from autoresearch.errors import Refused, UsageError
from autoresearch.project.child.messages import Checked, Done, Figures, Mode, Order, Served, ServeOrder, ServiceKind
from autoresearch.project.components.trusting import Pythons, foreign_components, refuse_foreign, trusted_components
from autoresearch.project.model import Project, load_project, parameters_text, require_parts, with_parameters
from autoresearch.project.runs.boxed import Box, box_here, check_boxed, do_boxed_run
from autoresearch.project.runs.kept import (
    DATA,
    Run,
    RunData,
    Totals,
    carry_state,
    digest_of,
    find_run,
    head_run,
    keep_run,
    new_run_folder,
)
from autoresearch.project.runs.process import RunStopped, check_components, do_run, serve
from autoresearch.run.sandbox.job import Level
from autoresearch.run.sandbox.layout import Interpreter
from autoresearch.services import Announcement, Service, reserved
from autoresearch.text import one_line

if TYPE_CHECKING:
    from autoresearch.services.links.sockets import KeyPair

LOG = "log.txt"
CHECK_LOG = "check.txt"
OWN = Pythons()
_PACKAGES = ("numpy", "torch", "gymnasium")


def do_project_run(  # noqa: PLR0913 - each is a choice of the person who runs it
    path: Path,
    mode: Mode,
    episodes: int,
    *,
    now_ms: Callable[[], int],
    assignments: Sequence[str] = (),
    start: str = "",
    seed: int | None = None,
    trust: bool = False,
    box: Callable[[], Box] = box_here,
    pythons: Pythons = OWN,
    on_figures: Callable[[Figures], None] = lambda _figures: None,
) -> Run:
    """Train a project, or benchmark it, and keep the run in its folder.

    It goes on from the run that ``start`` names, else from the newest. The seed of a training run follows from its
    parent unless given; the episodes of a benchmark run have the seeds ``seed``, ``seed + 1`` …, from 0.
    Where other participants wrote some of the code it runs in the sandbox, unless there is ``trust``.

    Raises:
        NotFound: no such project, run or component.
        UsageError: a line of ``agent.ini`` or a parameter is wrong.
        Refused: another command runs this project, or it needs a sandbox and there is none.
        RunStopped: a benchmark run was stopped, or a run in the sandbox.
        AutoresearchError: a component's code raised an error, or ended the process.
    """
    project = with_parameters(load_project(path), assignments)
    require_parts(project, training=mode == "train")
    with new_run_folder(project) as folder:
        parent = find_run(project, start) if start else head_run(project)
        if seed is None:
            seed = zlib.crc32(parent.id.encode()) if mode == "train" and parent else 0
        order = Order(
            project=project,
            mode=mode,
            episodes=episodes,
            seed=seed,
            learned=str(parent.folder / DATA) if parent else "",
            out=str(folder / DATA),
            isolated=pythons.executables,
        )
        started = now_ms()
        foreign = foreign_components(project)
        level, trusted = Level.NONE, [*trusted_components(project), *(foreign if trust else [])]
        if foreign and not trust:
            walls = box()
            level = walls.level
            done = do_boxed_run(order, walls, project.hidden / LOG, on_figures, others=foreign, python=pythons.shown)
        else:
            done = do_run(order, project.hidden / LOG, on_figures, pythons.main)
        if done.stopped and mode == "bench":
            raise RunStopped("the benchmark run was stopped; nothing is kept of it", hint="autoresearch run")
        return kept(project, folder, parent, order, done, started, level=level, trusted=trusted, python=pythons.main)


def kept(  # noqa: PLR0913 - all that a run's record says
    project: Project,
    folder: Path,
    parent: Run | None,
    order: Order | ServeOrder,
    done: Done,
    started: int,
    *,
    level: int = 0,
    trusted: Sequence[str] = (),
    python: Interpreter | None = None,
) -> Run:
    """Keep what a run left in its folder, as the project's newest. ``started`` is in Unix milliseconds."""
    mode: Mode = order.mode if isinstance(order, Order) else "train"
    carry_state(parent, folder / DATA)
    used = [each for each in project.all() if each.key in done.used]
    data = RunData(
        mode=mode,
        status="stopped" if done.stopped else "ok",
        parent=parent.id if parent else "",
        started=started,
        seconds=round(done.seconds, 3),
        seed=order.seed if isinstance(order, Order) else 0,
        asked_episodes=order.episodes if isinstance(order, Order) else 0,
        metrics=done.metrics,
        totals=(parent.data.totals if parent else Totals()).plus(mode, done.metrics),
        curve=done.curve,
        components={
            each.key: {"class": each.class_name, "sha256": digest_of(Path(each.file)), **each.pins} for each in used
        },
        files={},
        environment=_environment(python),
        sandbox=level,
        trusted=sorted(set(trusted) & set(done.used)),
        learns_on_run=project.learns_on_run,
        policy_changed=done.changed,
    )
    return keep_run(project, folder, data, parameters_text(used))


def _environment(python: Interpreter | None) -> dict[str, str]:
    machine = {"python": python.version if python else platform.python_version(), "machine": platform.machine()}
    versions = {name: python.version_of(name) if python else _version(name) for name in _PACKAGES}
    return machine | {name: each for name, each in versions.items() if each}


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def check_project(path: Path, *, box: Callable[[], Box] = box_here, pythons: Pythons = OWN) -> list[Checked]:
    """Load every component of a project in a process of its own, and tell what each lacks of its interface.

    Raises:
        NotFound: there is no such project.
        Refused: others wrote some of it, and there is no sandbox.
        UsageError: a line of ``agent.ini`` or ``parameters.yaml`` is wrong.
    """
    project = with_parameters(load_project(path))
    project.hidden.mkdir(exist_ok=True)
    order = Order(project=project, mode="bench", episodes=0, seed=0, learned="", out="", isolated=pythons.executables)
    if foreign := foreign_components(project):
        return check_boxed(order, box(), project.hidden / CHECK_LOG, others=foreign, python=pythons.shown)
    return check_components(order, project.hidden / CHECK_LOG, pythons.main)


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
    run: Run | None


def serve_component(  # noqa: PLR0913 - each is an option of `agent serve`
    path: Path,
    kind: str,
    component_type: str = "",
    component: str = "",
    *,
    folder: Path,
    now_ms: Callable[[], int],
    on_started: Callable[[Service], None],
    name: str = "",
    address: str = LOOPBACK,
    port: int = 0,
    key_file: Path | None = None,
    clients: Sequence[str] = (),
    assignments: Sequence[str] = (),
    start: str = "",
    trust: bool = False,
    pythons: Pythons = OWN,
) -> ServiceEnded:
    """Serve a component until Ctrl-C. Returns what became of it.

    Its file is in ``folder`` meanwhile. With ``key_file`` clients need a key: those of the file and of ``clients`` are
    accepted. It knows what the run ``start`` had learned, else the newest.

    Raises:
        NotFound: no such project, run or component.
        UsageError: a kind, name or key is none, or a line of ``agent.ini`` or a parameter is wrong.
        Refused: a service of this name runs; the port is taken; other machines could use it without a key; others
            wrote some of it and there is no ``trust``.
        AutoresearchError: the component's code raised an error, or ended the process.
    """
    usual = _known(kind)
    if address not in (LOOPBACK, "localhost", "::1") and not clients:
        reason = f"at {one_line(address, 60)} anybody who reaches this machine could use it, so it needs keys"
        raise Refused(reason, hint="--allow KEY; on the client's machine autoresearch agent services --key shows it")
    project = with_parameters(load_project(path), assignments)
    if not trust:
        refuse_foreign(project, "a service")
    chosen = project.component(component_type or USUAL[usual], component)
    title = name or chosen.name
    own = _own_key(key_file) if key_file else None
    project.hidden.mkdir(exist_ok=True)
    with ExitStack() as stack:
        file = stack.enter_context(reserved(folder, title))
        out: Path | None = None
        if usual == "trainer":
            project.component("policy")
            project.component("dataset")
            out = stack.enter_context(new_run_folder(project))
        parent = find_run(project, start) if start else head_run(project)
        order = ServeOrder(
            project=project,
            kind=usual,
            component=(chosen.type, chosen.name),
            learned=str(parent.folder / DATA) if parent else "",
            out=str(out / DATA) if out else "",
            address=address,
            port=port,
            secret=own.secret.hex() if own else "",
            public=own.public.hex() if own else "",
            clients=[*clients, own.public.hex()] if own else [],
            isolated=pythons.executables,
        )
        announcement: Announcement | None = None
        began, run = now_ms(), None
        for message in serve(order, project.hidden / f"serve-{title}.txt", pythons.main):
            if isinstance(message, Served):
                assert announcement is not None
                announcement.answered(message.requests)
            elif isinstance(message, Done):
                if out and message.metrics.get("updates"):
                    run = kept(project, out, parent, order, message, began)
            else:
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


def _known(kind: str) -> ServiceKind:
    for usual in USUAL:
        if kind == usual:
            return usual
    hint = f"it is one of {', '.join(USUAL)}"
    raise UsageError(f"there is no kind of service “{one_line(kind, 20)}”", hint=hint)
