"""Who is connected, who is blocked, who misbehaved, the janitor.

Also circuit relay v2: a node that nobody can call is called through a peer that both can reach, which sees Noise
ciphertext only (trio). https://github.com/libp2p/specs/blob/master/relay/circuit-v2.md.
"""

from __future__ import annotations

import ipaddress
import logging
from collections.abc import Callable
from dataclasses import dataclass

import trio
from libp2p.abc import IHost, INetConn, INetStream, INetwork, INotifee
from libp2p.connection_types import ConnectionType
from libp2p.custom_types import TProtocol
from libp2p.network.swarm import Swarm
from libp2p.peer.id import ID
from libp2p.rcmgr import Direction
from libp2p.relay.circuit_v2.config import RelayConfig, RelayRole
from libp2p.relay.circuit_v2.pb.circuit_pb2 import HopMessage
from libp2p.relay.circuit_v2.protocol import PROTOCOL_ID, STOP_PROTOCOL_ID, CircuitV2Protocol
from libp2p.relay.circuit_v2.resources import RelayLimits
from libp2p.relay.circuit_v2.transport import CircuitV2Transport
from multiaddr import Multiaddr

from autoresearch_daemon.net.host.gossip import Router
from autoresearch_daemon.net.host.guards import CIRCUIT, GuardedYamux, cut
from autoresearch_daemon.net.host.streams import Meters, TokenBucket
from autoresearch_daemon.net.model import AddressBook, Greeting, PeerInfo

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
    """The library's relay; a place is for whoever asks. Stock, anybody may take places in anybody's name.

    The stream that brings a call is in use for as long as the connection in it stands; stock, its handler ends at once.
    """

    async def handle_incoming_connection(self, stream: INetStream, remote_peer_id: bytes) -> None:
        """Take a call, and return when it is over."""
        network, peer = self.host.get_network(), ID(remote_peer_id)
        before = list(network.get_connections(peer))
        await super().handle_incoming_connection(stream, remote_peer_id)
        for connection in network.get_connections(peer):
            if connection not in before:
                await connection.event_closed.wait()  # type: ignore[attr-defined]

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


# A peer may send so much rubbish at once, and one more piece a minute; then it is shut out for a while.
OFFENCES_AT_ONCE = 20.0
OFFENCES_PER_SECOND = 1 / 60
BAN_SECONDS = 600.0
OFFENDERS_REMEMBERED = 1024
# What all connections together may hold in memory; the one that holds most is closed.
BUFFER_BYTES_MAX = 128 << 20
JANITOR_SECONDS = 1.0


