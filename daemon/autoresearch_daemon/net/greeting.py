"""What a node says of itself to its peers: program, network, devices, clock. Nothing of it is proven. Pure."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

from autoresearch.records import EncodingError, decode, encode

GREETING_BYTES_MAX = 2048


class Greeting(msgspec.Struct, frozen=True, kw_only=True):
    """One peer's own word. ``time_ms`` is its clock, Unix milliseconds; ``devices`` are what it trains on."""

    agent: Annotated[str, Meta(max_length=64)]
    network: Annotated[bytes, Meta(min_length=16, max_length=16)]
    time_ms: Annotated[int, Meta(ge=0, le=2**53)]
    devices: Annotated[list[Annotated[str, Meta(max_length=120)]], Meta(max_length=8)] = []


def encode_greeting(greeting: Greeting) -> bytes:
    """The greeting's bytes: a DAG-CBOR map."""
    return encode(msgspec.to_builtins(greeting, builtin_types=(bytes,)))


def decode_greeting(raw: bytes) -> Greeting | None:
    """The greeting that ``raw`` spells, or None when it is none. Unknown keys are ignored."""
    try:
        return msgspec.convert(decode(raw), Greeting)
    except (EncodingError, msgspec.ValidationError):
        return None
