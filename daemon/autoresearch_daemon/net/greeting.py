"""What a node says of itself to its peers: program, network, devices, clock, and which device key it has. Pure.

Only the key is proven: it signs the network and the peer that says it, so that nobody can say it of another's.
"""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

from autoresearch.attesting import holds
from autoresearch.records import EncodingError, decode, encode

GREETING_BYTES_MAX = 2048
_DEVICE = b"autoresearch/hello/1/device\0"


class Greeting(msgspec.Struct, frozen=True, kw_only=True):
    """One peer's own word. ``time_ms`` is its clock, Unix milliseconds; ``devices`` are what it trains on.

    ``device_key`` signs the records of this node, and signed ``device_proof``; both are empty where it says nothing.
    """

    agent: Annotated[str, Meta(max_length=64)]
    network: Annotated[bytes, Meta(min_length=16, max_length=16)]
    time_ms: Annotated[int, Meta(ge=0, le=2**53)]
    devices: Annotated[list[Annotated[str, Meta(max_length=120)]], Meta(max_length=8)] = []
    device_key: Annotated[bytes, Meta(max_length=32)] = b""
    device_proof: Annotated[bytes, Meta(max_length=64)] = b""


def device_statement(network: bytes, peer: str) -> bytes:
    """What a device signs to say that it is behind a peer of a network."""
    return _DEVICE + network + peer.encode()


def proven_device(greeting: Greeting, network: bytes, peer: str) -> bytes:
    """The device key that a peer of this network has, proven; empty where it names none or has not signed."""
    statement = device_statement(network, peer)
    proven = greeting.network == network and holds(greeting.device_key, statement, greeting.device_proof)
    return greeting.device_key if proven else b""


def encode_greeting(greeting: Greeting) -> bytes:
    """The greeting's bytes: a DAG-CBOR map."""
    return encode(msgspec.to_builtins(greeting, builtin_types=(bytes,)))


def decode_greeting(raw: bytes) -> Greeting | None:
    """The greeting that ``raw`` spells, or None when it is none. Unknown keys are ignored."""
    try:
        return msgspec.convert(decode(raw), Greeting)
    except (EncodingError, msgspec.ValidationError):
        return None
