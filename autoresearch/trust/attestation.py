"""What participant and attestor exchange: the code that comes by mail, what is signed, their messages. Pure.

A message is a DAG-CBOR map; docs/protocol.md specifies them.

The code is Crockford's base32 (no I, L, O, U), four groups of five: 80 random bits, and 20 bits by which whoever asked
several attestors knows whose code it is, and that it was typed right, without asking anybody. Each signature is over a
purpose of its own and a digest of everything that it is about, so that none can be used for another purpose, key, peer,
attestor or network.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from typing import Annotated

import msgspec
from msgspec import Meta
from nacl.exceptions import CryptoError
from nacl.signing import VerifyKey

from autoresearch.record.encoding import EncodingError, decode, encode
from autoresearch.text import ADDRESS_MAX

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


_ATTESTOR = b"autoresearch/attest/1/attestor\0"
_REQUEST = b"autoresearch/attest/1/request\0"
_ANSWER = b"autoresearch/attest/1/answer\0"


@dataclass(frozen=True, slots=True)
class Parties:
    """Whom it is between: the network's id; who asks, by root key, device key and peer id; the attestor, likewise.

    Keys are 32 bytes, peer ids text.
    """

    network: bytes
    root: bytes
    device: bytes
    peer: str
    attestor: bytes
    attestor_peer: str


def attestor_statement(network: bytes, nonce: bytes, attestor_peer: str, peer: str) -> bytes:
    """What an attestor's device signs for a peer that asks who is there."""
    return _ATTESTOR + _digest(network, nonce, attestor_peer.encode(), peer.encode())


def request_statement(parties: Parties, address: str, time_ms: int) -> bytes:
    """What the device signs that asks for a mail."""
    return _REQUEST + _digest(*_fields(parties), address.encode(), time_ms.to_bytes(8, "big"))


def answer_statement(parties: Parties, token1: bytes, token2: bytes) -> bytes:
    """What the root key signs when both tokens have come (the shape of RFC 8823, 3)."""
    return _ANSWER + _digest(*_fields(parties), token1, token2)


def holds(key: bytes, statement: bytes, signature: bytes) -> bool:
    """Whether the key signed the statement (Ed25519)."""
    try:
        VerifyKey(key).verify(statement, signature)
    except (CryptoError, ValueError):
        return False
    return True


def _fields(parties: Parties) -> tuple[bytes, ...]:
    return (
        parties.network,
        parties.root,
        parties.device,
        parties.peer.encode(),
        parties.attestor,
        parties.attestor_peer.encode(),
    )


def _digest(*parts: bytes) -> bytes:
    """SHA-256 over the parts, each with its length in front."""
    return hashlib.sha256(b"".join(len(part).to_bytes(4, "big") + part for part in parts)).digest()


# A list of a machine's services, which goes by the same limit, is the largest thing that is sent.
MESSAGE_BYTES_MAX = 20 << 10
NONCE_BYTES = 16

Key = Annotated[bytes, Meta(min_length=32, max_length=32)]
Signature = Annotated[bytes, Meta(min_length=64, max_length=64)]
Token = Annotated[bytes, Meta(min_length=TOKEN2_BYTES, max_length=TOKEN2_BYTES)]
Nonce = Annotated[bytes, Meta(min_length=NONCE_BYTES, max_length=NONCE_BYTES)]
TimeMs = Annotated[int, Meta(ge=0, le=2**53)]


class AttestationMessage(msgspec.Struct, frozen=True, kw_only=True, tag_field="say", tag=str.lower):
    """Base of all messages; unlisted keys are ignored."""


class Who(AttestationMessage, frozen=True, kw_only=True):
    """Asks who attests here."""

    nonce: Nonce


class Here(AttestationMessage, frozen=True, kw_only=True):
    """The attestor's device key and its signature of :func:`attestor_statement`."""

    device: Key
    signature: Signature


class Request(AttestationMessage, frozen=True, kw_only=True):
    """Asks for a code by mail. ``signature``: the device's, of :func:`request_statement`."""

    root: Key
    device: Key
    attestor: Key
    address: Annotated[str, Meta(max_length=ADDRESS_MAX)]
    time: TimeMs
    signature: Signature


class Challenge(AttestationMessage, frozen=True, kw_only=True):
    """The mail is on its way: the second token, and until when the answer may come."""

    token: Token
    expires: TimeMs


class CodeAnswer(AttestationMessage, frozen=True, kw_only=True, tag="answer"):
    """Both tokens came. ``signature``: the root key's, of :func:`answer_statement`."""

    token: Token
    signature: Signature


class Attested(AttestationMessage, frozen=True, kw_only=True):
    """The attestation, a record."""

    raw: Annotated[bytes, Meta(max_length=MESSAGE_BYTES_MAX - 256)]
    signature: Signature


class No(AttestationMessage, frozen=True, kw_only=True):
    """The attestor says no; ``why`` is one of :class:`autoresearch.words.AttestReason`."""

    why: Annotated[str, Meta(max_length=32)]


Question = Who | Request | CodeAnswer
Reply = Here | Challenge | Attested | No


def encode_message(message: AttestationMessage) -> bytes:
    """The message's bytes."""
    return encode(msgspec.to_builtins(message, builtin_types=(bytes,)))


def decode_question(raw: bytes) -> Question | None:
    """What was asked, or None when it is nothing that can be."""
    try:
        return msgspec.convert(decode(raw), Question)  # type: ignore[no-any-return]
    except (EncodingError, msgspec.ValidationError):
        return None


def decode_reply(raw: bytes) -> Reply | None:
    """What was answered, or None when it is nothing that can be."""
    try:
        return msgspec.convert(decode(raw), Reply)  # type: ignore[no-any-return]
    except (EncodingError, msgspec.ValidationError):
        return None
