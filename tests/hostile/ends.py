"""Bodies of all kinds in which one field stands at one of its ends, made from the fields' types alone.

Who adds a field to a kind has it in the tests that use this, and has nothing to write.
"""

from __future__ import annotations

import hashlib
import math
import struct
import types
import typing
from collections.abc import Iterator, Mapping
from itertools import islice

import msgspec

from autoresearch.judging import ecvrf
from autoresearch.judging.committee import question
from autoresearch.record.encoding import EncodingError, encode
from autoresearch.record.kinds import KINDS, Verification
from autoresearch.record.record import Record, seal, signed_bytes
from autoresearch.task.model import seed_for
from autoresearch.trust.keys import KeyPair
from tests.nasty import NASTY
from tests.record.making import DEFINITION, NETWORK, commitment, opened

# Look-alikes, right to left, marks upon marks, no character at all, an address, a formula, a line that forges.
NAMES = ("а", "\u202eevil", "z" + "\u0301" * 60, " ", "\u3164", "../../x", "=1+1", "--json", NASTY, "😀" * 64, "\x00")
FLOATS = (
    0.0,
    5e-324,
    -5e-324,
    1.0,
    -1.0,
    1e100,
    -1e100,
    1.0000001e100,
    1.7976931348623157e308,
    -1.7976931348623157e308,
)
INTEGERS = (0, 1, -1, 2**31, 2**43, 2**43 + 1, 2**53, 2**62, 2**63 - 1, -(2**63))
DEEP: object = 1
for _ in range(8):
    DEEP = {"a": [DEEP]}
ANYTHING = (None, True, -1, 2**63 - 1, 1.7e308, -1.7e308, 5e-324, "", "x" * 4000, NASTY, b"", [], {}, DEEP, [[]] * 500)
# It stands in the bytes where a number follows that no encoder writes.
PLACE = 12345.678901234
NOT_FINITE = {"nan": math.nan, "inf": math.inf, "-inf": -math.inf, "-0": -0.0}


def ends(kind: object) -> Iterator[object]:
    """Values at the ends of a type and beyond them."""
    origin, inner = typing.get_origin(kind), typing.get_args(kind)
    if origin is typing.Annotated:
        yield from _bounded(inner[0], inner[1])
    elif origin is typing.Literal:
        yield from (*inner, "other", "")
    elif origin in (types.UnionType, typing.Union):
        for part in inner:
            yield from ends(part)
    elif origin is list or origin is dict:
        yield from _bounded(kind, msgspec.Meta(max_length=64))
    elif isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        for field in msgspec.structs.fields(kind):
            for value in ends(field.type):
                yield plain(kind) | {field.name: value}
    else:
        yield from {
            types.NoneType: (None,),
            bool: (True, False),
            int: INTEGERS,
            float: (*FLOATS, PLACE),
            str: NAMES,
            object: ANYTHING,
        }[kind]  # type: ignore[index]


def _bounded(kind: object, meta: msgspec.Meta) -> Iterator[object]:
    least, most = meta.min_length or 0, meta.max_length or 0
    if kind is int:
        yield from {*INTEGERS, meta.ge, meta.le, meta.ge - 1, min(meta.le + 1, 2**63 - 1)}  # type: ignore[operator]
    elif kind is float:
        yield from (*FLOATS, PLACE)
    elif kind is str:
        yield from ("", "x" * least, "x" * most, "x" * (most + 1), "é" * most, *(name[:most] for name in NAMES))
    elif kind is bytes:
        yield from (bytes(size) for size in {0, 1, least, most, most + 1})
    elif typing.get_origin(kind) is list:
        items = list(ends(typing.get_args(kind)[0]))
        yield from ([], items[:1] * most, items[:1] * (most + 1), *([item] * 2 for item in items))
    else:
        names, values = (list(ends(part)) for part in typing.get_args(kind))
        yield from ({}, {f"k{at}": values[at % len(values)] for at in range(most + 1)})
        yield {f"{at} {name}"[:64]: values[0] for at, name in enumerate(names[:most])}
        yield from ({"steps": value, "flops": value} for value in values)


def plain(kind: type[msgspec.Struct], defaults: Mapping[str, object] | None = None) -> dict[str, object]:
    """A body with its required fields, and with ``defaults`` where the kind has such fields of such types."""
    defaults, made = defaults or {}, {}
    for field in msgspec.structs.fields(kind):
        if field.name in defaults and _is_of(defaults[field.name], field.type):
            made[field.name] = defaults[field.name]
        elif field.required:
            made[field.name] = _usual(field.type)
    return made


def _is_of(value: object, kind: object) -> bool:
    try:
        msgspec.convert(value, kind, builtin_types=(bytes,))
    except msgspec.ValidationError:
        return False
    return True


