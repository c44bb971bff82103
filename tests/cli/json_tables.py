"""Writes docs/reference/json.md from the models: ``python -m tests.cli.json_tables > docs/reference/json.md``."""

from __future__ import annotations

import sys
import typing
from collections.abc import Iterator

import msgspec
from autoresearch_cli import models as _models  # noqa: F401 - its answers are found as subclasses
from autoresearch_cli.agent import models as _project_models  # noqa: F401

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

HEAD = """\
# What `--json` prints

Every command takes `--json` and then prints one document in one line on standard output; `node events`,
`work --follow`, `demo`, `train` and `run` of a project print one document a line. Talk stays on standard error.
A command that fails prints `autoresearch.failure/1` and leaves with its exit status.

Each document names its shape in `schema`. Under one name fields are only added; a changed meaning gets a new number.
So ignore fields you don't know. Ids of records are CIDs (`bafyrei…`), keys and other hashes hexadecimal, times Unix
milliseconds, durations milliseconds, sizes bytes.

| command | document |
| --- | --- |
| `status`, `work`, `node pause`, `node resume`, `node finish` | `autoresearch.status/2` |
| `best` | `autoresearch.best/1`, with `--code` `autoresearch.text/1` |
| `top` | `autoresearch.top/1`, with `--component` `autoresearch.component_top/1` |
| `run list` | `autoresearch.runs/1` |
| `node records` | `autoresearch.log/1` |
| `task effects` | `autoresearch.effects/1` |
| `network credit` | `autoresearch.credit/1` |
| `run evidence` | `autoresearch.evidence_list/1` |
| `run evidence ID` | `autoresearch.evidence/1` |
| `show`, `run`, `verify` | `autoresearch.show/1` |
| `verify --list` | `autoresearch.verifications/1` |
| `show --code`, `show --log` | `autoresearch.text/1` |
| `show --field`, `show --checkpoint` | `autoresearch.field/1` |
| `diff` | `autoresearch.diff/1` |
| `run withdraw` | `autoresearch.withdrawn/1` |
| `search` | `autoresearch.search/1` |
| `publish component` | `autoresearch.release/1`; with `--from` `autoresearch.registry/1` |
| `agent yank` | `autoresearch.yanked/1` |
| `agent serve` | `autoresearch.service/1` when it begins, and when it ends; with `--status` as `agent services` |
| `train --join` | `autoresearch.project_figures/1` while it plays, then `autoresearch.acted/1` |
| `agent services` | `autoresearch.services/1`; with `--key` `autoresearch.service_key/1` |
| `run lineage` | `autoresearch.lineage/1` |
| `node events`, `work --follow` | an `Event` a line |
| `demo` | an `Event` a line (with `--peers` the daemon is `data.peer`), then `autoresearch.demo/1` |
| `up`, `down` | `autoresearch.up/1`, `autoresearch.down/1` |
| `node doctor` | `autoresearch.doctor/1` |
| `node backup`, `node restore` | `autoresearch.home_backup/1` |
| `node compact` | `autoresearch.compact/1` |
| `node repair` | `autoresearch.repair/1` |
| `node logs` | the daemon's own log lines, without a schema |
| `node config show`, `get`, `set`, `path` | `autoresearch.config/1` |
| `node paths` | `autoresearch.paths/1` |
| `node version` | `autoresearch.version/1` |
| `node id new`, `show`, `name`, `renew`, `passphrase`, `restore` | `autoresearch.id/1` |
| `node id devices`, `revoke` | `autoresearch.devices/1` |
| `node id add-device` | `autoresearch.add_device/1` |
| `node id backup` | `autoresearch.backup/1` |
| `node id merge` | `autoresearch.merge/1` |
| `node id attest`, `confirm` | `autoresearch.attest/1` |
| `network attestor log`, `withdraw`, `allow` | `autoresearch.attestor/1` |
| `network new`, `join`, `show`, `invite`, `trust`, `distrust` | `autoresearch.network/1` |
| `network admit`, `dismiss` | `autoresearch.voters/1` |
| `network invites`, `invite --revoke` | `autoresearch.invitations/1` |
| `network list`, `use`, `forget` | `autoresearch.networks/1` |
| `network bring` | `autoresearch.brought/1` |
| `run export` | an `autoresearch.show/1` a line; with `-o FILE` `autoresearch.export/1` |
| `run export --bundle FILE` | `autoresearch.bundle/1` |
| `task export --git DIR` | `autoresearch.git_export/1`; with `--follow` one a line |
| `node import` | `autoresearch.import/1`; of a bundle `autoresearch.bundle_import/1` |
| `task new`, `show`, `get`, `pin` | `autoresearch.task/1` |
| `run checkout` | `autoresearch.next/1` |
| `run suggest` | `autoresearch.suggest/1` |
| `run vary` | `autoresearch.vary/1` |
| `task list` | `autoresearch.tasks/1` |
| `task archive`, `restore` | `autoresearch.archived/1` |
| `note add`, `note list` | `autoresearch.note/1`, `autoresearch.notes/1` |
| `run star`, `run unstar` | `autoresearch.star/1` |
| `init`, `install`, `uninstall`, `use`, `list`, `agent reset` | `autoresearch.project/1` |
| `train`, `run` of a project | `autoresearch.project_figures/1` every two seconds, then `autoresearch.project_run/1` |
| `train --sweep` | the same for each run, then `autoresearch.sweep/1` |
"""
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
    by_name = {cls.__name__: cls for cls in _kinds_of(Answer) if cls.__name__ not in REQUESTS}
    by_name.pop("Failure")
    runs: list[type[msgspec.Struct]] = [RunView, RunFields, BlobView, Proposer, RunStanding]
    parts = [*runs, ProgramView, LineageStep, ParticipantView, MarkView, Service, ReleasedParameter]
    tagged = sorted((c for c in by_name.values() if schema_of(c)), key=schema_of)
    return [*tagged, *sorted((c for c in by_name.values() if not schema_of(c)), key=lambda c: c.__name__), *parts]


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


def page() -> str:
    """The whole page."""
    return HEAD + "".join(table(cls) for cls in documents())


if __name__ == "__main__":
    sys.stdout.write(page())
