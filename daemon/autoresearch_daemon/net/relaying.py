"""Circuit relay v2 (trio): a node that nobody can call is called through a peer that both can reach.

https://github.com/libp2p/specs/blob/master/relay/circuit-v2.md. The relay sees Noise ciphertext only.
"""

from __future__ import annotations

import ipaddress
import logging
from collections.abc import Callable

import trio
from libp2p.abc import IHost, INetConn, INetStream
from libp2p.connection_types import ConnectionType
from libp2p.custom_types import TProtocol
from libp2p.peer.id import ID
from libp2p.relay.circuit_v2.config import RelayConfig, RelayRole
from libp2p.relay.circuit_v2.pb.circuit_pb2 import HopMessage
from libp2p.relay.circuit_v2.protocol import PROTOCOL_ID, STOP_PROTOCOL_ID, CircuitV2Protocol
from libp2p.relay.circuit_v2.resources import RelayLimits
from libp2p.relay.circuit_v2.transport import CircuitV2Transport
from multiaddr import Multiaddr  # type: ignore[import-untyped]

from autoresearch_daemon.net.addresses import CIRCUIT

logger = logging.getLogger(__name__)

# What one node carries for others: circuits at a time, places for those that wait for calls, an hour and 256 MiB each.
LIMITS = RelayLimits(duration=3600, data=256 << 20, max_circuit_conns=8, max_reservations=16)
# A node that nobody can call keeps places at so many peers, and asks again well before the hour is over.
PLACES = 2
RENEW_SECONDS = 1200.0
LOOK_SECONDS = 5.0
RESERVE_SECONDS = 10.0
DIAL_SECONDS = 20.0
HOP, STOP = TProtocol(PROTOCOL_ID), TProtocol(STOP_PROTOCOL_ID)


class GuardedRelay(CircuitV2Protocol):
    """The library's relay; a place is for whoever asks. Stock, anybody may take places in anybody's name."""

    async def _handle_reserve(self, stream: INetStream, msg: HopMessage) -> None:
        msg.ClearField("peer")
        await super()._handle_reserve(stream, msg)


class Relaying:
    """Keeps places at relays for this host, and is one for others if ``serve`` says so."""

    def __init__(self, host: IHost, *, serve: bool) -> None:
        self._host = host
        self._serve = serve
        roles = RelayRole.STOP | RelayRole.CLIENT | (RelayRole.HOP if serve else RelayRole(0))
        self.service = GuardedRelay(host, limits=LIMITS, allow_hop=serve)
        self._transport = CircuitV2Transport(host, self.service, RelayConfig(roles=roles, limits=LIMITS))
        self._places: dict[str, float] = {}
        self._refused: dict[str, float] = {}

    async def keep(self, candidates: Callable[[], set[str]]) -> None:
        """Keep places at relays among the candidates (none: nobody needs to call through others). Until cancelled."""
        while True:
            await trio.sleep(LOOK_SECONDS)
            able, now = candidates(), trio.current_time()
            self._places = {peer: until for peer, until in self._places.items() if peer in able}
            self._refused = {peer: until for peer, until in self._refused.items() if until > now}
            due = [peer for peer, until in self._places.items() if until <= now]
            free = sorted(able - self._places.keys() - self._refused.keys())
            for peer in [*due, *free[: max(0, PLACES - len(self._places))]]:
                if await self._reserve(peer):
                    self._places[peer] = now + RENEW_SECONDS
                else:
                    self._places.pop(peer, None)
                    self._refused[peer] = now + RENEW_SECONDS

    async def _reserve(self, peer: str) -> bool:
        relay = ID.from_string(peer)
        try:
            with trio.fail_after(RESERVE_SECONDS):
                stream = await self._host.new_stream(relay, [HOP])
                try:
                    return bool(await self._transport._make_reservation(stream, relay))  # noqa: SLF001
                finally:
                    await stream.close()
        except Exception as error:  # noqa: BLE001 - libp2p raises one of many errors
            logger.debug("no place at the relay %s: %r", peer, error)
            return False

    def clients(self) -> list[str]:
        """The peers that can be called through this host."""
        if not self._serve:
            return []
        held = self.service.resource_manager._reservations  # noqa: SLF001
        return [str(peer) for peer, reservation in held.items() if not reservation.is_expired()]

    async def dial(self, address: str, peer: str) -> None:
        """Call a peer through a relay; ``address`` ends in ``/p2p-circuit``. Raises one of libp2p's many errors."""
        with trio.fail_after(DIAL_SECONDS):
            await self._transport.dial(Multiaddr(f"{address}/p2p/{peer}"))


def is_relayed(connection: INetConn) -> bool:
    """Whether a connection goes through a relay."""
    return connection.get_connection_type() is ConnectionType.RELAYED


def circuit(address: str, peer: str) -> str:
    """The address of a peer that is called through the relay at ``address``, which ends in the relay's own id."""
    return f"{address}{CIRCUIT}/p2p/{peer}"


def is_public(address: str) -> bool:
    """Whether the internet may reach a multiaddr's IP address."""
    try:
        return ipaddress.ip_address(address.split("/")[2]).is_global
    except ValueError:
        return False
