"""Acts about other nodes: peers, blobs from them, who counts, the owner's other machines."""

from __future__ import annotations

import asyncio

from autoresearch.ask import requests
from autoresearch.ask.lookup import services_answer, with_participants
from autoresearch.ask.node import Health, PeersAnswer, ServicesAnswer, TrustAnswer, VotersAnswer
from autoresearch.ask.people.voters import named_participant, voters_answer
from autoresearch.errors import Refused
from autoresearch.record.kinds import BlobRef
from autoresearch_daemon.acts import act
from autoresearch_daemon.events import now_ms
from autoresearch_daemon.parts import NO_NETWORK, NodeParts
from autoresearch_daemon.peers.record_sync import RecordSync


class PeerActs:
    """What a person asks about the network, and does there."""

    def __init__(self, parts: NodeParts) -> None:
        self._parts = parts

    @property
    def _sync(self) -> RecordSync:
        if self._parts.sync is None:
            raise Refused(NO_NETWORK.reason, hint="autoresearch node config set network.enabled true")
        return self._parts.sync

    @act
    async def peers(self) -> PeersAnswer:
        peers = self._parts.sync.peers() if self._parts.sync else PeersAnswer(network=NO_NETWORK)
        # What the log shows of many participants takes time, which the event loop has not.
        return await asyncio.to_thread(self._with_participants, peers)

    def _with_participants(self, peers: PeersAnswer) -> PeersAnswer:
        with self._parts.reading() as (log, _):
            return with_participants(log, peers)

    @act
    async def dial(self, request: requests.DialRequest) -> PeersAnswer:
        self._sync.dial(request.address)
        return await self.peers()

    @act
    async def block(self, request: requests.BlockRequest) -> PeersAnswer:
        await self._sync.block(request.peer, blocked=request.blocked)
        return await self.peers()

    @act
    async def fetch(self, request: requests.FetchRequest) -> Health:
        manifest = bytes.fromhex(request.manifest) if request.manifest else None
        blob = BlobRef(sha256=bytes.fromhex(request.sha256), size=request.size, manifest=manifest)
        await self._parts.fetch(blob, request.seconds)
        return Health(status="here")

    @act
    async def voters(self) -> VotersAnswer:
        root, seen = self._parts.notebook.identity.root.public, self._parts.devices_seen()
        return await self._parts.thread.run(lambda log: voters_answer(log, root, now_ms(), seen=seen))

    @act
    async def admit(self, request: requests.AdmitRequest) -> VotersAnswer:
        notebook = self._parts.notebook
        participant = named_participant(notebook.log, request.participant, author=notebook.author)
        notebook.publish_admission(participant, now_ms(), admits=request.admits, reason=request.reason)
        self._parts.admitting.notice()
        return await self.voters()

    @act
    async def services(self) -> ServicesAnswer:
        own, others = services_answer(self._parts.paths.services), await self._parts.own_services.services()
        return ServicesAnswer(services=[*own.services, *others])

    @act
    async def trust(self) -> TrustAnswer:
        """In a log that is not large all is judged again at once."""
        answer = self._parts.trusting.take()
        if answer.changed:
            await self._parts.judging.judge_some()
        return answer
