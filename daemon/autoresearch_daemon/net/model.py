"""What the daemon and its network process both know: options, peers, figures, states. Imports no libp2p.

Also the address book (when to dial whom again), and the greeting in which a node says its program, network, devices,
clock and device key. Of a greeting only the key is proven: it signs the network and the peer that says it, so that
nobody can say it of another's.
"""

from __future__ import annotations

import os
import random
from pathlib import Path
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from autoresearch.link import backoff
from autoresearch.record.encoding import EncodingError, decode, encode
from autoresearch.record.record import Network
from autoresearch.trust.attestation import holds
from autoresearch.words import NetworkState

# Wire limits, part of the protocol (docs/protocol.md).
FRAME_BYTES_MAX = 257 * 1024
# What a peer may be asked in one frame, and answers in one: an attestor; which services its machine has.
Topic = Literal["attest", "services"]
# The bytes that spell a frame's length.
FRAME_HEAD_BYTES_MAX = 4
BLOB_PART_BYTES_MAX = 1024 * 1024
ADDRESS_BYTES_MAX = 256


class HostOptions(msgspec.Struct, frozen=True, kw_only=True):
    """How a host is set up. ``folder`` keeps its key and its address book.

    ``listen`` are TCP multiaddrs; port 0 takes the port of the last start when it is free, or else any.
    ``bootstrap`` are multiaddrs that end in ``/p2p/PEER``. ``lan_interfaces`` are IP addresses, none means all.
    ``manifest`` are the bytes that peers who ask for the network get; without any they get no answer.
    ``use_relay``: use a relay while nobody can call this host directly. ``serve_relay``: be a relay for others.
    ``attest``: answer those who ask for an attestor.
    ``agent`` (at most 64 characters) and ``devices`` (at most 8) are what the host says of itself.
    ``device_key``, the key that signs this node's records, is told to peers once it has signed the host's peer id.
    ``day_bytes`` is how many bytes a UTC day may move before blobs are refused; 0 is no limit.
    """

    folder: str
    network: Network
    listen: tuple[str, ...] = ("/ip4/0.0.0.0/tcp/0",)
    bootstrap: tuple[str, ...] = ()
    lan: bool = True
    lan_interfaces: tuple[str, ...] = ()
    peers_wanted: int = 8
    connections_max: int = 64
    connections_per_address: int = 32
    retry_seconds: float = 5.0
    health_seconds: float = 15.0
    exchange_seconds: float = 60.0
    day_bytes: int = 0
    manifest: bytes = b""
    use_relay: bool = True
    serve_relay: bool = True
    attest: bool = False
    agent: str = "autoresearch"
    devices: tuple[str, ...] = ()
    device_key: bytes = b""

    @property
    def key_file(self) -> Path:
        """The host's private key; what the peer id is made of."""
        return Path(self.folder) / "network.key"

    @property
    def book_file(self) -> Path:
        """The address book."""
        return Path(self.folder) / "peers.json"

    @property
    def topic(self) -> str:
        """The gossip topic of the network's records."""
        return f"/autoresearch/records/1/{self.network.id.hex()}"


class PeerInfo(msgspec.Struct, frozen=True, kw_only=True):
    """A peer that is connected, or one that the address book knows. Times are Unix milliseconds, 0 is never.

    ``address`` is a multiaddr, empty when none is known; ``inbound`` means that the peer dialled; ``shut_out`` says
    why the peer is refused for a while, if it is. ``bytes_*`` are those since midnight UTC. ``agent``, ``devices``,
    ``network`` (its id) and ``clock_ahead_ms`` are the connected peer's own word. ``device_key`` is proven: what it
    signs as is that device; of a peer that is not connected, what it proved the last time that it was.
    """

    peer: str
    address: str
    connected: bool
    inbound: bool = False
    connected_ms: int = 0
    seen_ms: int = 0
    bytes_in: int = 0
    bytes_out: int = 0
    blocked: bool = False
    shut_out: str = ""
    agent: str = ""
    devices: tuple[str, ...] = ()
    network: bytes = b""
    clock_ahead_ms: int = 0
    device_key: bytes = b""


