"""The node answers every operation as it is declared."""

import inspect
import typing

import pytest
from autoresearch_daemon.api.app import WRITERS
from autoresearch_daemon.api.reading import READERS
from autoresearch_daemon.api_handlers import ApiHandlers

from autoresearch.api import OPERATIONS, Nothing, OneEvidence, operations


@pytest.mark.parametrize("operation", [one for one in OPERATIONS if one not in WRITERS], ids=lambda one: one.name)
def test_what_answers_takes_and_gives_what_is_declared(operation):
    answering = READERS.get(operation) or getattr(ApiHandlers, operation.name)
    taken = list(inspect.signature(answering).parameters)[1:]  # the first is the log, or the node
    types = typing.get_type_hints(answering)
    assert types["return"] is operation.answers
    assert [types[name] for name in taken] == ([] if operation.takes is Nothing else [operation.takes])


def test_every_name_and_every_address_is_there_once():
    assert len({one.name for one in OPERATIONS}) == len(OPERATIONS)
    assert len({(one.method, one.path) for one in OPERATIONS}) == len(OPERATIONS)
    assert all(one.summary.endswith(".") for one in OPERATIONS)


@pytest.mark.parametrize(
    ("asked", "target"),
    [
        (OneEvidence(id="@~1"), "/v1/evidence/@~1"),
        (OneEvidence(id="a/b?c", task="my task"), "/v1/evidence/a%2Fb%3Fc?task=my+task"),
    ],
)
def test_a_request_s_target_has_what_is_asked(asked, target):
    assert operations.EVIDENCE.target(asked) == target
