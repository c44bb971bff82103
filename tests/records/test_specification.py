"""What `docs/protocol.md` says of records is what the code does."""

from pathlib import Path

from autoresearch.records import DEFAULT_NETWORK, Note, Record, admit, seal, signed_bytes
from tests.records.making import NOW_MS, key

SPECIFICATION = (Path(__file__).parents[2] / "docs" / "protocol.md").read_text()


def test_the_specification_shows_this_record_and_it_is_admitted():
    note = Note(topic="insight", text="tea")
    made = seal(key(1), DEFAULT_NETWORK, "note", note, seq=1, prev=b"", time_ms=NOW_MS)
    assert isinstance(admit(made.raw, made.signature, DEFAULT_NETWORK, now_ms=NOW_MS), Record)
    for shown in (made.raw, made.signature, made.id, DEFAULT_NETWORK.id):
        assert shown.hex() in SPECIFICATION


def test_the_specification_shows_what_is_signed():
    head = signed_bytes(b"BYTES").decode().removesuffix("5 BYTES")
    assert f"    {head}LENGTH BYTES\n" in SPECIFICATION
