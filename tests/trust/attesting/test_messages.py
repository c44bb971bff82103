"""What they say on the wire: one encoding for each message, and rubbish is no message."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from autoresearch.trust.attestation import (
    MESSAGE_BYTES_MAX,
    AttestationMessage,
    Attested,
    Challenge,
    CodeAnswer,
    Here,
    No,
    Request,
    Who,
    decode_question,
    decode_reply,
    encode_message,
)
from tests.trust.attesting.making import answer, request

LONGEST = request(address="x" * 254)


@pytest.mark.parametrize("message", [Who(nonce=b"n" * 16), request(), LONGEST, answer()])
def test_a_question_is_read_as_it_was_written(message: AttestationMessage) -> None:
    raw = encode_message(message)
    assert decode_question(raw) == message
    assert decode_reply(raw) is None
    assert len(raw) <= MESSAGE_BYTES_MAX


@pytest.mark.parametrize(
    "message",
    [
        Here(device=b"d" * 32, signature=b"s" * 64),
        Challenge(token=b"t" * 16, expires=1),
        Attested(raw=b"r" * 3000, signature=b"s" * 64),
        No(why="busy"),
    ],
)
def test_a_reply_is_read_as_it_was_written(message: AttestationMessage) -> None:
    raw = encode_message(message)
    assert decode_reply(raw) == message
    assert decode_question(raw) is None


@given(st.binary(max_size=300) | st.binary(max_size=5).map(lambda end: encode_message(answer())[:-5] + end))
def test_rubbish_is_no_message(raw: bytes) -> None:
    question = decode_question(raw)
    assert question is None or isinstance(question, Who | Request | CodeAnswer)
    assert decode_reply(raw) is None or not isinstance(decode_reply(raw), CodeAnswer)


def test_a_field_of_another_size_is_no_message() -> None:
    assert decode_question(encode_message(CodeAnswer(token=b"t" * 15, signature=b"s" * 64))) is None
    assert decode_question(encode_message(request(address="x" * 255))) is None