class Figures(msgspec.Struct, frozen=True, kw_only=True):
    """Counters of the network process since it started; ``day_bytes_*`` since midnight UTC."""

    bytes_in: int = 0
    bytes_out: int = 0
    day_bytes_in: int = 0
    day_bytes_out: int = 0
    records_heard: int = 0
    records_dropped: int = 0
    records_refused: int = 0
    inbound_refused: int = 0
    peers_banned: int = 0


class NetworkInfo(msgspec.Struct, frozen=True, kw_only=True):
    """What a person wants to know of this node's network. ``reason`` says why the state is what it is."""

    state: NetworkState
    reason: str
    peer: str
    addresses: tuple[str, ...]
    connected: int
    restarts: int
    figures: Figures
    bytes_today: int
    process: int | None


GREETING_BYTES_MAX = 2048
_DEVICE = b"autoresearch/hello/1/device\0"


class Greeting(msgspec.Struct, frozen=True, kw_only=True):
    """One peer's own word. ``time_ms`` is its clock, Unix milliseconds; ``devices`` are what it trains on.

    ``device_key`` signs the records of this node, and signed ``device_proof``; both are empty where it says nothing.
    """

    agent: Annotated[str, Meta(max_length=64)]
    network: Annotated[bytes, Meta(min_length=16, max_length=16)]
    time_ms: Annotated[int, Meta(ge=0, le=2**53)]
    devices: Annotated[list[Annotated[str, Meta(max_length=120)]], Meta(max_length=8)] = []
    device_key: Annotated[bytes, Meta(max_length=32)] = b""
    device_proof: Annotated[bytes, Meta(max_length=64)] = b""


def device_statement(network: bytes, peer: str) -> bytes:
    """What a device signs to say that it is behind a peer of a network."""
    return _DEVICE + network + peer.encode()


def proven_device(greeting: Greeting, network: bytes, peer: str) -> bytes:
    """The device key that a peer of this network has, proven; empty where it names none or has not signed."""
    statement = device_statement(network, peer)
    proven = greeting.network == network and holds(greeting.device_key, statement, greeting.device_proof)
    return greeting.device_key if proven else b""


def encode_greeting(greeting: Greeting) -> bytes:
    """The greeting's bytes: a DAG-CBOR map."""
    return encode(msgspec.to_builtins(greeting, builtin_types=(bytes,)))


def decode_greeting(raw: bytes) -> Greeting | None:
    """The greeting that ``raw`` spells, or None when it is none. Unknown keys are ignored."""
    try:
        return msgspec.convert(decode(raw), Greeting)
    except (EncodingError, msgspec.ValidationError):
        return None


CONTACTS_MAX = 1000
ADDRESSES_MAX = 8
RETRY_SECONDS_MAX = 600.0
RETRY_SECONDS_MAX_PERSISTENT = 60.0
EXCHANGED_MAX = 32


class Contact(msgspec.Struct, kw_only=True):
    """One peer. ``wanted``: a person or the network's manifest named it, so it is always kept connected.

    ``device_key``: the device that it last proved to have.
    """

    peer: str
    addresses: list[str] = msgspec.field(default_factory=list)
    persistent: bool = msgspec.field(default=False, name="wanted")  # the key that books on disk have
    seen_ms: int = 0
    failures: int = 0
    next_ms: int = 0
    device_key: bytes = b""


