"""The document describes what the code answers."""

import re
from functools import reduce
from pathlib import Path

import msgspec
import pytest
from autoresearch_daemon.api.app import OPERATIONS, make_app
from autoresearch_daemon.api.listen import PAGE

from autoresearch.ask.operation import Text
from autoresearch.log.standing.answers import Answer

COMPONENT = str(Path(__file__).parents[2] / "ask" / "registry" / "corridor")
PATHS = {"{id}": "@~1", "{participant}": "me"}
QUERIES = {"/v1/diff": "?old=@~1&new=@", "/v1/groups": "?setting=DEPTH"}
# These are about what this small node can't have; the stories of daemons and of the command line do it.
ELSEWHERE = {
    "publish_task",
    "publish_run",
    "bring",
    "yank",
    "believe",
    "take_hidden",
    "challenge",
    "set_challenge_end",
    "cheat",
}
BODIES = {
    "/v1/orders/cancel": {"number": 1},
    "/v1/history": {"notes": [{"task": "0" * 64, "origin": "results.tsv 1", "text": "a: b"}]},
    "/v1/withdraw": {"record": "@mine", "reason": "wrong data"},
    "/v1/stars": {"id": "@"},
    "/v1/hidden": {"what": "0" * 64, "reason": "spam"},
    "/v1/hidden/share": {"text": "spam"},
    "/v1/attestor/withdraw": {"participant": "0" * 64},
    "/v1/attestor/allow": {"participant": "0" * 64},
    "/v1/attest": {"address": "you@example.org"},
    "/v1/attest/confirm": {"token": "0" * 32, "signature": "0" * 128},
    "/v1/proposals": {"program": "x = 1\n"},
    "/v1/proposals/drop": {"name": "proposal-1"},
    "/v1/peers": {"address": "/ip4/127.0.0.1/tcp/4001/p2p/12D3"},
    "/v1/network/join": {"where": "autoresearch1"},
    "/v1/tasks/new": {"folder": "/mine"},
    "/v1/settings": {"name": "work.workers", "value": "2"},
    "/v1/name": {"name": "ann"},
    "/v1/admissions": {"participant": "ann"},
    "/v1/verify": {"run": "bafyrei"},
    "/v1/notes": {"evidence": ["@"], "text": "what it shows"},
    "/v1/claims": {"program": "x = 1"},
    "/v1/ask": {"question": "which depths were tried?"},
    "/v1/peers/block": {"peer": "12D3KooW"},
    "/v1/releases": {"place": COMPONENT, "type": "environment", "version": "1.0.0"},
    "/v1/fetch": {"sha256": "0" * 64, "size": 1},
}


def resolved(document, schema):
    while "$ref" in schema:
        assert schema["$ref"].startswith("#/components/schemas/")
        schema = document["components"]["schemas"][schema["$ref"].rpartition("/")[2]]
    return schema


KINDS = {"object": dict, "array": list, "string": str, "integer": int, "number": (int, float), "boolean": bool}


def misfits(document, schema, value, where="$"):
    """Where a JSON value breaks a schema: the part of JSON Schema that these documents use."""
    schema = resolved(document, schema)
    kind = schema.get("type")
    if "anyOf" in schema:
        tried = [list(misfits(document, choice, value, where)) for choice in schema["anyOf"]]
        return min(tried, key=len)
    if kind is None:
        return []
    if kind == "null" or value is None or (isinstance(value, bool) and kind != "boolean"):
        return [] if kind == "null" and value is None else [f"{where}: {value!r} is no {kind}"]
    if not isinstance(value, KINDS[kind]):
        return [f"{where}: {value!r} is no {kind}"]
    if kind == "object":
        return object_misfits(document, schema, value, where)
    if kind == "array":
        inner = schema.get("items", {})
        return [fault for n, item in enumerate(value) for fault in misfits(document, inner, item, f"{where}[{n}]")]
    return []


def object_misfits(document, schema, value, where):
    faults = [f"{where}: {name} is missing" for name in schema.get("required", []) if name not in value]
    properties, rest = schema.get("properties", {}), schema.get("additionalProperties")
    for name, inner in value.items():
        if name in properties or isinstance(rest, dict):
            faults += misfits(document, properties.get(name, rest), inner, f"{where}.{name}")
        elif properties:
            faults.append(f"{where}: {name} is not described")
    return faults


