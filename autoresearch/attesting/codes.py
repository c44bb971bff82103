"""The code that comes by mail: how it is written, typed and found in a pasted mail. Pure.

Crockford's base32 (no I, L, O, U), four groups of five: 80 random bits, and 20 bits by which whoever asked several
attestors knows whose code it is, and that it was typed right, without asking anybody.
"""

from __future__ import annotations

import hashlib
import re

TOKEN1_BYTES = 10
TOKEN2_BYTES = 16
_ALPHABET = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
_VALUES = {letter: value for value, letter in enumerate(_ALPHABET)} | {"O": 0, "I": 1, "L": 1}
_DIGITS = 20
_GROUP = 5
_CHECK_BITS = 20
_IN_TEXT = re.compile(r"(?<![0-9A-Za-z-])[0-9A-Za-z]{5}(?:-[0-9A-Za-z]{5}){3}(?![0-9A-Za-z-])")
_PURPOSE = b"autoresearch/attest-code/1\0"


def write_code(token1: bytes, token2: bytes, attestor: bytes) -> str:
    """The code for both tokens (10 and 16 bytes) and the attestor's root key."""
    number = int.from_bytes(token1, "big") << _CHECK_BITS | _check(token1, token2, attestor)
    letters = "".join(_ALPHABET[number >> 5 * place & 31] for place in reversed(range(_DIGITS)))
    return "-".join(letters[start : start + _GROUP] for start in range(0, _DIGITS, _GROUP))


def read_code(text: str, token2: bytes, attestor: bytes) -> bytes | None:
    """The first token in a code, or None when it is no code, mistyped, or not this attestor's for this request."""
    letters = "".join(text.split()).replace("-", "").upper()
    if len(letters) != _DIGITS or any(letter not in _VALUES for letter in letters):
        return None
    number = 0
    for letter in letters:
        number = number << 5 | _VALUES[letter]
    token1 = (number >> _CHECK_BITS).to_bytes(TOKEN1_BYTES, "big")
    return token1 if number & (1 << _CHECK_BITS) - 1 == _check(token1, token2, attestor) else None


def find_codes(text: str) -> list[str]:
    """What looks like a code in a text: one that was typed, with any spaces or dashes, or all in a pasted mail."""
    if len("".join(text.split()).replace("-", "")) <= _DIGITS:
        return [text.strip()] if text.strip() else []
    return list(dict.fromkeys(_IN_TEXT.findall(text)))


def _check(token1: bytes, token2: bytes, attestor: bytes) -> int:
    digest = hashlib.sha256(_PURPOSE + token1 + token2 + attestor).digest()
    return int.from_bytes(digest[:3], "big") >> 24 - _CHECK_BITS