def _usual(kind: object) -> object:
    origin, inner = typing.get_origin(kind), typing.get_args(kind)
    if origin is typing.Annotated and inner[0] is bytes:
        return b"h" * (inner[1].min_length or 0)
    if origin is typing.Annotated and typing.get_origin(inner[0]) is None:
        return {int: 1, float: 1.0, str: "a"}[inner[0]]
    if origin is typing.Annotated:
        return _usual(inner[0]) if not inner[1].min_length else [_usual(typing.get_args(inner[0])[0])]
    if origin is typing.Literal:
        return inner[0]
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        return plain(kind)
    return {} if origin is dict else []


class Hostile:
    """Makes records of one device with fields at their ends. ``defaults`` are usual values of fields, by name."""

    def __init__(self, who: KeyPair, defaults: Mapping[str, object], seq: int, time_ms: int) -> None:
        self.who, self.defaults, self.seq, self.time_ms = who, defaults, seq, time_ms

    def records(self, kinds: typing.Iterable[str] = KINDS) -> Iterator[tuple[str, Record]]:
        """A record for each end of each field, with the name of the field."""
        for kind in kinds:
            body = KINDS[kind]
            usual = plain(body, self.defaults)
            for field in msgspec.structs.fields(body):
                for value in self._ends(kind, field):
                    for record in self._made(kind, self._whole(kind, usual | {field.name: value}, field.name)):
                        yield f"{kind}.{field.name}", record
                        if kind == "task" and isinstance(record.body, dict):
                            yield from self._runs_on(f"{kind}.{field.name}", record.body["digest"])

    def usual(self, kind: str) -> Iterator[Record]:
        """A record without an end."""
        yield from self._signed(kind, self._whole(kind, plain(KINDS[kind], self.defaults), "task"))

    def _runs_on(self, field: str, task: object) -> Iterator[tuple[str, Record]]:
        """Two runs on a task whose definition is at an end."""
        for value in (1.0, -2.0) if isinstance(task, bytes) and len(task) == 32 else ():
            body = plain(KINDS["run"], self.defaults) | {"task": task, "value": value, "parent": None}
            for record in self._signed("run", self._whole("run", body, "task")):
                yield field, record

    def _ends(self, kind: str, field: msgspec.structs.FieldInfo) -> Iterator[object]:
        yield from ends(field.type)
        if field.name == "definition":
            for table, entries in DEFINITION.items():
                for name in entries if isinstance(entries, dict) else ():
                    for value in (*FLOATS, *INTEGERS, *islice(NAMES, 3)):
                        yield {**DEFINITION, table: {**entries, name: value}}

    def _whole(self, kind: str, body: dict[str, object], field: str) -> dict[str, object]:
        """What has to agree with other fields, or the record would be passed over before anything looks at it."""
        if kind == "task" and field == "definition":
            try:
                return body | {"digest": hashlib.sha256(encode(body["definition"])).digest()}
            except EncodingError:
                return body
        if kind == "run" and field in ("task", "source_digest", "replicate"):
            try:
                seed = seed_for(body["task"], body["source_digest"], body.get("replicate", 0))  # type: ignore[arg-type]
                return body | {"seed": seed}
            except (OverflowError, TypeError, ValueError):
                return body
        return body

    def _made(self, kind: str, body: dict[str, object]) -> Iterator[Record]:
        if kind != "verification":
            yield from self._signed(kind, body)
            return
        try:
            proof = ecvrf.prove(bytes(self.who.key), question(body["run"], body["stage"], body.get("round", 0)))  # type: ignore[arg-type]
            revealed = msgspec.convert({"proof": proof, **body}, Verification, builtin_types=(bytes,))
        except (OverflowError, ValueError, TypeError):
            yield from self._signed(kind, body)
            return
        for fixed in self._signed(
            "commitment", msgspec.to_builtins(commitment(self.who, revealed), builtin_types=(bytes,))
        ):
            yield fixed
            yield from self._signed(kind, msgspec.to_builtins(opened(revealed), builtin_types=(bytes,)), fixed.id)

    def _signed(self, kind: str, body: dict[str, object], *links: bytes) -> Iterator[Record]:
        self.seq, self.time_ms = self.seq + 1, self.time_ms + 1
        try:
            record = seal(
                self.who, NETWORK, kind, body, seq=self.seq, prev=b"p" * 32, time_ms=self.time_ms, links=links
            )
        except EncodingError:
            self.seq -= 1
            return
        place = struct.pack(">d", PLACE)
        if place not in record.raw:
            yield record
            return
        for number in NOT_FINITE.values():
            raw = record.raw.replace(place, struct.pack(">d", number))
            signature = self.who.sign(signed_bytes(raw))
            yield msgspec.structs.replace(record, id=hashlib.sha256(raw).digest(), raw=raw, signature=signature)


def _fields(body: msgspec.Struct) -> dict[str, object]:
    fields: dict[str, object] = msgspec.to_builtins(body, builtin_types=(bytes,))
    return fields
