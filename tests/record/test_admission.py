"""Admission: the same verdict for the same bytes, and no byte can be changed."""

import hashlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from autoresearch.record.encoding import decode, encode
from autoresearch.record.kinds import KINDS, Run
from autoresearch.record.record import Network, Record, Refusal, admit, parse_stored, signed_bytes
from tests.record.making import NETWORK, NOW_MS, key, run_body, sealed

AUTHOR = key(1)
GOOD = sealed(AUTHOR, run_body(), seq=3, links=[b"l" * 32])


def admitted(raw, signature, now_ms=NOW_MS, network=NETWORK):
    return admit(raw, signature, network, now_ms=now_ms)


def signed(value, author=AUTHOR):
    raw = encode(value)
    return raw, author.sign(signed_bytes(raw))


def changed(**fields):
    return signed(decode(GOOD.raw) | fields)


def code(answer):
    assert isinstance(answer, Refusal), answer
    assert answer.sentence
    return answer.code


def test_a_sealed_record_is_admitted_and_is_its_bytes():
    record = admitted(GOOD.raw, GOOD.signature)
    assert record == GOOD
    assert record.id == hashlib.sha256(GOOD.raw).digest()
    assert isinstance(record.body, Run)
    assert parse_stored(GOOD.raw, GOOD.signature) == record


