"""A demo from nothing to attested participants: two attestors, a mail server on loopback, somebody to type codes."""

from __future__ import annotations

import secrets
import socket
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from autoresearch.answers import confirmations
from autoresearch.api import AttestAnswer, AttestRequest, PeersAnswer, operations
from autoresearch.attesting import find_codes
from autoresearch.errors import AutoresearchError, NotFound, Refused
from autoresearch.identity import KeyPair, Trust, create_identity, load_identity
from autoresearch.installing import install_command
from autoresearch.networks import NONCE_BYTES, Manifest
from autoresearch.paths import Paths
from autoresearch.records import Network
from autoresearch.words import AttestReason
from autoresearch_cli.demo_cluster.daemons import Daemon, Place

ATTESTORS = 2
LOOPBACK = "127.0.0.1"
FIND_SECONDS = 60.0
POLL_SECONDS = 0.5
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

    def attestors(self) -> list[Place]:
        """The attestors: daemons with an account at this server, which run nothing."""
        chosen = {
            "HOST": LOOPBACK,
            "PORT": str(self._port),
            "SECURITY": "none",
            "FROM_ADDRESS": "attestor@demo.example",
        }
        settings = {f"AUTORESEARCH_ATTESTOR_{name}": value for name, value in chosen.items()}
        return [Place(f"attestor-{number}", 0, settings) for number in range(1, ATTESTORS + 1)]

    def found_network(self, folder: Path) -> Manifest:
        """A network that trusts these attestors; whoever is attested verifies at once, not only a day later."""
        roots = []
        for place in self.attestors():
            home = {"AUTORESEARCH_HOME": str(folder / place.name)}
            roots.append(create_identity(Paths.from_environment(home).keys).root.public)
        self._attestors = {root.hex() for root in roots}
        network = Network(name="demo", nonce=secrets.token_bytes(NONCE_BYTES), verify_age_ms=0, verify_least=3)
        return Manifest(network, Trust(frozenset(roots), ATTESTORS))

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
        asked = self._ask(daemon, address)
        identity = load_identity(daemon.paths.keys)
        assert isinstance(identity.root, KeyPair)
        text = "\n".join(self._mails[address])
        answer = asked
        for request in confirmations(text, asked.awaited, identity.root, identity.device.public, daemon.network.id):
            answer = daemon.client().ask(operations.CONFIRM, request)
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
                if time.monotonic() < deadline and not self._are_connected(client.ask(operations.PEERS)):
                    time.sleep(POLL_SECONDS)
                    continue
                answer = client.ask(operations.ATTEST, AttestRequest(address=address))
                if len(answer.awaited) == ATTESTORS:
                    return answer
                error = AutoresearchError("; ".join(no.reason for no in answer.refused) or "an attestor is missing")
                if any(no.why not in NOT_YET for no in answer.refused):
                    raise error
            except NotFound as none:
                error = none
            if time.monotonic() > deadline:
                raise error
            time.sleep(POLL_SECONDS)

    def _are_connected(self, answer: PeersAnswer) -> bool:
        return self._attestors <= {peer.participant.key for peer in answer.peers if peer.connected}
