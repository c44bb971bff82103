"""The salt of a session, and the short ids under it: what nobody can prepare records for. Pure."""

from __future__ import annotations

from hashlib import blake2b

NONCE_BYTES = 16
SALT_BYTES = 32
SHORT_BYTES = 8


def session_salt(opener: bytes, leader: bytes) -> bytes:
    """The salt made of one nonce from each side, the opener's first: neither side chooses it alone."""
    return blake2b(opener + leader, digest_size=SALT_BYTES, person=b"autoresearch/1").digest()


def short_id(record_id: bytes, salt: bytes) -> bytes:
    """8 bytes for an id: BLAKE2b keyed with the salt. Two ids that collide in one session don't in the next."""
    return blake2b(record_id, key=salt, digest_size=SHORT_BYTES).digest()
