"""The network: a libp2p host in a process of its own, and the daemon's link to it. The daemon imports no libp2p."""

from autoresearch_daemon.net.address_book import load_book
from autoresearch_daemon.net.greeting import device_statement
from autoresearch_daemon.net.model import (
    BLOB_PART_BYTES_MAX,
    FRAME_BYTES_MAX,
    Figures,
    HostOptions,
    NetworkInfo,
    PeerInfo,
)
from autoresearch_daemon.net.network import Busy, Handlers, NetworkClient
from autoresearch_daemon.net.supervisor import Limits
from autoresearch_daemon.net.syncing import SyncStream

__all__ = [
    "BLOB_PART_BYTES_MAX",
    "FRAME_BYTES_MAX",
    "Busy",
    "Figures",
    "Handlers",
    "HostOptions",
    "Limits",
    "NetworkClient",
    "NetworkInfo",
    "PeerInfo",
    "SyncStream",
    "device_statement",
    "load_book",
]
