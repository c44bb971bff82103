"""One value has one encoding, and nothing else is decoded."""

import math
import struct
import sys

import dag_cbor
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from autoresearch.record.encoding import MAX_DEPTH, EncodingError, decode, decode_again, decode_strictly, encode

LINK_LIKE = [b"\x12\x20" + b"a" * 32, b"\x01\x71\x12\x20" + b"a" * 32, b"\xd8\x2a\x41\x00", b"\x00\x01\x71\x12\x20"]

leaves = (
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False, allow_infinity=False).map(lambda x: x + 0.0)
    | st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
    | st.binary(max_size=40)
    | st.sampled_from(LINK_LIKE)
)
values = st.recursive(
    leaves,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner, max_size=4),
    max_leaves=12,
)


def verdict(decoder, raw):
    try:
        value = decoder(raw)
    except EncodingError:
        return "refused"
    return ("value", repr(value))


@given(values)
def test_a_value_round_trips_and_its_encoding_is_that_of_dag_cbor(value):
    raw = encode(value)
    assert raw == dag_cbor.encode(value)
    assert decode(raw) == value
    assert decode_strictly(raw) == decode_again(raw) == value


@given(values, st.data())
@settings(max_examples=150)
def test_the_fast_path_answers_mutants_as_the_slow_one_does(value, data):
    raw = bytearray(encode(value))
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, len(raw)))
        how = data.draw(st.sampled_from(["set", "insert", "delete"]))
        byte = data.draw(st.sampled_from([0x18, 0x1B, 0x3B, 0x5F, 0x80, 0xA0, 0xD8, 0xF7, 0xFB]) | st.integers(0, 255))
        if how == "insert":
            raw.insert(at, byte)
        elif at < len(raw) and how == "set":
            raw[at] = byte
        elif at < len(raw):
            del raw[at]
    mutant = bytes(raw)
    answer = verdict(decode, mutant)
    assert answer == verdict(decode_strictly, mutant)
    if answer != "refused":
        assert encode(decode(mutant)) == mutant


@given(st.binary(max_size=64))
@settings(max_examples=150)
def test_the_fast_path_answers_byte_soup_as_the_slow_one_does(raw):
    assert verdict(decode, raw) == verdict(decode_strictly, raw)


LINK = b"\xd8\x2a\x58\x25\x00\x01\x71\x12\x20" + b"a" * 32
NEGATIVE = {
    "nothing": b"",
    "duplicate keys": b"\xa2\x61a\x01\x61a\x02",
    "misordered keys": b"\xa2\x61b\x01\x61a\x02",
    "longer key first": b"\xa2\x62aa\x01\x61b\x02",
    "key that is a number": b"\xa1\x01\x01",
    "key that is bytes": b"\xa1\x41a\x01",
    "integer of 1 byte too long": b"\x18\x17",
    "integer of 2 bytes too long": b"\x19\x00\xff",
    "integer of 4 bytes too long": b"\x1a\x00\x00\xff\xff",
    "integer of 8 bytes too long": b"\x1b\x00\x00\x00\x00\xff\xff\xff\xff",
    "negative integer too long": b"\x38\x17",
    "length of text too long": b"\x78\x01a",
    "length of bytes too long": b"\x58\x01a",
    "length of list too long": b"\x98\x01\x01",
    "length of map too long": b"\xb8\x01\x61a\x01",
    "integer of 64 bits unsigned": b"\x1b\x80" + bytes(7),
    "integer below 64 bits signed": b"\x3b\x80" + bytes(7),
    "float of 16 bits": b"\xf9\x3e\x00",
    "float of 32 bits": b"\xfa" + struct.pack(">f", 1.5),
    "not a number": b"\xfb" + struct.pack(">d", math.nan),
    "infinity": b"\xfb" + struct.pack(">d", math.inf),
    "negative infinity": b"\xfb" + struct.pack(">d", -math.inf),
    "negative zero": b"\xfb\x80" + bytes(7),
    "undefined": b"\xf7",
    "simple value": b"\xe0",
    "simple value of a byte": b"\xf8\x20",
    "link": LINK,
    "link in a list": b"\x81" + LINK,
    "link in a map": b"\xa1\x61a" + LINK,
    "link with a long tag": b"\xd9\x00\x2a" + LINK[2:],
    "other tag": b"\xc1\x01",
    "empty link": b"\xd8\x2a\x40",
    "list without end": b"\x9f\x01\xff",
    "map without end": b"\xbf\xff",
    "text without end": b"\x7f\x61a\xff",
    "bytes without end": b"\x5f\x41a\xff",
    "reserved head": b"\x1c",
    "trailing bytes": b"\x01\x01",
    "cut list": b"\x82\x01",
    "cut map": b"\xa1\x61a",
    "cut text": b"\x62a",
    "cut integer": b"\x19\x01",
    "list of 2**63 items": b"\x9b\x7f" + b"\xff" * 7,
    "text of 2**64 bytes": b"\x7b" + b"\xff" * 8,
    "surrogate in text": b"\x63\xed\xa0\x80",
    "broken text": b"\x61\xff",
    "too deep list": b"\x81" * (MAX_DEPTH + 1) + b"\x01",
    "too deep map": b"\xa1\x61a" * (MAX_DEPTH + 1) + b"\x01",
    "16 KiB of nesting": b"\x81" * 16_383 + b"\x01",
}


@pytest.mark.parametrize("name", NEGATIVE)
def test_what_is_no_encoding_is_refused_by_both_paths(name):
    for decoder in (decode, decode_strictly):
        with pytest.raises(EncodingError):
            decoder(NEGATIVE[name])


@pytest.mark.parametrize(
    "value",
    [
        math.nan,
        math.inf,
        -0.0,
        2**63,
        -(2**63) - 1,
        {1: 2},
        (1,),
        {1},
        "\ud800",
        {"\ud800": 1},
        bytearray(b"a"),
        object(),
    ],
    ids=lambda value: repr(value).partition(" at 0x")[0],  # the same in every process
)
def test_what_has_no_encoding_is_refused(value):
    for nested in (value, [value], {"a": value}):
        with pytest.raises(EncodingError):
            encode(nested)


def nest(levels):
    value = 1
    for _ in range(levels):
        value = [value]
    return value


def test_the_deepest_nesting_is_the_same_for_encoding_and_decoding():
    raw = b"\x81" * MAX_DEPTH + b"\x01"
    assert encode(nest(MAX_DEPTH)) == raw
    assert decode(raw) == decode_strictly(raw) == nest(MAX_DEPTH)
    with pytest.raises(EncodingError):
        encode(nest(MAX_DEPTH + 1))


def test_nesting_cannot_end_the_process_when_the_recursion_limit_was_raised():
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(10**6)
    try:
        for raw in (b"\x81" * 16_000 + b"\x01", b"\xa1\x61a" * 5_000 + b"\x01"):
            with pytest.raises(EncodingError):
                decode(raw)
    finally:
        sys.setrecursionlimit(before)


@pytest.mark.parametrize("raw", LINK_LIKE)
def test_bytes_that_look_like_a_link_stay_bytes(raw):
    value = {"a": raw, "b": [raw]}
    assert decode(encode(value)) == value
    assert encode(value) == dag_cbor.encode(value)


def test_text_full_of_multibyte_characters_is_decoded():
    value = {"text": "ж" * 4000}
    assert decode(encode(value)) == value
