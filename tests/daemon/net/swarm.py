"""Several whole daemons on loopback to which things happen, and what must hold afterwards."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import msgspec
import psutil

from autoresearch.ask.node import PeersAnswer
from autoresearch.log.log import Log
from autoresearch.record.record import DEFAULT_NETWORK
from tests.daemon.daemons import Daemon, stop_all, wait_for
from tests.daemon.toy import write_toy_task
from tests.log.dumping import dump

# Long runs that cost little: records come steadily, whatever the machine has to do beside.
TRAIN = """
import time

import prepare

X = 0.9  # float [0.0, 1.0]
Y = 0.1  # float [0.0, 1.0]

time.sleep(2)
prepare.report((X - 0.3) ** 2 + (Y - 0.6) ** 2, steps=1)
"""
SETTLE_SECONDS = 240.0


class Swarm:
    """``size`` daemons that know each other. ``seen`` grows with every look: all records that any log ever had.

    ``places`` says in which network namespace each runs, and with which IP address.
    """

    def __init__(self, folder: Path, size: int, places: Sequence[tuple[str, str]] = (), **settings: str) -> None:
        self.task = write_toy_task(folder / "task", TRAIN)
        self.daemons: list[Daemon] = []
        self.seen: set[bytes] = set()
        self.gone: list[psutil.Process] = []
        common = {
            "AUTORESEARCH_NETWORK_ENABLED": "true",
            "AUTORESEARCH_NETWORK_LAN": "false",
            "AUTORESEARCH_NETWORK_EXCHANGE_SECONDS": "5",
        }
        for number in range(size):
            name, ip = places[number] if places else ("", "127.0.0.1")
            own = {
                "AUTORESEARCH_NETWORK_LISTEN": f"/ip4/{ip}/tcp/0",
                "AUTORESEARCH_NETWORK_BOOTSTRAP": ",".join(map(self.address, self.daemons[-3:])),
            }
            daemon = Daemon(folder / f"home{number}", common | own | settings, namespace=name)
            self.daemons.append(daemon)
            daemon.start()
            wait_for(lambda daemon=daemon: bool(self.peers(daemon).addresses))

    def peers(self, daemon: Daemon) -> PeersAnswer:
        with daemon.client() as client:
            return msgspec.json.decode(client.get("/v1/peers").content, type=PeersAnswer)

    def address(self, daemon: Daemon) -> str:
        return self.peers(daemon).addresses[0]

    def work(self) -> None:
        """All work until told otherwise; a daemon that is started again goes on."""
        for daemon in self.daemons:
            assert daemon.post("/v1/work", task=str(self.task)).status_code == 200

    def ids(self, daemon: Daemon) -> set[bytes]:
        with Log.open(daemon.paths.log, DEFAULT_NETWORK, read_only=True) as log:
            return {record_id for _, record_id in log.records.iter_keys()}

    def look(self) -> None:
        """Note what the logs have now: none of it may ever be lost."""
        for daemon in self.daemons:
            self.seen |= self.ids(daemon)

    def kill(self, daemon: Daemon) -> None:
        """SIGKILL the daemon alone; its children have to notice."""
        self.gone += daemon.kill()

    def settle(self) -> None:
        """Let all finish what they do, and wait until all logs are equal."""
        for daemon in self.daemons:
            daemon.post("/v1/finish")
        wait_for(lambda: all(daemon.status().state == "idle" for daemon in self.daemons), SETTLE_SECONDS)
        self.look()
        wait_for(lambda: all(self.ids(daemon) == self.seen for daemon in self.daemons), SETTLE_SECONDS)

    def check(self) -> None:
        """Equal records, equal views, no process left over."""
        contents = []
        for daemon in self.daemons:
            with Log.open(daemon.paths.log, DEFAULT_NETWORK, read_only=True) as log:
                contents.append(dump(log))
        assert all(content == contents[0] for content in contents)
        wait_for(lambda: not any(is_alive(process) for process in self.gone), 30)

    def forks(self) -> int:
        """How many places the logs show where an author signed one number twice."""
        with Log.open(self.daemons[0].paths.log, DEFAULT_NETWORK, read_only=True) as log:
            return len(log.devices.forks())

    def end(self) -> None:
        """Stop all; nothing of them is left."""
        trees = [process for daemon in self.daemons if running(daemon) for process in daemon.tree()]
        stop_all(self.daemons)
        wait_for(lambda: not any(is_alive(process) for process in [*trees, *self.gone]), 30)


@contextmanager
def swarm(folder: Path, size: int, places: Sequence[tuple[str, str]] = (), **settings: str) -> Iterator[Swarm]:
    """A swarm that is gone afterwards, whatever happens."""
    made = Swarm.__new__(Swarm)
    made.daemons = []
    try:
        Swarm.__init__(made, folder, size, places, **settings)
        yield made
        made.end()
    finally:
        for daemon in made.daemons:
            if running(daemon):
                daemon.process.kill()
                daemon.process.wait()


def running(daemon: Daemon) -> bool:
    """Whether its process runs."""
    return daemon.process is not None and daemon.process.poll() is None


def is_alive(process: psutil.Process) -> bool:
    """Whether it runs; what only waits for its parent to notice doesn't."""
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def moments(seconds: float, chance: random.Random, low: float, high: float) -> Iterator[None]:
    """Random moments for so many seconds."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        time.sleep(chance.uniform(low, high))  # the moment at which something happens, not a wait for anything
        yield
