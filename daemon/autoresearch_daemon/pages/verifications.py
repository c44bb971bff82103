"""Verification as it goes on: which runs wait for verifiers, what this node does about it, what came out last."""

from __future__ import annotations

from aiohttp import web

from autoresearch.api import OfTask, operations
from autoresearch.errors import NotFound
from autoresearch_daemon.pages.asking import Asking


async def verifications(asking: Asking) -> web.Response:
    """The verification queue of a task."""
    answer = await asking.found(operations.VERIFICATIONS, OfTask(task=asking.task))
    if answer is None and asking.task:
        raise NotFound(f"There is no task {asking.task} here.", hint="autoresearch task list")
    return await asking.render("verifications.html", "verifications", answer=answer)
