"""The libp2p host (trio): TCP, Noise and Yamux alone; gossip, streams, peers. Knows nothing of the daemon."""

from __future__ import annotations

import contextlib
import logging
import random
import time
from collections.abc import AsyncIterator, Callable

import trio
from libp2p import new_host
from libp2p.abc import INetConn, INetStream
from libp2p.crypto.ed25519 import create_new_key_pair
from libp2p.crypto.keys import KeyPair
from libp2p.crypto.x25519 import create_new_key_pair as create_noise_key_pair
from libp2p.custom_types import TProtocol
from libp2p.identity_utils import load_identity, save_identity
from libp2p.network.config import ConnectionConfig
from libp2p.network.swarm import Swarm
from libp2p.peer.id import ID
from libp2p.security.noise.transport import PROTOCOL_ID as NOISE_PROTOCOL_ID
from libp2p.security.noise.transport import Transport as NoiseTransport
from libp2p.stream_muxer.yamux.yamux import PROTOCOL_ID as YAMUX_PROTOCOL_ID
from libp2p.tools.anyio_service import background_trio_service
from multiaddr import Multiaddr

from autoresearch.record.record import Record, admit
from autoresearch.trust.attestation import MESSAGE_BYTES_MAX
from autoresearch.trust.manifest_file import MANIFEST_BYTES_MAX
from autoresearch_daemon.net import model
from autoresearch_daemon.net.host import guards, serving
from autoresearch_daemon.net.host.dialling import Dialler, Unreachable
from autoresearch_daemon.net.host.finding import announce_and_listen
from autoresearch_daemon.net.host.gossip import GossipVerdict, RecordPubsub, Router
from autoresearch_daemon.net.host.serving import HostHandlers, Serving
from autoresearch_daemon.net.host.streams import FrameStream, Meters, StreamBroken
from autoresearch_daemon.net.host.watching import ConnectionWatch, Relaying, is_public

logger = logging.getLogger(__name__)

SIGNATURE_BYTES = 64
OPEN_SECONDS = 10.0


class HostRefused(Exception):
    """A rule says no; the text says which."""


