"""The OpenAPI 3.1 document of the API, made from the route table. Source: https://spec.openapis.org/oas/v3.1.0."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import msgspec

from autoresearch.api import Failure
from autoresearch_daemon.api.failures import JSON
from autoresearch_daemon.api.routes import Route

REFERENCE = "#/components/schemas/{name}"
INTRODUCTION = (
    "The local API of one autoresearch node. Over its Unix socket nothing else is needed; over the loopback port "
    "every request carries `Authorization: Bearer <token>`. Every error is a `Failure`: a sentence, a hint and the "
    "exit status that the command line would have. Under one `schema` tag fields are only added."
)


def openapi(routes: Sequence[Route], *, version: str) -> dict[str, Any]:
    """The document for ``routes``."""
    models = [Failure, *(route.takes for route in routes), *filter(None, (route.answers for route in routes))]
    schemas, components = msgspec.json.schema_components(models, ref_template=REFERENCE, schema_hook=_anything)
    by_model = dict(zip(models, schemas, strict=True))
    paths: dict[str, dict[str, Any]] = {}
    for route in routes:
        paths.setdefault(route.path, {})[route.method.lower()] = operation(route, by_model, components)
    # The parameters stand written out at each operation.
    parameters = {route.takes.__name__ for route in routes if not route.has_body}
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


def operation(route: Route, schemas: dict[Any, Any], components: dict[str, Any]) -> dict[str, Any]:
    """What one address takes and answers."""
    if route.answers:
        media, schema = JSON, schemas[route.answers]
    else:
        media, schema = route.media, {"type": "object" if route.media == JSON else "string"}
    failure = {"description": "What went wrong", "content": {JSON: {"schema": schemas[Failure]}}}
    described: dict[str, Any] = {
        "operationId": route.handle.__name__,
        "summary": route.summary,
        "responses": {
            "200": {"description": route.summary, "content": {media: {"schema": schema}}},
            "default": failure,
        },
    }
    if route.has_body:
        described["requestBody"] = {"content": {JSON: {"schema": schemas[route.takes]}}}
        return described
    in_path = set(re.findall(r"{(\w+)}", route.path))
    listed = components[route.takes.__name__]
    described["parameters"] = [
        {
            "name": name,
            "in": "path" if name in in_path else "query",
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
