"""A real browser: Debian's Chromium, driven by Playwright in a thread of its own.

Playwright's own loop would otherwise stay in the thread of the tests, where asyncio has one.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

CHROMIUM = "/usr/bin/chromium"
# Screenshots of a test run, to look at; never committed. They take a tenth of the tests' time and no test reads them:
# only with this variable in the environment.
SHOTS, WANTED = Path(__file__).parents[3] / "build" / "screenshots", "SCREENSHOTS"
WIDE, NARROW = 1440, 360
# The browser drops keys until it has drawn the first frame, on a busy machine after all is loaded.
DRAWN = "new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))"
T = TypeVar("T")


@dataclass
class Seen:
    """What a page did: complaints on its console, errors of its scripts, requests to other hosts, and an answer."""

    complaints: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)
    answer: Any = None


def shoot(page: Any, name: str, *, full_page: bool = True) -> None:
    """Keep a screenshot of a page, where they are wanted."""
    if WANTED in os.environ:
        page.screenshot(path=SHOTS / f"{name}.png", full_page=full_page)


class Browser:
    """One Chromium for all tests of a process."""

    def __init__(self) -> None:
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="browser")
        self._thread.submit(self._start).result()

    def close(self) -> None:
        """End the browser."""
        self._thread.submit(self._stop).result()
        self._thread.shutdown()

    async def visit(
        self,
        address: str,
        act: Callable[[Any], T] = lambda page: page.title(),
        *,
        width: int = WIDE,
        shot: str = "",
    ) -> Seen:
        """Open an address, do something with the page, and tell what was seen. ``shot`` names its :func:`shoot`."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._thread, self._visit, address, act, width, shot)

    def _start(self) -> None:
        from playwright.sync_api import sync_playwright

        self._playwright = sync_playwright().start()
        # Root in a container has no sandbox for the browser; it opens nothing but this machine's own pages.
        options = ["--no-sandbox"] if os.geteuid() == 0 else []
        self._chromium = self._playwright.chromium.launch(executable_path=CHROMIUM, args=options)

    def _stop(self) -> None:
        self._chromium.close()
        self._playwright.stop()

    def _visit(self, address: str, act: Callable[[Any], Any], width: int, shot: str) -> Seen:
        seen = Seen()
        context = self._chromium.new_context(
            viewport={"width": width, "height": 900}, color_scheme="light", reduced_motion="reduce"
        )
        try:
            page = context.new_page()
            page.set_default_timeout(20_000)
            page.on(
                "console", lambda message: message.type in {"error", "warning"} and seen.complaints.append(message.text)
            )
            page.on("pageerror", lambda error: seen.complaints.append(str(error)))
            page.on("request", lambda request: seen.requests.append(request.url))
            page.goto(address, wait_until="load")
            page.evaluate(DRAWN)
            seen.answer = act(page)
            if shot:
                shoot(page, shot)
        finally:
            context.close()
        return seen
