"""What participant and attestor say to each other: a DAG-CBOR map a message. Pure. docs/protocol.md specifies them."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

from autoresearch.attesting.codes import TOKEN2_BYTES
from autoresearch.attesting.statement import STATEMENT_BYTES_MAX
from autoresearch.bounds import ADDRESS_MAX, PROOF_BYTES_MAX
from autoresearch.records import EncodingError, decode, encode

# The header of a mail is the largest thing that is sent.
MESSAGE_BYTES_MAX = PROOF_BYTES_MAX + 4096
# A proof by mail may be for the answers to so many other attestors as well.
OTHERS_MAX = 15
NONCE_BYTES = 16

Key = Annotated[bytes, Meta(min_length=32, max_length=32)]
Signature = Annotated[bytes, Meta(min_length=64, max_length=64)]
Token = Annotated[bytes, Meta(min_length=TOKEN2_BYTES, max_length=TOKEN2_BYTES)]
Nonce = Annotated[bytes, Meta(min_length=NONCE_BYTES, max_length=NONCE_BYTES)]
TimeMs = Annotated[int, Meta(ge=0, le=2**53)]


class Message(msgspec.Struct, frozen=True, kw_only=True, tag_field="say", tag=str.lower):
    """Base of all messages; unlisted keys are ignored."""


class Who(Message, frozen=True, kw_only=True):
    """Asks who attests here."""

    nonce: Nonce


class Here(Message, frozen=True, kw_only=True):
    """The attestor's device key and its signature of :func:`~.statement.attestor_statement`."""

    device: Key
    signature: Signature


class Request(Message, frozen=True, kw_only=True):
    """Asks for a code by mail. ``signature``: the device's, of :func:`~.statement.request_statement`."""

    root: Key
    device: Key
    attestor: Key
    address: Annotated[str, Meta(max_length=ADDRESS_MAX)]
    time: TimeMs
    signature: Signature


class Challenge(Message, frozen=True, kw_only=True):
    """The mail is on its way: the second token, and until when the answer may come."""

    token: Token
    expires: TimeMs


class CodeAnswer(Message, frozen=True, kw_only=True, tag="answer"):
    """Both tokens came. ``signature``: the root key's, of :func:`~.statement.answer_statement`.

    ``mail`` may be the header of a mail whose Subject stands for this statement and ``others``: a proof by DKIM.
    """

    token: Token
    signature: Signature
    mail: Annotated[bytes, Meta(max_length=PROOF_BYTES_MAX)] = b""
    others: Annotated[list[Annotated[bytes, Meta(max_length=STATEMENT_BYTES_MAX)]], Meta(max_length=OTHERS_MAX)] = []


class Attested(Message, frozen=True, kw_only=True):
    """The attestation, a record."""

    raw: Annotated[bytes, Meta(max_length=MESSAGE_BYTES_MAX - 256)]
    signature: Signature


class No(Message, frozen=True, kw_only=True):
    """The attestor says no; ``why`` is one of :class:`autoresearch.words.AttestReason`."""

    why: Annotated[str, Meta(max_length=32)]


Question = Who | Request | CodeAnswer
Reply = Here | Challenge | Attested | No


def encode_message(message: Message) -> bytes:
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
