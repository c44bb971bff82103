"""Tells a person elsewhere what happened here: a POST of JSON to ``notify.webhook``, tried again until it is taken."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable

import aiohttp
import structlog

from autoresearch.ask.health import warning
from autoresearch.ask.node import Check, Event
from autoresearch.link import backoff
from autoresearch.log.standing.answers import ParticipantView
from autoresearch.settings import Notify
from autoresearch.words import CALLING_REASONS, RESTING, Part
from autoresearch_daemon.events import Events, now_ms

SECONDS = 10.0
AGAIN_SECONDS, AGAIN_SECONDS_MAX = 5.0, 600.0
# What waits while the other side is away: the oldest goes first.
WAITING = 100
# A node that stops for one reason again and again says so once an hour.
REPEAT_MS = 3_600_000
logger = structlog.get_logger()


class Webhook:
    """``settings`` and ``me``, this participant, are read anew for each message."""

    def __init__(self, settings: Callable[[], Notify], events: Events, me: Callable[[], ParticipantView]) -> None:
        self._settings, self._events, self._me = settings, events, me
        self._waiting: deque[dict[str, object]] = deque(maxlen=WAITING)
        self._has_more = asyncio.Event()
        self._told: dict[str, int] = {}
        self._problem = ""

    async def keep(self) -> None:
        """Listen and send, until cancelled."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._listen())
            group.create_task(self._send())

    def greet(self) -> None:
        """Show a person who has just set the address that it works."""
        self._waiting.clear()
        self._problem = ""
        if self._settings().webhook:
            self._add("hello", f"this node tells you here of: {self._settings().events}", now_ms(), {})

    def conditions(self) -> list[Check]:
        """That messages are not taken."""
        return [warning(Part.WEBHOOK, self._problem)] if self._problem else []

    async def _listen(self) -> None:
        while True:
            with self._events.subscribe() as queue:
                while (event := await queue.get()).kind != "stale":
                    settings = self._settings()
                    kind = self._kind(event)
                    if settings.webhook and kind in settings.events.replace(" ", "").split(","):
                        text = str(event.data.get("reason")) if kind == "stopped" else event.text
                        self._add(kind, text, event.time_ms, event.data)

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

    def _add(self, kind: str, text: str, time_ms: int, data: dict[str, object]) -> None:
        me = self._me()
        sentence = f"autoresearch of {me.name or me.short}, {kind}: {text}"
        # Chat programs show one of these two fields: Slack and Mattermost the first, Discord the second.
        told = {"text": sentence, "content": sentence}
        self._waiting.append({**told, "event": kind, "time_ms": time_ms, "participant": me.key, "data": data})
        self._has_more.set()

    async def _send(self) -> None:
        failures = 0
        while True:
            await self._has_more.wait()
            url = self._settings().webhook
            while self._waiting and url:
                message = self._waiting[0]
                self._problem = await self._post(url, message)
                if not self._problem and self._waiting and self._waiting[0] is message:
                    self._waiting.popleft()
                if self._problem:
                    break
            self._has_more.clear()
            failures = failures + 1 if self._problem else 0
            if self._problem:
                seconds = backoff(failures - 1, AGAIN_SECONDS, AGAIN_SECONDS_MAX)
                asyncio.get_running_loop().call_later(seconds, self._has_more.set)

    async def _post(self, url: str, message: dict[str, object]) -> str:
        """Send one; returns why it was not taken. The address is often a secret: it is not repeated."""
        try:
            async with (
                asyncio.timeout(SECONDS),
                aiohttp.ClientSession(trust_env=True) as session,
                session.post(url, json=message, allow_redirects=False) as response,
            ):
                if response.status < 300:
                    return ""
                reason = f"it answered {response.status}"
        except TimeoutError:
            reason = f"no answer within {SECONDS:g} s"
        except (aiohttp.ClientError, ValueError) as error:
            reason = type(error).__name__
        logger.warning("the webhook takes no message", reason=reason)
        count = len(self._waiting)
        remedy = "set another address: autoresearch node config set notify.webhook URL"
        return f"notify.webhook takes no message: {reason}; {count} wait and are sent again → {remedy}"
