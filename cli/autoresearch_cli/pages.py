"""The address of the local pages, and a browser that opens it."""

from __future__ import annotations

import os
import webbrowser
from html import escape
from pathlib import Path

from autoresearch.api import StatusAnswer
from autoresearch.errors import Refused
from autoresearch_cli import here
from autoresearch_cli.rendering.output import say

OPENER = "open-pages.html"


def pages_address(status: StatusAnswer) -> str:
    """Where the daemon serves its pages. Raises Refused when they are off."""
    if not status.pages:
        raise Refused("the pages are off", hint="autoresearch config set api.port 8420, then autoresearch down and up")
    return status.pages


def private_address(address: str) -> str:
    """The address with the token in its fragment, which a browser sends to nobody: the page has controls then."""
    return f"{address}#token={here.paths().make_api_token()}"


def show_pages(status: StatusAnswer) -> None:
    """Open the pages in a browser, or say where they are. Raises Refused when they are off."""
    address = pages_address(status)
    if open_pages(address):
        say(f"the pages are open in your browser: {address}")
    else:
        say(f"no browser was found here; open {address} yourself")
        say("→ autoresearch open --print prints the address with controls")


def announce_pages(status: StatusAnswer) -> None:
    """Say where the pages are, and on a desktop open them, without controls."""
    if status.pages:
        say(f"pages: {status.pages}")
        if _has_display():
            webbrowser.open(status.pages)


def open_pages(address: str) -> bool:
    """Open the pages with controls in a browser; whether one was found.

    The browser is given a file that leads there: its command line, which all users of this machine can read, would show
    the token.
    """
    if not _has_display():
        return False
    file = here.paths().state / OPENER
    target = escape(private_address(address), quote=True)
    text = f'<!doctype html><meta charset="utf-8"><meta http-equiv="refresh" content="0; url={target}">'
    _write_private(file, text)
    return webbrowser.open(file.as_uri())


def _has_display() -> bool:
    """Whether a browser has a screen to open on; a text browser would take the terminal."""
    if os.name != "posix" or os.uname().sysname == "Darwin":
        return True
    return bool(here.environment().get("DISPLAY") or here.environment().get("WAYLAND_DISPLAY"))


def _write_private(file: Path, text: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.unlink(missing_ok=True)
    descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as written:
        written.write(text)
