"""The services of this participant's other machines. A machine tells them to its owner's devices alone.

Whoever asks sends its machine's key for services. The services that are open to own machines accept it from then on, as
long as its device speaks for this participant. How an answer travels: docs/protocol.md.
"""

from __future__ import annotations

import asyncio
import os
import socket
from itertools import chain

import msgspec
import structlog

from autoresearch.ask.acts.notebook import Notebook
from autoresearch.errors import AutoresearchError
from autoresearch.log.standing.cache import roster_of
from autoresearch.paths import Paths
from autoresearch.services import Service, running_services
from autoresearch.services.presence import EVERYWHERE, NAME
from autoresearch.text import one_line
from autoresearch.trust.attestation import MESSAGE_BYTES_MAX
from autoresearch_daemon.events import now_ms
from autoresearch_daemon.net.model import PeerInfo
from autoresearch_daemon.net.network import NetworkClient

# A person waits for the list.
ASK_SECONDS = 3.0
MACHINE_CHARACTERS = 40

logger = structlog.get_logger()


class OwnServices:
    """Asks them, and answers them. ``connect`` gives it the network, without which there are none."""

    def __init__(self, notebook: Notebook, paths: Paths) -> None:
        self._notebook = notebook
        self._paths = paths
        self._network: NetworkClient | None = None
        self._keys: dict[bytes, str] = {}  # of the machines that asked, by device
        paths.own_machines.unlink(missing_ok=True)

    def connect(self, network: NetworkClient) -> None:
        """The network is there."""
        self._network = network

    def look(self) -> None:
        """Accept no more the keys of devices that were revoked or have run out."""
        devices = self._devices()
        gone = [device for device in self._keys if device not in devices]
        for device in gone:
            del self._keys[device]
        if gone:
            self._write()

    async def reply(self, peer: str, data: bytes) -> bytes | None:
        """What a peer gets that asks for services with its key: those open to own machines, when it is one."""
        device = next((own.device_key for own in self._own() if own.peer == peer), None)
        if device is None or len(data) != 32:
            return None
        if self._keys.get(device) != data.hex():
            self._keys[device] = data.hex()
            self._write()
        machine = one_line(socket.gethostname(), MACHINE_CHARACTERS)
        services = [
            msgspec.structs.replace(service, machine=machine)
            for service in running_services(self._paths.services)
            if service.for_own_machines
        ]
        while len(reply := msgspec.msgpack.encode(services)) > MESSAGE_BYTES_MAX:
            services.pop()
        return reply

    async def services(self) -> list[Service]:
        """The services of the other machines that are connected now and answer."""
        if not (own := self._own()):
            return []
        from autoresearch.services.links.sockets import KeyPair  # with ZeroMQ, which the daemon else does without

        self._paths.create()
        key = KeyPair.from_file(self._paths.service_key).public
        answers = await asyncio.gather(*(self._ask(peer, key) for peer in own))
        return sorted(chain.from_iterable(answers), key=lambda service: (service.machine, service.name))

    async def _ask(self, peer: PeerInfo, key: bytes) -> list[Service]:
        assert self._network
        try:
            async with asyncio.timeout(ASK_SECONDS):
                reply = await self._network.ask(peer.peer, "services", key)
            services = msgspec.msgpack.decode(reply, type=list[Service])
        except (AutoresearchError, TimeoutError, msgspec.MsgspecError) as error:
            logger.info("an own machine told no services", peer=peer.peer, reason=str(error))
            return []
        place = _host(peer.address)
        return [
            msgspec.structs.replace(
                service,
                machine=service.machine or peer.peer,
                address=place if service.address in EVERYWHERE else service.address,
            )
            for service in services
            if NAME.fullmatch(service.name) and service.public_key and 0 < service.port < 1 << 16
        ]

    def _own(self) -> list[PeerInfo]:
        """The connected peers that are devices of this participant."""
        if self._network is None:
            return []
        devices = self._devices() - {self._notebook.author}
        return [peer for peer in self._network.peers() if peer.connected and peer.device_key in devices]

    def _devices(self) -> frozenset[bytes]:
        return roster_of(self._notebook.log).devices(self._notebook.identity.root.public, now_ms())

    def _write(self) -> None:
        """The keys for the services of this machine, which read them when a client begins."""
        path = self._paths.own_machines
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        fresh = path.with_suffix(".new")
        with os.fdopen(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
            file.writelines(f"{key}\n" for key in self._keys.values())
        fresh.replace(path)


def _host(address: str) -> str:
    """The IP of a peer's multiaddr; empty where it is reached through a relay."""
    parts = address.split("/")
    return parts[2] if len(parts) > 4 and parts[1] in {"ip4", "ip6"} and "p2p-circuit" not in parts else ""
