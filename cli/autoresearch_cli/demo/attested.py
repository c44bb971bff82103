"""A demo from nothing to attested participants: daemons on loopback, with their homes and their network.

Two attestors, a mail server on loopback, somebody to type codes.
"""

from __future__ import annotations

import secrets
import shutil
import socket
import subprocess
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import msgspec

from autoresearch.ask.client import Client
from autoresearch.ask.node import PeersAnswer
from autoresearch.ask.node_acts import Node
from autoresearch.ask.people.attestation import confirmations
from autoresearch.ask.people.participants import AttestAnswer, AttestRequest
from autoresearch.errors import AutoresearchError, NotFound, Refused, TimedOut, install_command
from autoresearch.log.log import Log
from autoresearch.paths import Paths
from autoresearch.record.record import Network
from autoresearch.run.sandbox.cards import named_devices
from autoresearch.settings import Settings, environment_variable
from autoresearch.trust.attestation import find_codes
from autoresearch.trust.identity import create_identity, load_identity
from autoresearch.trust.keys import KeyPair
from autoresearch.trust.manifest import NONCE_BYTES, NetworkManifest
from autoresearch.trust.manifest_file import load_manifest, save_manifest
from autoresearch.trust.roster import Trust
from autoresearch.words import AttestReason
from autoresearch_cli import home, starting

LISTEN = "/ip4/127.0.0.1/tcp/0"
READY_SECONDS = 90.0
STOP_SECONDS = 10.0
POLL_SECONDS = 0.1


@dataclass(frozen=True, slots=True)
class DaemonSetup:
    """Where one daemon of the cluster lives: its name, its workers (None: as set on this machine), settings besides."""

    name: str
    workers: int | None = None
    settings: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Daemon:
    """One daemon of the cluster."""

    name: str
    environment: dict[str, str]
    paths: Paths
    network: Network
    process: subprocess.Popen[bytes]

    @property
    def home(self) -> str:
        """Its home, as ``AUTORESEARCH_HOME`` names it."""
        return self.environment["AUTORESEARCH_HOME"]

    def client(self) -> Client:
        """Its API."""
        return Client(self.paths.socket)

    def runs(self) -> bool:
        """Whether its process is there."""
        return self.process.poll() is None

    def records(self) -> frozenset[bytes]:
        """The ids of the records that it holds, read from its file."""
        with Log.open(self.paths.log, self.network, read_only=True) as log:
            return frozenset(record_id for _, record_id in log.records.iter_keys())


@contextmanager
def demo_cluster(
    setups: Sequence[DaemonSetup], *, create_network: Callable[[Path], NetworkManifest], tell: Callable[[str], None]
) -> Iterator[list[Daemon]]:
    """Daemons in a new network, for as long as the context lasts; ``tell`` hears how it goes.

    ``create_network(folder)`` founds the network, below whose folder the homes will be.

    Raises:
        Refused: a demo runs there already.
        AutoresearchError: a daemon did not start.
    """
    folder = home.paths().state / "demo"
    clear(folder)
    manifest = create_network(folder)
    daemons: list[Daemon] = []
    try:
        for number, setup in enumerate(setups):
            daemons.append(launch(folder, number, setup, manifest))
            if number == 0:
                tell("the first daemon starts; the others begin at its address")
                manifest = replace(manifest, bootstrap=(first_address(daemons[0]),))
        for daemon in daemons:
            wait_until(daemon, lambda client: client.ready().status == starting.READY, "is not ready")
        tell("they find each other")
        for daemon in daemons:
            wait_until(daemon, lambda client: client.ask(Node.peers).network.connected, "finds none of the others")
        yield daemons
    finally:
        stop(daemons)


def plain_network(_: Path) -> NetworkManifest:
    """A new network that trusts nobody."""
    return NetworkManifest(Network(name="demo", nonce=secrets.token_bytes(NONCE_BYTES)))


def trust_of(daemon: Daemon) -> Trust:
    """Whom a daemon's network trusts."""
    return load_manifest(daemon.paths.manifest).trust


def clear(folder: Path) -> None:
    """Take away what an earlier demo left. Raises Refused when it still runs."""
    for home_folder in sorted(folder.glob("*-*")):
        paths = Paths.from_environment({"AUTORESEARCH_HOME": str(home_folder)})
        if paths.socket.exists():
            with suppress(AutoresearchError):
                pid = Client(paths.socket).ask(Node.status).pid
                raise Refused(f"a demo runs already, in {folder} (process {pid})", hint="end it first")
        shutil.rmtree(home_folder)


