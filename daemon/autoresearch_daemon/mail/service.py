"""Both sides together, as the node and the API see them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress

from autoresearch.ask.acts.attestor import AttestorExtension, AttestorNode
from autoresearch.ask.acts.notebook import Notebook
from autoresearch.ask.health import warning
from autoresearch.ask.node import Check
from autoresearch.ask.people.attestation import attest_answer
from autoresearch.ask.people.participants import (
    AllowRequest,
    AttestAnswer,
    AttestorAnswer,
    AttestRequest,
    ConfirmRequest,
    WithdrawRequest,
)
from autoresearch.errors import AutoresearchError, Refused
from autoresearch.extensions import ANEW, ATTESTORS, BrokenExtension, guard_extension, load_extension
from autoresearch.paths import Paths
from autoresearch.record.record import DAY_MS
from autoresearch.settings import Settings
from autoresearch.trust.attestation import CodeAnswer
from autoresearch.trust.attestor import DUE_MS
from autoresearch.words import Part
from autoresearch_daemon.local_state import LocalState
from autoresearch_daemon.mail.participant import AttestorNetwork, Participant


class AttestationService:
    """What this node does about mailboxes. ``connect`` gives it the network, without which nothing can be asked.

    Raises AutoresearchError when the settings of its attestor are wrong; one that can't be loaded is said by
    ``conditions``.
    """

    def __init__(
        self,
        notebook: Notebook,
        local: LocalState,
        paths: Paths,
        settings: Settings,
        environment: Mapping[str, str],
        *,
        now_ms: Callable[[], int],
    ) -> None:
        self._notebook, self._local, self._now_ms = notebook, local, now_ms
        self._network: AttestorNetwork | None = None
        self._participant: Participant | None = None
        self._attestor: AttestorExtension | None = None
        self._name, self._broken = settings.attestor.extension, ""
        if not settings.attestor.enabled:
            return
        try:
            make = load_extension(ATTESTORS, self._name)
        except AutoresearchError as error:
            self._broken = error.with_hint
            return
        try:
            with guard_extension(self._name):
                node = AttestorNode(notebook, paths, settings, environment, self._peer, now_ms)
                made = make(node) if callable(make) else None
            if not isinstance(made, AttestorExtension):
                raise BrokenExtension(f"the extension {self._name} makes no attestor", hint=ANEW)
        except BrokenExtension as error:
            self._broken = error.with_hint
            return
        self._attestor = made

    def connect(self, line: AttestorNetwork) -> None:
        """The network is there."""
        self._network = line
        self._participant = Participant(self._notebook, self._local, line, now_ms=self._now_ms)

    async def keep(self) -> None:
        """Do what the attestor does besides, until cancelled."""
        if self._attestor is None:
            return
        try:
            with guard_extension(self._name):
                await self._attestor.keep()
        except AutoresearchError as error:
            self._broken = error.with_hint

    def close(self) -> None:
        """Close what the attestor has open."""
        if self._attestor:
            with suppress(AutoresearchError), guard_extension(self._name):
                self._attestor.close()

    async def reply(self, peer: str, data: bytes) -> bytes | None:
        """What a peer gets that asks this node as an attestor; nothing when it is none."""
        if self._attestor is None:
            return None
        try:
            with guard_extension(self._name):
                reply = await self._attestor.answer(peer, data)
        except AutoresearchError as error:
            self._broken = error.with_hint
            return None
        return reply if isinstance(reply, bytes) else None

    async def ask(self, request: AttestRequest) -> AttestAnswer:
        """Have attestors write to an address. Raises UsageError, Refused, NotFound."""
        return await self._there().ask(request.address)

    async def confirm(self, request: ConfirmRequest) -> AttestAnswer:
        """Bring an attestor the answer. Raises NotFound, Refused, AutoresearchError."""
        answer = CodeAnswer(token=bytes.fromhex(request.token), signature=bytes.fromhex(request.signature))
        return await self._there().confirm(answer)

    def standing(self) -> AttestAnswer:
        """How this participant stands."""
        if self._participant:
            return self._participant.answer()
        return attest_answer(self._notebook.log, self._notebook.identity.root.public, now_ms=self._now_ms())

    def conditions(self) -> list[Check]:
        """What a person must know."""
        if self._broken:
            return [warning(Part.ATTESTOR, self._broken)]
        if self._attestor and not self._participant:
            text = "nobody can ask this attestor: the network is off → autoresearch network join …, then up"
            return [warning(Part.ATTESTOR, text)]
        if self._attestor and self._attestor.problem:
            text = f"{self._attestor.problem} → autoresearch node config show"
            return [warning(Part.ATTESTOR, text)]
        standing, now_ms = self.standing(), self._now_ms()
        if 0 < standing.until_ms < now_ms + DUE_MS:
            days = (standing.until_ms - now_ms) // DAY_MS
            text = f"this participant's mailbox was shown long ago: it counts for {days} days more"
            return [warning(Part.MAILBOX, f"{text} → autoresearch node id attest ADDRESS")]
        if not standing.attested and not self._attestor and standing.attestors >= standing.needed:
            text = "nobody has attested this participant: its runs are shown apart"
            return [warning(Part.MAILBOX, f"{text} → autoresearch node id attest ADDRESS")]
        return []

    def log(self) -> AttestorAnswer:
        """What this attestor did. Raises Refused when it is none."""
        attestor = self._own()
        with guard_extension(self._name):
            return attestor.log()

    def withdraw(self, request: WithdrawRequest) -> AttestorAnswer:
        """Take back what this attestor said of a participant, and attest it no more.

        Raises Refused when it is none, NotFound.
        """
        attestor = self._own()
        with guard_extension(self._name):
            attestor.withdraw(bytes.fromhex(request.participant), request.reason)
        return self.log()

    def allow(self, request: AllowRequest) -> AttestorAnswer:
        """Attest a participant again. Raises Refused when it is none, NotFound."""
        attestor = self._own()
        with guard_extension(self._name):
            attestor.allow(bytes.fromhex(request.participant))
        return self.log()

    def _own(self) -> AttestorExtension:
        if self._attestor is None:
            why = f": {self._broken}" if self._broken else ""
            raise Refused(f"this node is no attestor{why}", hint="autoresearch node config set attestor.enabled true")
        return self._attestor

    def _peer(self) -> str:
        return self._network.me() if self._network else ""

    def _there(self) -> Participant:
        if self._participant is None:
            raise Refused(
                "attestors are asked over the network, which is off", hint="autoresearch network join …, then up"
            )
        return self._participant
