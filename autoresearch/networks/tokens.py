"""Tokens: the key in an invite whose holder a founder admits. Pure.

A token is an Ed25519 key made for one invite. Whoever joins signs with it that a root key joins a network. So what is
published is good for that root key and network alone, and the founder's node knows its own tokens by their public keys.
"""

from __future__ import annotations

import hashlib

from nacl.exceptions import CryptoError
from nacl.signing import SigningKey, VerifyKey

from autoresearch.records import Join

_PURPOSE = b"autoresearch/join/1\0"


def join_with(seed: bytes, network_id: bytes, participant: bytes) -> Join:
    """What a participant publishes that joins with the token of this seed."""
    token = SigningKey(seed)
    proof = token.sign(join_statement(network_id, participant)).signature
    return Join(participant=participant, token=bytes(token.verify_key), proof=proof)


def token_of(seed: bytes) -> bytes:
    """The public key of the token with this seed."""
    return bytes(SigningKey(seed).verify_key)


def joined(join: Join, network_id: bytes) -> bool:
    """Whether the token signed that this participant joins this network."""
    try:
        VerifyKey(join.token).verify(join_statement(network_id, join.participant), join.proof)
    except (CryptoError, ValueError):
        return False
    return True


def join_statement(network_id: bytes, participant: bytes) -> bytes:
    """What the token signs: the purpose, then SHA-256 of the network's id (16 bytes) and the root key (32 bytes)."""
    return _PURPOSE + hashlib.sha256(network_id + participant).digest()
