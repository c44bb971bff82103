"""What is signed: by an attestor about who it is, by a device that asks, by the root key that answers. Pure.

Each signature is over a purpose of its own and a digest of everything that it is about, so that none can be used for
another purpose, key, peer, attestor or network.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass

from nacl.exceptions import CryptoError
from nacl.signing import VerifyKey

_ATTESTOR = b"autoresearch/attest/1/attestor\0"
_REQUEST = b"autoresearch/attest/1/request\0"
_ANSWER = b"autoresearch/attest/1/answer\0"
STATEMENT_BYTES_MAX = 64


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


def subject_statement(statements: Iterable[bytes]) -> bytes:
    """What the Subject of one mail stands for that proves the same address to several attestors."""
    return b"".join(sorted(set(statements)))


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
