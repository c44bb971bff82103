"""Who is connected, who is blocked, who misbehaved; and the janitor (trio)."""

from __future__ import annotations

import logging
from collections.abc import Callable

import trio
from libp2p.abc import INetConn, INetStream, INetwork, INotifee
from libp2p.network.swarm import Swarm
from libp2p.peer.id import ID
from libp2p.rcmgr import Direction

from autoresearch_daemon.net.address_book import AddressBook
from autoresearch_daemon.net.addresses import CIRCUIT
from autoresearch_daemon.net.buckets import TokenBucket
from autoresearch_daemon.net.gossip import Router
from autoresearch_daemon.net.greeting import Greeting
from autoresearch_daemon.net.guards import GuardedYamux, cut
from autoresearch_daemon.net.meters import Meters
from autoresearch_daemon.net.model import PeerInfo
from autoresearch_daemon.net.relaying import is_relayed

logger = logging.getLogger(__name__)

# A peer may send so much rubbish at once, and one more piece a minute; then it is shut out for a while.
OFFENCES_AT_ONCE = 20.0
OFFENCES_PER_SECOND = 1 / 60
BAN_SECONDS = 600.0
OFFENDERS_REMEMBERED = 1024
# What all connections together may hold in memory; the one that holds most is closed.
BUFFER_BYTES_MAX = 128 << 20
JANITOR_SECONDS = 1.0


class Watch(INotifee):
    """libp2p tells it of connections; the rest of the host asks it about peers."""

    def __init__(
        self,
        swarm: Swarm,
        book: AddressBook,
        meters: Meters,
        now_ms: Callable[[], int],
        on_change: Callable[[], None],
        on_peer: Callable[[str, INetConn], None],
    ) -> None:
        self.offences = 0
        self.bans = 0
        self._swarm = swarm
        self._own = str(swarm.get_peer_id())
        self._book = book
        self._meters = meters
        self._now_ms = now_ms
        self._on_change = on_change
        self._on_peer = on_peer
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
            self._since_ms[peer] = self._now_ms()
            self._on_peer(peer, conn)
        self._book.connected(peer, self._now_ms())
        self._on_change()

    async def disconnected(self, network: INetwork, conn: INetConn) -> None:  # noqa: ARG002
        """A connection is gone."""
        peer = peer_of(conn)
        self._meters.closed(conn)
        if not self.is_connected(peer) and self._since_ms.pop(peer, None) is not None:
            self._greetings.pop(peer, None)
            self._book.connected(peer, self._now_ms())
            self._on_change()

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
        return {self._own, *self._book.blocked, *(peer for peer, until in self._banned_until.items() if until > now)}

    def _connections(self) -> dict[str, list[INetConn]]:
        """The connections that stand, by peer."""
        refused = self.refused_peers()
        found: dict[str, list[INetConn]] = {}
        for connection in self._swarm.get_connections():
            if not connection.is_closed and peer_of(connection) not in refused:
                found.setdefault(peer_of(connection), []).append(connection)
        return found

    def peers(self) -> list[PeerInfo]:
        """Connected peers first, then those that the book knows."""
        now = self._connections()
        found = [self._describe(peer, connections) for peer, connections in now.items()]
        known = sorted(self._book.contacts.values(), key=lambda contact: -contact.seen_ms)
        found += [
            PeerInfo(
                peer=contact.peer,
                address=contact.addresses[0] if contact.addresses else "",
                connected=False,
                seen_ms=contact.seen_ms,
                blocked=contact.peer in self._book.blocked,
                shut_out=self._reasons.get(contact.peer, ""),
                bytes_in=self._meters.today_with(contact.peer, [])[0],
                bytes_out=self._meters.today_with(contact.peer, [])[1],
                device_key=contact.device_key,
            )
            for contact in known
            if contact.peer not in {*now, self._own}
            and (contact.seen_ms or contact.wanted or contact.peer in self._book.blocked)
        ]
        listed = {self._own, *(peer.peer for peer in found)}
        found += [
            PeerInfo(
                peer=peer,
                address="",
                connected=False,
                blocked=peer in self._book.blocked,
                shut_out=self._reasons.get(peer, ""),
            )
            for peer in sorted({*self._book.blocked, *self._reasons} - listed)
        ]
        return found[:200]

    def _describe(self, peer: str, connections: list[INetConn]) -> PeerInfo:
        bytes_in, bytes_out = self._meters.today_with(peer, connections)
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
            seen_ms=self._now_ms(),
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
        self._book.proved(peer, device_key)
        self._greetings[peer] = (greeting, greeting.time_ms - self._now_ms(), device_key)
        self._on_change()

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
            self._book.blocked.discard(peer)
            self._banned_until.pop(peer, None)
            self._reasons.pop(peer, None)
            return
        self._book.blocked.add(peer)
        self._turn_away(peer)

    def _turn_away(self, peer: str) -> None:
        self._close_soon(*self._swarm.get_connections(ID.from_string(peer)))
        self._on_change()

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
            held = {connection: held_by(connection) for connection in self._swarm.get_connections()}
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
