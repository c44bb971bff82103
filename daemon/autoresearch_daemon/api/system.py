"""The addresses for probes and monitoring."""

from __future__ import annotations

import asyncio

from aiohttp import web
from prometheus_client import CONTENT_TYPE_PLAIN_0_0_4

from autoresearch.api import Health
from autoresearch_daemon.api.metrics import NodeCollector, exposition
from autoresearch_daemon.api.port import NodePort
from autoresearch_daemon.api.readers import SHELF, THREADS
from autoresearch_daemon.api.requests import Nothing


def get_health(_: NodePort, __: Nothing) -> Health:
    """Whether the daemon is alive."""
    return Health(status="alive")


def get_ready(node: NodePort, _: Nothing) -> Health:
    """Whether the node can work; with HTTP status 503 and the reason when it can't."""
    return node.ready()


async def get_metrics(node: NodePort, request: web.Request, _: Nothing) -> web.StreamResponse:
    """The node in numbers, for Prometheus."""
    collector = NodeCollector(node.status(), node.ready(), request.app[SHELF].log)
    loop = asyncio.get_running_loop()
    text = await loop.run_in_executor(request.app[THREADS], exposition, collector)
    return web.Response(body=text, headers={"Content-Type": CONTENT_TYPE_PLAIN_0_0_4})
