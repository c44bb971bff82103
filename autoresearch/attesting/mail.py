"""The mail with the code. Pure: date and message id are arguments."""

from __future__ import annotations

from datetime import datetime
from email.message import EmailMessage
from email.policy import SMTP
from email.utils import format_datetime
from html import escape

from autoresearch.attesting.rules import CODE_MS
from autoresearch.attesting.statement import Parties

SUBJECT = "Your autoresearch code"
_TEXT = """\
Somebody, most likely you, wants to show that they read this mailbox, so that
they count as one voter in the network “{network}” of autoresearch.

The code, good for {minutes} minutes and for one use:

    {code}

If it was you, type where you asked:

    autoresearch id confirm {code}

It is for the participant whose key is
{participant}
(autoresearch id show prints yours; it must be the same).

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
