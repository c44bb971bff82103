"""What the daemon and its network process both know: options, peers, figures, states. Imports no libp2p."""

from __future__ import annotations

from pathlib import Path

import msgspec

from autoresearch.records import Network
from autoresearch.words import NetworkState

# Wire limits, part of the protocol (docs/protocol.md).
FRAME_BYTES_MAX = 257 * 1024
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
