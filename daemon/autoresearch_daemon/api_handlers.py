"""What the API asks of the node, and what it gets."""

from __future__ import annotations

import asyncio
import os
from contextlib import AbstractContextManager

import msgspec

from autoresearch.answers import (
    BlockRequest,
    DialRequest,
    Event,
    Health,
    NameRequest,
    PauseRequest,
    PeersAnswer,
    RunAccepted,
    RunRequest,
    StatusAnswer,
    TrustAnswer,
    VerifyRequest,
    WithdrawnAnswer,
    WithdrawRecordRequest,
    WorkRequest,
    own_record,
    way_to_count,
    with_participants,
    withdrawn_answer,
)
from autoresearch.errors import Refused, UsageError
from autoresearch.log import BlobStore, Log
from autoresearch.records import BlobRef
from autoresearch.views import roster_of
from autoresearch.words import ProofKind
from autoresearch_daemon import service
from autoresearch_daemon.attesting import AttestationService
from autoresearch_daemon.clock import now_ms
from autoresearch_daemon.folders import existing_folder
from autoresearch_daemon.node import NO_NETWORK, Node
from autoresearch_daemon.status import status_answer, verifying_part


class ApiHandlers:
    """A node as its API sees it."""

    def __init__(self, node: Node) -> None:
        self._node = node
        self._names = 0

    @property
    def log(self) -> Log:
        """The open log."""
        return self._node.notebook.log

    @property
    def blobs(self) -> BlobStore:
        """The open blob store."""
        return self._node.notebook.blobs

    def author(self) -> bytes:
        """The device key that signs here."""
        return self._node.notebook.author

    def work(self, request: WorkRequest) -> StatusAnswer:
        """Work until told otherwise, or for so many runs, or until a time."""
        folder = request.task and str(existing_folder(request.task))
        self._node.load(folder or self._node.settings.work.task)
        share = self._node.settings.work.verify_share if request.verify_share is None else request.verify_share
        if share >= 1 and request.runs is not None:
            raise UsageError(
                "runs are experiments, and who only checks others' makes none", hint="name a time: --for 2h"
            )
        if share >= 1 and not roster_of(self.log).voter(self.author(), now_ms()).attested:
            raise Refused(
                "this participant is unattested, so there is nothing for it to verify",
                hint=way_to_count(self.log, self._node.notebook.identity.root.public),
            )
        self._node.take(service.WorkAsked(service.Order(folder, request.runs, request.until_ms, share)))
        return self.status()

    def pause(self, request: PauseRequest) -> StatusAnswer:
        """Stop the runs in hand and take none until resumed."""
        self._node.take(service.PauseAsked(request.until_ms))
        return self.status()

    def resume(self) -> StatusAnswer:
        """End a pause."""
        self._node.take(service.ResumeAsked())
        return self.status()

    async def verify(self, request: VerifyRequest) -> RunAccepted:
        """Queue the verification of a run that a person names."""
        return await self._node.verifying.ask(request.run)

    async def check_proof(self, record: str, kind: ProofKind | None) -> RunAccepted:
        """Queue the measurement that it takes to check a proof."""
        return RunAccepted(assignment=await self._node.verifying.ask_again(record, kind))

    def finish(self) -> StatusAnswer:
        """Make the runs in hand the last."""
        self._node.take(service.FinishAsked())
        return self.status()

    def run(self, request: RunRequest) -> RunAccepted:
        """Queue one run of a task folder as it stands."""
        folder = existing_folder(request.folder)
        self._node.load(str(folder))
        self._names += 1
        name = f"given-{os.getpid()}-{self._names}"
        self._node.take(
            service.RunAsked(service.Assignment(name, str(folder), given=True, replicate=request.replicate))
        )
        return RunAccepted(assignment=name)

    async def peers(self) -> PeersAnswer:
        """This node on the network, and its peers."""
        found = self._node.exchange.peers() if self._node.exchange else PeersAnswer(network=NO_NETWORK)
        # What the log shows of many participants takes time, which the event loop has not.
        return await asyncio.to_thread(self._with_participants, found)

    def _with_participants(self, found: PeersAnswer) -> PeersAnswer:
        """The same from a connection of its own: a question holds the one that it asks."""
        with Log.open(self.log.path, self.log.network, read_only=True, trust=self.log.trust) as reader:
            return with_participants(reader, found)

    async def dial(self, request: DialRequest) -> PeersAnswer:
        """Begin to connect to an address, and stay connected."""
        if self._node.exchange is None:
            raise Refused(NO_NETWORK.reason, hint="autoresearch config set network.enabled true")
        self._node.exchange.dial(request.address)
        return await self.peers()

    async def block(self, request: BlockRequest) -> PeersAnswer:
        """Refuse a peer from now on, or no longer."""
        if self._node.exchange is None:
            raise Refused(NO_NETWORK.reason, hint="autoresearch config set network.enabled true")
        await self._node.exchange.block(request.peer, blocked=request.blocked)
        return await self.peers()

    async def fetch(self, blob: BlobRef, seconds: float) -> None:
        """Get a blob from other nodes, unless it is here. Raises NotFound, TimedOut, Refused."""
        await self._node.fetch(blob, seconds)

    @property
    def attesting(self) -> AttestationService:
        """Attestation by mail."""
        return self._node.attesting

    def call(self, request: NameRequest) -> StatusAnswer:
        """Publish what this participant calls itself, or that it has no name any more."""
        self._node.notebook.publish_name(request.name, now_ms())
        return self.status()

    def withdraw(self, request: WithdrawRecordRequest) -> WithdrawnAnswer:
        """Withdraw a run or a note of this device."""
        record = own_record(self.log, request.record, self.author())
        withdrawal = self._node.notebook.withdraw(record, now_ms(), reason=request.reason)
        self._node.look_at_leaders(again=True)
        return withdrawn_answer(record, withdrawal)

    def take_trust(self) -> TrustAnswer:
        """Trust whom the network's file trusts by now."""
        return self._node.trusting.take()

    def ask_stop(self) -> None:
        """Have ``wait`` return."""
        self._node.end()

    def events_since(self, number: int) -> list[Event] | None:
        """Kept events after that id."""
        return self._node.events.since(number)

    def subscribe(self) -> AbstractContextManager[asyncio.Queue[Event]]:
        """Events from now on."""
        return self._node.events.subscribe()

    def ready(self) -> Health:
        """Whether the node can do what it is asked, and why not."""
        if self._node.service.blocks:
            return Health(status="not ready", reason=next(iter(self._node.service.blocks.values())))
        if self._node.level is None:
            return Health(status="not ready", reason="the sandbox is being tested")
        return Health(status="ready")

    def status(self) -> StatusAnswer:
        """What the node does, and why."""
        asked = self._node.service.asked
        # A node that is not asked to work shows what it worked on last, whatever folders it looked into meanwhile.
        task = self._node.tasks.get(asked.order.task or self._node.settings.work.task) if asked.working else None
        status = status_answer(
            self._node.service,
            self._node.notebook,
            level=self._node.level,
            started_ms=self._node.started_ms,
            task_digest=task.digest if task else None,
            net=self._node.exchange.status() if self._node.exchange else NO_NETWORK,
            storage=self._node.keeper.status(),
            warnings=self._node.warnings(),
        )
        part = verifying_part(
            self._node.service,
            self._node.notebook,
            self._node.verifying.waiting(),
            task_digest=task.digest if task else None,
        )
        return msgspec.structs.replace(status, verifying=part)
