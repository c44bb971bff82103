"""The node answers every operation as it is declared."""

import asyncio
import inspect
import typing

import msgspec
import pytest
from autoresearch_daemon.api.app import OPERATIONS, QUESTIONS, WRITERS
from autoresearch_daemon.handlers import ApiHandlers
from autoresearch_daemon.node import Node

from autoresearch.ask import questions
from autoresearch.ask.desk import Desk
from autoresearch.ask.operation import Text, operation_of
from autoresearch.ask.requests import Nothing, OneEvidence
from autoresearch.paths import Paths
from autoresearch.settings import NetworkSection, Settings
from tests.daemon.api.test_openapi import BODIES

IN_PATH = {"id": "@~1", "participant": "me"}


@pytest.fixture(scope="module")
def handlers(tmp_path_factory):
    paths = Paths.from_environment({"AUTORESEARCH_HOME": str(tmp_path_factory.mktemp("home"))})
    paths.create()
    node = Node(paths, Settings(network=NetworkSection(enabled=False)), ["cpu"])
    yield ApiHandlers(node)
    asyncio.run(node.stop())


@pytest.mark.parametrize(
    "name",
    [
        name
        for name, operation in OPERATIONS.items()
        if name not in WRITERS and not (operation.reads or operation.writes)
    ],
)
def test_what_answers_takes_and_gives_what_is_declared(handlers, name):
    operation = OPERATIONS[name]
    answering = getattr(handlers, name)
    taken = list(inspect.signature(answering).parameters)
    types = typing.get_type_hints(answering)
    assert types["return"] is operation.answers
    assert [types[parameter] for parameter in taken] == ([] if operation.takes is Nothing else [operation.takes])


def test_every_address_is_there_once_with_a_sentence():
    assert len({operation.address for operation in OPERATIONS.values()}) == len(OPERATIONS)
    assert all(operation.summary.endswith(".") for operation in OPERATIONS.values())


@pytest.mark.parametrize(
    ("question", "target"),
    [
        (OneEvidence(id="@~1"), "/v1/evidence/@~1"),
        (OneEvidence(id="a/b?c", task="my task"), "/v1/evidence/a%2Fb%3Fc?task=my+task"),
    ],
)
def test_a_request_s_target_has_what_is_asked(question, target):
    assert operation_of(questions.evidence).target(question) == target


@pytest.mark.parametrize(
    "name",
    [
        name
        for name, operation in OPERATIONS.items()
        if operation.reads and operation.method == "GET" and name != "challenge"  # this node holds none
    ],
)
async def test_a_question_has_one_answer_over_http_and_at_the_desk(client, node, name):
    operation, question = OPERATIONS[name], QUESTIONS[name]
    if name == "release":
        made = await client.post("/v1/releases", BODIES["/v1/releases"])
        values = {"id": made["release"]["id"]}
    else:
        if name == "hidden_list":
            await client.post("/v1/hidden/share", BODIES["/v1/hidden/share"])
        needed = {"diff": {"new": "@", "old": "@~1"}, "groups": {"setting": ["DEPTH", "LR"]}}
        values = needed.get(name) or {named: IN_PATH[named] for named in operation.in_path}
    request = msgspec.convert(values, operation.takes)
    answered = await client.ask(operation.method, operation.target(request))
    device = node.device()
    desk = Desk(node.log, node.blobs, device.public, bytes(device.key), node.choices, node.now_ms)
    answer = question(desk, request)
    assert (answer if isinstance(answer, Text) else msgspec.to_builtins(answer)) == answered
