"""Every parameter and every field of a body at its ends, against the real daemon's app: a sentence, never a fault.

Both tests follow from the operations that are declared. Whoever adds one has it tested.
"""

import json
from urllib.parse import quote

import msgspec
import pytest
from autoresearch_daemon.api.app import OPERATIONS
from autoresearch_daemon.handlers import ApiHandlers
from autoresearch_daemon.node import Node
from msgspec import inspect

from autoresearch.log.standing.answers import Failure
from autoresearch.paths import Paths
from autoresearch.record.kinds import RunOutcome
from autoresearch.settings import NetworkSection, Settings, Work
from tests.cli.filling import fill
from tests.daemon.api.conftest import Client
from tests.daemon.api.conftest import served as served_with

HUGE = 640113652146903442795026972672
TEXTS = [
    "", " ", "0", "-1", str(2**53), str(2**53 + 1), str(2**63), str(-(2**63) - 1), str(HUGE), "9" * 400, "1e999", "nan",
    "-inf", "1_000", "true", "x" * 5000, "\x00", "a\x00b", "\x1b[2J\x07\u202e", "\n", "[]", "'; DROP TABLE record; --",
    "../../../../etc/passwd", "*", '"', "(", "%", "@", "@~1", "@~99999999999999999999999", "é\u0301🎲",
    "LR<" + "9" * 300,    "value<1e400", "AND OR NOT NEAR(",
]  # fmt: skip
VALUES = [
    *TEXTS,
    None,
    True,
    0,
    -1,
    2**53,
    2**63,
    -(2**63) - 1,
    HUGE,
    1e308,
    -1e308,
    5e-324,
    0.5,
    [],
    ["x"] * 2000,
    [None],
    {},
    {"x": 1},
]
RAW = ["NaN", "Infinity", "-0.0", "1e999", '"\\ud800"', "[" * 5000, "9" * 5000, '{"a":' * 200 + "1" + "}" * 200]
TAKING = {
    name: operation
    for name, operation in OPERATIONS.items()
    if msgspec.structs.fields(operation.takes) and name != "events"
}
# Questions change nothing: one node answers them all.
QUESTIONS = [name for name, operation in TAKING.items() if operation.method == "GET"]
ACTS = [[name] for name in TAKING if name not in QUESTIONS]


def numbers_and_texts(kind, place):
    """Each number, text and list of a type, with what bounds it."""
    match kind:
        case inspect.IntType() | inspect.FloatType():
            yield place, kind.ge if kind.gt is None else kind.gt, kind.le if kind.lt is None else kind.lt
        case inspect.StrType():
            yield place, 0, kind.max_length or (kind.pattern or "").endswith("(?!\\n)$") or None
        case inspect.ListType() | inspect.VarTupleType():
            yield place, 0, kind.max_length
            yield from numbers_and_texts(kind.item_type, f"{place}[]")
        case inspect.DictType():
            yield place, 0, kind.max_length
            yield from numbers_and_texts(kind.value_type, f"{place}{{}}")
        case inspect.UnionType():
            for member in kind.types:
                yield from numbers_and_texts(member, place)
        case inspect.Metadata():
            yield from numbers_and_texts(kind.type, place)
        case inspect.StructType() if kind.cls is not RunOutcome:  # the bounds of records are theirs
            for field in kind.fields:
                yield from numbers_and_texts(field.type, f"{place}.{field.name}")


@pytest.mark.parametrize("name", OPERATIONS)
def test_each_number_text_and_list_of_a_request_has_its_bounds(name):
    takes = OPERATIONS[name].takes
    unbounded = [
        place
        for place, least, most in numbers_and_texts(inspect.type_info(takes), takes.__name__)
        if least is None or most is None
    ]
    assert unbounded == []


def plain(kind):
    """A value of a type that its bounds allow."""
    match kind:
        case inspect.Metadata():
            return plain(kind.type)
        case inspect.IntType() | inspect.FloatType():
            return max(kind.ge or 0, 1)
        case inspect.LiteralType():
            return kind.values[0]
        case inspect.StrType():
            return "a" * 64 if kind.pattern else "a"
        case inspect.ListType():
            return []
        case inspect.StructType():
            return {field.encode_name: plain(field.type) for field in kind.fields if field.required}
        case inspect.UnionType():
            return plain(kind.types[0])
        case _:
            return None


@pytest.fixture
async def client(tmp_path, monkeypatch):
    monkeypatch.setenv("AUTORESEARCH_HOME", str(tmp_path / "home"))
    paths = Paths.from_environment({"AUTORESEARCH_HOME": str(tmp_path / "home")})
    fill(paths, tmp_path / "task")
    node = Node(paths, Settings(work=Work(workers=0), network=NetworkSection(enabled=False)), ["cpu"])
    try:
        async with served_with(ApiHandlers(node), tmp_path / "s") as made:
            yield made
    finally:
        await node.stop()


async def status(client: Client, operation, *, path, query="", body=None):
    async with client.session.request(operation.method, f"{client.base}{path}{query}", data=body) as response:
        content = await response.read()
    if response.status >= 400:
        failure = msgspec.json.decode(content, type=Failure)
        assert failure.error, (path, query, body)
        assert failure.exit_status, (path, query, body)
    return response.status


@pytest.mark.slow
@pytest.mark.parametrize("names", [QUESTIONS, *ACTS], ids=lambda names: names[0])
async def test_a_field_at_its_ends_gets_an_answer_or_a_sentence(names, client):
    assert [fault for name in names for fault in await faults_of(TAKING[name], client)] == []


async def faults_of(operation, client):
    """What the node answers that is neither an answer nor a sentence."""
    faults = []
    fields = inspect.type_info(operation.takes).fields
    usual = {field.encode_name: plain(field.type) for field in fields if field.required}
    for field in fields:
        if operation.has_body:
            texts = [json.dumps(usual | {field.encode_name: value}).encode() for value in VALUES]
            mark = json.dumps(usual | {field.encode_name: "MARK"})
            texts += [mark.replace('"MARK"', raw).encode() for raw in RAW]
            requests = [(operation.path, "", text) for text in texts]
        else:
            requests = []
            for text in TEXTS:
                values = usual | {field.encode_name: text}
                path = operation.path.format(
                    **{parameter: quote(str(values.get(parameter, "")), safe="") for parameter in operation.in_path}
                )
                rest = [
                    f"{parameter}={quote(str(value), safe='')}"
                    for parameter, value in values.items()
                    if parameter not in operation.in_path
                ]
                requests.append((path, "?" + "&".join(rest), None))
        for path, query, body in requests:
            answered = await status(client, operation, path=path, query=query, body=body)
            if answered >= 500 and answered not in {503, 504}:  # a part is off, or another machine does not answer
                faults.append((answered, path, query[:100], (body or b"")[:200]))
    return faults
