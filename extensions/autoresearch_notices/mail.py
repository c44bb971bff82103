"""Notices by mail, with the account of the settings. One mail an hour collects what happened meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from email.message import EmailMessage
from email.policy import SMTP
from email.utils import format_datetime, make_msgid

import structlog

from autoresearch.notices import Notice, NotTaken, Taken, heading
from autoresearch.settings import Settings
from autoresearch.text import clock, one_line
from autoresearch_notices.mailer import MaybeSent, NoSuchMailbox, NotSent, mail_server

MAIL_SECONDS = 3600.0
logger = structlog.get_logger()


def send(notices: Sequence[Notice], address: str, settings: Settings, environment: Mapping[str, str]) -> Taken:
    """One mail with all of them."""
    server = mail_server(settings.mail, environment)
    if server is None:
        raise NotTaken("this node has no mail account: set mail.host, then autoresearch down, and up")
    mail = EmailMessage(policy=SMTP)
    mail["From"], mail["To"] = server.sender, address
    mail["Subject"] = heading(notices)
    mail["Date"] = format_datetime(datetime.now(UTC))
    mail["Message-ID"] = make_msgid(domain=server.sender.rpartition("@")[2])
    mail["Auto-Submitted"] = "auto-generated"
    lines = [f"{clock(notice.time_ms)}  {one_line(notice.kind)}: {one_line(notice.text)}" for notice in notices]
    end = 'No more of these: autoresearch node config set notify.mail ""'
    mail.set_content("\n".join([*lines, "", end, ""]))
    try:
        asyncio.run(server.send(mail, address))
    except MaybeSent as error:  # no mailbox is flooded
        logger.warning("nobody knows whether a notice was mailed", reason=str(error))
    except NoSuchMailbox:
        raise NotTaken("the mail server refuses that address") from None
    except NotSent as error:
        raise NotTaken(f"the mail was not sent: {error}") from None
    return Taken(len(notices), MAIL_SECONDS)
