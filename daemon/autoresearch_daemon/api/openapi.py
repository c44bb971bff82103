"""The OpenAPI 3.1 document of the API, made from the operations. Source: https://spec.openapis.org/oas/v3.1.0."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from autoresearch.api import Failure, Operation, Text
from autoresearch_daemon.api.failures import JSON

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
