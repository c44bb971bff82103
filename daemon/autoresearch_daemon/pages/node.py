"""This node: what it does now, what comes next, and why."""

from __future__ import annotations

from aiohttp import web

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
    return await asking.render(template, "node", recent=[])
