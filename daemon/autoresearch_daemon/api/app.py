"""The application: a route for each operation, and what stands around every answer."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import msgspec
from aiohttp import web

from autoresearch import __version__
from autoresearch.api import OPERATIONS, Operation, operations
from autoresearch_daemon.api.events import ENDINGS, end_streams, stream_events
from autoresearch_daemon.api.failures import answer_failures
from autoresearch_daemon.api.guard import admit, protect
from autoresearch_daemon.api.metrics import write_metrics
from autoresearch_daemon.api.openapi import openapi
from autoresearch_daemon.api.port import NodePort
from autoresearch_daemon.api.readers import NODE, open_readers
from autoresearch_daemon.api.routes import handler, text_response
from autoresearch_daemon.pages import add_pages

# A request of this API is a few words; what is larger is a mistake or an attack.
# A program has at most 1 MiB, and JSON writes some characters of it as six.
MAXIMUM_BODY_BYTES = 8 * 1024 * 1024


async def write_openapi(_: web.Request) -> web.StreamResponse:
    """The document that describes this API."""
    text = msgspec.json.encode(openapi(OPERATIONS, version=__version__)).decode()
    return text_response(text, operations.OPENAPI.media)


# These write to the connection themselves.
WRITERS: dict[Operation[Any], Callable[[web.Request], Awaitable[web.StreamResponse]]] = {
    operations.METRICS: write_metrics,
    operations.OPENAPI: write_openapi,
    operations.EVENTS: stream_events,
}


def make_app(node: NodePort) -> web.Application:
    """The API of ``node``; `serve` listens with it."""
    app = web.Application(middlewares=[answer_failures, admit], client_max_size=MAXIMUM_BODY_BYTES)
    app[NODE] = node
    app[ENDINGS] = set()
    for name, operation in OPERATIONS.items():
        app.router.add_route(operation.method, operation.path, WRITERS.get(operation) or handler(name, operation))
    add_pages(app)
    app.cleanup_ctx.append(open_readers)
    app.on_response_prepare.append(protect)
    app.on_shutdown.append(end_streams)
    return app
