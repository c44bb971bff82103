"""Multiaddrs: the few shapes that are dialled and advertised, and a host's own addresses."""

from __future__ import annotations

import ipaddress
import socket

import psutil
from libp2p.peer.id import ID
from multiaddr import Multiaddr  # type: ignore[import-untyped]

from autoresearch_daemon.net.model import ADDRESS_BYTES_MAX

PARTS_WITH_PEER = 6
CIRCUIT = "/p2p-circuit"
# Multihash (and, for a key as it is, protobuf) in front of the 32 bytes.
ED25519_HEAD = bytes.fromhex("002408011220")
SHA256_HEAD = bytes.fromhex("1220")
NAMES = {"dns", "dns4", "dns6"}


def split_address(text: str, *, names: bool = False) -> tuple[str, str] | None:
    """``(transport address, peer id)`` of ``/ip4/…/tcp/…/p2p/…``; ``None`` when it is none that we dial.

    ``names`` also takes host names: a person may give them, a stranger may not make us look them up. An address
    through a relay, ``/ip4/…/tcp/…/p2p/RELAY/p2p-circuit/p2p/PEER``, has everything before the last ``/p2p/`` as its
    transport address.
    """
    relay, circuit, target = text.partition(f"{CIRCUIT}/p2p/")
    if circuit:
        found = split_address(relay, names=names)
        fine = found and found[1] != target and is_peer_id(target) and len(text) <= ADDRESS_BYTES_MAX
        return (f"{relay}{CIRCUIT}", target) if fine else None
    parts = text.split("/")[1:]
    if len(text) > ADDRESS_BYTES_MAX or not text.startswith("/") or len(parts) != PARTS_WITH_PEER:
        return None
    kind, host, tcp, port, p2p, peer = parts
    if tcp != "tcp" or p2p != "p2p" or not port.isdecimal() or not 0 < int(port) < 1 << 16:
        return None
    try:
        if kind in {"ip4", "ip6"}:
            ip = ipaddress.ip_address(host)
            if ip.version != int(kind[2]) or ip.is_multicast or ip.is_unspecified:
                return None
        elif not (names and kind in NAMES and host):
            return None
        Multiaddr(f"/{kind}/{host}/tcp/{port}")
    except Exception:  # noqa: BLE001 - multiaddr raises anything on junk
        return None
    return (f"/{kind}/{host}/tcp/{port}", peer) if is_peer_id(peer) else None


def is_peer_id(text: str) -> bool:
    """Whether it spells a peer id: base58 of an Ed25519 key as it is, or of a SHA-256 of another key."""
    try:
        raw = ID.from_string(text).to_bytes()
    except Exception:  # noqa: BLE001 - base58 raises anything on junk
        return False
    return (len(raw) == 38 and raw.startswith(ED25519_HEAD)) or (len(raw) == 34 and raw.startswith(SHA256_HEAD))


def expand(addresses: list[Multiaddr]) -> list[Multiaddr]:
    """Wildcards (0.0.0.0, ::) become the addresses of this machine's interfaces."""
    out: list[Multiaddr] = []
    for address in addresses:
        text = str(address)
        if text.startswith("/ip4/0.0.0.0/"):
            out += [Multiaddr(f"/ip4/{ip}{text[12:]}") for ip in interface_addresses(socket.AF_INET)]
        elif text.startswith("/ip6/::/"):
            out += [Multiaddr(f"/ip6/{ip}{text[7:]}") for ip in interface_addresses(socket.AF_INET6)]
        else:
            out.append(address)
    return out


def interface_addresses(family: socket.AddressFamily) -> list[str]:
    """This machine's addresses, loopback last."""
    found = [
        address.address
        for interface in psutil.net_if_addrs().values()
        for address in interface
        if address.family == family and "%" not in address.address
    ]
    return sorted(found, key=lambda text: ipaddress.ip_address(text).is_loopback)


def port_is_free(ip: str, port: int) -> bool:
    """Whether nobody listens there. libp2p's listeners share ports, so that two daemons would split connections."""
    family = socket.AF_INET6 if ":" in ip else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((ip, port))
        except OSError:
            return False
    return True


def choose_port(listen: str, last: int) -> str:
    """The listening address with a port: the given one if free, the last one for port 0, or else 0 (any)."""
    head, _, port_text = listen.rpartition("/")
    ip = listen.split("/")[2]
    port = int(port_text) or last
    return f"{head}/{port if port and port_is_free(ip, port) else 0}"