def launch(folder: Path, number: int, setup: DaemonSetup, manifest: NetworkManifest) -> Daemon:
    """Start one daemon in a home of its own; does not wait for it."""
    environment = environment_of(folder / setup.name, number) | dict(setup.settings)
    paths = Paths.from_environment(environment)
    Path(environment["AUTORESEARCH_HOME"]).mkdir(parents=True, exist_ok=True)
    # The task's data are the same for all, and made once.
    home.paths().cache.mkdir(parents=True, exist_ok=True)
    paths.cache.symlink_to(home.paths().cache, target_is_directory=True)
    paths.create()
    save_manifest(paths.manifest, manifest)
    process = starting.start(workers=setup.workers, detached=True, bound=True, environment=environment)
    return Daemon(setup.name, environment, paths, manifest.network, process)


def environment_of(home_folder: Path, number: int) -> dict[str, str]:
    """This machine's settings for work and storage, a home of its own, and a network of loopback alone."""
    settings = home.settings()
    inherited = {name: text for name, text in home.environment().items() if not name.startswith("AUTORESEARCH_")}
    devices = named_devices(settings.work.device)
    work = msgspec.structs.replace(settings.work, device=devices[number % len(devices)])
    chosen = {f"work.{key}": value for key, value in msgspec.to_builtins(work).items()}
    chosen |= {f"storage.{key}": value for key, value in msgspec.to_builtins(settings.storage).items()}
    network = msgspec.to_builtins(Settings().network)
    network |= {"enabled": True, "lan": False, "listen": LISTEN, "bootstrap": ""}
    chosen |= {f"network.{key}": value for key, value in network.items()}
    variables = {environment_variable(key): str(value).lower() if isinstance(value, bool) else str(value)
            for key, value in chosen.items()}  # fmt: skip
    return inherited | variables | {"AUTORESEARCH_HOME": str(home_folder)}


def first_address(daemon: Daemon) -> str:
    """The address at which a daemon listens, once it does."""
    wait_until(daemon, lambda client: client.ask(Node.peers).addresses, "has no address")
    return daemon.client().ask(Node.peers).addresses[0]


def wait_until(daemon: Daemon, holds: Callable[[Client], object], otherwise: str) -> None:
    """Wait until a daemon's answer is as it should be.

    Raises:
        AutoresearchError: it ended instead.
        TimedOut: it takes too long.
    """
    deadline = time.monotonic() + READY_SECONDS
    while time.monotonic() < deadline:
        if not daemon.runs():
            words = starting.last_words(daemon.paths) or f"exit status {daemon.process.returncode}"
            raise AutoresearchError(f"{daemon.name} did not start: {words}", hint=f"its log: {daemon.paths.daemon_log}")
        if daemon.paths.socket.exists():
            with suppress(AutoresearchError):
                if holds(daemon.client()):
                    return
        time.sleep(POLL_SECONDS)
    raise TimedOut(f"{daemon.name} {otherwise}", hint=f"its log: {daemon.paths.daemon_log}")


def stop(daemons: list[Daemon]) -> None:
    """End all of them within ten seconds; a second Ctrl-C, or a daemon that hangs, ends them the hard way."""
    deadline = time.monotonic() + STOP_SECONDS
    try:
        for daemon in daemons:
            if daemon.runs():
                daemon.process.terminate()
        for daemon in daemons:
            daemon.process.wait(max(0.0, deadline - time.monotonic()))
    except (subprocess.TimeoutExpired, KeyboardInterrupt):
        pass
    finally:
        for daemon in daemons:
            if daemon.runs():
                daemon.process.kill()
                daemon.process.wait()


ATTESTORS = 2
LOOPBACK = "127.0.0.1"
FIND_SECONDS = 60.0
MAIL_POLL_SECONDS = 0.5
# Why an attestor does not write a mail that it may write a moment later.
NOT_YET = frozenset({"unreachable", AttestReason.UNKNOWN_DEVICE})


