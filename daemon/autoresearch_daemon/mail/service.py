"""Both sides together, as the node and the API see them."""

from __future__ import annotations

from collections.abc import Callable

from autoresearch.ask.acts.notebook import Notebook
from autoresearch.ask.health import warning
from autoresearch.ask.node import Check
from autoresearch.ask.people.attestation import attest_answer
from autoresearch.ask.people.participants import (
    AllowRequest,
    AttestAnswer,
    AttestorAct,
    AttestorAnswer,
    AttestRequest,
    ConfirmRequest,
    WithdrawRequest,
)
from autoresearch.errors import NotFound, Refused, UsageError
from autoresearch.log.local import ALLOWED, ATTESTED, MAILED, REFUSED, WITHDRAWN, Act, MailLedger
from autoresearch.paths import Paths
from autoresearch.record.record import DAY_MS
from autoresearch.settings import Attestor as Settings
from autoresearch.trust.attestation import CodeAnswer
from autoresearch.trust.attestor import DUE_MS, Caps
from autoresearch.trust.mailer import MailServer, disposable_domains
from autoresearch.words import Part
from autoresearch_daemon.local_state import LocalState
from autoresearch_daemon.mail.attestor import MailAttestor
from autoresearch_daemon.mail.participant import AttestorNetwork, Participant, sentence_of

ACTS = 200


class AttestationService:
    """What this node does about mailboxes. ``connect`` gives it the network, without which nothing can be asked.

    ``server`` is this node's mail account. Raises UsageError when the settings of an attestor are wrong.
    """

    def __init__(
        self,
        notebook: Notebook,
        local: LocalState,
        paths: Paths,
        settings: Settings,
        server: MailServer | None,
        *,
        now_ms: Callable[[], int],
    ) -> None:
        self._notebook = notebook
        self._local = local
        self._now_ms = now_ms
        if settings.enabled and server is None:
            raise UsageError(
                "attestor.enabled is true, and there is no mail account",
                hint="autoresearch node config set mail.host SERVER",
            )
        self._server = server if settings.enabled else None
        self._ledger = MailLedger(paths.local) if self._server else None
        self._disposable = disposable_domains(settings)
        self._caps = Caps(
            per_address=settings.mails_per_address,
            per_domain=settings.mails_per_domain,
            per_peer=settings.mails_per_peer,
            per_day=settings.mails_per_day,
        )
        self._participant: Participant | None = None
        self._attestor: MailAttestor | None = None

    def connect(self, line: AttestorNetwork) -> None:
        """The network is there."""
        self._participant = Participant(self._notebook, self._local, line, now_ms=self._now_ms)
        if self._server and self._ledger:
            self._attestor = MailAttestor(
                self._notebook,
                self._ledger,
                self._server,
                caps=self._caps,
                disposable=self._disposable,
                peer=line.me,
                now_ms=self._now_ms,
            )

    def close(self) -> None:
        """Close the ledger."""
        if self._ledger:
            self._ledger.close()

    async def reply(self, peer: str, data: bytes) -> bytes | None:
        """What a peer gets that asks this node as an attestor; nothing when it is none."""
        return await self._attestor.answer(peer, data) if self._attestor else None

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
        if self._server and not self._participant:
            text = "nobody can ask this attestor: the network is off → autoresearch network join …, then up"
            return [warning(Part.ATTESTOR, text)]
        if self._attestor and self._attestor.trouble:
            text = f"the attestor's last mail was not sent: {self._attestor.trouble} → autoresearch node config show"
            return [warning(Part.ATTESTOR, text)]
        standing, now_ms = self.standing(), self._now_ms()
        if 0 < standing.until_ms < now_ms + DUE_MS:
            days = (standing.until_ms - now_ms) // DAY_MS
            text = f"this participant's mailbox was shown long ago: it counts for {days} days more"
            return [warning(Part.MAILBOX, f"{text} → autoresearch node id attest ADDRESS")]
        if not standing.attested and not self._server and standing.attestors >= standing.needed:
            text = "nobody has attested this participant: its runs are shown apart"
            return [warning(Part.MAILBOX, f"{text} → autoresearch node id attest ADDRESS")]
        return []

    def log(self) -> AttestorAnswer:
        """What this attestor did. Raises Refused when it is none."""
        ledger = self._own_ledger()
        counts, root = ledger.counts(), self._notebook.identity.root.public
        return AttestorAnswer(
            attestor=root.hex(),
            trusted=root in self._notebook.log.trust.attestors,
            mailed=counts.get(MAILED, 0),
            attested=counts.get(ATTESTED, 0),
            refused=counts.get(REFUSED, 0),
            acts=[
                AttestorAct(
                    time_ms=act.time_ms,
                    what=act.what,
                    why=act.why,
                    reason=sentence_of(act.why) if act.why else "",
                    participant=act.root.hex(),
                    peer=act.peer,
                    tag=act.tag.hex(),
                    domain=act.domain,
                )
                for act in ledger.acts(ACTS)
            ],
        )

    def withdraw(self, request: WithdrawRequest) -> AttestorAnswer:
        """Take back what this attestor said of a participant, and attest its mailbox no more.

        Raises Refused when it is none, NotFound.
        """
        ledger, now_ms, subject = self._own_ledger(), self._now_ms(), bytes.fromhex(request.participant)
        attestations = self._notebook.withdraw_attestations(subject, now_ms, reason=request.reason)
        if not attestations:
            raise NotFound(
                "this attestor has said nothing of that participant", hint="autoresearch network attestor log"
            )
        for tag, domain in dict.fromkeys((attestation.tag, attestation.domain) for attestation in attestations):
            ledger.bar(subject, tag)
            ledger.add(Act(now_ms, WITHDRAWN, "", subject, "", tag, domain))
        return self.log()

    def allow(self, request: AllowRequest) -> AttestorAnswer:
        """Attest a participant's mailbox again. Raises Refused when it is none, NotFound."""
        ledger, subject = self._own_ledger(), bytes.fromhex(request.participant)
        tags = ledger.allow(subject)
        if not tags:
            raise NotFound(
                "this attestor has taken back nothing of that participant, or allowed it again already",
                hint="autoresearch network attestor log",
            )
        for tag in tags:
            ledger.add(Act(self._now_ms(), ALLOWED, "", subject, "", tag, ""))
        return self.log()

    def _own_ledger(self) -> MailLedger:
        if self._ledger is None:
            raise Refused("this node is no attestor", hint="autoresearch node config set attestor.enabled true")
        return self._ledger

    def _there(self) -> Participant:
        if self._participant is None:
            raise Refused(
                "attestors are asked over the network, which is off", hint="autoresearch network join …, then up"
            )
        return self._participant
