"""Real daemons in processes of their own, each with a home in a temporary folder."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import httpx
import msgspec
import psutil

from autoresearch.ask.node import StatusAnswer
from autoresearch.link import death_signal
from autoresearch.log.log import Log
from autoresearch.paths import Paths
from autoresearch.record.kinds import Run
from autoresearch.record.record import DEFAULT_NETWORK
from tests.warm import PRELOADED, WarmProcess, warm

# Many times what it takes alone: the machine may do twenty other things.
READY_SECONDS = 600.0


@dataclass
class Daemon:
    """One daemon. ``start`` waits until it is ready. ``prefix`` is the command that starts the command.

    ``module`` is the program, ``namespace`` the name of another network's namespace.
    """

    home: Path
    settings: dict[str, str] = field(default_factory=dict)
    process: subprocess.Popen[bytes] | WarmProcess | None = None
    prefix: tuple[str, ...] = ()
    module: str = "autoresearch_daemon"
    namespace: str = ""

    @property
    def paths(self) -> Paths:
        return Paths.from_environment({"AUTORESEARCH_HOME": str(self.home)})

    def start(self, *options: str) -> Daemon:
        self.launch(*options)
        return self.ready()

    def launch(self, *options: str) -> None:
        """Start it, without waiting: several may start at a time."""
        # Daemons of tests side by side would find each other on the local network.
        apart = {"AUTORESEARCH_HOME": str(self.home), "AUTORESEARCH_NETWORK_LAN": "false"}
        environment = {**os.environ, **apart, **self.settings}
        if not self.prefix:
            how = {"environment": environment, "namespace": self.namespace}
            self.process = warm(PRELOADED).start(self.module, *options, **how)
            return
        self.process = subprocess.Popen(
            [*self.prefix, sys.executable, "-m", self.module, *options],
            env=environment,
            # Tests that are killed leave no daemon that goes on working.
            preexec_fn=death_signal(signal.SIGTERM),  # noqa: PLW1509 - asks the kernel, and takes no lock of a thread
        )

    def ready(self) -> Daemon:
        """Wait until it is ready."""
        wait_for(lambda: self.process.poll() is not None or self.answers("/readyz"))
        assert self.process.poll() is None, "the daemon ended"
        return self

    def client(self) -> httpx.Client:
        # Without certificates: reading those of the system takes longer than the answer.
        transport = httpx.HTTPTransport(uds=str(self.paths.socket), verify=False)
        return httpx.Client(transport=transport, base_url="http://daemon", timeout=READY_SECONDS)

    def answers(self, path: str) -> bool:
        try:
            with self.client() as client:
                return client.get(path).status_code == 200
        except httpx.TransportError:
            return False

    def status(self) -> StatusAnswer:
        with self.client() as client:
            return msgspec.json.decode(client.get("/v1/status").content, type=StatusAnswer)

    def post(self, path: str, **body: object) -> httpx.Response:
        with self.client() as client:
            return client.post(path, json=body)

    def get(self, path: str) -> httpx.Response:
        """Ask the daemon for something."""
        with self.client() as client:
            return client.get(path)

    def runs(self) -> list[Run]:
        """Runs in the log, oldest first."""
        with Log.open(self.paths.log, DEFAULT_NETWORK, read_only=True) as log:
            return [record.body for record in reversed(log.records.newest(kind="run", limit=1000))]

    def tree(self) -> list[psutil.Process]:
        """The daemon and all its descendants."""
        parent = psutil.Process(self.process.pid)
        return [parent, *parent.children(recursive=True)]

    def kill(self) -> list[psutil.Process]:
        """SIGKILL the daemon; returns what belonged to it."""
        tree = self.tree()
        self.process.kill()
        self.process.wait()
        return tree

    def stop(self) -> float:
        """SIGTERM; returns the seconds it took, and checks the exit status."""
        if self.process is None or self.process.poll() is not None:
            return 0.0
        began = time.monotonic()
        self.process.send_signal(signal.SIGTERM)
        status = self.process.wait(timeout=250)
        assert status == 0
        return time.monotonic() - began


def stop_all(daemons: Iterable[Daemon]) -> None:
    """SIGTERM to those that run, all at a time; checks their exit status."""
    running = [daemon for daemon in daemons if daemon.process and daemon.process.poll() is None]
    for daemon in running:
        daemon.process.send_signal(signal.SIGTERM)
    for daemon in running:
        assert daemon.process.wait(timeout=250) == 0


def kill(process: psutil.Process) -> None:
    """SIGKILL what may have ended since it was listed."""
    with suppress(psutil.NoSuchProcess):
        process.kill()


def wait_for(condition: Callable[[], bool], seconds: float = READY_SECONDS) -> None:
    """Wait until something is so; fails when it takes too long. A long wait asks less often: asking takes time too."""
    deadline, pause = time.monotonic() + seconds, 0.02
    while not condition():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(pause)
        pause = min(1.3 * pause, 0.3)
