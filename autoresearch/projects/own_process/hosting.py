"""A component as a service, inside the project's own process."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

from autoresearch.errors import UsageError
from autoresearch.projects.model import AGENT
from autoresearch.projects.own_process.acting import Acting
from autoresearch.projects.own_process.episodes import go_on, keep_learned
from autoresearch.projects.own_process.learning import Learning
from autoresearch.projects.own_process.members import Members, use
from autoresearch.projects.own_process.messages import Done, Message, Served, ServeOrder, Serving
from autoresearch.projects.own_process.recording import Recorder, Tally
from autoresearch.services import GymEnvServer, InferenceServer, KeyPair, ServerKeys
from autoresearch.services.links import Counts

TELL_SECONDS = 0.5
# What a component needs to be served as each kind.
NEEDED = {
    "env": ("reset", "step", "action_space", "observation_space"),
    "action": ("reset", "step"),
    "inference": ("decide",),
    "trainer": ("train",),
}


class Server(Protocol):
    """What the servers of all kinds have in common."""

    @property
    def port(self) -> int:
        """Where it answers."""
        ...

    @property
    def counts(self) -> Counts:
        """What it has answered."""
        ...

    def start(self, threaded: bool = False) -> None:  # noqa: FBT001, FBT002
        """Answer."""
        ...

    def stop(self) -> object:
        """End it."""
        ...


class Host:
    """Builds the component of an order, and serves it.

    Raises:
        AutoresearchError: the component is missing, wrong, or raised an error; or its address is refused.
    """

    def __init__(self, order: ServeOrder) -> None:
        self._order = order
        self._members = Members(order.project, made=self._made, isolated=order.isolated)
        use(self._members)
        component = self._members.get(*order.component)
        missing = [name for name in NEEDED[order.kind] if getattr(component, name, None) is None]
        if missing:
            told = f"{'.'.join(order.component)} lacks {', '.join(missing)}, so it can't be served as {order.kind}"
            raise UsageError(told, hint="autoresearch list --check")
        keys = None
        if order.secret:
            own = KeyPair(secret=bytes.fromhex(order.secret), public=bytes.fromhex(order.public))
            keys = ServerKeys.of(own, order.clients)
        self._learning: Learning | None = None
        self._server = self._made_server(component, keys)

    def serve(self, tell: Callable[[Message], None], stop: threading.Event) -> None:
        """Answer until it is told to stop, then write what a trainer has learned.

        Raises:
            AutoresearchError: a trainer's or a dataset's code raised an error.
        """
        began = told_at = time.monotonic()
        self._server.start(threaded=True)
        try:
            tell(Serving(self._server.port))
            told = 0
            while not stop.wait(self._learning.pause_s if self._learning else TELL_SECONDS):
                if self._learning:
                    self._learning.learn()
                counts = self._server.counts
                requests = counts.answered + counts.failed
                if requests != told and time.monotonic() - told_at >= TELL_SECONDS:
                    told, told_at = requests, time.monotonic()
                    tell(Served(requests))
        finally:
            self._server.stop()
        if self._learning:
            self._learning.learn()
            keep_learned(self._members, Path(self._order.out))
        metrics = self._learning.metrics() if self._learning else {}
        used = sorted(".".join(key) if key[0] != AGENT else AGENT for key in self._members.built)
        counts = self._server.counts
        tell(Served(counts.answered + counts.failed))
        tell(Done(metrics, [], time.monotonic() - began, used))

    def _made(self, kind: str, name: str, component: Any) -> Any:  # noqa: ANN401
        go_on(Path(self._order.learned) if self._order.learned else None, kind, name, component)
        return Recorder(component, Tally()) if kind == "environment" else component

    def _made_server(self, component: Any, keys: ServerKeys | None) -> Server:  # noqa: ANN401
        port, address = self._order.port, self._order.address
        match self._order.kind:
            case "env":
                return GymEnvServer(component, port, address, keys)
            case "action":
                return Acting(component, port, address, keys).server
            case "trainer":
                members = self._members
                self._learning = Learning(
                    component, members.default("policy"), members.default("dataset"), port, address, keys
                )
                return self._learning.server
        server = InferenceServer(port, address, keys)
        server.register_interface("decide", component.decide)
        return server
