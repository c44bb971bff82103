"""Verifiable random function: ECVRF-EDWARDS25519-SHA512-TAI (RFC 9381), over libsodium's group. Pure.

The holder of the secret key computes one output for an input, and a proof by which everybody can check the output. A
plain signature would not do: its signer can try nonces until it likes the result. Python's integers are not constant in
time: a program on the same machine can learn of the key by measuring ``prove``.
"""

from __future__ import annotations

import hashlib

from nacl.bindings import (
    crypto_core_ed25519_add,
    crypto_core_ed25519_is_valid_point,
    crypto_core_ed25519_sub,
    crypto_scalarmult_ed25519_base_noclamp,
    crypto_scalarmult_ed25519_noclamp,
)
from nacl.exceptions import CryptoError

PROOF_BYTES = 80
OUTPUT_BYTES = 64
_SUITE = b"\x03"
_P = 2**255 - 19
_ORDER = 2**252 + 27742317777372353535851937790883648493
_CHALLENGE_BYTES = 16
_TRIES = 256


def prove(seed: bytes, alpha: bytes) -> bytes:
    """The proof of 80 bytes for an input, with the Ed25519 secret ``seed`` of 32 bytes (RFC 9381, section 5.1)."""
    digest = hashlib.sha512(seed).digest()
    secret = _clamped(digest[:32])
    public = crypto_scalarmult_ed25519_base_noclamp(_scalar(secret))
    point = _to_curve(public, alpha)
    gamma = crypto_scalarmult_ed25519_noclamp(_scalar(secret), point)
    nonce = int.from_bytes(hashlib.sha512(digest[32:] + point).digest(), "little") % _ORDER
    challenge = _challenge(
        public,
        point,
        gamma,
        crypto_scalarmult_ed25519_base_noclamp(_scalar(nonce)),
        crypto_scalarmult_ed25519_noclamp(_scalar(nonce), point),
    )
    answer = (nonce + challenge * secret) % _ORDER
    return gamma + challenge.to_bytes(_CHALLENGE_BYTES, "little") + _scalar(answer)


def verify(public: bytes, alpha: bytes, proof: bytes) -> bytes | None:
    """The output of a proof, 64 bytes, or None when the proof is not valid (RFC 9381, section 5.3).

    Stricter than the RFC in one place: a gamma outside the prime-order subgroup is refused. No honest prover sends one.
    """
    if len(public) != 32 or len(proof) != PROOF_BYTES:
        return None
    gamma, challenge = proof[:32], int.from_bytes(proof[32:48], "little")
    answer = int.from_bytes(proof[48:], "little")
    if answer >= _ORDER or not crypto_core_ed25519_is_valid_point(public):
        return None
    if not crypto_core_ed25519_is_valid_point(gamma):
        return None
    point = _to_curve(public, alpha)
    try:
        first = _difference(crypto_scalarmult_ed25519_base_noclamp(_scalar(answer)), challenge, public)
        second = _difference(crypto_scalarmult_ed25519_noclamp(_scalar(answer), point), challenge, gamma)
    except (CryptoError, RuntimeError):
        return None
    return _output(gamma) if _challenge(public, point, gamma, first, second) == challenge else None


def output(proof: bytes) -> bytes:
    """The output of a proof that is known to be valid: 64 bytes (RFC 9381, section 5.2)."""
    return _output(proof[:32])


def _output(gamma: bytes) -> bytes:
    return hashlib.sha512(_SUITE + b"\x03" + _times_cofactor(gamma) + b"\x00").digest()


def _to_curve(public: bytes, alpha: bytes) -> bytes:
    """A point from a hash, by trial (section 5.4.1.1)."""
    for counter in range(_TRIES):
        head = _SUITE + b"\x01" + public + alpha + bytes([counter]) + b"\x00"
        candidate = hashlib.sha512(head).digest()[:32]
        if not _is_canonical(candidate):
            continue
        try:
            return _times_cofactor(candidate)
        except (CryptoError, RuntimeError):
            continue
    raise AssertionError("256 hashes in a row were no points: that happens once in 2**256 inputs")


def _is_canonical(encoded: bytes) -> bool:
    """Whether the encoding is one that RFC 8032 decodes: y is below the field's size, and no sign without an x."""
    y = int.from_bytes(encoded, "little") & (2**255 - 1)
    signed = encoded[31] >> 7
    return y < _P and not (signed and y in (1, _P - 1))


def _times_cofactor(point: bytes) -> bytes:
    for _ in range(3):
        point = crypto_core_ed25519_add(point, point)
    return point


def _difference(left: bytes, challenge: int, point: bytes) -> bytes:
    """``left − challenge · point``."""
    return crypto_core_ed25519_sub(left, crypto_scalarmult_ed25519_noclamp(_scalar(challenge), point))


def _challenge(*points: bytes) -> int:
    digest = hashlib.sha512(_SUITE + b"\x02" + b"".join(points) + b"\x00").digest()
    return int.from_bytes(digest[:_CHALLENGE_BYTES], "little")


def _clamped(half: bytes) -> int:
    value = int.from_bytes(half, "little")
    return (value & (2**254 - 8)) | 2**254


def _scalar(value: int) -> bytes:
    return (value % _ORDER).to_bytes(32, "little")
