"""The attestor's side: answers what peers ask it, writes mails, publishes attestations.

Decisions are :mod:`autoresearch.trust.attestor`'s; here are the clock, the randomness, the mail server and the ledger.
Neither an address nor a code is kept, logged or answered.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Callable
from datetime import UTC, datetime
from email.utils import make_msgid

import structlog

from autoresearch.ask.acts.notebook import Notebook, own_devices
from autoresearch.errors import AutoresearchError, Refused, UsageError
from autoresearch.log.local import ATTESTED, MAILED, REFUSED, Act, MailLedger
from autoresearch.log.standing.cache import roster_of
from autoresearch.record.record import Network
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
from autoresearch.trust.attestor import (
    CODE_MS,
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
from autoresearch.trust.identity import Device
from autoresearch.trust.mailbox import DISPOSABLE, deliverable, domain_tag, mail_tag, mailbox
from autoresearch.trust.mailer import MailServer, MaybeSent, NoSuchMailbox, NotSent
from autoresearch.trust.roster import BIG_DOMAIN
from autoresearch.words import AttestReason

# Requests in hand at a time; each takes a third of a second and 64 MiB for its tags, one after the other.
REQUESTS_MAX = 8

logger = structlog.get_logger()


class MailAttestor:
    """One attestor. ``peer()`` is this host's peer id; ``disposable`` are domains to refuse besides the known ones."""

    def __init__(
        self,
        notebook: Notebook,
        ledger: MailLedger,
        server: MailServer,
        *,
        caps: Caps,
        disposable: frozenset[str],
        peer: Callable[[], str],
        now_ms: Callable[[], int],
    ) -> None:
        self._notebook = notebook
        self._ledger = ledger
        self._server = server
        self._caps = caps
        self._disposable = DISPOSABLE | disposable
        self._peer = peer
        self._now_ms = now_ms
        self._hashing = asyncio.Lock()
        self._in_hand = 0
        # Why the last mail was not sent; empty when it was.
        self.trouble = ""

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
            self.trouble = str(error)
            if not isinstance(error, MaybeSent):  # which counts: otherwise a slow server floods a mailbox
                self._ledger.take_back(number)
            raise _No(AttestReason.NOT_SENT, tag, domain) from None
        self.trouble = ""
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
