"""Hands mails to this node's mail server (RFC 6409), and says what became of them without a word of the server's.

A server's own words often hold the address: they are neither kept nor passed on, only the reply code.
"""

from __future__ import annotations

import asyncio
import os
import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field
from email.message import EmailMessage
from importlib.util import find_spec
from pathlib import Path

import structlog

from autoresearch.errors import NotFound, Refused, UsageError, install_command
from autoresearch.settings import MAIL_PASSWORD_VARIABLE, Mail
from autoresearch.trust.keys import read_secret
from autoresearch.trust.mailbox import mailbox

PASSWORD_HINT = f"autoresearch node config set mail.password_file FILE, or set {MAIL_PASSWORD_VARIABLE}"
SEND_SECONDS = 40.0
# For one step, so that a server that is not there differs from one that falls silent with the mail in its hands.
STEP_SECONDS = 30.0
LOOPBACK = ("localhost", "127.0.0.1", "::1")

logger = structlog.get_logger()


class NoSuchMailbox(Exception):
    """The server refuses mail for that address, for good."""


class NotSent(Exception):
    """The server could not be reached, or did not take the mail now; the text says which kind of error it was."""


class MaybeSent(NotSent):
    """The server fell silent: nobody knows whether it took the mail."""


@dataclass(frozen=True, slots=True)
class MailServer:
    """A mail account. ``security`` is starttls, tls or none; ``sender`` the address that mails come from."""

    host: str
    port: int
    security: str
    user: str
    password: str = field(repr=False)
    sender: str
    ca_file: str = ""

    async def send(self, mail: EmailMessage, to: str) -> None:
        """Hand one mail over. Raises NoSuchMailbox, NotSent, MaybeSent."""
        import aiosmtplib

        try:
            async with asyncio.timeout(SEND_SECONDS):
                await aiosmtplib.send(
                    mail,
                    sender=self.sender,
                    recipients=[to],
                    hostname=self.host,
                    port=self.port,
                    username=self.user or None,
                    password=self.password or None,
                    use_tls=self.security == "tls",
                    start_tls=self.security == "starttls",
                    tls_context=None if self.security == "none" else self._tls(),
                    local_hostname=self.sender.rpartition("@")[2],
                    timeout=STEP_SECONDS,
                )
        except aiosmtplib.SMTPRecipientsRefused as error:
            codes = [refused.code for refused in error.recipients]
            logger.warning("a mail was refused", codes=codes)
            raise (NoSuchMailbox if all(code >= 500 for code in codes) else NotSent)(
                f"refused for now: {codes}"
            ) from None
        except (aiosmtplib.SMTPException, OSError) as error:
            code = getattr(error, "code", 0)
            logger.warning("a mail could not be sent", error=type(error).__name__, code=code)
            silent = isinstance(error, aiosmtplib.SMTPServerDisconnected | aiosmtplib.SMTPReadTimeoutError)
            kind = MaybeSent if silent or type(error) is TimeoutError else NotSent
            raise kind(f"{type(error).__name__} {code or ''}".strip()) from None

    def _tls(self) -> ssl.SSLContext:
        context = ssl.create_default_context()
        if self.ca_file:
            context.load_verify_locations(self.ca_file)
        return context


def mail_server(settings: Mail, environment: Mapping[str, str]) -> MailServer | None:
    """The account in the settings; None when there is none.

    Raises:
        UsageError: a setting is missing or wrong.
        Refused: others can read the password, or it and the mails would travel in the clear.
        NotFound: its file is not there.
    """
    if not settings.host:
        return None
    try:
        mailbox(settings.from_address, disposable=frozenset())
    except UsageError as error:
        hint = "autoresearch node config set mail.from_address ADDRESS"
        raise UsageError("mail.from_address is no mail address", hint=hint) from error
    password = environment.get(MAIL_PASSWORD_VARIABLE, "")
    if not password and settings.password_file:
        try:
            password = read_secret(Path(settings.password_file).expanduser())
        except NotFound as error:
            raise NotFound(f"mail.password_file: there is no {settings.password_file}", hint=PASSWORD_HINT) from error
    if settings.user and not password:
        raise UsageError(
            "the mail account has no password",
            hint=PASSWORD_HINT,
        )
    if settings.security == "none" and settings.host not in LOOPBACK:
        raise Refused(
            "mails and their password would travel in the clear",
            hint="autoresearch node config set mail.security tls",
        )
    if find_spec("aiosmtplib") is None:
        raise Refused("A package that sends mail is missing.", hint=install_command("attest"))
    if settings.ca_file and not os.access(Path(settings.ca_file).expanduser(), os.R_OK):
        raise UsageError(f"mail.ca_file: {settings.ca_file} can't be read")
    return MailServer(
        host=settings.host,
        port=settings.port,
        security=settings.security,
        user=settings.user,
        password=password,
        sender=settings.from_address.strip(),
        ca_file=str(Path(settings.ca_file).expanduser()) if settings.ca_file else "",
    )
