"""A notebook in which a stranger wrote nasty text into every field of every kind of record."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
from msgspec import inspect

from autoresearch.log.blobs import BlobStore
from autoresearch.log.log import Log
from autoresearch.record.kinds import KINDS, BlobRef, Body
from autoresearch.record.record import Record
from autoresearch.task.model import seed_for
from tests.nasty import NASTY
from tests.record.making import DEFINITION, NETWORK, NOW_MS, digest_of, key

STRANGER = key(60)
PROGRAM = f"X = 1  # {NASTY}\nprint('{NASTY!r}')\n"
DEFINITIONS = {
    "nasty": {**DEFINITION, "name": NASTY, "metric": {"name": NASTY, "direction": "minimize", "noise": 0.02}},
    "crooked": {**DEFINITION, "name": "crooked", "metric": {"name": "loss", "direction": NASTY, "noise": 0.02}},
}


def text_for(kind: inspect.StrType) -> str:
    """The nasty text, as long as the field may be."""
    return NASTY[: kind.max_length]


def filled(kind: inspect.Type, blob: BlobRef) -> Any:
    """A value of a field's type with nasty text wherever it can stand."""
    match kind:
        case inspect.StrType():
            return text_for(kind)
        case inspect.LiteralType(values=values):
            return values[0]
        case inspect.BytesType(min_length=length):
            return b"\x1b" * (length or 0)
        case inspect.FloatType() | inspect.BoolType():
            return 1.0
        case inspect.IntType():
            return 1
        case inspect.DictType(key_type=name, value_type=value):
            return {filled(name, blob): filled(value, blob)}
        case inspect.ListType(item_type=item):
            return [filled(item, blob)]
        case inspect.StructType(cls=cls) if cls is BlobRef:
            return blob
        case inspect.StructType(cls=cls):
            return body_of(cls, blob)
        case inspect.UnionType(types=types):
            return filled(next((each for each in types if isinstance(each, inspect.StrType)), types[0]), blob)
        case inspect.AnyType() | inspect.CustomType():
            return {NASTY: [NASTY]}
        case inspect.Metadata(type=inner):
            return filled(inner, blob)
    raise AssertionError(f"a field of a type that is new here: {kind}")


def body_of(kind: type[Body], blob: BlobRef, **options: object) -> Any:
    """A body with all its fields, optional ones too."""
    shape = inspect.type_info(kind)
    assert isinstance(shape, inspect.StructType)
    return kind(**{field.name: filled(field.type, blob) for field in shape.fields} | options)


class Hostile:
    """The stranger's records in a log; all have the stranger's key."""

    def __init__(self, log: Log, blobs: BlobStore) -> None:
        self.log, self.now_ms, self.records = log, NOW_MS, list[Record]()
        self.blob = blobs.put(PROGRAM.encode())
        self._publish()

    def _append(self, kind: str, body: object, *links: bytes) -> Record:
        self.now_ms += 1000
        record = self.log.writer.append(STRANGER, kind, body, links=links, now_ms=self.now_ms)  # type: ignore[arg-type]
        self.records.append(record)
        return record

    def _publish(self) -> None:
        for definition in DEFINITIONS.values():
            arguments = {"digest": digest_of(definition), "definition": definition}
            self._append("task", body_of(KINDS["task"], self.blob, **arguments))
        task = digest_of(DEFINITIONS["nasty"])
        root = STRANGER.public
        self._append("identity", body_of(KINDS["identity"], self.blob, action="delegate", root=root, device=root))
        self._append("identity", body_of(KINDS["identity"], self.blob, action="profile", root=root))
        first = self._append("run", self._run(task, "ok", parent=None))
        run = self._append("run", self._run(task, "ok", parent=first.id, source_digest=b"2" * 32), first.id)
        self._append("run", self._run(task, NASTY[:32], parent=first.id, source_digest=b"3" * 32), first.id)
        about = {"run": run.id, "task": task, "release": run.id, "heads": [run.id], "device": root}
        for name, kind in KINDS.items():
            if name not in ("task", "run", "identity"):
                arguments = {field: value for field, value in about.items() if field in kind.__struct_fields__}
                # The notebook's device is a text.
                if name == "verification":
                    arguments.pop("device")
                if name == "release":
                    self._append(name, self._component(blob=self.blob))
                self._append(name, body_of(kind, self.blob, **arguments), run.id if name != "withdrawal" else task)
        self._append("poem", {NASTY: [NASTY, {NASTY: NASTY}]})

    def _component(self, blob: BlobRef) -> Any:
        """A component that can be found: its name is one, all other texts are nasty."""
        paths = {"file_path": "main.py", "class_name": "main:World", "requirements_path": "a.txt", "commit": ""}
        lists = {key: [NASTY] for key in ("requirements", "needs", "interfaces")}
        texts = dict.fromkeys(("description", "git", "license"), NASTY)
        about = {"type": "environment", "tree": f"h1:{'ab' * 32}", **paths, **lists, **texts}
        return body_of(KINDS["release"], blob, name="nasty", version="1.0", metadata=about)

    def _run(self, task: bytes, status: str, **options: object) -> Any:
        source_digest = options.pop("source_digest", b"1" * 32)
        assert isinstance(source_digest, bytes)
        options |= {"task": task, "status": status, "budget": 1e12, "source_digest": source_digest, "replicate": 0}
        options |= {"seed": seed_for(task, source_digest, 0), "base": None, "value": 1.0, "genome": {NASTY[:64]: NASTY}}
        return body_of(KINDS["run"], self.blob, **options)


def texts(body: object) -> Iterator[str]:
    """All texts in a body, the names of entries too."""
    if isinstance(body, str):
        yield body
    elif isinstance(body, dict):
        for name, value in body.items():
            yield from texts(name)
            yield from texts(value)
    elif isinstance(body, list | tuple):
        for value in body:
            yield from texts(value)
    elif isinstance(body, msgspec.Struct):
        yield from texts(msgspec.structs.asdict(body))


def fill(folder: Path, blobs: Path) -> list[Record]:
    """Make the log of a home; returns the stranger's records."""
    with Log.open(folder, NETWORK) as log, BlobStore(blobs) as store:
        return Hostile(log, store).records
