"""Tells a person elsewhere what happened here, by ways that extensions are. What is not taken is sent again."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from contextlib import suppress
from threading import Thread
from time import monotonic
from typing import TypeVar

import structlog

from autoresearch.ask.health import warning
from autoresearch.ask.node import Check, Event
from autoresearch.errors import AutoresearchError
from autoresearch.extensions import NOTICES, guard_extension, load_extension
from autoresearch.link import backoff
from autoresearch.log.standing.answers import ParticipantView
from autoresearch.notices import Notice, NotTaken, Taken
from autoresearch.settings import Settings
from autoresearch.text import counted
from autoresearch.words import CALLING_REASONS, RESTING, Part
from autoresearch_daemon.events import Events, now_ms

T = TypeVar("T")
AGAIN_SECONDS, AGAIN_SECONDS_MAX = 5.0, 600.0
# A way that has not returned by then is said; until it does it gets nothing more.
SILENT_SECONDS = 60.0
# What waits while the other side is away: the oldest goes first.
WAITING = 100
# A node that stops for one reason again and again says so once an hour.
REPEAT_MS = 3_600_000
logger = structlog.get_logger()


def in_thread(work: Callable[[], T]) -> asyncio.Future[T]:
    """Run what may block for ever: the loop goes on meanwhile, and the process ends without it."""
    future: Future[T] = Future()
    future.set_running_or_notify_cancel()

    def run() -> None:
        try:
            future.set_result(work())
        except BaseException as error:  # noqa: BLE001 - whoever waits gets it
            future.set_exception(error)

    Thread(target=run, daemon=True).start()
    awaited = asyncio.wrap_future(future)
    # Where nobody waits any more, because the node ends, its error is nobody's: else asyncio logs it when it is freed.
    awaited.add_done_callback(lambda ended: ended.cancelled() or ended.exception())
    return awaited


def call_extension(name: str, notices: Sequence[Notice], address: str, *others: object) -> Taken:
    """Have the extension ``name`` send notices; without any it is only loaded. Raises AutoresearchError alone."""
    send = load_extension(NOTICES, name)
    if not callable(send):
        raise NotTaken(f"the extension {name} is no function")
    with guard_extension(name):
        taken = send(notices, address, *others) if notices else Taken(0)
    if asyncio.iscoroutine(taken):
        taken.close()  # left to itself it warns from wherever garbage is collected next
        raise NotTaken(f"the extension {name} is an async function, where one with def is called")
    if not isinstance(taken, Taken) or not 0 <= taken.count <= len(notices):
        raise NotTaken(f"the extension {name} does not say how many it took")
    return taken


class Way:
    """One way, with what waits for it. ``send`` hands over the first of these, or all, or raises AutoresearchError."""

    def __init__(self, send: Callable[[Sequence[Notice]], Taken]) -> None:
        self._send = send
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
        with suppress(AutoresearchError):
            await self._sent([])
        while True:
            self._news.clear()
            if not self._waiting or self._due > monotonic():
                with suppress(TimeoutError):
                    async with asyncio.timeout(self._due - monotonic() if self._waiting else None):
                        await self._news.wait()
                continue
            batch = list(self._waiting)
            try:
                taken = await self._sent(batch)
            except AutoresearchError:
                self._due = monotonic() + backoff(failures, AGAIN_SECONDS, AGAIN_SECONDS_MAX)
                failures += 1
                continue
            failures = 0
            self._due = monotonic() + taken.pause_seconds
            for notice in batch[: taken.count]:
                with suppress(ValueError):  # it began anew, or too many came meanwhile
                    self._waiting.remove(notice)

    async def _sent(self, batch: Sequence[Notice]) -> Taken:
        call = in_thread(lambda: self._send(batch))
        is_done, _ = await asyncio.wait({call}, timeout=SILENT_SECONDS)
        if not is_done:
            self.problem = f"it has not returned for {SILENT_SECONDS:g} s"
        try:
            taken = await call
        except AutoresearchError as error:
            count = counted(len(batch), "notice")
            waits = f"; {count} {'waits' if len(batch) == 1 else 'wait'}, and will be sent again" if batch else ""
            self.problem = f"{error}{waits}"
            raise
        self.problem = ""
        return taken


class Notices:
    """``settings`` and ``me``, this participant, are read anew for each notice.

    ``environment`` is that of the node's start. Raises nothing: what no way takes is said by ``conditions``.
    """

    def __init__(
        self,
        settings: Callable[[], Settings],
        events: Events,
        me: Callable[[], ParticipantView],
        environment: Mapping[str, str],
    ) -> None:
        self._settings, self._events, self._me, self._environment = settings, events, me, environment
        self._ways: dict[str, Way] = {}
        self._group: asyncio.TaskGroup | None = None
        self._told: dict[str, int] = {}

    async def keep(self) -> None:
        """Listen and hand over, until cancelled."""
        async with asyncio.TaskGroup() as group:
            for way in self._ways.values():
                group.create_task(way.keep())
            self._group = group
            for name in self._addresses():
                self._way(name)
            group.create_task(self._listen())

    def greet(self, key: str) -> None:
        """Show a person who has just chosen a way, by a setting of ``notify``, that it works."""
        addresses = self._addresses()
        own = self._settings().notify.extension_addresses()
        for name in own if key == "extensions" else [key]:
            if name in self._ways:
                self._ways[name].begin_anew()
            if name in addresses:
                text = f"this node tells you here of: {self._settings().notify.events}"
                self._way(name).add(self._notice("hello", text, now_ms(), {}))

    def conditions(self) -> list[Check]:
        """Which ways take no notice."""
        addresses, own = self._addresses(), self._settings().notify.extension_addresses()
        remedy = "set another one: autoresearch node config set"
        checks = []
        for name, way in self._ways.items():
            setting, by = ("notify.extensions", f" by {name}") if name in own else (f"notify.{name}", "")
            if way.problem and name in addresses:
                text = f"{setting} tells nobody{by}: {way.problem} → {remedy} {setting} …"
                checks.append(warning(Part.NOTICES, text))
        return checks

    def _addresses(self) -> dict[str, str]:
        return self._settings().notify.addresses()

    def _way(self, name: str) -> Way:
        if name not in self._ways:

            def send(notices: Sequence[Notice]) -> Taken:
                settings = self._settings()
                address = settings.notify.addresses().get(name, "")
                return call_extension(name, notices, address, settings, self._environment)

            self._ways[name] = way = Way(send)
            if self._group:
                self._group.create_task(way.keep())
        return self._ways[name]

    async def _listen(self) -> None:
        while True:
            with self._events.subscribe() as queue:
                while (event := await queue.get()).kind != "stale":
                    notify = self._settings().notify
                    names = list(notify.addresses())
                    if names and (kind := self._kind(event)) in notify.events.replace(" ", "").split(","):
                        text = str(event.data.get("reason")) if kind == "stopped" else event.text
                        for name in names:
                            self._way(name).add(self._notice(kind, text, event.time_ms, event.data))

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
