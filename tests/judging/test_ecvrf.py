"""The verifiable random function: RFC 9381's vectors, and nothing else passes."""

from __future__ import annotations

import hashlib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from nacl.bindings import (
    crypto_core_ed25519_add,
    crypto_scalarmult_ed25519_base_noclamp,
    crypto_scalarmult_ed25519_noclamp,
)
from nacl.signing import SigningKey

from autoresearch.judging import ecvrf

# RFC 9381, appendix B.3, examples 16 to 18: secret key, public key, input, proof, output.
VECTORS = [
    (
        "9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60",
        "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a",
        "",
        "8657106690b5526245a92b003bb079ccd1a92130477671f6fc01ad16f26f723f26f8a57ccaed74ee1b190bed1f479d97"
        "27d2d0f9b005a6e456a35d4fb0daab1268a1b0db10836d9826a528ca76567805",
        "90cf1df3b703cce59e2a35b925d411164068269d7b2d29f3301c03dd757876ff66b71dda49d2de59d03450451af02679"
        "8e8f81cd2e333de5cdf4f3e140fdd8ae",
    ),
    (
        "4ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb",
        "3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c",
        "72",
        "f3141cd382dc42909d19ec5110469e4feae18300e94f304590abdced48aed5933bf0864a62558b3ed7f2fea45c92a465"
        "301b3bbf5e3e54ddf2d935be3b67926da3ef39226bbc355bdc9850112c8f4b02",
        "eb4440665d3891d668e7e0fcaf587f1b4bd7fbfe99d0eb2211ccec90496310eb5e33821bc613efb94db5e5b54c70a848"
        "a0bef4553a41befc57663b56373a5031",
    ),
    (
        "c5aa8df43f9f837bedb7442f31dcb7b166d38535076f094b85ce3a2e0b4458f7",
        "fc51cd8e6218a1a38da47ed00230f0580816ed13ba3303ac5deb911548908025",
        "af82",
        "9bc0f79119cc5604bf02d23b4caede71393cedfbb191434dd016d30177ccbf8096bb474e53895c362d8628ee9f9ea3c0"
        "e52c7a5c691b6c18c9979866568add7a2d41b00b05081ed0f58ee5e31b3a970e",
        "645427e5d00c62a23fb703732fa5d892940935942101e456ecca7bb217c61c452118fec1219202a0edcf038bb6373241"
        "578be7217ba85a2687f7a0310b2df19f",
    ),
]
SEED = hashlib.sha256(b"a verifier").digest()
PUBLIC = bytes(SigningKey(SEED).verify_key)


@pytest.mark.parametrize("vector", VECTORS, ids=["16", "17", "18"])
def test_the_vectors_of_the_rfc(vector: tuple[str, ...]) -> None:
    seed, public, alpha, proof, out = map(bytes.fromhex, vector)
    assert ecvrf.prove(seed, alpha) == proof
    assert ecvrf.verify(public, alpha, proof) == out == ecvrf.output(proof)


@given(st.binary(min_size=32, max_size=32), st.binary(max_size=200))
@settings(max_examples=25, deadline=None)
def test_a_proof_verifies_and_there_is_one_only(seed: bytes, alpha: bytes) -> None:
    proof = ecvrf.prove(seed, alpha)
    assert ecvrf.verify(bytes(SigningKey(seed).verify_key), alpha, proof) == ecvrf.output(proof)
    assert ecvrf.prove(seed, alpha) == proof


@given(st.integers(0, 80 * 8 - 1))
@settings(max_examples=50, deadline=None)
def test_a_flipped_bit_proves_nothing(bit: int) -> None:
    proof = bytearray(ecvrf.prove(SEED, b"run"))
    proof[bit // 8] ^= 1 << bit % 8
    assert ecvrf.verify(PUBLIC, b"run", bytes(proof)) is None


def test_another_input_or_another_key_proves_nothing() -> None:
    proof = ecvrf.prove(SEED, b"run")
    assert ecvrf.verify(PUBLIC, b"other run", proof) is None
    assert ecvrf.verify(bytes(SigningKey(hashlib.sha256(b"else").digest()).verify_key), b"run", proof) is None


@pytest.mark.parametrize(
    "junk",
    [b"", bytes(80), b"\xff" * 80, bytes(79), bytes(81), b"\x01" + bytes(79)],
    ids=["empty", "zeros", "ones", "short", "long", "identity"],
)
def test_junk_proves_nothing(junk: bytes) -> None:
    assert ecvrf.verify(PUBLIC, b"run", junk) is None


@pytest.mark.parametrize("public", [bytes(32), b"\x01" + bytes(31), b"\xff" * 32, b"x"])
def test_a_key_that_is_no_key_proves_nothing(public: bytes) -> None:
    assert ecvrf.verify(public, b"run", ecvrf.prove(SEED, b"run")) is None


def test_an_answer_that_is_not_reduced_proves_nothing() -> None:
    """The same number spelled in another way would be another proof."""
    proof = ecvrf.prove(SEED, b"run")
    order = 2**252 + 27742317777372353535851937790883648493
    answer = int.from_bytes(proof[48:], "little") + order
    assert ecvrf.verify(PUBLIC, b"run", proof[:48] + answer.to_bytes(32, "little")) is None


def test_a_gamma_outside_the_subgroup_of_prime_order_proves_nothing() -> None:
    """Whoever has the key could make such a proof: a second one for the same output."""
    secret = ecvrf._clamped(hashlib.sha512(SEED).digest()[:32])
    point = ecvrf._to_curve(PUBLIC, b"run")
    nowhere = bytes.fromhex("ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f")  # of order 2
    gamma = crypto_core_ed25519_add(ecvrf.prove(SEED, b"run")[:32], nowhere)
    for nonce in range(1, 100):
        sums = [
            crypto_scalarmult_ed25519_base_noclamp(ecvrf._scalar(nonce)),
            crypto_scalarmult_ed25519_noclamp(ecvrf._scalar(nonce), point),
        ]
        challenge = ecvrf._challenge(PUBLIC, point, gamma, *sums)
        if challenge % 2 == 0:  # twice the point of order 2 is nothing: the equations hold
            break
    proof = gamma + challenge.to_bytes(16, "little") + ecvrf._scalar(nonce + challenge * secret)
    assert ecvrf.output(proof) == ecvrf.output(ecvrf.prove(SEED, b"run"))
    assert ecvrf.verify(PUBLIC, b"run", proof) is None
