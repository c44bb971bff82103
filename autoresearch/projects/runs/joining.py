"""An actor that plays for a trainer served elsewhere."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec

from autoresearch.errors import UsageError
from autoresearch.projects.components.pythons import Pythons
from autoresearch.projects.components.trusting import refuse_foreign
from autoresearch.projects.model import load_project
from autoresearch.projects.own_process.messages import ActOrder, Done, Figures, Played
from autoresearch.projects.own_process.recording import FIGURE_SECONDS, figures_of, metrics_of
from autoresearch.projects.parameters import with_parameters
from autoresearch.projects.runs.process import act
from autoresearch.projects.runs.running import OWN
from autoresearch.sanitise import one_line
from autoresearch.services import find_service


class Acted(msgspec.Struct, frozen=True):
    """What an actor did for a learner at ``place``; ``stopped`` before all its episodes."""

    place: str
    metrics: dict[str, int | float]
    stopped: bool


def act_for_learner(  # noqa: PLR0913 - each is a choice of the person who runs it
    path: Path,
    learner: str,
    episodes: int,
    *,
    key_file: Path,
    server_key: str = "",
    assignments: Sequence[str] = (),
    seed: int = 0,
    trust: bool = False,
    pythons: Pythons = OWN,
    on_figures: Callable[[Figures], None] = lambda _figures: None,
) -> Acted:
    """Play episodes of a project for a learner that ``serve trainer`` serves, and send it every transition.

    ``learner`` is the name of a service on this machine, or HOST:PORT. One with a key is asked with that of
    ``key_file``. Nothing is kept here: what was learned stays with the learner.

    Raises:
        NotFound: no such project, service or component.
        UsageError: a key is none, or a line of ``agent.ini`` or a parameter is wrong.
        Refused: others wrote some of it and there is no ``trust``.
        AutoresearchError: no learner answers, or a component's code raised an error.
    """
    project = with_parameters(load_project(path), assignments)
    for kind in ("environment", "policy", "trainer"):
        project.component(kind)
    if not trust:
        refuse_foreign(project, "playing for a trainer elsewhere")
    host, colon, digits = learner.rpartition(":")
    if colon and digits.isdecimal() and int(digits) < 1 << 16:
        address, port = host.strip("[]"), int(digits)
    else:
        service = find_service(learner)
        if service.kind != "trainer":
            told = f"{one_line(learner, 40)} is a service of the kind {service.kind}, not a trainer"
            raise UsageError(told, hint="autoresearch services")
        (address, port), server_key = service.place, service.public_key
    secret = public = ""
    if server_key:
        from autoresearch.services import KeyPair, client_keys  # with ZeroMQ, which other commands do without

        client_keys(server_key, key_file)  # refuses a wrong one here
        own = KeyPair.from_file(key_file)
        secret, public = own.secret.hex(), own.public.hex()
    order = ActOrder(
        project=project,
        address=address,
        port=port,
        seed=seed,
        episodes=episodes,
        server_key=server_key,
        secret=secret,
        public=public,
        isolated=pythons.executables,
    )
    project.hidden.mkdir(exist_ok=True)
    rewards: list[float] = []
    steps, began = 0, time.monotonic()
    shown = began
    for message in act(order, project.hidden / "actor.txt", pythons.main):
        if isinstance(message, Played):
            rewards.append(message.reward)
            steps += message.steps
        now = time.monotonic()
        if now - shown >= FIGURE_SECONDS or isinstance(message, Done):
            shown = now
            on_figures(figures_of(rewards, steps, now - began))
    return Acted(f"{address}:{port}", metrics_of(rewards, steps), len(rewards) < episodes)
