"""Ids as text: the whole, any prefix, the short form."""

import base64

import pytest
from hypothesis import given
from hypothesis import strategies as st
from multiformats import CID

from autoresearch.errors import UsageError
from autoresearch.record.encoding import format_id, parse_id, prefix_range, short_id

ids = st.binary(min_size=32, max_size=32)


@given(ids)
def test_the_text_is_a_cid_and_reads_back(record_id):
    text = format_id(record_id)
    cid = CID.decode(text)
    assert (cid.version, cid.codec.name, cid.hashfun.name, cid.raw_digest) == (1, "dag-cbor", "sha2-256", record_id)
    assert parse_id(text) == parse_id(f" {text.upper()} ") == record_id
    assert text.startswith("bafyrei" + short_id(record_id))


@given(ids, ids, st.integers(0, 59), st.booleans())
def test_a_prefix_means_exactly_the_ids_whose_text_begins_with_it(record_id, other, length, upper):
    whole = format_id(record_id)
    for prefix in {whole[: max(7, length)], whole[7 : max(7, length)]}:
        low, high = prefix_range(prefix.upper() if upper else prefix)
        assert low <= record_id <= high
        digits = prefix.removeprefix("bafyrei")
        for candidate in (other, low, high):
            assert (low <= candidate <= high) == format_id(candidate)[7:].startswith(digits)
        if int.from_bytes(high, "big") + 1 < 2**256:
            above = (int.from_bytes(high, "big") + 1).to_bytes(32, "big")
            assert not format_id(above)[7:].startswith(digits)


@pytest.mark.parametrize("text", ["", "x", "bafyrei", "hello world", "b" + "a" * 58, "é", "z" * 59])
def test_what_is_no_id_is_refused(text):
    with pytest.raises(UsageError):
        parse_id(text)


@pytest.mark.parametrize("size", [0, 31, 33])
def test_an_id_of_another_length_is_refused(size):
    with pytest.raises(UsageError):
        parse_id("b" + base64.b32encode(b"\x01\x71\x12\x20" + bytes(size)).decode().lower().rstrip("="))


@pytest.mark.parametrize("text", ["zzzz", "a!", "0189", "a" * 53, format_id(b"\0" * 32)[:-1] + "b"])
def test_what_can_begin_no_id_is_refused(text):
    with pytest.raises(UsageError):
        prefix_range(text)


def test_no_prefix_means_all_ids():
    assert prefix_range("") == prefix_range("bafyrei") == (b"\0" * 32, b"\xff" * 32)