class PostOffice:
    """A mail server for the demo, and the hands of its three readers. Raises Refused when its library is missing."""

    def __init__(self) -> None:
        if find_spec("aiosmtpd") is None:
            raise Refused(
                "an attested demo needs a mail server, aiosmtpd, which is not installed",
                hint=install_command("demo"),
            )
        self._mails: defaultdict[str, list[str]] = defaultdict(list)
        self._attestors: set[str] = set()
        with socket.socket() as probe:
            probe.bind((LOOPBACK, 0))
            self._port = int(probe.getsockname()[1])

    def attestors(self) -> list[DaemonSetup]:
        """The attestors: daemons with an account at this server, which run nothing."""
        settings = {
            "AUTORESEARCH_ATTESTOR_ENABLED": "true",
            "AUTORESEARCH_MAIL_HOST": LOOPBACK,
            "AUTORESEARCH_MAIL_PORT": str(self._port),
            "AUTORESEARCH_MAIL_SECURITY": "none",
            "AUTORESEARCH_MAIL_FROM_ADDRESS": "attestor@demo.example",
        }
        return [DaemonSetup(f"attestor-{number}", 0, settings) for number in range(1, ATTESTORS + 1)]

    def found_network(self, folder: Path) -> NetworkManifest:
        """A network that trusts these attestors; whoever is attested verifies at once, not only a day later."""
        roots = []
        for setup in self.attestors():
            home = {"AUTORESEARCH_HOME": str(folder / setup.name)}
            roots.append(create_identity(Paths.from_environment(home).keys).root.public)
        self._attestors = {root.hex() for root in roots}
        network = Network(name="demo", nonce=secrets.token_bytes(NONCE_BYTES), verify_age_ms=0, verify_least=3)
        return NetworkManifest(network, Trust(frozenset(roots), ATTESTORS))

    @contextmanager
    def open(self) -> Iterator[None]:
        """Take mails for as long as the context lasts. Not earlier: daemons start from a process without threads."""
        from aiosmtpd.controller import Controller

        controller = Controller(self, hostname=LOOPBACK, port=self._port)
        controller.start()
        try:
            yield
        finally:
            controller.stop()

    async def handle_DATA(self, _server: Any, _session: Any, envelope: Any) -> str:  # noqa: N802, ANN401 - aiosmtpd's
        """Keep a mail."""
        text = envelope.content.decode("utf-8", "replace")
        for address in envelope.rcpt_tos:
            self._mails[address].append(text)
        return "250 OK"

    def attest(self, daemon: Daemon) -> str:
        """Do what a person does: ask, read the mails, confirm. Returns a line that says how it went."""
        began = time.monotonic()
        address = f"me@{daemon.name}.example"  # of one small domain only a few are attested
        initial = self._ask(daemon, address)
        identity = load_identity(daemon.paths.keys)
        assert isinstance(identity.root, KeyPair)
        text = "\n".join(self._mails[address])
        answer = initial
        for request in confirmations(text, initial.awaited, identity.root, identity.device.public, daemon.network.id):
            answer = daemon.client().ask(Node.confirm, request)
        codes = " and ".join(find_codes(text))
        if not answer.attested:
            raise AutoresearchError(f"{daemon.name} is not attested: {answer.reason}")
        return f"{daemon.name}: mails with {codes}; attested after {time.monotonic() - began:.1f} s"

    def _ask(self, daemon: Daemon, address: str) -> AttestAnswer:
        """Ask both attestors, as soon as they are found. Raises AutoresearchError when one refuses, or is not found."""
        deadline = time.monotonic() + FIND_SECONDS
        while True:
            try:
                client = daemon.client()
                # Not before: an attestor that is asked again writes again, and to an address only so often.
                if time.monotonic() < deadline and not self._are_connected(client.ask(Node.peers)):
                    time.sleep(MAIL_POLL_SECONDS)
                    continue
                answer = client.ask(Node.attest, AttestRequest(address=address))
                if len(answer.awaited) == ATTESTORS:
                    return answer
                error = AutoresearchError("; ".join(no.reason for no in answer.refused) or "an attestor is missing")
                if any(no.why not in NOT_YET for no in answer.refused):
                    raise error
            except NotFound as none:
                error = none
            if time.monotonic() > deadline:
                raise error
            time.sleep(MAIL_POLL_SECONDS)

    def _are_connected(self, answer: PeersAnswer) -> bool:
        return self._attestors <= {peer.participant.key for peer in answer.peers if peer.connected}