class AddressBook(msgspec.Struct, kw_only=True):
    """All contacts by peer id, the blocked ones, and the port that was listened on last.

    ``day_in`` and ``day_out`` are the bytes that moved on a ``day`` (days since 1970, UTC), to a MiB.
    """

    contacts: dict[str, Contact] = msgspec.field(default_factory=dict)
    blocked: set[str] = msgspec.field(default_factory=set)
    port: int = 0
    day: int = 0
    day_in: int = 0
    day_out: int = 0

    def learn(self, peer: str, addresses: list[str], *, persistent: bool = False) -> Contact:
        """Remember addresses of a peer. New ones come first, because peers move; the oldest are forgotten."""
        contact = self.contacts.setdefault(peer, Contact(peer=peer))
        fresh = [address for address in dict.fromkeys(addresses) if address not in contact.addresses]
        if fresh:
            contact.addresses = (fresh + contact.addresses)[:ADDRESSES_MAX]
            contact.failures, contact.next_ms = 0, 0
        contact.persistent |= persistent
        self._forget_surplus()
        return contact

    def connected(self, peer: str, now_ms: int, address: str | None = None) -> None:
        """A connection stands; the address that worked is tried first from now on."""
        contact = self.contacts.setdefault(peer, Contact(peer=peer))
        contact.seen_ms, contact.failures, contact.next_ms = now_ms, 0, 0
        if address:
            others = [other for other in contact.addresses if other != address]
            contact.addresses = [address, *others][:ADDRESSES_MAX]
        self._forget_surplus()

    def proved(self, peer: str, device_key: bytes) -> None:
        """A peer has shown which device it has. One that says nothing takes nothing back that it proved before."""
        if device_key and (contact := self.contacts.get(peer)):
            contact.device_key = device_key

    def failed(self, peer: str, now_ms: int, retry_seconds: float, dice: random.Random) -> None:
        """No address of the peer answered: wait twice as long as the last time, give or take a half."""
        if (contact := self.contacts.get(peer)) is None:
            return
        most = RETRY_SECONDS_MAX_PERSISTENT if contact.persistent else RETRY_SECONDS_MAX
        seconds = backoff(contact.failures, retry_seconds, most)
        contact.failures += 1
        contact.next_ms = now_ms + int(seconds * 1000 * dice.uniform(0.5, 1.5))

    def due(self, now_ms: int, leave_out: set[str], places: int) -> list[Contact]:
        """Whom to dial now: wanted ones always, of the others as many as there are free ``places``."""
        able = [
            contact
            for contact in self.contacts.values()
            if contact.peer not in leave_out and contact.addresses and contact.next_ms <= now_ms
        ]
        able.sort(key=lambda contact: (contact.failures, -contact.seen_ms))
        persistent = [contact for contact in able if contact.persistent]
        others = [contact for contact in able if not contact.persistent]
        return persistent + others[: max(0, places)]

    def shareable(self, asker: str, connected: set[str]) -> list[str]:
        """Addresses for a peer that asks whom we know: of peers that are connected, or were and may be again."""
        contacts = sorted(
            (c for c in self.contacts.values() if c.seen_ms and c.peer != asker and c.peer not in self.blocked),
            key=lambda contact: (contact.peer not in connected, -contact.seen_ms),
        )
        addresses = [f"{address}/p2p/{contact.peer}" for contact in contacts for address in contact.addresses[:2]]
        return addresses[:EXCHANGED_MAX]

    def _forget_surplus(self) -> None:
        while len(self.contacts) > CONTACTS_MAX:
            victims = [contact for contact in self.contacts.values() if not contact.persistent]
            if not victims:
                return
            del self.contacts[min(victims, key=lambda contact: (contact.seen_ms, -contact.failures)).peer]


def load_book(path: Path) -> AddressBook:
    """The kept book, its peers due at once; an empty one when there is none or the file is damaged."""
    try:
        book = msgspec.json.decode(path.read_bytes(), type=AddressBook)
    except (OSError, msgspec.DecodeError):
        return AddressBook()
    for contact in book.contacts.values():
        contact.failures, contact.next_ms = 0, 0
    return book


def write_book(path: Path, text: bytes) -> None:
    """Write the encoded book; a crash leaves the old or the new one. Raises OSError."""
    temporary = path.with_suffix(".new")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(text)
    temporary.replace(path)
