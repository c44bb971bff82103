"""Keeps this log and the logs of its peers equal: gossip announces, reconciliation makes it true."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

import msgspec
import structlog

from autoresearch.ask.acts.notebook import Notebook
from autoresearch.ask.health import warning
from autoresearch.ask.node import Check, NetworkStatus, PeersAnswer, PeerView
from autoresearch.errors import AutoresearchError, UsageError, install_command
from autoresearch.log.log import Log
from autoresearch.log.quota import NAMING
from autoresearch.log.rows import IngestVerdict, Revision, State
from autoresearch.log.sync.index import KeyIndex
from autoresearch.log.sync.session import SyncFinished
from autoresearch.record.kinds import BlobRef, Run, Task
from autoresearch.record.record import Record, parse_stored
from autoresearch.run.bench import device_name
from autoresearch.run.sandbox.cards import named_devices
from autoresearch.settings import NetworkSection, Settings
from autoresearch.trust.manifest import NetworkManifest, check_listen_address, check_peer_address
from autoresearch.trust.manifest_file import encode_manifest
from autoresearch.version import __version__
from autoresearch.words import NetworkState, Part
from autoresearch_daemon.events import now_ms
from autoresearch_daemon.log_thread import KEYS_AT_ONCE, Key, LogThread
from autoresearch_daemon.net.model import HostOptions, PeerInfo, Topic, device_statement, load_book
from autoresearch_daemon.net.network import Handlers as NetworkHandlers
from autoresearch_daemon.net.network import NetworkClient
from autoresearch_daemon.owner.rules import NetworkRest
from autoresearch_daemon.peers.blob_fetching import Fetcher, Room, serve_part
from autoresearch_daemon.peers.blob_storage import Prefetch
from autoresearch_daemon.peers.ingest import Arrived, DroppedKeys, EarlyRecords, Ingester, RefusedRecords
from autoresearch_daemon.peers.sync_sessions import Sessions, check_dialled, named_peer

logger = structlog.get_logger()

PEERS_REMEMBERED = 1000


class Exchanged(NamedTuple):
    """The last exchange of records with a peer that came to its end: when, and how many records went and came."""

    time_ms: int
    sent: int
    received: int


class RecordSync:
    """The node's traffic of records and blobs. ``on_news(records)`` is told what came from others and is stored.

    Every ``settings.exchange_seconds`` a random peer is asked what it has that is missing here. Gossip carries the
    news, the exchange makes it complete. ``room`` watches over the disk. The ``thread`` of the log stores what comes.
    """

    def __init__(
        self,
        notebook: Notebook,
        options: HostOptions,
        settings: NetworkSection,
        room: Room,
        thread: LogThread,
        *,
        on_news: Callable[[Sequence[Record]], None],
        questions: Mapping[Topic, Callable[[str, bytes], Awaitable[bytes | None]]],
    ) -> None:
        self._notebook = notebook
        self._log = notebook.log
        self._on_news = on_news
        self._settings = settings
        self._thread = thread
        self._ingester = Ingester(thread, self._stored)
        self._seen = self._log.reader.revision()
        self._index = KeyIndex(self._log.records.iter_keys())
        self._log.writer.on_change = thread.on_change = self._changed
        self._met: set[str] = set()
        self._exchanged: dict[str, Exchanged] = {}
        self._early = EarlyRecords()
        self._passed = DroppedKeys()
        self._refused = RefusedRecords()
        self._first = asyncio.Event()
        self._knows_peers = bool(options.bootstrap or load_book(options.book_file).contacts)
        self._tasks: set[asyncio.Task[None]] = set()
        self._rest = NetworkRest()
        self._sessions = Sessions(
            self._log,
            lambda: self._index,
            lambda ids: [*self._log.records.raw(ids), *self._early.raw(ids)],
            self._ingester,
            refused=self._refused.of,
            on_finished=self._finished,
            open_stream=lambda peer: self.network.open_sync(peer),  # noqa: PLW0108 - the network is made below
            me=self.me,
        )
        self.network = NetworkClient(
            msgspec.structs.replace(options, device_key=notebook.author),
            NetworkHandlers(
                on_record=self._heard,
                on_sync=self._sessions.answer,
                on_blob_request=self._blob,
                on_peers=self._peers_changed,
                questions=questions,
                introduce=self._introduce,
            ),
        )
        self.fetcher = Fetcher(self.network, notebook.blobs, room)
        self._wishes = Prefetch(self.fetcher, notebook.blobs)

    async def start(self) -> None:
        """Start the network, announce what is appended here from now on, and begin the rounds."""
        self._notebook.announce = self._announce
        await self.network.rest(self._rest.offline)
        self.network.start()
        self._spawn(self._ingester.keep())
        self._spawn(self._rounds())
        self._spawn(self._wishes.keep())

    async def stop(self) -> None:
        """End everything that is under way."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self.network.stop()

    def rest(self, rest: NetworkRest) -> None:
        """Have the network, and the blobs, rest or go on."""
        if rest == self._rest:
            return
        before, self._rest = self._rest, rest
        logger.info("network", offline=rest.offline, blobs=rest.blobs)
        self.network.move_blobs(rest.blobs)
        if rest.offline != before.offline:
            self._spawn(self.network.rest(rest.offline))

    async def synchronise(self, peer: str) -> None:
        """Give a connected peer what it lacks and take what is missing here. Raises AutoresearchError."""
        await self._sessions.open(peer)

    def me(self) -> str:
        """This host's peer id."""
        return self.network.info().peer

    def connected(self) -> list[str]:
        """The peers that are connected now."""
        return [peer.peer for peer in self.network.peers() if peer.connected]

    async def ask_attestor(self, peer: str, data: bytes) -> bytes:
        """What a peer replies as an attestor. Raises AutoresearchError, also when it is none."""
        return await self.network.ask(peer, "attest", data)

    async def take_in(self, pairs: Sequence[tuple[bytes, bytes]], peer: str) -> None:
        """Store records that a peer gave, as if they had been announced. Raises AutoresearchError."""
        await self._ingester.store(pairs, peer)

    async def first(self, seconds: float) -> None:
        """Wait for the first exchange of records that comes to its end; without peers to ask, or then, no longer."""
        if self._knows_peers and not self._rest.offline:
            with suppress(TimeoutError):
                async with asyncio.timeout(seconds):
                    await self._first.wait()

    def status(self) -> NetworkStatus:
        """How the network stands."""
        info, day_mib = self.network.info(), self._settings.day_mib
        rests = self._rest.blobs
        if day_mib and info.bytes_today >= day_mib << 20:
            rests = (
                f"today's {day_mib:,} MiB are used up: records move, programs and checkpoints don't (network.day_mib)"
            )
        return NetworkStatus(
            state=info.state.value,
            reason=rests if rests and info.state == NetworkState.RUNNING else info.reason,
            connected=info.connected,
            bytes_today=info.bytes_today,
            exchanged_ms=max((exchanged.time_ms for exchanged in self._exchanged.values()), default=0),
        )

    def peers(self) -> PeersAnswer:
        """This node on the network, and its peers."""
        info = self.network.info()
        return PeersAnswer(
            network=self.status(),
            peer=info.peer,
            addresses=list(info.addresses),
            peers=[self._view(peer) for peer in self.network.peers()],
        )

    def _view(self, peer: PeerInfo) -> PeerView:
        exchanged = self._exchanged.get(peer.peer, Exchanged(0, 0, 0))
        about = msgspec.structs.asdict(peer) | {
            "device_key": peer.device_key.hex(),
            "other_network": bool(peer.network) and peer.network != self._log.network.id,
            "exchanged_ms": exchanged.time_ms,
            "records_in": exchanged.received,
            "records_out": exchanged.sent,
        }
        return msgspec.convert(about, PeerView)

    async def block(self, peer: str, *, blocked: bool) -> None:
        """Refuse a peer, named by its id or the end of it, from now on, or no longer. Raises AutoresearchError."""
        named = named_peer(peer, self.peers().peers, own=self.me())
        await self.network.block(named, blocked=blocked)

    def offer(self, manifest: NetworkManifest) -> None:
        """Give nodes who ask which network this is this manifest from now on."""
        self.network.offer(encode_manifest(manifest))

    def conditions(self) -> list[Check]:
        """Peers that are shut out, and why."""
        refused = [peer for peer in self.network.peers() if peer.shut_out]
        return [warning(Part.PEERS, f"peer {peer.peer} is shut out: it {peer.shut_out}") for peer in refused]

    def dial(self, address: str) -> None:
        """Begin to connect to an address; it is remembered and tried again. Raises UsageError, Refused."""
        check_peer_address(address, "the address")
        check_dialled(address, self.peers().peers, own=self.me())
        self._spawn(self._quietly(self.network.dial(address), address))

    def _introduce(self, peer: str) -> bytes:
        """What this device signs so that peers know which participant is behind this host."""
        return self._notebook.identity.device.sign(device_statement(self._log.network.id, peer))

    # --- what peers do ---

    async def _heard(self, raw: bytes, signature: bytes, peer: str) -> None:
        await self._ingester.take([(raw, signature)], peer)

    async def _blob(self, name: bytes, offset: int, length: int) -> bytes | None:
        return await serve_part(self._notebook.blobs, name, offset, length)

    def _peers_changed(self) -> None:
        connected = {peer.peer: peer for peer in self.network.peers() if peer.connected}
        for peer in connected.keys() - self._met:
            # Whoever dialled calls; a peer that did and doesn't is asked in a later round.
            if not connected[peer].inbound:
                self._spawn(self._quietly(self.synchronise(peer), peer))
        if connected.keys() - self._met:
            self._wishes.retry()
        self._met = set(connected)
        self.fetcher.peers_changed()

    def _finished(self, peer: str, finished: SyncFinished) -> None:
        self._exchanged[peer] = Exchanged(now_ms(), finished.sent, finished.received)
        self._first.set()
        while len(self._exchanged) > PEERS_REMEMBERED:
            del self._exchanged[next(iter(self._exchanged))]

    def _stored(self, arrived: Arrived) -> None:
        peer, pairs, verdicts = arrived
        self._refused.add(peer, verdicts)
        if refused := [verdict for verdict in verdicts if verdict.state is State.REFUSED]:
            logger.warning(
                "a peer sent records that are none", peer=peer, count=len(refused), first=refusal(refused[0])
            )
        for (raw, signature), verdict in zip(pairs, verdicts, strict=True):
            if verdict.state is State.EARLY:
                self._let_wait(raw, signature)
        news = [verdict.record for verdict in verdicts if verdict.state is State.STORED and verdict.record]
        if any(record.kind in NAMING for record in news):  # of whom nothing was kept, is perhaps known now
            self._discard(self._passed.clear())
        if news:
            self._on_news(news)
        for record in news:
            self._wishes.want(carried(record))

    def _discard(self, keys: Iterable[tuple[int, bytes]]) -> None:
        for time_ms, record_id in keys:
            self._index.discard(time_ms, record_id)

    def _let_wait(self, raw: bytes, signature: bytes) -> None:
        record = parse_stored(raw, signature)
        self._index.update([(record.time, record.id)])
        for time_ms, record_id in self._early.add((record.time, record.id), (raw, signature)):
            self._index.discard(time_ms, record_id)

    async def _take_due(self) -> None:
        """Store the early records whose time has come; what is not stored is not offered any more."""
        due = self._early.due(now_ms() + self._log.network.ahead_ms)
        if not due:
            return
        await self._ingester.store([pair for _, pair in due], "those that waited")
        stored = self._log.records.has([record_id for (_, record_id), _ in due])
        for (time_ms, record_id), _ in due:
            if record_id not in stored:
                self._index.discard(time_ms, record_id)

    # --- what happens here ---

    async def look(self) -> None:
        """Take notice of records that another process has put into the log: an import."""
        added = await self._thread.run(partial(_added_elsewhere, since=self._seen))
        if added is None:
            return
        self._seen, news = added
        if isinstance(news, KeyIndex):
            self._passed.clear()
            self._index = news
            news = [*self._early.keys(), *self._log.records.keys_after(self._seen.row)]
        for start in range(0, len(news), KEYS_AT_ONCE):
            self._index.update(news[start : start + KEYS_AT_ONCE])
            await asyncio.sleep(0)
        logger.info("others added records to the log", records=len(self._index))

    def _changed(self, came: Sequence[tuple[int, bytes]], went: Sequence[tuple[int, bytes]]) -> None:
        self._index.update(came)
        self._passed.discard(came)
        self._index.update(went)
        self._discard(self._passed.add(went))

    def _announce(self, record: Record) -> None:
        if not self._settings.gossip:
            return
        self._spawn(self._quietly(self.network.publish(record), "everybody"))

    async def _rounds(self) -> None:
        while True:
            await asyncio.sleep(self._settings.exchange_seconds * random.uniform(0.75, 1.25))  # noqa: S311 - jitter, no secret
            await self._quietly(self._take_due(), "those that waited")
            if connected := self.connected():
                peer = random.choice(connected)  # noqa: S311
                await self._quietly(self.synchronise(peer), peer)

    async def _quietly(self, work: Awaitable[None], peer: str) -> None:
        try:
            await work
        except AutoresearchError as error:
            logger.info("a peer could not be reached", peer=peer, reason=str(error))

    def _spawn(self, work: Awaitable[None]) -> None:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


