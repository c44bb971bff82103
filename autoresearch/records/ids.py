"""The text form of ids: CIDv1 in base32 (``bafyrei…``), any prefix of it, and the short form for people. Pure.

A record's id is the SHA-256 of its bytes; as text it is a CID of codec dag-cbor and hash sha2-256, so the first seven
characters are the same for all records and say nothing. Source: github.com/multiformats/cid.
"""

from __future__ import annotations

import base64
import binascii

from autoresearch.errors import UsageError

ID_BYTES = 32
COMMON = "bafyrei"
SHORT = 8
_CID = b"\x01\x71\x12\x20"
_TEXT = 59
_ALPHABET = "abcdefghijklmnopqrstuvwxyz234567"
# The first character after the common part begins with two bits of the CID's head, which are zero, and the last ends
# with two bits of padding: 52 characters hold 2 + 256 + 2 bits.
_DIGITS = _TEXT - len(COMMON)


def format_id(record_id: bytes) -> str:
    """The text form of a 32-byte id, 59 characters."""
    return "b" + base64.b32encode(_CID + record_id).decode("ascii").lower().rstrip("=")


def parse_id(text: str) -> bytes:
    """The id that ``text`` is the whole text form of. Raises UsageError."""
    plain = text.strip().lower()
    try:
        cid = base64.b32decode(plain[1:].upper() + "=" * (-(len(plain) - 1) % 8))
    except (binascii.Error, ValueError) as error:
        raise _not_an_id(text) from error
    if not cid.startswith(_CID) or format_id(cid[4:]) != plain:
        raise _not_an_id(text)
    return cid[4:]


def short_id(record_id: bytes, characters: int = SHORT) -> str:
    """The first ``characters`` that tell ids apart: those after the part that all ids share."""
    return format_id(record_id)[len(COMMON) : len(COMMON) + characters]


def prefix_range(text: str) -> tuple[bytes, bytes]:
    """The lowest and the highest id whose text form begins with ``text``, with or without ``bafyrei``, in any case.

    Raises UsageError when no id can begin so.
    """
    digits = text.strip().lower().removeprefix(COMMON)
    if len(digits) > _DIGITS or any(digit not in _ALPHABET for digit in digits):
        raise _not_an_id(text)
    low = high = 0
    for position in range(_DIGITS):
        known = _ALPHABET.index(digits[position]) if position < len(digits) else None
        low = low << 5 | (0 if known is None else known)
        high = high << 5 | (31 if known is None else known)
    if not digits:
        high &= (1 << 258) - 1
    if low >> 258 or (len(digits) == _DIGITS and low & 3):
        raise _not_an_id(text)
    high &= (1 << 258) - 1
    return (low >> 2).to_bytes(ID_BYTES, "big"), (high >> 2).to_bytes(ID_BYTES, "big")


def _not_an_id(text: str) -> UsageError:
    return UsageError(f"“{text[:80]}” is not an id or the beginning of one.", hint="ids look like bafyreig3x… or g3x…")
