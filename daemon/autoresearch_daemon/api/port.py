"""What the HTTP API needs of the node. Knows neither HTTP nor how the node does it."""

from __future__ import annotations

import asyncio
from contextlib import AbstractContextManager
from typing import Protocol

from autoresearch.api import (
    AllowRequest,
    AttestAnswer,
    AttestorAnswer,
    AttestRequest,
    BlockRequest,
    ConfirmRequest,
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
    WithdrawRequest,
    WorkRequest,
)
from autoresearch.log import BlobStore, Log
from autoresearch.records import BlobRef
from autoresearch.words import ProofKind


class AttestPort(Protocol):
    """Attestation by mail as the API sees it."""

    async def ask(self, request: AttestRequest) -> AttestAnswer:
        """Have attestors write to an address. Raises UsageError, Refused, NotFound."""
        ...

    async def confirm(self, request: ConfirmRequest) -> AttestAnswer:
        """Bring an attestor the answer. Raises NotFound, Refused."""
        ...

    def standing(self) -> AttestAnswer:
        """How this participant stands with the attestors."""
        ...

    def log(self) -> AttestorAnswer:
        """What this node did as an attestor. Raises Refused when it is none."""
        ...

    def withdraw(self, request: WithdrawRequest) -> AttestorAnswer:
        """Take back what this attestor said of a participant. Raises Refused, NotFound."""
        ...

    def allow(self, request: AllowRequest) -> AttestorAnswer:
        """Attest a participant's mailbox again. Raises Refused, NotFound."""
        ...


class NodePort(Protocol):
    """The node as the API sees it: every method returns at once; the errors are those of `autoresearch.errors`."""

    @property
    def log(self) -> Log:
        """The log, for reading."""
        ...

    @property
    def blobs(self) -> BlobStore:
        """The blobs, for reading."""
        ...

    @property
    def attesting(self) -> AttestPort:
        """Attestation by mail."""
        ...

    def status(self) -> StatusAnswer:
        """What the node does, and why."""
        ...

    def ready(self) -> Health:
        """``status`` is "ready", or "not ready" with the reason."""
        ...

    def work(self, request: WorkRequest) -> StatusAnswer:
        """Work until told otherwise, or as far as the request says."""
        ...

    def pause(self, request: PauseRequest) -> StatusAnswer:
        """Stop the run in hand and take no other, for ever or until a time."""
        ...

    def resume(self) -> StatusAnswer:
        """End a pause."""
        ...

    def finish(self) -> StatusAnswer:
        """End the run in hand, then stop working."""
        ...

    def run(self, request: RunRequest) -> RunAccepted:
        """Queue one run of a task folder as it stands."""
        ...

    async def peers(self) -> PeersAnswer:
        """This node on the network, and its peers."""
        ...

    async def dial(self, request: DialRequest) -> PeersAnswer:
        """Begin to connect to an address, and stay connected. Raises Refused when the network is off."""
        ...

    async def verify(self, request: VerifyRequest) -> RunAccepted:
        """Queue the verification of a run. Raises NotFound, UsageError, Refused."""
        ...

    async def check_proof(self, record: str, kind: ProofKind | None) -> RunAccepted:
        """Queue the measurement that it takes to check a proof. Raises NotFound, UsageError, Refused."""
        ...

    async def block(self, request: BlockRequest) -> PeersAnswer:
        """Refuse a peer, or no longer. Raises Refused when the network is off, or that is no peer."""
        ...

    async def fetch(self, blob: BlobRef, seconds: float) -> None:
        """Get a blob from other nodes. Raises NotFound when nobody has it, TimedOut when it takes too long."""
        ...

    def call(self, request: NameRequest) -> StatusAnswer:
        """Publish what this participant calls itself. Raises UsageError, Refused."""
        ...

    def withdraw(self, request: WithdrawRecordRequest) -> WithdrawnAnswer:
        """Withdraw a run or a note of this device. Raises NotFound, AmbiguousId, UsageError, Refused."""
        ...

    def take_trust(self) -> TrustAnswer:
        """Trust whom the network's file trusts by now. Raises UsageError, Refused."""
        ...

    def ask_stop(self) -> None:
        """Begin to end the process; the answer to the request that asked still goes out."""
        ...

    def events_since(self, event_id: int) -> list[Event] | None:
        """The kept events with a larger id, oldest first; None when some of them are no longer kept."""
        ...

    def subscribe(self) -> AbstractContextManager[asyncio.Queue[Event]]:
        """A bounded queue of events from now on; a reader that falls behind gets one of kind ``stale``, then none."""
        ...

    def author(self) -> bytes:
        """The public key of this device."""
        ...
