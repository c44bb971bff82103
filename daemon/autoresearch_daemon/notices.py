"""Tells a person what happened here: by a webhook, by mail, on the desktop. What is not taken is sent again."""

from __future__ import annotations

import asyncio
import html
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from email.message import EmailMessage
from email.policy import SMTP
from email.utils import format_datetime, make_msgid
from time import monotonic

import aiohttp
import structlog
from jeepney import DBusAddress, DBusErrorResponse, new_method_call
from jeepney.io.asyncio import open_dbus_router
from jeepney.wrappers import unwrap_msg

from autoresearch.ask.health import warning
from autoresearch.ask.node import Check, Event
from autoresearch.link import backoff
from autoresearch.log.standing.answers import ParticipantView
from autoresearch.settings import Notify
from autoresearch.text import clock, counted, one_line
from autoresearch.trust.mailer import MailServer, MaybeSent, NoSuchMailbox, NotSent
from autoresearch.words import CALLING_REASONS, RESTING, Part
from autoresearch_daemon.events import Events, now_ms
from autoresearch_daemon.owner.idle import session_bus

SECONDS = 10.0
AGAIN_SECONDS, AGAIN_SECONDS_MAX = 5.0, 600.0
# One mail an hour: it collects what happened meanwhile.
MAIL_SECONDS = 3600.0
# What waits while the other side is away: the oldest goes first.
WAITING = 100
# A node that stops for one reason again and again says so once an hour.
REPEAT_MS = 3_600_000
# So many lines fit on a desktop's notice.
LINES = 5
# https://specifications.freedesktop.org/notification-spec/latest/protocol.html
NAME = "org.freedesktop.Notifications"
DESKTOP = DBusAddress("/org/freedesktop/Notifications", bus_name=NAME, interface=NAME)
logger = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class Notice:
    """What happened; ``who`` is the participant's key, ``name`` what a person calls it."""

    kind: str
    text: str
    time_ms: int
    data: dict[str, object]
    who: str
    name: str

    @property
    def sentence(self) -> str:
        """All of it, for a person who reads nothing else."""
        return one_line(f"autoresearch of {self.name}, {self.kind}: {self.text}")


class NotTaken(Exception):
    """The other side takes no notice now; the text says why."""


# Hands over the first of these, or all; how many were taken. Raises NotTaken.
Deliver = Callable[[Sequence[Notice]], Awaitable[int]]


class Way:
    """One way out, with what waits for it. After ``pause_seconds`` it may be used again."""

    def __init__(self, deliver: Deliver, pause_seconds: float = 0.0) -> None:
        self._deliver, self._pause_seconds = deliver, pause_seconds
        self._waiting: deque[Notice] = deque(maxlen=WAITING)
        self._news = asyncio.Event()
        self._due = 0.0
        self.problem = ""

    def add(self, notice: Notice) -> None:
        """Hand it over as soon as may be."""
        self._waiting.append(notice)
        self._news.set()

    def begin_anew(self) -> None:
        """Another address, or none: what waited was for the one before."""
        self._waiting.clear()
        self.problem, self._due = "", 0.0

    async def keep(self) -> None:
        """Hand over each notice, until cancelled."""
        failures = 0
        while True:
            self._news.clear()
            if not self._waiting or self._due > monotonic():
                with suppress(TimeoutError):
                    async with asyncio.timeout(self._due - monotonic() if self._waiting else None):
                        await self._news.wait()
                continue
            batch = list(self._waiting)
            try:
                taken = await self._deliver(batch)
            except NotTaken as error:
                count = counted(len(batch), "notice")
                self.problem = f"{error}; {count} {'waits' if len(batch) == 1 else 'wait'}, and will be sent again"
                self._due = monotonic() + backoff(failures, AGAIN_SECONDS, AGAIN_SECONDS_MAX)
                failures += 1
                continue
            self.problem, failures = "", 0
            self._due = monotonic() + self._pause_seconds
            for notice in batch[:taken]:
                with suppress(ValueError):  # it began anew, or too many came meanwhile
                    self._waiting.remove(notice)