async def test_every_address_is_described_and_nothing_else(client, node):
    document = await client.get("/openapi.json")
    described = {(method.upper(), path) for path, methods in document["paths"].items() for method in methods}
    served = {
        (route.method, route.resource.canonical)
        for route in make_app(node).router.routes()
        if route.method != "HEAD" and not (route.name or "").startswith(PAGE)
    }
    assert described == served == {(operation.method, operation.path) for operation in OPERATIONS.values()}
    names = [operation["operationId"] for path in document["paths"].values() for operation in path.values()]
    assert len(set(names)) == len(names)


async def test_every_reference_leads_somewhere(client):
    text = await client.session.get("http://localhost/openapi.json")
    text = await text.text()
    document = msgspec.json.decode(text)
    assert document["openapi"].startswith("3.1.")
    referenced = set(re.findall(r'"#/components/schemas/(\w+)"', text))
    assert referenced <= set(document["components"]["schemas"])


async def test_every_part_of_a_path_is_a_required_parameter(client):
    document = await client.get("/openapi.json")
    for path, methods in document["paths"].items():
        for operation in methods.values():
            named = {p["name"] for p in operation.get("parameters", []) if p["in"] == "path"}
            assert named == set(re.findall(r"{(\w+)}", path))
            assert all(p["required"] for p in operation.get("parameters", []) if p["in"] == "path")


@pytest.mark.parametrize(
    "operation",
    [
        operation
        for operation in OPERATIONS.values()
        if "event-stream" not in operation.media and operation.name not in ELSEWHERE
    ],
    ids=lambda operation: operation.address,
)
async def test_every_answer_fits_its_description(client, operation):
    document = await client.get("/openapi.json")
    path = operation.path
    if path == "/v1/releases/{id}":
        made = await client.post("/v1/releases", BODIES["/v1/releases"])
        path = path.replace("{id}", made["release"]["id"])
    if operation.name == "hidden_list":
        await client.post("/v1/hidden/share", BODIES["/v1/hidden/share"])
    address = reduce(lambda text, part: text.replace(*part), PATHS.items(), path) + QUERIES.get(operation.path, "")
    answer = await client.ask(operation.method, address, json=BODIES.get(operation.path))
    response = document["paths"][operation.path][operation.method.lower()]["responses"]["200"]
    ((media, described),) = response["content"].items()
    assert media.startswith("application/json" if isinstance(answer, dict) else "text/plain")
    assert list(misfits(document, described["schema"], answer)) == []
    if operation.answers is not Text:
        assert issubclass(operation.answers, Answer)
        encoded = msgspec.json.encode(answer)
        assert msgspec.to_builtins(msgspec.json.decode(encoded, type=operation.answers)) == answer


def test_the_check_itself_finds_what_is_wrong():
    document = {
        "components": {
            "schemas": {"A": {"type": "object", "properties": {"x": {"type": "integer"}}, "required": ["x"]}}
        }
    }
    schema = {"$ref": "#/components/schemas/A"}
    assert list(misfits(document, schema, {"x": 1})) == []
    for wrong in ({}, {"x": "1"}, {"x": 1, "y": 2}, {"x": True}, [], None):
        assert list(misfits(document, schema, wrong))
    assert list(misfits(document, {"anyOf": [{"type": "null"}, schema]}, None)) == []


async def test_every_status_of_an_error_is_described_and_has_the_shape_of_a_failure(client):
    document = await client.get("/openapi.json")
    failures = document["components"]["responses"]
    assert set(failures) == {"400", "401", "403", "404", "409", "413", "500", "503", "504"}
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            responses = set(operation["responses"])
            assert {"200", "401", "403", "500", "503", "504"} <= responses <= {"200", *failures}
            assert ("413" in responses) == ("requestBody" in operation), (method, path)
    failing = [("/v1/runs/bafyreigaaaaa", 404), ("/v1/runs/%5B", 400), ("/v1/top?limit=0", 400)]
    for address, status in failing:
        answer = await client.get(address, status)
        assert list(misfits(document, failures[str(status)]["content"]["application/json"]["schema"], answer)) == []


async def test_a_body_is_required_where_one_of_its_fields_is(client):
    document = await client.get("/openapi.json")
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            if "requestBody" in operation:
                async with client.session.request(method, f"http://localhost{path}") as response:
                    is_missing = "missing required field" in await response.text()
                assert operation["requestBody"]["required"] == is_missing, path
    name = document["components"]["schemas"]["NameRequest"]["properties"]["name"]
    assert name["maxLength"] == 24


async def test_a_parameter_that_may_be_given_again_is_a_list(client):
    both = await client.get("/v1/records?where=value%3C100&where=status%3Dok")
    assert both["records"]
    assert (await client.get("/v1/records?where=value%3C100&where=status%3Dcrashed"))["records"] == []
    await client.get("/v1/records?limit=1&limit=2", 400)