@given(st.integers(0, len(GOOD.raw) * 8 - 1))
def test_a_flipped_bit_in_the_bytes_is_refused(bit):
    raw = bytearray(GOOD.raw)
    raw[bit // 8] ^= 1 << bit % 8
    assert isinstance(admitted(bytes(raw), GOOD.signature), Refusal)


@pytest.mark.parametrize("bit", range(512))
def test_a_flipped_bit_in_the_signature_is_refused(bit):
    signature = bytearray(GOOD.signature)
    signature[bit // 8] ^= 1 << bit % 8
    assert code(admitted(GOOD.raw, bytes(signature))) == "signature"


def test_a_record_of_another_network_is_refused():
    other = Network(name="other")
    assert code(admitted(GOOD.raw, GOOD.signature, network=other)) == "network"
    assert isinstance(admitted(GOOD.raw, GOOD.signature, network=Network(name="test")), Record)
    assert Network(name="test", per_day=1).id != NETWORK.id


def test_a_signature_over_another_payload_type_or_the_bare_bytes_is_refused():
    wrong = b"DSSEv1 4 text %d %s" % (len(GOOD.raw), GOOD.raw)
    assert code(admitted(GOOD.raw, AUTHOR.sign(wrong))) == "signature"
    assert code(admitted(GOOD.raw, AUTHOR.sign(GOOD.raw))) == "signature"


def test_a_signature_of_another_record_or_another_author_is_refused():
    other = sealed(AUTHOR, run_body(2.0))
    assert code(admitted(GOOD.raw, other.signature)) == "signature"
    assert code(admitted(GOOD.raw, key(2).sign(signed_bytes(GOOD.raw)))) == "signature"


def test_a_record_that_is_too_large_is_refused_before_it_is_decoded():
    assert code(admitted(b"\xff" * 16_385, GOOD.signature)) == "size"
    assert code(admitted(GOOD.raw, GOOD.signature[:-1])) == "size"
    filler = sealed(AUTHOR, {"filler": b""}, kind="unknown")
    most = 16_384 - len(filler.raw) - 2
    exact = sealed(AUTHOR, {"filler": bytes(most)}, kind="unknown")
    assert len(exact.raw) == 16_384
    assert isinstance(admitted(exact.raw, exact.signature), Record)
    over = sealed(AUTHOR, {"filler": bytes(most + 1)}, kind="unknown")
    assert code(admitted(over.raw, over.signature)) == "size"


BAD_ENVELOPES = {
    "version": {"v": 2},
    "network of 15 bytes": {"net": b"n" * 15},
    "author of 31 bytes": {"author": b"a" * 31},
    "seq 0": {"seq": 0},
    "seq as float": {"seq": 3.0},
    "seq as bool": {"seq": True, "prev": b""},
    "prev missing": {"prev": b""},
    "prev in the first": {"seq": 1},
    "prev of 31 bytes": {"prev": b"p" * 31},
    "kind empty": {"kind": ""},
    "kind of 33 characters": {"kind": "k" * 33},
    "kind with a line break": {"kind": "run\n"},
    "kind in capitals": {"kind": "Run"},
    "time negative": {"time": -1},
    "time as float": {"time": 1.5e12},
    "33 links": {"links": [b"l" * 32] * 33},
    "short link": {"links": [b"l"]},
    "links as map": {"links": {}},
    "body as list": {"body": []},
    "unknown field": {"extra": 1},
}


@pytest.mark.parametrize("name", BAD_ENVELOPES)
def test_a_wrong_envelope_is_refused(name):
    assert code(admitted(*changed(**BAD_ENVELOPES[name]))) == "envelope"


@pytest.mark.parametrize("field", ["v", "net", "author", "seq", "prev", "kind", "time", "links", "body"])
def test_a_missing_field_is_refused(field):
    value = decode(GOOD.raw)
    del value[field]
    assert code(admitted(*signed(value))) == "envelope"
    assert code(admitted(*signed([1]))) == "envelope"


BAD_BODIES = {
    "value as text": {"value": "1.0"},
    "value as bool": {"value": True},
    "hash as text": {"task": "aaaa"},
    "hash as base64 text": {"task": "YWFhYWFhYWFhYWFhYWFhYWFhYWFhYWFhYWFhYWFhYWE="},
    "hash of 33 bytes": {"task": b"t" * 33},
    "count as float": {"seed": 1.0},
    "count negative": {"replicate": -1},
    "mode unknown": {"mode": "other"},
    "curve of 65": {"curve": [1.0] * 65},
    "genome with null": {"genome": {"a": None}},
    "genome with a list": {"genome": {"a": [1]}},
    "title too long": {"title": "x" * 121},
    "sandbox 10": {"sandbox": 10},
    "status empty": {"status": ""},
}


@pytest.mark.parametrize("name", BAD_BODIES)
def test_a_body_with_a_wrong_field_is_refused(name):
    body = decode(GOOD.raw)["body"] | BAD_BODIES[name]
    assert code(admitted(*changed(body=body))) == "body"


def test_unlisted_keys_of_a_body_are_kept_and_ignored():
    body = decode(GOOD.raw)["body"] | {"later": [1, {"a": b"x"}]}
    record = admitted(*changed(body=body))
    assert record.body == GOOD.body
    assert decode(record.raw)["body"]["later"] == [1, {"a": b"x"}]


def test_an_unknown_kind_is_admitted_as_a_map():
    record = admitted(*changed(kind="song.2", body={"anything": [None]}))
    assert record.body == {"anything": [None]}


@pytest.mark.parametrize("kind", KINDS)
def test_no_kind_takes_a_body_of_wrong_types(kind):
    body = {field: [[[]]] for field in KINDS[kind].__struct_fields__}
    assert code(admitted(*changed(kind=kind, body=body))) == "body"


def test_time_decides_only_what_is_early_and_what_was_before_the_network():
    late = sealed(AUTHOR, run_body(), time_ms=NOW_MS + NETWORK.ahead_ms + 1)
    assert code(admitted(late.raw, late.signature)) == "early"
    assert isinstance(admitted(late.raw, late.signature, now_ms=NOW_MS + 1), Record)
    before = sealed(AUTHOR, run_body(), time_ms=NETWORK.start_ms - 1)
    assert code(admitted(before.raw, before.signature)) == "before start"
    first = sealed(AUTHOR, run_body(), time_ms=NETWORK.start_ms)
    assert isinstance(admitted(first.raw, first.signature), Record)


def test_an_early_record_that_nobody_signed_is_refused_and_not_held():
    late = sealed(AUTHOR, run_body(), time_ms=NOW_MS + 10**9)
    assert code(admitted(late.raw, bytes(64))) == "signature"


@given(st.binary(max_size=200), st.binary(min_size=64, max_size=64))
def test_no_bytes_bring_down_admission(raw, signature):
    assert isinstance(admitted(raw, signature), Refusal)
