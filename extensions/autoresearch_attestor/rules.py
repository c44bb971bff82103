"""When an attestor writes a mail, what the mail says, when it attests.

Pure: who asks, how often, date and clock are arguments.
"""

from __future__ import annotations

import hmac
from dataclasses import dataclass
from datetime import datetime
from email.message import EmailMessage
from email.policy import SMTP
from email.utils import format_datetime
from html import escape

from autoresearch.record.kinds import Attestation
from autoresearch.record.record import DAY_MS
from autoresearch.trust.attestation import CodeAnswer, Parties, Request, holds, request_statement
from autoresearch.trust.attestor import CODE_MS
from autoresearch.trust.identity import Device, DeviceState
from autoresearch.words import AttestReason

# Of 80 random bits nobody guesses one; a person mistypes, and that is found out before anybody is asked.
TRIES = 5
# A mailbox changes hands and is given up: its holder shows it again twice a year.
ATTESTATION_MS = 180 * DAY_MS
# How far the clock of who asks may be off.
CLOCK_MS = 10 * 60_000
# How a mailbox was seen: by a code that came back.
CODE = "code"


@dataclass(frozen=True, slots=True)
class Caps:
    """How many mails an attestor writes within 24 hours.

    To one mailbox, to one small domain, for one peer or participant, and in all.
    """

    per_address: int = 3
    per_domain: int = 20
    per_peer: int = 10
    per_day: int = 50


@dataclass(frozen=True, slots=True)
class Mailed:
    """How many mails it wrote in the last 24 hours, as :class:`Caps` counts them."""

    address: int = 0
    domain: int = 0
    peer: int = 0
    day: int = 0


@dataclass(frozen=True, slots=True)
class Pending:
    """A mail that was written and not answered yet. Neither the address nor the code is in it.

    ``statement`` is what the root key must sign; ``domain`` is the tag of the domain or "big". Times in Unix ms.
    """

    token: bytes
    statement: bytes
    root: bytes
    device: bytes
    peer: str
    tag: bytes
    domain: str
    expires_ms: int
    tries_left: int = TRIES


def device_reason(device: Device | None) -> AttestReason | None:
    """Why a device can't speak for the root key that it names."""
    if device is None or device.state is DeviceState.WAITING:
        return AttestReason.UNKNOWN_DEVICE
    if device.state is DeviceState.EXPIRED:
        return AttestReason.EXPIRED_DEVICE
    return AttestReason.REVOKED_DEVICE if device.state is DeviceState.REVOKED else None


def request_reason(request: Request, parties: Parties, device: Device | None, *, now_ms: int) -> AttestReason | None:
    """Why there is no mail for this request, as far as that costs nothing to see.

    ``parties`` are who asks and who is asked as they really are; ``device`` is how the device stands with the root key.
    """
    if request.attestor != parties.attestor:
        return AttestReason.OTHER_NETWORK
    if request.root == parties.attestor:
        return AttestReason.ITSELF
    if abs(request.time - now_ms) > CLOCK_MS:
        return AttestReason.FORGED
    if not holds(request.device, request_statement(parties, request.address, request.time), request.signature):
        return AttestReason.FORGED
    return device_reason(device)


def cap_reason(caps: Caps, mailed: Mailed, *, is_big: bool) -> AttestReason | None:
    """Which cap is reached. A provider that serves everybody has no cap of its own."""
    if mailed.address >= caps.per_address:
        return AttestReason.ADDRESS_CAP
    if not is_big and mailed.domain >= caps.per_domain:
        return AttestReason.DOMAIN_CAP
    return sender_reason(caps, mailed)


def sender_reason(caps: Caps, mailed: Mailed) -> AttestReason | None:
    """Which of the caps is reached that can be told without looking at the address."""
    if mailed.peer >= caps.per_peer:
        return AttestReason.PEER_CAP
    return AttestReason.DAY_CAP if mailed.day >= caps.per_day else None


def answer_reason(pending: Pending | None, answer: CodeAnswer, peer: str, *, now_ms: int) -> AttestReason | None:
    """Why an answer does not lead to an attestation."""
    if pending is None or not hmac.compare_digest(pending.token, answer.token):
        return AttestReason.NO_REQUEST
    if now_ms >= pending.expires_ms:
        return AttestReason.TOO_LATE
    if peer != pending.peer:
        return AttestReason.OTHER_PEER
    if pending.tries_left <= 0:
        return AttestReason.TOO_MANY_TRIES
    return None if holds(pending.root, pending.statement, answer.signature) else AttestReason.WRONG_CODE


def attestation(pending: Pending, *, now_ms: int) -> Attestation:
    """The body of the record that the attestor publishes."""
    return Attestation(
        subject=pending.root,
        tag=pending.tag,
        method=CODE,
        domain=pending.domain,
        issued=now_ms,
        expires=now_ms + ATTESTATION_MS,
    )


SUBJECT = "Your autoresearch code"
_TEXT = """\
Somebody, most likely you, wants to show that they read this mailbox, so that
they count as one voter in the network “{network}” of autoresearch.

The code, good for {minutes} minutes and for one use:

    {code}

If it was you, type where you asked:

    autoresearch node id confirm {code}

It is for the participant whose key is
{participant}
(autoresearch node id show prints yours; it must be the same).

If it was not you, do nothing: without the code nothing happens. Your address
is neither published nor kept, and no list has it.

This mail was written by a program at a person's request. The attestor's key is
{attestor}
"""


def code_mail(
    code: str,
    parties: Parties,
    *,
    to: str,
    sender: str,
    network: str,
    date: datetime,
    message_id: str,
) -> EmailMessage:
    """The mail: plain text first, then the same as HTML; it asks automatic responders to be silent (RFC 3834).

    It has no List header (RFC 2369, 2919): it goes to one person, who asked for it, and nobody can be taken off.
    """
    text = _TEXT.format(
        code=code,
        network=network,
        participant=parties.root.hex(),
        attestor=parties.attestor.hex(),
        minutes=CODE_MS // 60_000,
    )
    mail = EmailMessage(policy=SMTP)
    mail["From"] = sender
    mail["To"] = to
    mail["Subject"] = SUBJECT
    mail["Date"] = format_datetime(date)
    mail["Message-ID"] = message_id
    mail["Auto-Submitted"] = "auto-generated"
    mail["X-Auto-Response-Suppress"] = "All"
    mail.set_content(text, cte="quoted-printable")
    mail.add_alternative(f"<pre>{escape(text)}</pre>\n", subtype="html", cte="quoted-printable")
    return mail
