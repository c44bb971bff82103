"""The attestor's side: answers what peers ask it, writes mails, publishes attestations.

Decisions are :mod:`autoresearch.trust.attestor`'s; here are the clock, the randomness, the mail server and the ledger.
Neither an address nor a code is kept, logged or answered.
"""

from __future__ import annotations

import asyncio
import secrets
from datetime import UTC, datetime
from email.utils import make_msgid
from pathlib import Path

import msgspec
import structlog
from autoresearch_notices.mailer import MaybeSent, NoSuchMailbox, NotSent, mail_server

from autoresearch.ask.acts.attestor import AttestorExtension, AttestorNode
from autoresearch.ask.acts.notebook import own_devices
from autoresearch.ask.people.participants import AttestorAct, AttestorAnswer
from autoresearch.errors import AutoresearchError, NotFound, Refused, UsageError
from autoresearch.log.standing.cache import roster_of
from autoresearch.record.kinds import Attestation
from autoresearch.record.record import Network
from autoresearch.settings import Attestor as Settings
from autoresearch.trust.attestation import (
    TOKEN1_BYTES,
    TOKEN2_BYTES,
    Attested,
    Challenge,
    CodeAnswer,
    Here,
    No,
    Parties,
    Reply,
    Request,
    Who,
    answer_statement,
    attestor_statement,
    decode_question,
    encode_message,
    write_code,
)
from autoresearch.trust.attestor import CODE_MS
from autoresearch.trust.identity import Device
from autoresearch.trust.mailbox import DISPOSABLE, deliverable, domain_tag, mail_tag, mailbox
from autoresearch.trust.roster import BIG_DOMAIN
from autoresearch.words import ATTEST_SENTENCES, AttestReason
from autoresearch_attestor.ledger import ALLOWED, ATTESTED, MAILED, REFUSED, WITHDRAWN, Act, MailLedger
from autoresearch_attestor.rules import (
    Caps,
    Pending,
    answer_reason,
    attestation,
    cap_reason,
    code_mail,
    device_reason,
    request_reason,
    sender_reason,
)

# Requests in hand at a time; each takes a third of a second and 64 MiB for its tags, one after the other.
REQUESTS_MAX = 8
# So many acts are listed.
ACTS = 200

logger = structlog.get_logger()


