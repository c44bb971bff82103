"""The code: easy to type, mistyping is found out, and it is found in a pasted mail."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from autoresearch.trust.attestation import find_codes, read_code, write_code
from tests.record.making import key
from tests.trust.attesting.making import ATTESTOR, TOKEN1, TOKEN2

CODE = write_code(TOKEN1, TOKEN2, ATTESTOR.public)
tokens = st.binary(min_size=10, max_size=10)


def test_a_code_stays_what_it_is() -> None:
    assert CODE == "000G4-0R40M-30E20-9EHQH"


@given(tokens)
def test_a_code_is_read_as_it_was_written(token1: bytes) -> None:
    code = write_code(token1, TOKEN2, ATTESTOR.public)
    assert read_code(code, TOKEN2, ATTESTOR.public) == token1
    assert read_code(code.lower().replace("-", " "), TOKEN2, ATTESTOR.public) == token1
    assert read_code(code.replace("0", "O").replace("1", "l"), TOKEN2, ATTESTOR.public) == token1
    assert find_codes(f"  {code}\n") == [code]


@given(tokens, st.integers(0, 19), st.sampled_from("23456789ABCDEFGHJKMNPQRSTVWXYZ"))
def test_one_wrong_letter_is_found_out(token1: bytes, place: int, letter: str) -> None:
    letters = list(write_code(token1, TOKEN2, ATTESTOR.public).replace("-", ""))
    if letters[place] != letter:
        letters[place] = letter
        assert read_code("".join(letters), TOKEN2, ATTESTOR.public) is None


def test_a_code_names_its_attestor_and_its_request() -> None:
    assert read_code(CODE, TOKEN2, key(99).public) is None
    assert read_code(CODE, b"x" * 16, ATTESTOR.public) is None


@pytest.mark.parametrize("text", ["", "  ", "000G4", CODE + "0", "U" * 20, "ü" * 20, "١" * 20])
def test_what_is_no_code_is_none(text: str) -> None:
    assert read_code(text, TOKEN2, ATTESTOR.public) is None


def test_codes_are_found_in_a_pasted_mail() -> None:
    other = write_code(b"y" * 10, TOKEN2, ATTESTOR.public)
    assert find_codes(
        f"> The code:\n>     {CODE}\n> autoresearch node id confirm {CODE}\r\n\r\n<pre>{other}</pre>"
    ) == [
        CODE,
        other,
    ]
    assert find_codes("There is none in this long text, with words-and-dashes in-it-too.") == []