def _added_elsewhere(log: Log, *, since: Revision) -> tuple[Revision, list[Key] | KeyIndex] | None:
    """The keys that came after a revision, or all of them when some went; None when nobody else wrote since."""
    if not log.reader.changed_elsewhere():
        return None
    with log.reader.snapshot() as now:
        return now, log.records.keys_after(since.row) if now.drops == since.drops else KeyIndex(log.records.iter_keys())


def carried(record: Record) -> list[BlobRef]:
    """The blobs that travel with a record: a run's source and log, a task's files. Checkpoints don't."""
    match record.body:
        case Run(source=source, log=log):
            return [source, log] if log else [source]
        case Task(baseline=baseline, harness=harness):
            return [baseline, *harness.values()]
        case _:
            return []


def refusal(verdict: IngestVerdict) -> str:
    """Why a record was refused."""
    return verdict.refusal.sentence if verdict.refusal else ""


def host_options(folder: Path, settings: Settings, manifest: NetworkManifest) -> HostOptions:
    """The network's options as the settings and the network's manifest have them.

    Raises:
        UsageError: the network is asked for and its library is not installed.
    """
    if find_spec("libp2p") is None:
        raise UsageError(
            "network.enabled is true, but libp2p is not installed",
            hint=install_command("network"),
        )
    network = settings.network
    named = addresses(network.bootstrap, check_peer_address, "network.bootstrap")
    return HostOptions(
        folder=str(folder),
        network=manifest.network,
        manifest=encode_manifest(manifest),
        listen=addresses(network.listen, check_listen_address, "network.listen"),
        bootstrap=tuple(dict.fromkeys(named + manifest.bootstrap)),
        lan=network.lan,
        use_relay=network.use_relay,
        serve_relay=network.serve_relay,
        attest=settings.attestor.enabled,
        day_bytes=network.day_mib << 20,
        agent=f"autoresearch/{__version__}",
        devices=tuple(device_name(device) for device in named_devices(settings.work.device)[: settings.work.workers])[
            :8
        ],
    )


def addresses(text: str, check: Callable[[str, str], None], name: str) -> tuple[str, ...]:
    """The addresses in a setting, between commas. Raises UsageError when one is none."""
    parts = tuple(part for part in (piece.strip() for piece in text.split(",")) if part)
    for part in parts:
        check(part, name)
    return parts