class MailAttestor(AttestorExtension):
    """Attests mailboxes. Raises AutoresearchError when the settings of account or attestor are wrong."""

    def __init__(self, node: AttestorNode) -> None:
        super().__init__(node)
        settings = node.settings.attestor
        server = mail_server(node.settings.mail, node.environment)
        if server is None:
            raise UsageError(
                "attestor.enabled is true, and there is no mail account",
                hint="autoresearch node config set mail.host SERVER",
            )
        self._notebook, self._peer, self._now_ms = node.notebook, node.peer, node.now_ms
        self._server = server
        self._caps = Caps(
            per_address=settings.mails_per_address,
            per_domain=settings.mails_per_domain,
            per_peer=settings.mails_per_peer,
            per_day=settings.mails_per_day,
        )
        self._disposable = DISPOSABLE | disposable_domains(settings)
        self._hashing = asyncio.Lock()
        self._in_hand = 0
        self._ledger = MailLedger(node.paths.local)

    def close(self) -> None:
        """Close the ledger."""
        self._ledger.close()

    def log(self) -> AttestorAnswer:
        """What it did, the newest first."""
        counts = self._ledger.counts()
        acts = [
            AttestorAct(
                time_ms=act.time_ms,
                what=act.what,
                why=act.why,
                reason=ATTEST_SENTENCES[AttestReason(act.why)] if act.why else "",
                participant=act.root.hex(),
                peer=act.peer,
                tag=act.tag.hex(),
                domain=act.domain,
            )
            for act in self._ledger.acts(ACTS)
        ]
        return msgspec.structs.replace(
            super().log(),
            mailed=counts.get(MAILED, 0),
            attested=counts.get(ATTESTED, 0),
            refused=counts.get(REFUSED, 0),
            acts=acts,
        )

    def withdraw(self, participant: bytes, reason: str) -> list[Attestation]:
        """Take back what it said of a participant, and attest its mailboxes no more. Raises NotFound."""
        attestations = super().withdraw(participant, reason)
        for tag, domain in dict.fromkeys((body.tag, body.domain) for body in attestations):
            self._ledger.bar(participant, tag)
            self._ledger.add(Act(self._now_ms(), WITHDRAWN, "", participant, "", tag, domain))
        return attestations

    def allow(self, participant: bytes) -> None:
        """Attest a participant's mailboxes again. Raises NotFound."""
        tags = self._ledger.allow(participant)
        if not tags:
            raise NotFound(
                "this attestor has taken back nothing of that participant, or allowed it again already",
                hint="autoresearch network attestor log",
            )
        for tag in tags:
            self._ledger.add(Act(self._now_ms(), ALLOWED, "", participant, "", tag, ""))

    async def answer(self, peer: str, data: bytes) -> bytes:
        """The reply to what a peer asks."""
        return encode_message(await self._reply(peer, decode_question(data)))

    async def _reply(self, peer: str, question: Who | Request | CodeAnswer | None) -> Reply:
        match question:
            case Who():
                return self._here(peer, question)
            case Request():
                try:
                    return await self._challenge(peer, question)
                except _No as no:
                    return self._refuse(no, question.root, peer)
            case CodeAnswer():
                return self._attest(peer, question)
            case None:
                return No(why=AttestReason.GARBLED.value)

    def _here(self, peer: str, participant: Who) -> Here:
        statement = attestor_statement(self._network.id, participant.nonce, self._peer(), peer)
        device = self._notebook.identity.device
        return Here(device=device.public, signature=device.sign(statement))

    # --- a request ---

    async def _challenge(self, peer: str, request: Request) -> Challenge:
        now_ms = self._now_ms()
        self._ledger.forget_late(now_ms)
        parties = Parties(
            self._network.id, request.root, request.device, peer, self._notebook.identity.root.public, self._peer()
        )
        refuse(sender_reason(self._caps, self._ledger.mailed(request.root, peer, b"", "", now_ms=now_ms)))
        refuse(request_reason(request, parties, self._device(request.root, request.device), now_ms=now_ms))
        refuse(AttestReason.BUSY if self._in_hand >= REQUESTS_MAX else None)
        self._in_hand += 1
        try:
            async with self._hashing:
                tag, domain = await self._tags(request.address)
                # Between here and the note there is no await: nobody gets a mail more by asking twice at once.
                mailed = self._ledger.mailed(request.root, peer, tag, domain, now_ms=now_ms)
                refuse(cap_reason(self._caps, mailed, is_big=domain == BIG_DOMAIN), tag, domain)
                refuse(self._mailbox_reason(tag, domain), tag, domain)
                number = self._ledger.add(Act(now_ms, MAILED, "", request.root, peer, tag, domain))
            return await self._mail(request, parties, tag, domain, number)
        finally:
            self._in_hand -= 1

    async def _tags(self, address: str) -> tuple[bytes, str]:
        try:
            box = mailbox(address, disposable=self._disposable)
        except UsageError:
            raise _No(AttestReason.BAD_ADDRESS) from None
        except Refused:
            raise _No(AttestReason.THROW_AWAY) from None
        tag = await asyncio.to_thread(mail_tag, box, self._network)
        if box.is_big:
            return tag, BIG_DOMAIN
        return tag, (await asyncio.to_thread(domain_tag, box, self._network)).hex()

    async def _mail(self, request: Request, parties: Parties, tag: bytes, domain: str, number: int) -> Challenge:
        token1, token2 = secrets.token_bytes(TOKEN1_BYTES), secrets.token_bytes(TOKEN2_BYTES)
        to = deliverable(request.address)
        mail = code_mail(
            write_code(token1, token2, parties.attestor),
            parties,
            to=to,
            sender=self._server.sender,
            network=self._network.name,
            date=datetime.fromtimestamp(self._now_ms() // 1000, UTC),
            message_id=make_msgid(domain=self._server.sender.rpartition("@")[2]),
        )
        try:
            await self._server.send(mail, to)
        except NoSuchMailbox:
            # The mail counts: nobody finds out by asking which mailboxes there are.
            raise _No(AttestReason.NO_SUCH_MAILBOX, tag, domain) from None
        except NotSent as error:
            self.problem = f"the attestor's last mail was not sent: {error}"
            if not isinstance(error, MaybeSent):  # which counts: otherwise a slow server floods a mailbox
                self._ledger.take_back(number)
            raise _No(AttestReason.NOT_SENT, tag, domain) from None
        self.problem = ""
        pending = Pending(
            token=token2,
            statement=answer_statement(parties, token1, token2),
            root=request.root,
            device=request.device,
            peer=parties.peer,
            tag=tag,
            domain=domain,
            expires_ms=self._now_ms() + CODE_MS,
        )
        self._ledger.keep(pending)
        logger.info("attestor", what=MAILED, root=request.root.hex(), peer=parties.peer)
        return Challenge(token=token2, expires=pending.expires_ms)

    # --- an answer ---

    def _attest(self, peer: str, answer: CodeAnswer) -> Attested | No:
        now_ms = self._now_ms()
        pending = self._ledger.pending(answer.token)
        try:
            why = answer_reason(pending, answer, peer, now_ms=now_ms)
            if pending is not None and why is AttestReason.WRONG_CODE:
                self._ledger.wrong(pending.token)
            refuse(why)
            assert pending is not None
            refuse(device_reason(self._device(pending.root, pending.device)), pending.tag, pending.domain)
            refuse(self._mailbox_reason(pending.tag, pending.domain), pending.tag, pending.domain)
            # First, and only once, so that no code is ever good for two.
            refuse(None if self._ledger.end(answer.token) else AttestReason.NO_REQUEST)
        except _No as no:
            return self._refuse(no, pending.root if pending else b"", peer)
        try:
            record = self._notebook.publish_attestation(attestation(pending, now_ms=now_ms), now_ms)
        except AutoresearchError as error:
            logger.warning("an attestation could not be written", reason=str(error))
            return self._refuse(_No(AttestReason.NOT_RECORDED, pending.tag, pending.domain), pending.root, peer)
        self._ledger.add(Act(now_ms, ATTESTED, "", pending.root, peer, pending.tag, pending.domain))
        logger.info("attestor", what=ATTESTED, root=pending.root.hex(), peer=peer)
        return Attested(raw=record.raw, signature=record.signature)

    # --- parts ---

    @property
    def _network(self) -> Network:
        return self._notebook.log.network

    def _device(self, root: bytes, device: bytes) -> Device | None:
        return next((row for row in own_devices(self._notebook.log, root, self._now_ms()) if row.key == device), None)

    def _mailbox_reason(self, tag: bytes, domain: str) -> AttestReason | None:
        """Whether this attestor took its word for the mailbox back, or its domain has as many others as count."""
        if self._ledger.is_barred(tag):
            return AttestReason.WITHDRAWN
        if domain == BIG_DOMAIN:
            return None
        others = roster_of(self._notebook.log).mailboxes(domain, self._now_ms()) - {tag}
        return AttestReason.DOMAIN_FULL if len(others) >= self._network.domain_voices else None

    def _refuse(self, no: _No, root: bytes, peer: str) -> No:
        self._ledger.add(Act(self._now_ms(), REFUSED, no.why.value, root, peer, no.tag, no.domain))
        logger.info("attestor", what=REFUSED, why=no.why.value, root=root.hex(), peer=peer)
        return No(why=no.why.value)


class _No(Exception):
    """Ends a request; what is known of the mailbox by then goes into the ledger."""

    def __init__(self, why: AttestReason, tag: bytes = b"", domain: str = "") -> None:
        super().__init__(why.value)
        self.why, self.tag, self.domain = why, tag, domain


def refuse(why: AttestReason | None, tag: bytes = b"", domain: str = "") -> None:
    """End the request if there is a reason."""
    if why is not None:
        raise _No(why, tag, domain)


def disposable_domains(settings: Settings) -> frozenset[str]:
    """The domains that the attestor's owner calls throw-away. Raises UsageError when the file can't be read."""
    named = settings.disposable.split(",")
    if settings.disposable_file:
        try:
            named += Path(settings.disposable_file).expanduser().read_text().splitlines()
        except (OSError, UnicodeDecodeError) as error:
            raise UsageError(f"attestor.disposable_file: {settings.disposable_file} can't be read") from error
    return frozenset(name.strip().lower() for name in named if name.strip() and not name.startswith("#"))
