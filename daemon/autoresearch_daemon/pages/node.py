"""This node: what it does now, what comes next, and why."""

from __future__ import annotations

from aiohttp import web

from autoresearch.api import RunRow, RunsOf, operations
from autoresearch.errors import NotFound
from autoresearch_daemon.pages.asking import Asking

RECENT_RUNS = 8


async def node(asking: Asking) -> web.Response:
    """The page of this node."""
    return await _node(asking, "node.html")


async def node_part(asking: Asking) -> web.Response:
    """Its part that changes while the node works."""
    return await _node(asking, "node_part.html")


async def pill(asking: Asking) -> web.Response:
    """The node's state in the head of every page."""
    return await asking.render("pill.html", "node")


async def _node(asking: Asking, template: str) -> web.Response:
    return await asking.render(template, "node", recent=await _recent(asking))


async def _recent(asking: Asking) -> list[RunRow]:
    """The newest runs of this participant on the task."""
    try:
        return (await asking.ask(operations.RUNS, RunsOf(task=asking.task, by="me", size=RECENT_RUNS))).runs
    except NotFound:
        return []  # no task is here yet
