"""Pages that are a table: what waits, who is connected, what is worked on."""

from __future__ import annotations

from aiohttp import web

from autoresearch.api import OfTask, operations
from autoresearch.errors import NotFound
from autoresearch_daemon.pages.asking import Asking


async def queue(asking: Asking) -> web.Response:
    """Proposals that wait for a worker, runs in hand here, and what other nodes claimed."""
    try:
        claims = (await asking.ask(operations.CLAIMS, OfTask(task=asking.task))).claims
    except NotFound:
        if asking.task:
            raise
        claims = []  # no task is here yet
    return await asking.render("queue.html", "queue", claims=claims)


async def peers(asking: Asking) -> web.Response:
    """The nodes that this one is connected to, or was."""
    return await asking.render("peers.html", "peers", answer=await asking.ask(operations.PEERS))


async def tasks(asking: Asking) -> web.Response:
    """The tasks of the log."""
    return await asking.render("tasks.html", "tasks", answer=await asking.ask(operations.TASKS))
