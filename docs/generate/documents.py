"""The tables of JSON documents for docs/reference/json.md, from the models that commands print."""

from __future__ import annotations

import typing
from collections.abc import Iterator

import msgspec
from autoresearch_cli import models as _models  # noqa: F401 - its answers are found as subclasses
from autoresearch_cli.agent import models as _project_models  # noqa: F401
from autoresearch_exports import git as _git  # noqa: F401

from autoresearch.ask import node_acts as _node_acts  # noqa: F401
from autoresearch.ask import questions as _questions  # noqa: F401
from autoresearch.ask.acts import suggesting as _suggesting  # noqa: F401
from autoresearch.ask.acts import varying as _varying  # noqa: F401
from autoresearch.log.standing.answers import (
    Answer,
    BlobView,
    LineageStep,
    MarkView,
    ParticipantView,
    ProgramView,
    RunFields,
    RunStanding,
    RunView,
)
from autoresearch.record.kinds import Proposer
from autoresearch.services import Service
from autoresearch.task.release import ReleasedParameter

# What the daemon's API reads is described with the API.
REQUESTS = {
    "WorkRequest",
    "PauseRequest",
    "ProposeRequest",
    "DropRequest",
    "FetchRequest",
    "BlockRequest",
    "VerifyRequest",
    "NameRequest",
    "NoteRequest",
    "AttestRequest",
    "ConfirmRequest",
    "WithdrawRequest",
    "WithdrawRecordRequest",
    "Description",
    "PublishRequest",
    "YankRequest",
    "AdmitRequest",
    "AllowRequest",
    "HistoryNote",
    "HistoryRequest",
    "HistoryAnswer",
    "BringRequest",
    "BroughtAnswer",
    "RunAccepted",
    "TrustAnswer",
    "Health",
}


def documents() -> list[type[msgspec.Struct]]:
    """All models that a command prints: those with a schema first, in the order of their names, then their parts."""
    models = {cls.__name__: cls for cls in _kinds_of(Answer) if cls.__name__ not in REQUESTS}
    models.pop("Failure")
    runs: list[type[msgspec.Struct]] = [RunView, RunFields, BlobView, Proposer, RunStanding]
    parts: list[type[msgspec.Struct]] = [
        ProgramView,
        LineageStep,
        ParticipantView,
        MarkView,
        Service,
        ReleasedParameter,
    ]
    tagged = sorted((cls for cls in models.values() if schema_of(cls)), key=schema_of)
    untagged = sorted((cls for cls in models.values() if not schema_of(cls)), key=lambda cls: cls.__name__)
    return [*tagged, *untagged, *runs, *parts]


def _kinds_of(cls: type[msgspec.Struct]) -> Iterator[type[msgspec.Struct]]:
    for kind in cls.__subclasses__():
        if kind.__module__.startswith("autoresearch") and not kind.__name__.startswith("_"):
            yield kind
            yield from _kinds_of(kind)


def schema_of(cls: type[msgspec.Struct]) -> str:
    """The schema's name, or nothing for a part of other documents."""
    return next((str(f.default) for f in msgspec.structs.fields(cls) if f.name == "schema"), "")


def table(cls: type[msgspec.Struct]) -> str:
    """One model: its name, what it says, its fields."""
    title = f"`{schema_of(cls)}`" if schema_of(cls) else cls.__name__
    words = " ".join((cls.__doc__ or "").split()).replace("``", "`")
    fields = msgspec.structs.fields(cls)
    rows = "".join(f"| `{field.encode_name}` | {type_name(field.type)} | {default(field)} |\n" for field in fields)
    return f"\n## {title}\n\n{words}\n\n| field | type | unless given |\n| --- | --- | --- |\n{rows}"


def default(field: msgspec.structs.FieldInfo) -> str:
    """What stands there when there is nothing to say."""
    if field.required or field.encode_name == "schema":
        return "always"
    value = field.default if field.default is not msgspec.NODEFAULT else field.default_factory()
    return f"`{msgspec.json.encode(value).decode()}`"


def type_name(kind: object) -> str:
    """A type in JSON's words."""
    plain = {str: "string", int: "integer", float: "number", bool: "boolean", type(None): "null", object: "any"}
    if kind in plain:
        return plain[kind]
    origin, inner = typing.get_origin(kind), typing.get_args(kind)
    if origin is list:
        return f"list of {type_name(inner[0])}"
    if origin is dict:
        return f"map of {type_name(inner[1])}"
    if origin is typing.Annotated:
        return type_name(inner[0])
    if origin is typing.Literal:
        return " or ".join(f"`{word}`" for word in inner)
    if inner:
        return " or ".join(type_name(part) for part in inner)
    assert isinstance(kind, type)
    return f"`{schema_of(kind)}`" if issubclass(kind, msgspec.Struct) and schema_of(kind) else kind.__name__


def fill(page: str) -> str:
    """The page with the fields of each document below its table of commands."""
    return page + "".join(table(cls) for cls in documents())
