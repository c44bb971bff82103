"""Keeping connected (trio): the book's peers are dialled again with back-off, new ones come from their friends."""

from __future__ import annotations

import logging
import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

import msgspec
import trio
from libp2p.abc import IHost, INetConn
from libp2p.network.swarm import Swarm
from libp2p.peer.id import ID
from libp2p.peer.peerinfo import PeerInfo as Libp2pPeerInfo
from multiaddr import Multiaddr

from autoresearch_daemon.net.host.guards import CIRCUIT, split_address
from autoresearch_daemon.net.host.watching import ConnectionWatch
from autoresearch_daemon.net.model import AddressBook, Contact, HostOptions, write_book

logger = logging.getLogger(__name__)

DIAL_SECONDS = 10.0
DIALS_AT_ONCE = 8
LOOK_SECONDS = 1.0
# A node that is killed before it wrote down its port and its peers is found by nobody and finds nobody.
SAVE_SECONDS = 1.0
# A friend that was asked at once may not know yet who comes at the same time: ask again soon, then ever more rarely.
FIRST_EXCHANGE_SECONDS = 4.0
IDENTIFY_SECONDS = 2.0


class Unreachable(Exception):
    """No connection to the peer."""


@dataclass(eq=False)
class Dialler:
    """Owns the address book's file and decides whom to dial when."""

    host: IHost
    book: AddressBook
    options: HostOptions
    watch: ConnectionWatch
    now_ms: Callable[[], int]
    dice: random.Random
    relayed: Callable[[str, str], Awaitable[None]]

    def __post_init__(self) -> None:
        self._own = str(self.host.get_id())
        self._dialling: set[str] = set()
        self._wake = trio.Event()
        self._saved = b""
        for address in self.options.bootstrap:
            self.learn(address, persistent=True)

    def learn(self, address: str, *, persistent: bool = False) -> str | None:
        """Remember an address; returns the peer, or ``None`` when the address is none that we dial."""
        place = split_address(address, names=persistent)
        if place is None or place[1] == self._own or self._is_through_here(place[0]):
            return None
        self.book.learn(place[1], [place[0]], persistent=persistent)
        self._wake.set()
        return place[1]

    async def add(self, address: str) -> None:
        """Dial an address that a person gave, now, and keep it. Raises Unreachable."""
        place = split_address(address, names=True)
        if place is None or place[1] == self._own:
            raise ValueError(
                f"{address} is no address of another peer; one looks like /ip4/192.0.2.1/tcp/4001/p2p/12D3…"
            )
        peer = place[1]
        if self.watch.is_refused(peer):
            raise Unreachable(
                f"{peer} is blocked or shut out here: `autoresearch network peers unblock` takes it back in"
            )
        contact = self.book.learn(peer, [place[0]], persistent=True)
        self.save()
        if not self.watch.is_connected(peer) and not await self._try(contact):
            raise Unreachable(f"{address} does not answer")

    async def keep(self, exchange: Callable[[str], Awaitable[None]]) -> None:
        """Dial who is due; ask a friend for more peers when there are too few; save the book. Until cancelled."""
        last_saved = last_asked = trio.current_time()
        pause = min(FIRST_EXCHANGE_SECONDS, self.options.exchange_seconds)
        async with trio.open_nursery() as nursery:
            while True:
                connected = self.watch.connected_peers()
                free = self.options.peers_wanted - len(connected)
                leave_out = connected | self._dialling | self.watch.refused_peers()
                for contact in self.book.due(self.now_ms(), leave_out, free):
                    if len(self._dialling) < DIALS_AT_ONCE:
                        self._dialling.add(contact.peer)
                        nursery.start_soon(self._dial, contact)
                now = trio.current_time()
                if connected and free > 0 and now - last_asked >= pause:
                    last_asked, pause = now, min(2 * pause, self.options.exchange_seconds)
                    nursery.start_soon(exchange, self.dice.choice(sorted(connected)))
                if now - last_saved >= SAVE_SECONDS:
                    last_saved = now
                    self.save()
                self._wake = trio.Event()
                with trio.move_on_after(LOOK_SECONDS):
                    await self._wake.wait()

    def save(self) -> None:
        """Write the book if it changed; when the disk refuses, the old one stays."""
        text = msgspec.json.encode(self.book)
        if text == self._saved:
            return
        try:
            write_book(self.options.book_file, text)
            self._saved = text
        except OSError as error:
            logger.warning("the address book cannot be written: %s", error)

    async def welcome(self, peer: str, connection: INetConn, exchange: Callable[[str], Awaitable[None]]) -> None:
        """A peer connected: note where it listens, ask whom it knows."""
        remote = connection.muxed_conn.get_remote_address()  # type: ignore[attr-defined]
        local = bool(remote) and remote[0] in {"127.0.0.1", "::1"}
        with trio.move_on_after(IDENTIFY_SECONDS):
            while not (claimed := self._claimed(peer)):  # noqa: ASYNC110 - libp2p has no event for it
                await trio.sleep(0.05)
            # Whatever a stranger claims, a dial succeeds only where somebody holds the key of this peer id.
            fit = [address for address in claimed if local or not is_loopback(address)]
            self.book.learn(peer, fit[:4])
            self.save()  # at once: whoever is killed now and comes back with an old log needs somebody to ask
        await exchange(peer)

    def _claimed(self, peer: str) -> list[str]:
        store = self.host.get_peerstore()
        try:
            addresses = store.addrs(ID.from_string(peer))
        except Exception:  # noqa: BLE001 - the store raises one of several errors for "nothing known"
            return []
        places = (split_address(f"{str(address).split('/p2p/')[0]}/p2p/{peer}") for address in addresses)
        return [transport for transport, _ in filter(None, places)]

    async def _dial(self, contact: Contact) -> None:
        try:
            await self._try(contact)
        finally:
            self._dialling.discard(contact.peer)

    async def _try(self, contact: Contact) -> bool:
        """Dial the peer's addresses one after the other."""
        # Through a relay only where the direct way is closed.
        addresses = [address for address in contact.addresses if not self._is_through_here(address)]
        for address in sorted(addresses, key=lambda address: address.endswith(CIRCUIT)):
            try:
                with trio.fail_after(DIAL_SECONDS):
                    await self._connect(contact.peer, address)
            except Exception as error:  # noqa: BLE001 - libp2p raises one of many errors
                logger.debug("dialling %s at %s: %r", contact.peer, address, error)
                continue
            if self.watch.is_connected(contact.peer):
                self.book.connected(contact.peer, self.now_ms(), address)
                return True
        self.book.failed(contact.peer, self.now_ms(), self.options.retry_seconds, self.dice)
        return False

    def _is_through_here(self, address: str) -> bool:
        """Whether a way to a peer leads through this node as a relay: dialling it, a node would call itself."""
        return address.endswith(f"/p2p/{self._own}{CIRCUIT}")

    async def _connect(self, peer: str, address: str) -> None:
        """Dial exactly this address now.

        Stock, a peer that did not answer once is not dialled for a minute, and of several addresses only the oldest
        is tried: a peer that moved stays lost.
        """
        if address.endswith(CIRCUIT):
            await self.relayed(address, peer)
            return
        identity = ID.from_string(peer)
        swarm = self.host.get_network()
        assert isinstance(swarm, Swarm)
        swarm._negative_peer_cache.evict(peer)  # noqa: SLF001
        store = self.host.get_peerstore()
        if store.has_peer(identity):
            store.clear_addrs(identity)
        await self.host.connect(Libp2pPeerInfo(identity, [Multiaddr(address)]))


def is_loopback(address: str) -> bool:
    """Whether only this machine can mean it."""
    return address.startswith(("/ip4/127.", "/ip6/::1/"))
