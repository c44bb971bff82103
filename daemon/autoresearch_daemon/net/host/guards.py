"""Guards around py-libp2p 0.8.1: without them one message of a stranger ends the host.

Also the few shapes of multiaddrs that are dialled and advertised, and a host's own addresses. Each guard has a
regression test in tests/daemon/net/test_guards.py or tests/hostile; they touch private names, so the version is pinned
exactly and the tests are what allows another one.
"""

from __future__ import annotations

import ipaddress
import logging
import os
import socket
import types
from collections import Counter
from collections.abc import Awaitable, Callable
from typing import Any

import libp2p.network.swarm as libp2p_swarm
import libp2p.pubsub.rpc_queue as libp2p_rpc_queue
import libp2p.stream_muxer.muxer_multistream as libp2p_muxers
import libp2p.stream_muxer.yamux.yamux as libp2p_yamux
import psutil
import trio
from libp2p.abc import IHost, INetConn, INetStream
from libp2p.io.abc import ReadWriteCloser
from libp2p.io.exceptions import ConnectionClosedError
from libp2p.network.connection.raw_connection import RawConnection
from libp2p.network.swarm import Swarm
from libp2p.peer.id import ID
from libp2p.stream_muxer.yamux.yamux import Yamux
from multiaddr import Multiaddr

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
        split = split_address(relay, names=names)
        fine = split and split[1] != target and is_peer_id(target) and len(text) <= ADDRESS_BYTES_MAX
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
    addresses = [
        address.address
        for interface in psutil.net_if_addrs().values()
        for address in interface
        if address.family == family and "%" not in address.address
    ]
    return sorted(addresses, key=lambda text: ipaddress.ip_address(text).is_loopback)


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


logger = logging.getLogger(__name__)

# What a peer may make us hold in memory for it, and what one stream may have under way (an honest sender's window).
CONNECTION_BUFFER_BYTES = 16 << 20
STREAM_WINDOW_BYTES = 1 << 20
# Streams that one connection may have opened to us at a time.
STREAMS_PER_CONNECTION = 64
# A frame that the other side's kernel does not take in this time is the end of the connection.
WRITE_SECONDS = 30.0
CLOSE_SECONDS = 2.0
# How long the other side may take to close a stream that is over.
LINGER_SECONDS = 2.0
RPC_BYTES_OUT = 64 * 1024
RPC_QUEUE = 512

# Strangers decide how much libp2p writes. Part of it goes to the root logger, at levels that are off by default.
logging.getLogger("libp2p").setLevel(logging.CRITICAL)
os.environ["PY_YAMUX_RELEASE_ON_READ"] = "0"  # window updates in batches: twice the throughput
os.environ["PY_YAMUX_DATA_READ_TIMEOUT"] = "30"
libp2p_yamux.MAX_WINDOW_SIZE = STREAM_WINDOW_BYTES
libp2p_swarm._HAPPY_EYEBALLS_DELAY = 0.02  # noqa: SLF001 - every dial waits for it, also when it has connected
libp2p_rpc_queue.RpcQueue.__init__.__defaults__ = (RPC_QUEUE, RPC_BYTES_OUT)  # 32 by default, the rest is dropped


class GuardedYamux(Yamux):
    """Yamux that counts bytes, holds at most ``CONNECTION_BUFFER_BYTES``, and is never cut off inside a frame."""

    def __init__(self, *args: Any, **named: Any) -> None:  # noqa: ANN401 - whatever Yamux takes
        super().__init__(*args, **named)
        self.bytes_in = 0
        self.bytes_out = 0

    def buffered(self) -> int:
        """Bytes that arrived and were not read."""
        return sum(map(len, self.stream_buffers.values()))

    async def _read_data_body(self, length: int) -> bytes:
        # The receive window is announced but not enforced: a peer that ignores it fills the memory.
        self.bytes_in += length
        if self.buffered() + length > CONNECTION_BUFFER_BYTES:
            logger.info("peer %s ignores the window, closing", self.peer_id)
            raise trio.TooSlowError  # the one error after which the read loop closes the connection
        return await super()._read_data_body(length)

    async def _write_frame(self, data: bytes) -> None:
        # A cancelled write would leave half a frame on the connection that all streams share.
        self.bytes_out += len(data)
        async with self._write_lock:
            with trio.CancelScope(shield=True, deadline=trio.current_time() + WRITE_SECONDS) as scope:
                await self.secured_conn.write(data)
        if scope.cancelled_caught:
            await quietly(self.secured_conn.close)
            raise ConnectionClosedError("the peer takes no more bytes", transport="tcp")
        await trio.lowlevel.checkpoint()


# The class given to new_host is not the one that is made for Yamux's protocol name.
libp2p_muxers.Yamux = GuardedYamux  # type: ignore[attr-defined]


async def quietly(close: Callable[[], Awaitable[object]]) -> None:
    """Close something that may be broken, soon, whatever else is being cancelled."""
    with trio.CancelScope(shield=True, deadline=trio.current_time() + CLOSE_SECONDS):
        try:
            await close()
        except Exception as error:  # noqa: BLE001 - it is being given up, and libp2p raises anything
            logger.debug("while closing: %r", error)


