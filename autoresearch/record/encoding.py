"""One value, one encoding: the profile of DAG-CBOR that records are written in; and the text form of their ids. Pure.

The verdict of the ``dag-cbor`` package is the rule, narrowed by a profile of our own: no links (tags), no negative
zero, integers within 64 bits signed, at most 16 levels of lists and maps. ``libipld`` is the fast path: what it decodes
and encodes back to the very same bytes is accepted, everything else is put to ``dag-cbor``. Sources: the DAG-CBOR
specification (ipld.io/specs/codecs/dag-cbor) and RFC 8949 §4.2.

A record's id is the SHA-256 of its bytes; as text it is a CIDv1 in base32 of codec dag-cbor and hash sha2-256, so the
first seven characters are the same for all records and say nothing. Source: github.com/multiformats/cid.
"""

from __future__ import annotations

import base64
from collections.abc import Iterable
from typing import Any, cast

import libipld

from autoresearch.errors import UsageError

Value = None | bool | int | float | str | bytes | list["Value"] | dict[str, "Value"]

MAX_DEPTH = 16
_INT_MIN, _INT_MAX = -(2**63), 2**63 - 1
# libipld writes a byte string that happens to parse as a CID as a link, and this is how a link begins. By chance these
# bytes stand in hashes as well, and then no decoder but libipld has to be asked.
_LINK = b"\xd8\x2a"
# libipld recurses on the native stack, and only Python's recursion limit, which a host program may raise, ends that.
# No input nests deeper than it has bytes that can begin a list or a map, so few such bytes mean no danger.
_SAFE_NESTING = 512
_NOT_CONTAINERS = bytes(byte for byte in range(256) if not 0x80 <= byte <= 0xBF)


class EncodingError(ValueError):
    """The bytes or the value have no place in a record; ``str(error)`` says why."""


def encode(value: object) -> bytes:
    """The one encoding of ``value``.

    Raises EncodingError for types other than None, bool, int, float, str, bytes, list, dict (exactly: no subclasses),
    keys that are not text, integers beyond 64 bits, infinities, not-a-number, negative zero and too deep nesting.
    """
    _check_bounds((value,))
    _check_types(value)
    try:
        raw: bytes = libipld.encode_dag_cbor(value)
        if _LINK in raw:
            import dag_cbor

            raw = dag_cbor.encode(cast("Any", value))
    except ValueError as error:
        raise EncodingError(str(error)) from error
    return raw


def decode(raw: bytes) -> Value:
    """The value that ``raw`` is the encoding of. Raises EncodingError when it is not the only encoding of a value."""
    if len(raw.translate(None, _NOT_CONTAINERS)) <= _SAFE_NESTING:
        try:
            value: Value = libipld.decode_dag_cbor(raw)
            # What libipld decodes has no other types, nor a float that is negative zero or not finite.
            _check_bounds((value,))
            if libipld.encode_dag_cbor(value) == raw and not (_LINK in raw and _holds_link(value)):
                return value
        except EncodingError:
            raise
        except (ValueError, RecursionError):
            pass
    return decode_strictly(raw)


def decode_again(raw: bytes) -> Value:
    """The value of bytes that :func:`decode` has accepted before, without checking them once more."""
    try:
        value: Value = libipld.decode_dag_cbor(raw)
    except (ValueError, RecursionError) as error:
        raise EncodingError(str(error)) from error
    return value


def decode_strictly(raw: bytes) -> Value:
    """What :func:`decode` answers, from ``dag-cbor`` alone: slower, and what the fast path must equal."""
    import dag_cbor  # loading it takes longer than most commands, which never need it
    from dag_cbor.decoding import CBORDecodingError

    _scan(raw)
    try:
        value = cast("Value", dag_cbor.decode(raw))
    except (CBORDecodingError, ValueError) as error:
        raise EncodingError(str(error)) from error
    _check_bounds((value,))
    _check_types(value)
    if dag_cbor.encode(cast("Any", value)) != raw:
        raise EncodingError("the bytes are not the encoding of their own value")
    return value