@dataclass(eq=False)
class ConnectionWatch(INotifee):
    """libp2p tells it of connections; the rest of the host asks it about peers."""

    swarm: Swarm
    book: AddressBook
    meters: Meters
    now_ms: Callable[[], int]
    on_change: Callable[[], None]
    on_peer: Callable[[str, INetConn], None]

    def __post_init__(self) -> None:
        self.offences = 0
        self.bans = 0
        self._own = str(self.swarm.get_peer_id())
        self._since_ms: dict[str, int] = {}
        self._offenders: dict[str, TokenBucket] = {}
        self._banned_until: dict[str, float] = {}
        self._reasons: dict[str, str] = {}
        self._greetings: dict[str, tuple[Greeting, int, bytes]] = {}
        self._to_close: list[INetConn] = []
        self._wake = trio.Event()

    # --- libp2p's events ---

    async def connected(self, network: INetwork, conn: INetConn) -> None:  # noqa: ARG002
        """A connection stands."""
        peer = peer_of(conn)
        if self.is_refused(peer):
            # Not here: libp2p waits for this call while it adds the connection.
            self._close_soon(conn)
            return
        if peer not in self._since_ms:
            self._since_ms[peer] = self.now_ms()
            self.on_peer(peer, conn)
        self.book.connected(peer, self.now_ms())
        self.on_change()

    async def disconnected(self, network: INetwork, conn: INetConn) -> None:  # noqa: ARG002
        """A connection is gone."""
        peer = peer_of(conn)
        self.meters.closed(conn)
        if not self.is_connected(peer) and self._since_ms.pop(peer, None) is not None:
            self._greetings.pop(peer, None)
            self.book.connected(peer, self.now_ms())
            self.on_change()

    async def opened_stream(self, network: INetwork, stream: INetStream) -> None:
        """Nothing."""

    async def closed_stream(self, network: INetwork, stream: INetStream) -> None:
        """Nothing."""

    async def listen(self, network: INetwork, multiaddr: object) -> None:
        """Nothing."""

    async def listen_close(self, network: INetwork, multiaddr: object) -> None:
        """Nothing."""

    # --- questions ---

    def is_connected(self, peer: str) -> bool:
        """Whether a connection to the peer stands. One that is refused, and is being closed, does not."""
        return peer in self._connections()

    def connected_peers(self) -> set[str]:
        """The peers with a connection that stands."""
        return set(self._connections())

    def called_peers(self) -> set[str]:
        """The connected peers that this host called directly: others may be able to call them too."""
        return {
            peer
            for peer, connections in self._connections().items()
            if any(
                not is_relayed(connection) and getattr(connection, "direction", Direction.UNKNOWN) == Direction.OUTBOUND
                for connection in connections
            )
        }

    def is_refused(self, peer: str) -> bool:
        """Whether the peer is blocked by a person, shut out for its rubbish, or this host itself."""
        return peer in self.refused_peers()

    def refused_peers(self) -> set[str]:
        """The peers that a person blocked, those that are shut out for their rubbish, and this host itself."""
        # A way to others through a relay may come back here; then a node would exchange records with itself.
        now = trio.current_time()
        return {self._own, *self.book.blocked, *(peer for peer, until in self._banned_until.items() if until > now)}

    def _connections(self) -> dict[str, list[INetConn]]:
        """The connections that stand, by peer."""
        refused = self.refused_peers()
        by_peer: dict[str, list[INetConn]] = {}
        for connection in self.swarm.get_connections():
            if not connection.is_closed and peer_of(connection) not in refused:
                by_peer.setdefault(peer_of(connection), []).append(connection)
        return by_peer

    def peers(self) -> list[PeerInfo]:
        """Connected peers first, then those that the book knows."""
        now = self._connections()
        peers = [self._describe(peer, connections) for peer, connections in now.items()]
        contacts = sorted(self.book.contacts.values(), key=lambda contact: -contact.seen_ms)
        peers += [
            PeerInfo(
                peer=contact.peer,
                address=contact.addresses[0] if contact.addresses else "",
                connected=False,
                seen_ms=contact.seen_ms,
                blocked=contact.peer in self.book.blocked,
                shut_out=self._reasons.get(contact.peer, ""),
                bytes_in=self.meters.today_with(contact.peer, [])[0],
                bytes_out=self.meters.today_with(contact.peer, [])[1],
                device_key=contact.device_key,
            )
            for contact in contacts
            if contact.peer not in {*now, self._own}
            and (contact.seen_ms or contact.persistent or contact.peer in self.book.blocked)
        ]
        listed = {self._own, *(peer.peer for peer in peers)}
        peers += [
            PeerInfo(
                peer=peer,
                address="",
                connected=False,
                blocked=peer in self.book.blocked,
                shut_out=self._reasons.get(peer, ""),
            )
            for peer in sorted({*self.book.blocked, *self._reasons} - listed)
        ]
        return peers[:200]

    def _describe(self, peer: str, connections: list[INetConn]) -> PeerInfo:
        bytes_in, bytes_out = self.meters.today_with(peer, connections)
        greeting, skew_ms, device_key = self._greetings.get(peer, (None, 0, b""))
        first = min(connections, key=is_relayed)
        remote = first.muxed_conn.get_remote_address() if isinstance(first.muxed_conn, GuardedYamux) else None
        kind = "ip6" if remote and ":" in remote[0] else "ip4"
        return PeerInfo(
            peer=peer,
            address=f"/{kind}/{remote[0]}/tcp/{remote[1]}{CIRCUIT if is_relayed(first) else ''}" if remote else "",
            connected=True,
            inbound=getattr(first, "direction", Direction.UNKNOWN) == Direction.INBOUND,
            connected_ms=self._since_ms.get(peer, 0),
            seen_ms=self.now_ms(),
            bytes_in=bytes_in,
            bytes_out=bytes_out,
            agent=greeting.agent if greeting else "",
            devices=tuple(greeting.devices) if greeting else (),
            network=greeting.network if greeting else b"",
            clock_ahead_ms=skew_ms,
            device_key=device_key,
        )

    def greeted(self, peer: str, greeting: Greeting, device_key: bytes) -> None:
        """Keep what a peer says of itself for as long as it is connected, and what it has proven for longer."""
        self.book.proved(peer, device_key)
        self._greetings[peer] = (greeting, greeting.time_ms - self.now_ms(), device_key)
        self.on_change()

    # --- consequences ---

    def offend(self, peer: str) -> None:
        """A peer sent what no honest peer sends; too much of it, and it is shut out."""
        self.offences += 1
        now = trio.current_time()
        bucket = self._offenders.setdefault(peer, TokenBucket(OFFENCES_PER_SECOND, OFFENCES_AT_ONCE, now))
        if bucket.take(1, now) > 0:
            self.shut_out(peer, "sent too much that is no record")
        if len(self._offenders) > OFFENDERS_REMEMBERED:
            del self._offenders[next(iter(self._offenders))]

    def shut_out(self, peer: str, reason: str) -> None:
        """Close a peer's connections and refuse it for a while; the reason is kept for people to read."""
        self.bans += 1
        self._banned_until[peer] = trio.current_time() + BAN_SECONDS
        self._reasons[peer] = reason
        logger.warning("peer %s is shut out for %d minutes: it %s", peer, BAN_SECONDS // 60, reason)
        self._turn_away(peer)

    def block(self, peer: str, *, blocked: bool) -> None:
        """Refuse a peer's connections from now on, or no longer."""
        if not blocked:
            self.book.blocked.discard(peer)
            self._banned_until.pop(peer, None)
            self._reasons.pop(peer, None)
            return
        self.book.blocked.add(peer)
        self._turn_away(peer)

    def _turn_away(self, peer: str) -> None:
        self._close_soon(*self.swarm.get_connections(ID.from_string(peer)))
        self.on_change()

    def _close_soon(self, *connections: INetConn) -> None:
        self._to_close += connections
        self._wake.set()

    async def keep(self, router: Router) -> None:
        """The janitor: closes what is to be closed, bounds what grows. Runs until cancelled."""
        while True:
            with trio.move_on_after(JANITOR_SECONDS):
                await self._wake.wait()
            self._wake = trio.Event()
            router.forget_deliveries()
            now = trio.current_time()
            self._banned_until = {peer: until for peer, until in self._banned_until.items() if until > now}
            self._reasons = {peer: reason for peer, reason in self._reasons.items() if peer in self._banned_until}
            held = {connection: held_by(connection) for connection in self.swarm.get_connections()}
            if sum(held.values()) > BUFFER_BYTES_MAX:
                self._to_close.append(max(held, key=held.__getitem__))
            closing, self._to_close = dict.fromkeys(self._to_close), []
            async with trio.open_nursery() as nursery:
                for connection in closing:
                    nursery.start_soon(cut, connection)


def peer_of(connection: INetConn) -> str:
    """The peer id of a connection."""
    return str(connection.muxed_conn.peer_id)


def held_by(connection: INetConn) -> int:
    """Bytes that arrived on the connection and were not read."""
    muxed = connection.muxed_conn
    return muxed.buffered() if isinstance(muxed, GuardedYamux) else 0
