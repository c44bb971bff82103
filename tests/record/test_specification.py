"""What `docs/protocol.md` says of records is what the code does."""

import msgspec

from autoresearch.record.kinds import Note
from autoresearch.record.record import DEFAULT_NETWORK, Record, admit, seal, signed_bytes
from tests.record.body_tables import DOCUMENT, MEANS, PARTS, parts, written
from tests.record.making import NOW_MS, key

SPECIFICATION = DOCUMENT.read_text()


def test_the_specification_shows_this_record_and_it_is_admitted():
    note = Note(topic="insight", text="tea")
    made = seal(key(1), DEFAULT_NETWORK, "note", note, seq=1, prev=b"", time_ms=NOW_MS)
    assert isinstance(admit(made.raw, made.signature, DEFAULT_NETWORK, now_ms=NOW_MS), Record)
    for content in (made.raw, made.signature, made.id, DEFAULT_NETWORK.id):
        assert content.hex() in SPECIFICATION


def test_the_specification_shows_what_is_signed():
    head = signed_bytes(b"BYTES").decode().removesuffix("5 BYTES")
    assert f"    {head}LENGTH BYTES\n" in SPECIFICATION


def test_the_tables_of_record_bodies_are_those_of_the_kinds():
    assert written(SPECIFICATION) == SPECIFICATION, "python -m tests.record.body_tables"


def test_every_meaning_in_the_tables_is_that_of_an_entry():
    entries = {(name, field.name) for name, body in parts().items() for field in msgspec.structs.fields(body)}
    assert MEANS.keys() <= {field for _, field in entries} | {f"{name}.{field}" for name, field in entries}
    assert all(f"#### {name.capitalize()}\n" in SPECIFICATION for name in PARTS)
