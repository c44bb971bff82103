"""The application: a route for each operation, what stands around every answer, and the OpenAPI 3.1 document.

The document is made from the operations. Source: https://spec.openapis.org/oas/v3.1.0.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import msgspec
from aiohttp import web

from autoresearch.ask import publishing, questions
from autoresearch.ask.node import Health
from autoresearch.ask.node_acts import Node
from autoresearch.ask.operation import EVENTS, JSON, METRICS, OPENAPI, Operation, Text, declared, operation_of
from autoresearch.log.standing.answers import Failure
from autoresearch.project.runs import records
from autoresearch.version import __version__
from autoresearch_daemon.api.events import ENDINGS, end_streams, stream_events, write_metrics
from autoresearch_daemon.api.listen import admit, protect
from autoresearch_daemon.api.port import NODE, answer_failures, open_desk
from autoresearch_daemon.api.reading import handler, text_response
from autoresearch_daemon.handlers import ApiHandlers
from autoresearch_daemon.pages.routes import add_pages

REFERENCE = "#/components/schemas/{name}"
INTRODUCTION = (
    "The local API of one autoresearch node. Over its Unix socket nothing else is needed; over the loopback port "
    "every request carries `Authorization: Bearer <token>`. Every error is a `Failure`: a sentence, a hint and the "
    "exit status that the command line would have. Under one `schema` tag fields are only added."
)


# What may become of a request, and where: everywhere, where something is taken, where a body is, at the loopback port.
FAILURES = {
    400: "what was sent is not what this address takes",
    401: "over TCP without the token",
    403: "over TCP by a page of another origin, or where only pages are served",
    404: "there is no such thing here",
    409: "refused, or what was named can mean several things",
    413: "the body is larger than 8 MiB",
    500: "a fault of the daemon; its log says which",
    503: "a part of the node that this needs is off, or too many listen",
    504: "it takes too long, here or on other nodes",
}
# What only a body can be.
TOO_LARGE = 413


def openapi(operations: Mapping[str, Operation], *, version: str) -> dict[str, Any]:
    """The document for ``operations``."""
    answers = [operation.answers for operation in operations.values() if operation.answers is not Text]
    models = [Failure, *(operation.takes for operation in operations.values()), *answers]
    schemas, components = msgspec.json.schema_components(models, ref_template=REFERENCE, schema_hook=_anything)
    by_model = dict(zip(models, schemas, strict=True))
    paths: dict[str, dict[str, Any]] = {}
    for name, operation in operations.items():
        described = _described(name, operation, by_model, components)
        paths.setdefault(operation.path, {})[operation.method.lower()] = described
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
            "responses": {
                str(status): {"description": sentence, "content": {JSON: {"schema": by_model[Failure]}}}
                for status, sentence in FAILURES.items()
            },
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
    }


def _described(name: str, operation: Operation, schemas: dict[Any, Any], components: dict[str, Any]) -> dict[str, Any]:
    """What one operation takes and answers."""
    schema = schemas.get(operation.answers) or {"type": "object" if operation.media == JSON else "string"}
    fields = msgspec.structs.fields(operation.takes)
    responses: dict[str, Any] = {
        str(status): {"$ref": f"#/components/responses/{status}"}
        for status in FAILURES
        if operation.has_body or status != TOO_LARGE
    }
    if operation.answers is Health:
        failure = {"anyOf": [schema, schemas[Failure]]}
        responses["503"] = {"description": "not ready", "content": {JSON: {"schema": failure}}}
    responses["200"] = {"description": operation.summary, "content": {operation.media: {"schema": schema}}}
    described: dict[str, Any] = {"operationId": name, "summary": operation.summary, "responses": responses}
    if operation.has_body:
        body = {"content": {JSON: {"schema": schemas[operation.takes]}}}
        described["requestBody"] = body | {"required": any(field.required for field in fields)}
        return described
    listed = components[operation.takes.__name__]
    described["parameters"] = [
        {
            "name": name,
            "in": "path" if name in operation.in_path else "query",
            "required": name in listed["required"],
            "schema": field,
        }
        for name, field in listed["properties"].items()
    ]
    return described


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
    return text_response(text, OPENAPI.media)


QUESTIONS = declared(Node, questions, publishing, records)
# These write to the connection themselves.
WRITERS: dict[str, Callable[[web.Request], Awaitable[web.StreamResponse]]] = {
    METRICS.name: write_metrics,
    OPENAPI.name: write_openapi,
    EVENTS.name: stream_events,
}
# All operations, by name.
OPERATIONS: dict[str, Operation] = {operation.name: operation for operation in (METRICS, OPENAPI, EVENTS)} | {
    name: operation_of(question) for name, question in QUESTIONS.items()
}


def make_app(node: ApiHandlers) -> web.Application:
    """The API of ``node``; `serve` listens with it."""
    app = web.Application(middlewares=[answer_failures, admit], client_max_size=MAXIMUM_BODY_BYTES)
    app[NODE] = node
    app[ENDINGS] = {}
    for name, operation in OPERATIONS.items():
        app.router.add_route(operation.method, operation.path, WRITERS.get(name) or handler(QUESTIONS[name]))
    add_pages(app)
    app.cleanup_ctx.append(open_desk)
    app.on_response_prepare.append(protect)
    app.on_shutdown.append(end_streams)
    return app
