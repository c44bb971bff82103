"""The parts of a node, made and connected. They know each other by what they are given, and none knows the node."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path

from autoresearch.ask.health import conditions, examine, of_peers, open_files, warning
from autoresearch.ask.node import Check, NetworkStatus
from autoresearch.errors import NotFound
from autoresearch.log.standing.context import participant_with_key
from autoresearch.paths import Paths
from autoresearch.record.kinds import BlobRef
from autoresearch.record.record import Record
from autoresearch.run.sandbox.cards import PROCESSOR
from autoresearch.settings import Settings
from autoresearch.words import NetworkState, Part, network_reason
from autoresearch_daemon.core import Core
from autoresearch_daemon.events import now_ms
from autoresearch_daemon.gauges import Gauges
from autoresearch_daemon.judging import Judging, LeaderWatch
from autoresearch_daemon.mail.service import AttestationService
from autoresearch_daemon.notices import Notices
from autoresearch_daemon.owner.watch import OwnerWatch
from autoresearch_daemon.peers.blob_storage import Keeper
from autoresearch_daemon.peers.news import news_of
from autoresearch_daemon.peers.own_services import OwnServices
from autoresearch_daemon.peers.record_sync import RecordSync, host_options
from autoresearch_daemon.peers.trust_watch import AdmissionWatch, ManifestWatch
from autoresearch_daemon.runs.assignments import Assignments
from autoresearch_daemon.service.effects import Happening, RestNetwork, SeekAdmissions, TrustChanged
from autoresearch_daemon.verification.controller import VerificationController
from autoresearch_daemon.verification.queue import VerificationQueue

# How long a worker's next verification may wait for the files of the run.
FETCH_SECONDS = 60.0
NO_NETWORK = NetworkStatus(state=NetworkState.OFF.value, reason=network_reason(NetworkState.OFF))


class NodeParts(Core):
    """All parts of one node.

    ``standing`` is what a person has to do for this device, ``no_sandbox`` what keeps programs of others from running.
    """

    def __init__(self, paths: Paths, settings: Settings, devices: list[str], take: Callable[[Happening], None]) -> None:
        super().__init__(paths, settings, take)
        notebook = self.notebook
        self.standing = ""
        self.no_sandbox: list[Check] = []
        self.gauges = Gauges()
        self.keeper = Keeper(
            notebook,
            quota_bytes=settings.storage.blobs_mib << 20,
            minimum_free_bytes=lambda: self.settings.storage.minimum_free_mib << 20,
        )
        self.attesting = AttestationService(notebook, self.local, paths, settings, dict(os.environ), now_ms=now_ms)
        self.own_services = OwnServices(notebook, paths)
        self.sync: RecordSync | None = None
        if settings.network.enabled:
            self.sync = RecordSync(
                notebook,
                host_options(paths.network, settings, notebook.manifest),
                settings.network,
                self.keeper,
                self.thread,
                on_news=self._take_news,
                questions={"attest": self.attesting.reply, "services": self.own_services.reply},
            )
            self.attesting.connect(self.sync)
            self.own_services.connect(self.sync.network)
        self.verifying = VerificationController(
            notebook,
            VerificationQueue(notebook, self.thread, lambda blob: self.fetch(blob, FETCH_SECONDS), self.has_peers),
            self.events,
            self.service,
            paths,
            self.local,
            take=take,
            load=lambda folder: self.folders.load(self.folders.worked_on(folder)),
        )
        self.assignments = Assignments(self, self.verifying, devices, self.has_peers)
        self.leading = LeaderWatch(self.thread, self.events, notebook.author)
        self.judging = Judging(notebook, self.thread, self.leading, take=take)
        self.trusting = ManifestWatch(notebook, self.events, paths.manifest, changed=lambda: take(TrustChanged()))
        self.admitting = AdmissionWatch(
            notebook, self.thread, self.events, paths.manifest, changed=lambda: take(TrustChanged())
        )
        self.owner = OwnerWatch(
            lambda: self.settings,
            self.service.status,
            lambda: self.gauges.status,
            take=take,
            workers=lambda: self.assignments.pool.pids().values(),
            rest=lambda rest: take(RestNetwork(rest)),
            woke=self.assignments.pool.renew if any(device != PROCESSOR for device in devices) else None,
        )
        self.notices = Notices(
            lambda: self.settings,
            self.events,
            lambda: participant_with_key(notebook.log, notebook.identity.root.public),
            dict(os.environ),
        )

    def _take_news(self, records: Sequence[Record]) -> None:
        for happening in news_of(records, self.notebook, self.service.status(), now_ms()):
            self.take(happening)
        if self.admitting.note(records):
            self.take(SeekAdmissions())

    def secrets(self) -> list[Path]:
        """What no run may read."""
        password = self.settings.mail.password_file
        return [*self.paths.secrets(), *([Path(password).expanduser()] if password else [])]

    def has_peers(self) -> bool:
        """Whether others hear what is published here now."""
        return self.sync is not None and bool(self.sync.connected())

    async def fetch(self, blob: BlobRef, seconds: float) -> None:
        """Get a blob from other nodes, unless it is here. Raises NotFound, TimedOut, Refused."""
        if self.notebook.blobs.has(blob.sha256):
            return
        if self.sync is None:
            raise NotFound("the network is off", hint="autoresearch node config set network.enabled true")
        await self.sync.fetcher.fetch(blob, seconds)

    def devices_seen(self) -> dict[bytes, int]:
        """By device key when peers were connected last, those that are connected now at this moment."""
        peers = self.sync.peers().peers if self.sync else []
        devices = [(bytes.fromhex(peer.device_key), peer) for peer in peers if peer.device_key]
        return {key: now_ms() if peer.connected else peer.seen_ms for key, peer in devices}

    def conditions(self) -> list[Check]:
        """What ails this node, with its remedies: what its home shows, and what only a running node knows."""
        checks = examine(self.paths, os.environ, now_ms(), log=self.notebook.log) + self.no_sandbox
        problems = {
            Part.IDENTITY: self.standing,
            Part.NETWORK: self.trusting.problem,
            Part.INVITE: self.admitting.problem,
        }
        checks += [warning(part, sentence) for part, sentence in problems.items() if sentence]
        checks += self.attesting.conditions() + self.owner.conditions() + self.notices.conditions()
        checks += [*self.failures.conditions(), open_files()]
        if self.sync:
            checks += of_peers(self.sync.peers().peers) + self.sync.conditions()
        return conditions(checks)
