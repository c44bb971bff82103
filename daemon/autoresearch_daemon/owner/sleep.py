"""Learns from logind that this machine is about to sleep, and has it wait a moment: a delay inhibitor.

See https://systemd.io/INHIBITOR_LOCKS.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import closing, suppress

import structlog
from jeepney import MatchRule, Message, message_bus, new_method_call
from jeepney.fds import FileDescriptor
from jeepney.io.asyncio import DBusRouter, Proxy, open_dbus_router
from jeepney.io.blocking import open_dbus_connection
from jeepney.wrappers import unwrap_msg

from autoresearch_daemon.owner.idle import MANAGER, UNANSWERED

# logind waits five seconds unless it was told otherwise (InhibitDelayMaxSec).
DELAY_SECONDS = 4.0
DEADLINE_SECONDS = 2.0
# A bus that is gone, or was never there, is looked for so often.
AGAIN_SECONDS = 60.0
logger = structlog.get_logger()


class Sleep:
    """``going`` is awaited before this machine sleeps, for :data:`DELAY_SECONDS` at most; ``woke`` is called after."""

    def __init__(self, going: Callable[[], Awaitable[object]], woke: Callable[[], None]) -> None:
        self._going, self._woke = going, woke

    async def keep(self) -> None:
        """Follow, until cancelled. On a machine without logind nobody is told of its sleep."""
        while True:
            with suppress(*UNANSWERED):
                async with open_dbus_router("SYSTEM") as router:
                    await self._follow(router)
            await asyncio.sleep(AGAIN_SECONDS)

    async def _follow(self, router: DBusRouter) -> None:
        rule = MatchRule(type="signal", interface=MANAGER.interface, member="PrepareForSleep", path=MANAGER.object_path)
        await Proxy(message_bus, router).AddMatch(rule)
        news: asyncio.Queue[Message] = asyncio.Queue()
        with router.filter(rule, queue=news):
            while True:
                with await asyncio.to_thread(_inhibit):
                    await _told(router, news, is_going=True)
                    logger.info("this machine goes to sleep")
                    with suppress(TimeoutError):
                        async with asyncio.timeout(DELAY_SECONDS):
                            await self._going()
                await _told(router, news, is_going=False)
                logger.info("this machine woke up")
                self._woke()


async def _told(router: DBusRouter, news: asyncio.Queue[Message], *, is_going: bool) -> None:
    """Wait until logind says so. Raises RouterClosed, a RuntimeError, when the bus is gone."""
    while True:
        with suppress(TimeoutError):
            async with asyncio.timeout(AGAIN_SECONDS):
                if (await news.get()).body[0] == is_going:
                    return
                continue
        await Proxy(message_bus, router).GetId()


def _inhibit() -> FileDescriptor:
    """As long as this is open, logind waits before it lets the machine sleep. Only this kind of connection gets one."""
    with closing(open_dbus_connection("SYSTEM", enable_fds=True, auth_timeout=DEADLINE_SECONDS)) as connection:
        body = ("sleep", "autoresearch", "Runs on graphics cards are stopped", "delay")
        call = new_method_call(MANAGER, "Inhibit", "ssss", body)
        reply = connection.send_and_get_reply(call, timeout=DEADLINE_SECONDS)
        lock: FileDescriptor = unwrap_msg(reply)[0]
        return lock