class Notices:
    """``settings`` and ``me``, this participant, are read anew for each notice; ``server`` is this node's mail account.

    Raises nothing: what no way takes is said by ``conditions``.
    """

    def __init__(
        self,
        settings: Callable[[], Notify],
        events: Events,
        me: Callable[[], ParticipantView],
        server: MailServer | None,
    ) -> None:
        self._settings, self._events, self._me, self._server = settings, events, me, server
        self._ways = {
            "webhook": Way(self._post),
            "mail": Way(self._mail, MAIL_SECONDS),
            "desktop": Way(self._show),
        }
        self._told: dict[str, int] = {}

    async def keep(self) -> None:
        """Listen and hand over, until cancelled."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._listen())
            for way in self._ways.values():
                group.create_task(way.keep())

    def greet(self, name: str) -> None:
        """Show a person who has just chosen a way that it works."""
        if name in self._ways:
            self._ways[name].begin_anew()
            if getattr(self._settings(), name):
                text = f"this node tells you here of: {self._settings().events}"
                self._ways[name].add(self._notice("hello", text, now_ms(), {}))

    def conditions(self) -> list[Check]:
        """Which ways take no notice."""
        remedy = "set another one: autoresearch node config set"
        return [
            warning(Part.NOTICES, f"notify.{name} tells nobody: {way.problem} → {remedy} notify.{name} …")
            for name, way in self._ways.items()
            if way.problem
        ]

    async def _listen(self) -> None:
        while True:
            with self._events.subscribe() as queue:
                while (event := await queue.get()).kind != "stale":
                    settings = self._settings()
                    on = [way for name, way in self._ways.items() if getattr(settings, name)]
                    if on and (kind := self._kind(event)) in settings.events.replace(" ", "").split(","):
                        text = str(event.data.get("reason")) if kind == "stopped" else event.text
                        for way in on:
                            way.add(self._notice(kind, text, event.time_ms, event.data))

    def _kind(self, event: Event) -> str:
        """What a person calls this kind of event; empty: nobody is told of it."""
        if event.kind != "state":
            return event.kind
        why = str(event.data.get("why"))
        if event.data.get("state") not in RESTING or why not in CALLING_REASONS:
            return ""
        if event.time_ms - self._told.get(why, -REPEAT_MS) < REPEAT_MS:
            return ""
        self._told[why] = event.time_ms
        return "stopped"

    def _notice(self, kind: str, text: str, time_ms: int, data: dict[str, object]) -> Notice:
        me = self._me()
        return Notice(kind, text, time_ms, data, me.key, me.name or me.short)

    async def _post(self, notices: Sequence[Notice]) -> int:
        """Post the first. The address is often a secret: it is not repeated."""
        notice = notices[0]
        # Chat programs show one of these two fields: Slack and Mattermost the first, Discord the second.
        texts = {"text": notice.sentence, "content": notice.sentence}
        fields = {"event": notice.kind, "time_ms": notice.time_ms, "participant": notice.who, "data": notice.data}
        try:
            async with (
                asyncio.timeout(SECONDS),
                aiohttp.ClientSession(trust_env=True) as session,
                session.post(self._settings().webhook, json=texts | fields, allow_redirects=False) as response,
            ):
                if response.status < 300:
                    return 1
                reason = f"it answered {response.status}"
        except TimeoutError:
            reason = f"no answer within {SECONDS:g} s"
        except (aiohttp.ClientError, ValueError) as error:
            reason = type(error).__name__
        logger.warning("the webhook takes no message", reason=reason)
        raise NotTaken(reason)

    async def _mail(self, notices: Sequence[Notice]) -> int:
        """One mail with all of them."""
        to = self._settings().mail
        if self._server is None:
            raise NotTaken("this node has no mail account: set mail.host, then autoresearch down, and up")
        mail = EmailMessage(policy=SMTP)
        mail["From"], mail["To"] = self._server.sender, to
        mail["Subject"] = heading(notices)
        mail["Date"] = format_datetime(datetime.now(UTC))
        mail["Message-ID"] = make_msgid(domain=self._server.sender.rpartition("@")[2])
        mail["Auto-Submitted"] = "auto-generated"
        lines = [f"{clock(notice.time_ms)}  {one_line(notice.kind)}: {one_line(notice.text)}" for notice in notices]
        end = 'No more of these: autoresearch node config set notify.mail ""'
        mail.set_content("\n".join([*lines, "", end, ""]))
        try:
            await self._server.send(mail, to)
        except MaybeSent as error:  # no mailbox is flooded
            logger.warning("nobody knows whether a notice was mailed", reason=str(error))
        except NoSuchMailbox:
            raise NotTaken("the mail server refuses that address") from None
        except NotSent as error:
            raise NotTaken(f"the mail was not sent: {error}") from None
        return len(notices)

    async def _show(self, notices: Sequence[Notice]) -> int:
        """One notice with all of them, on the desktop whose session bus is this user's."""
        text = html.escape("\n".join(one_line(notice.text, 200) for notice in notices[-LINES:]), quote=False)
        # Program, none to replace, no icon, title, text, no buttons, no hints, the desktop's own time.
        body: tuple[object, ...] = ("autoresearch", 0, "", heading(notices), text, [], {}, -1)
        try:
            async with asyncio.timeout(SECONDS), open_dbus_router(session_bus()) as router:
                unwrap_msg(await router.send_and_get_reply(new_method_call(DESKTOP, "Notify", "susssasa{sv}i", body)))
        except DBusErrorResponse as error:
            raise NotTaken(f"the desktop refuses: {error.name}") from None
        except (OSError, EOFError, RuntimeError, ValueError):  # TimeoutError is an OSError
            raise NotTaken("no desktop of this user answers on its session bus") from None
        return len(notices)


def heading(notices: Sequence[Notice]) -> str:
    """One line about all of them."""
    if len(notices) == 1:
        return one_line(notices[0].sentence, 120)
    kinds = ", ".join(dict.fromkeys(notice.kind for notice in notices))
    return one_line(f"autoresearch of {notices[-1].name}: {len(notices)} notices ({kinds})", 120)
