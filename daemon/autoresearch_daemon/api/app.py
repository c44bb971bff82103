"""The application: a route for each operation, what stands around every answer, and the OpenAPI 3.1 document.

The document is made from the operations. Source: https://spec.openapis.org/oas/v3.1.0.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import msgspec
from aiohttp import web

from autoresearch import __version__
from autoresearch.ask import operations
from autoresearch.ask.operations import OPERATIONS, Operation, Text
from autoresearch.log.standing.answers import Failure
from autoresearch_daemon.api.events import ENDINGS, end_streams, stream_events, write_metrics
from autoresearch_daemon.api.listen import admit, protect
from autoresearch_daemon.api.port import JSON, NODE, NodePort, answer_failures, open_readers
from autoresearch_daemon.api.reading import handler, text_response
from autoresearch_daemon.pages.routes import add_pages

REFERENCE = "#/components/schemas/{name}"
INTRODUCTION = (
    "The local API of one autoresearch node. Over its Unix socket nothing else is needed; over the loopback port "
    "every request carries `Authorization: Bearer <token>`. Every error is a `Failure`: a sentence, a hint and the "
    "exit status that the command line would have. Under one `schema` tag fields are only added."
)


def openapi(operations: Mapping[str, Operation[Any]], *, version: str) -> dict[str, Any]:
    """The document for ``operations``."""
    answers = [operation.answers for operation in operations.values() if operation.answers is not Text]
    models = [Failure, *(operation.takes for operation in operations.values()), *answers]
    schemas, components = msgspec.json.schema_components(models, ref_template=REFERENCE, schema_hook=_anything)
    by_model = dict(zip(models, schemas, strict=True))
    paths: dict[str, dict[str, Any]] = {}
    for name, operation in operations.items():
        shown = described(name, operation, by_model, components)
        paths.setdefault(operation.path, {})[operation.method.lower()] = shown
    # The parameters stand written out at each operation.
    parameters = {operation.takes.__name__ for operation in operations.values() if not operation.has_body}
    return {
        "openapi": "3.1.0",
        "info": {"title": "autoresearch", "version": version, "description": INTRODUCTION},
        "servers": [{"url": "http://localhost"}],
        "security": [{}, {"token": []}],
        "paths": paths,
        "components": {
            "schemas": {name: schema for name, schema in components.items() if name not in parameters},
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
    }


def described(
    name: str, operation: Operation[Any], schemas: dict[Any, Any], components: dict[str, Any]
) -> dict[str, Any]:
    """What one operation takes and answers."""
    schema = schemas.get(operation.answers) or {"type": "object" if operation.media == JSON else "string"}
    failure = {"description": "What went wrong", "content": {JSON: {"schema": schemas[Failure]}}}
    shown: dict[str, Any] = {
        "operationId": name,
        "summary": operation.summary,
        "responses": {
            "200": {"description": operation.summary, "content": {operation.media: {"schema": schema}}},
            "default": failure,
        },
    }
    if operation.has_body:
        shown["requestBody"] = {"content": {JSON: {"schema": schemas[operation.takes]}}}
        return shown
    listed = components[operation.takes.__name__]
    shown["parameters"] = [
        {
            "name": name,
            "in": "path" if name in operation.in_path else "query",
            "required": name in listed["required"],
            "schema": field,
        }
        for name, field in listed["properties"].items()
    ]
    return shown


def _anything(kind: type) -> dict[str, Any]:
    """The schema of ``object``, as in the body of a record of a kind unknown here: any value."""
    if kind is not object:
        raise NotImplementedError
    return {"description": "any value"}


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