class Host:
    """One libp2p host. Use it inside ``async with host.run()``. ``now_ms`` is Unix milliseconds."""

    def __init__(
        self,
        options: model.HostOptions,
        handlers: HostHandlers,
        *,
        now_ms: Callable[[], int] = lambda: time.time_ns() // 1_000_000,
    ) -> None:
        self.options = options
        self.book: model.AddressBook = model.load_book(options.book_file)
        self._handlers = handlers
        self._now_ms = now_ms
        self._keys = host_key(options)
        self.peer = str(ID.from_pubkey(self._keys.public_key))
        self.listen = [guards.choose_port(address, self.book.port) for address in options.listen]
        self._host = new_host(
            key_pair=self._keys,
            listen_addrs=[Multiaddr(address) for address in self.listen],
            # Stock, plaintext is offered too, and whoever speaks it may claim to be any peer.
            sec_opt={NOISE_PROTOCOL_ID: NoiseTransport(self._keys, create_noise_key_pair().private_key)},
            muxer_opt={TProtocol(YAMUX_PROTOCOL_ID): guards.GuardedYamux},
            connection_config=connection_config(options),
            disable_identify_address_discovery=True,
            addrs_factory=lambda addresses: guards.expand(list(addresses)),
        )
        swarm = self._host.get_network()
        assert isinstance(swarm, Swarm)
        swarm.set_resource_manager(None)  # its circuit breaker lets strangers close the door for a minute; caps below
        guards.dial_nobody(swarm)
        self.meters = Meters(swarm, now_ms, options.day_bytes, self.book)
        self.gate = guards.InboundGate(swarm, options.connections_per_address)
        guards.guard_streams(self._host, self._admit_stream)
        self.watch = ConnectionWatch(swarm, self.book, self.meters, now_ms, handlers.on_change, self._new_peer)
        swarm.register_notifee(self.watch)
        self._router = Router()
        self._pubsub = RecordPubsub(
            self._host,
            self._router,
            options.topic,
            judge=self._judge,
            deliver=self._deliver,
            offend=self.watch.offend,
            delay=self.meters.message_delay,
        )
        self.relaying = Relaying(self._host, serve=options.serve_relay)
        self.dialler = Dialler(
            self._host,
            self.book,
            options,
            self.watch,
            now_ms,
            random.Random(),  # noqa: S311 - jitter, no secret
            self.relaying.dial,
        )
        self.serving = Serving(
            options,
            handlers,
            self.meters,
            self.watch,
            self.book,
            self.relaying,
            frames=self._frames,
            addresses=self.addresses,
            now_ms=now_ms,
        )
        self._nursery: trio.Nursery | None = None
        self.records_dropped = 0
        self.records_heard = 0

    # --- life ---

    @contextlib.asynccontextmanager
    async def run(self) -> AsyncIterator[Host]:
        """Listen, dial, gossip; everything is closed at the end."""
        for name, handler in self.serving.protocols():
            self._host.set_stream_handler(TProtocol(name), handler)
        listen = [Multiaddr(address) for address in self.listen]
        async with (
            self._host.run(listen),
            background_trio_service(self._pubsub),
            background_trio_service(self._router),
            background_trio_service(self.relaying.service),
            trio.open_nursery() as nursery,
        ):
            self._nursery = nursery
            await self._pubsub.wait_until_ready()
            await self._pubsub.subscribe(self.options.topic)
            if own := self.addresses():
                self.book.port = int(own[0].split("/")[4])
                self.dialler.save()  # at once: others look for this node at its last port, however soon it is killed
            nursery.start_soon(self.watch.keep, self._router)
            nursery.start_soon(self._pubsub.keep_streams)
            nursery.start_soon(self.dialler.keep, self._exchange)
            nursery.start_soon(self.relaying.keep, self._relays)
            if self.options.lan:
                nursery.start_soon(announce_and_listen, self.addresses, self.options, self.dialler.learn)
            try:
                yield self
            finally:
                self._nursery = None
                self.meters.end()
                self.dialler.save()
                await self._close()
                nursery.cancel_scope.cancel()

    async def _close(self) -> None:
        """Close everything; leaving libp2p's own run() alone keeps sockets open, and it closes one after the other."""
        with trio.CancelScope(shield=True):
            async with trio.open_nursery() as nursery:
                for connection in self._host.get_network().get_connections():
                    nursery.start_soon(guards.part, connection)
            await guards.quietly(self._host.close)

    # --- what is asked of it ---

    def addresses(self) -> list[str]:
        """The multiaddrs to reach this host, with its peer id; none once its listeners are closed."""
        try:
            return [str(address) for address in self._host.get_addrs()]
        except OSError:  # libp2p asks the closed socket
            return []

    def peers(self) -> list[model.PeerInfo]:
        """Connected peers first, then those of the book."""
        return self.watch.peers()

    def figures(self) -> model.Figures:
        """The counters."""
        return self.meters.figures(
            records_heard=self.records_heard,
            records_dropped=self.records_dropped,
            records_refused=self.watch.offences,
            inbound_refused=self.gate.refused,
            peers_banned=self.watch.bans,
        )

    async def publish(self, raw: bytes, signature: bytes) -> None:
        """Gossip a record. Best effort: nobody says whether it arrived. Raises HostRefused when it is none."""
        if self._judge(signature + raw) is not GossipVerdict.RELAY:
            raise HostRefused("that is no record of this network")
        await self._pubsub.publish(self.options.topic, signature + raw)

    def offer(self, manifest: bytes) -> None:
        """Give peers who ask for the network these bytes from now on."""
        self.serving.manifest = manifest

    def introduce(self, proof: bytes) -> None:
        """Tell peers from now on which device this host is of."""
        self.serving.introduce(proof)

    async def dial(self, address: str) -> None:
        """Connect to an address and keep to it. Raises HostRefused, Unreachable."""
        await self.dialler.add(address)

    def block(self, peer: str, *, blocked: bool) -> None:
        """Refuse a peer from now on, or no longer. Raises HostRefused when that is no peer id."""
        if not guards.is_peer_id(peer):
            raise HostRefused(f"{peer} is no peer id")
        self.watch.block(peer, blocked=blocked)
        self.dialler.save()

    def shut_out(self, peer: str, reason: str) -> None:
        """Close a peer's connections and refuse it for ten minutes. Raises HostRefused when that is no peer id."""
        if not guards.is_peer_id(peer):
            raise HostRefused(f"{peer} is no peer id")
        self.watch.shut_out(peer, reason)

    async def open_sync(self, peer: str) -> FrameStream:
        """A new sync stream. Raises Unreachable."""
        return await self._open(peer, serving.SYNC)

    async def fetch_blob(self, peer: str, name: bytes, offset: int, length: int) -> bytes:
        """A part of a blob. Raises Unreachable, HostRefused, BlobNotHere, PeerBusy, StreamBroken."""
        if reason := self.meters.why_no_blobs():
            raise HostRefused(reason)
        stream = await self._open(peer, serving.BLOB)
        try:
            with trio.fail_after(serving.BLOB_SECONDS):
                data = await serving.fetch_blob(stream, name, offset, length)
        except BaseException:
            await stream.reset()
            raise
        await stream.close()
        return data

    async def ask_network(self, peer: str) -> bytes:
        """The manifest of a connected peer's network, unchecked. Raises Unreachable, StreamBroken, TooSlowError."""
        with trio.fail_after(serving.NETWORK_SECONDS):
            stream = await self._open(peer, serving.NETWORK, MANIFEST_BYTES_MAX)
            manifest = await serving.ask_network(stream)
            await stream.close()
        return manifest

    async def ask(self, peer: str, topic: model.Topic, question: bytes) -> bytes:
        """What a connected peer replies about something. Raises Unreachable, StreamBroken, TooSlowError."""
        with trio.fail_after(serving.QUESTION_SECONDS):
            stream = await self._open(peer, serving.QUESTIONS[topic], MESSAGE_BYTES_MAX)
            try:
                reply = await serving.ask_question(stream, question)
            except BaseException:
                await stream.reset()
                raise
            await stream.close()
        return reply

    def _relays(self) -> set[str]:
        """The peers that may pass calls on to this host, as long as nobody seems to be able to call it directly."""
        if not self.options.use_relay or any(is_public(address) for address in self.addresses()):
            return set()
        return self.watch.called_peers()

    # --- streams ---

    async def _open(self, peer: str, protocol: str, bytes_max: int | None = None) -> FrameStream:
        if not self.watch.is_connected(peer):
            raise Unreachable(f"{peer} is not connected")
        try:
            with trio.fail_after(OPEN_SECONDS):
                stream = await self._host.new_stream(ID.from_string(peer), [TProtocol(protocol)])
        except Exception as error:
            raise Unreachable(f"{peer} opens no {protocol} stream") from error
        return self._frames(stream, bytes_max)

    def _frames(self, stream: INetStream, bytes_max: int | None = None) -> FrameStream:
        peer = str(stream.muxed_conn.peer_id)
        limit = {} if bytes_max is None else {"bytes_max": bytes_max}
        return FrameStream(stream, peer, on_bytes=lambda count: self.meters.byte_delay(peer, count), **limit)

    async def _admit_stream(self, stream: INetStream) -> bool:
        peer = str(stream.muxed_conn.peer_id)
        await trio.sleep(self.meters.stream_delay(peer))
        return not self.watch.is_refused(peer)

    async def _greet(self, peer: str) -> None:
        """Learn what a peer says of itself."""
        try:
            with trio.fail_after(serving.PEERS_SECONDS):
                stream = await self._open(peer, serving.HELLO, model.GREETING_BYTES_MAX)
                greeting = await serving.ask_greeting(stream)
                await stream.close()
        except (Unreachable, StreamBroken, trio.TooSlowError) as error:
            logger.debug("greeting %s: %s", peer, error)
            return
        self.watch.greeted(peer, greeting, model.proven_device(greeting, self.options.network.id, peer))

    async def _exchange(self, peer: str) -> None:
        """Learn the addresses that a peer knows."""
        try:
            with trio.fail_after(serving.PEERS_SECONDS):
                stream = await self._open(peer, serving.PEERS)
                addresses = await serving.ask_peers(stream)
                await stream.close()
        except (Unreachable, StreamBroken, trio.TooSlowError) as error:
            logger.debug("peer exchange with %s: %s", peer, error)
            return
        for address in addresses:
            self.dialler.learn(address)

    def _new_peer(self, peer: str, connection: INetConn) -> None:
        if self._nursery:
            self._nursery.start_soon(self._greet, peer)
            self._nursery.start_soon(self.dialler.welcome, peer, connection, self._exchange)

    # --- records ---

    def _judge(self, data: bytes) -> GossipVerdict:
        raw, signature = data[SIGNATURE_BYTES:], data[:SIGNATURE_BYTES]
        verdict = admit(raw, signature, self.options.network, now_ms=self._now_ms())
        if isinstance(verdict, Record):
            return GossipVerdict.RELAY
        # Clocks differ: what is early here was not where it came from. It comes again with the next exchange.
        return GossipVerdict.IGNORE if verdict.code == "early" else GossipVerdict.REJECT

    def _deliver(self, data: bytes, peer: str) -> None:
        self.records_heard += 1
        if not self._handlers.on_record(data[SIGNATURE_BYTES:], data[:SIGNATURE_BYTES], peer):
            self.records_dropped += 1


def host_key(options: model.HostOptions) -> KeyPair:
    """The host's key pair, made once and kept where only this user reads."""
    if not options.key_file.exists():
        options.key_file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        temporary = options.key_file.with_suffix(".new")
        save_identity(create_new_key_pair(), temporary)
        temporary.replace(options.key_file)
    return load_identity(options.key_file)


def connection_config(options: model.HostOptions) -> ConnectionConfig:
    """Caps and health checks; libp2p dials nobody by itself."""
    return ConnectionConfig(
        max_connections=options.connections_max,
        high_watermark=options.connections_max,
        low_watermark=0,
        min_connections=0,
        max_connections_per_peer=3,
        inbound_upgrade_timeout=5.0,
        enable_health_monitoring=True,
        health_initial_delay=min(5.0, options.health_seconds),
        health_warmup_window=min(5.0, options.health_seconds / 2),
        health_check_interval=options.health_seconds,
        ping_timeout=min(5.0, options.health_seconds),
        abort_connection_on_ping_failure=True,
    )