def _check_bounds(items: Iterable[Any], depth: int = 0) -> None:
    """Refuse what is nested too deeply, and integers that do not fit, in ``items`` at this depth and in all below."""
    if depth > MAX_DEPTH:
        raise EncodingError(f"nested more than {MAX_DEPTH} levels deep")
    for item in items:
        kind = type(item)
        if kind is int:
            if not _INT_MIN <= item <= _INT_MAX:
                raise EncodingError("an integer does not fit into 64 bits with a sign")
        elif kind is dict and item:
            _check_bounds(item.values(), depth + 1)
        elif kind is list and item:
            _check_bounds(item, depth + 1)


def _check_types(value: object) -> None:
    """Refuse types, keys and floats that the profile has no place for, in a value whose bounds were checked."""
    kind = type(value)
    if kind is float:
        number = cast("float", value)
        if number - number != 0.0 or (number == 0.0 and str(number)[0] == "-"):
            raise EncodingError("a number is infinite, not a number, or negative zero")
    elif kind is dict:
        for key, item in cast("dict[object, object]", value).items():
            if type(key) is not str:
                raise EncodingError("a key must be text")
            _check_types(item)
    elif kind is list:
        for item in cast("list[object]", value):
            _check_types(item)
    elif not (kind is str or kind is bytes or kind is bool or kind is int or value is None):
        raise EncodingError(f"a record has no place for values of type {kind.__name__}")


def _holds_link(value: Value) -> bool:
    """Whether ``value`` holds bytes that libipld takes for a link: it writes them, and reads links, as the same."""
    if isinstance(value, dict):
        return any(_holds_link(item) for item in value.values())
    if isinstance(value, list):
        return any(_holds_link(item) for item in value)
    return isinstance(value, bytes) and libipld.encode_dag_cbor(value).startswith(_LINK)


def _scan(raw: bytes) -> None:
    """Refuse links, deep nesting and impossible lengths before a recursive decoder sees them.

    ``open_items`` holds, for each list or map entered, how many items it still expects. Any other fault is left to the
    decoder, which meets it no later than this scan does.
    """
    at, open_items = 0, [1]
    while at < len(raw):
        major, info = raw[at] >> 5, raw[at] & 31
        width = 1 << (info - 24) if 24 <= info <= 27 else 0
        argument = int.from_bytes(raw[at + 1 : at + 1 + width], "big") if width else info
        at += 1 + width
        if major == 6:
            raise EncodingError("links and other tags have no place in a record")
        if 2 <= major <= 5 and argument > len(raw):
            raise EncodingError("a length goes beyond the end")
        if major in (2, 3):
            at += argument
        open_items[-1] -= 1
        if major in (4, 5) and argument:
            if len(open_items) > MAX_DEPTH:
                raise EncodingError(f"nested more than {MAX_DEPTH} levels deep")
            open_items.append(argument * (major - 3))
        while open_items and not open_items[-1]:
            open_items.pop()
        if not open_items:
            return


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
    return libipld.encode_cid(_CID + record_id)


def parse_id(text: str) -> bytes:
    """The id that ``text`` is the whole text form of. Raises UsageError."""
    plain = text.strip().lower()
    try:
        cid = base64.b32decode(plain[1:].upper() + "=" * (-(len(plain) - 1) % 8))
        if cid.startswith(_CID) and format_id(cid[4:]) == plain:
            return cid[4:]
    except ValueError:  # neither base32 nor as long as an id
        pass
    raise _not_an_id(text)


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
        place = _ALPHABET.index(digits[position]) if position < len(digits) else None
        low = low << 5 | (0 if place is None else place)
        high = high << 5 | (31 if place is None else place)
    if not digits:
        high &= (1 << 258) - 1
    if low >> 258 or (len(digits) == _DIGITS and low & 3):
        raise _not_an_id(text)
    high &= (1 << 258) - 1
    return (low >> 2).to_bytes(ID_BYTES, "big"), (high >> 2).to_bytes(ID_BYTES, "big")


def _not_an_id(text: str) -> UsageError:
    return UsageError(f"“{text[:80]}” is not an id or the beginning of one.", hint="ids look like bafyreig3x… or g3x…")
