"""A component of a project as a service: in a process of its own, found by name on this machine."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from autoresearch.errors import Refused, UsageError
from autoresearch.projects.components.pythons import Pythons
from autoresearch.projects.components.trusting import refuse_foreign
from autoresearch.projects.model import load_project
from autoresearch.projects.own_process.messages import Done, Served, ServeOrder, ServiceKind
from autoresearch.projects.parameters import with_parameters
from autoresearch.projects.runs.kept import DATA, Run, find_run, head_run, new_run_folder
from autoresearch.projects.runs.process import serve
from autoresearch.projects.runs.running import OWN, kept
from autoresearch.sanitise import one_line
from autoresearch.services import Announcement, Service, reserved

if TYPE_CHECKING:
    from autoresearch.services import KeyPair

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


def serve_component(  # noqa: PLR0913 - each is an option of `serve`
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
    known = _known(kind)
    if address not in (LOOPBACK, "localhost", "::1") and not clients:
        told = f"at {one_line(address, 60)} anybody who reaches this machine could use it, so it needs keys"
        raise Refused(told, hint="--allow KEY; on the client's machine autoresearch services --key shows it")
    project = with_parameters(load_project(path), assignments)
    if not trust:
        refuse_foreign(project, "a service")
    found = project.component(component_type or USUAL[known], component)
    title = name or found.name
    own = _own_key(key_file) if key_file else None
    project.hidden.mkdir(exist_ok=True)
    with ExitStack() as stack:
        file = stack.enter_context(reserved(folder, title))
        out: Path | None = None
        if known == "trainer":
            project.component("policy")
            project.component("dataset")
            out = stack.enter_context(new_run_folder(project))
        parent = find_run(project, start) if start else head_run(project)
        order = ServeOrder(
            project=project,
            kind=known,
            component=(found.type, found.name),
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
                    kind=known,
                    component=found.key,
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
    from autoresearch.services import KeyPair  # with ZeroMQ, which other commands about projects do without

    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    return KeyPair.from_file(path)


def _known(kind: str) -> ServiceKind:
    for known in USUAL:
        if kind == known:
            return known
    hint = f"it is one of {', '.join(USUAL)}"
    raise UsageError(f"there is no kind of service “{one_line(kind, 20)}”", hint=hint)