async def cut(connection: INetConn) -> None:
    """Close a connection without a word.

    Stock, closing says goodbye first and waits for whoever does not read; cut off meanwhile it has closed nothing, and
    whoever closes again is told that it is closed.
    """
    await quietly(connection.muxed_conn.secured_conn.close)  # type: ignore[attr-defined]
    await quietly(connection.close)


async def part(connection: INetConn) -> None:
    """Say goodbye, then close, whether or not the goodbye was said in time: the peer keeps a place until then."""
    await quietly(connection.close)
    await quietly(connection.muxed_conn.secured_conn.close)  # type: ignore[attr-defined]


async def dispose(stream: INetStream) -> None:
    """Let go of a stream that this side is done with, also when the peer never closes its own side.

    Stock, such a stream is remembered as long as the connection stands, and one with unread bytes for a minute.
    """
    muxed = stream.muxed_stream  # type: ignore[attr-defined]
    with trio.CancelScope(shield=True, deadline=trio.current_time() + LINGER_SECONDS):
        pause = 0.001
        while not (muxed.recv_closed or muxed.closed or muxed.conn.event_shutting_down.is_set()):
            await trio.sleep(pause)
            pause = min(2 * pause, 0.1)
    if not muxed.closed:
        await quietly(stream.reset)
    if unread := muxed.conn.stream_buffers.get(muxed.stream_id):
        unread.clear()
    with trio.CancelScope(shield=True):
        await muxed.conn._finalize_stream(muxed, fully_closed=True)  # noqa: SLF001


def guard_streams(host: IHost, admit: Callable[[INetStream], Awaitable[bool]]) -> None:
    """Contain what stream handlers raise; cap the streams of a connection; ask ``admit`` before handling one.

    Stock, an exception of a handler ends the host, and one that meets the end of its stream makes the connection deaf.
    """
    inner = host._swarm_stream_handler  # type: ignore[attr-defined] # noqa: SLF001
    open_streams: Counter[int] = Counter()

    async def guarded(stream: INetStream) -> None:
        connection = id(stream.muxed_conn)
        open_streams[connection] += 1
        try:
            if open_streams[connection] > STREAMS_PER_CONNECTION or not await admit(stream):
                await quietly(stream.reset)
            else:
                await inner(stream)
        except Exception as error:  # noqa: BLE001 - a stranger decides what is raised here
            logger.debug("stream handler: %r", error)
            await quietly(stream.reset)
        finally:
            await dispose(stream)
            open_streams[connection] -= 1
            if not open_streams[connection]:
                del open_streams[connection]

    host.get_network().set_stream_handler(guarded)


def dial_nobody(swarm: Swarm) -> None:
    """Switch off libp2p's own dialler, which goes for every address it ever heard, wanted or not.

    Watermarks of zero do not do it: it aims at the middle between the low and the high one.
    """

    async def nothing() -> None:
        return

    swarm.auto_connector.maybe_connect = nothing  # type: ignore[method-assign]


class InboundGate:
    """Inbound connections: a place is given back when the connection ends, and one address has only so many.

    Stock, a place is taken for ever: after as many connections as there are places the host is deaf.
    """

    def __init__(self, swarm: Swarm, per_address: int) -> None:
        self.refused = 0
        self._swarm = swarm
        self._per_address = per_address
        self._places: Counter[str] = Counter()
        gate = self

        async def inbound(_swarm: Swarm, connection: ReadWriteCloser, maddr: Any, _event: object) -> None:  # noqa: ANN401
            await gate._hold(connection, maddr)

        swarm._do_handle_inbound_connection = types.MethodType(inbound, swarm)  # type: ignore[method-assign] # noqa: SLF001

    def places(self) -> int:
        """How many inbound connections are held now, handshakes included."""
        return self._places.total()

    async def _hold(self, connection: ReadWriteCloser, maddr: Any) -> None:  # noqa: ANN401
        remote = connection.get_remote_address()
        origin = address_group(remote[0]) if remote else ""
        self._places[origin] += 1
        try:
            if self._places[origin] > self._per_address:
                self.refused += 1
                return
            is_initiator = False
            muxed = await self._swarm.upgrade_inbound_raw_conn(RawConnection(connection, is_initiator), maddr)
            established = self._find(muxed)
            if established is not None:
                await established.event_closed.wait()  # type: ignore[attr-defined]
        except Exception as error:  # noqa: BLE001 - a stranger decides what is raised here
            logger.debug("inbound connection: %r", error)
        finally:
            self._places[origin] -= 1
            if not self._places[origin]:
                del self._places[origin]
            await quietly(connection.close)

    def _find(self, muxed: object) -> INetConn | None:
        return next((connected for connected in self._swarm.get_connections() if connected.muxed_conn is muxed), None)


def address_group(address: str) -> str:
    """What counts as one address: an IPv4 address, or the /64 that one IPv6 subscriber has."""
    try:
        ip = ipaddress.ip_address(address.split("%", maxsplit=1)[0])
    except ValueError:
        return address
    if isinstance(ip, ipaddress.IPv6Address):
        if ip.ipv4_mapped:
            return str(ip.ipv4_mapped)
        return str(ipaddress.ip_network((int(ip) >> 64 << 64, 64)))
    return str(ip)
