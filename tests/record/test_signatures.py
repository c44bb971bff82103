"""What libsodium takes for a valid signature is part of the format: these verdicts may never change."""

import hashlib

import pytest
from nacl import bindings as sodium
from nacl.exceptions import BadSignatureError

from autoresearch.record.record import Record, Refusal, admit, signed_bytes
from tests.record.making import NETWORK, NOW_MS, key, run_body, sealed

ORDER = 2**252 + 27742317777372353535851937790883648493
PRIME = 2**255 - 19
IDENTITY = (1).to_bytes(32, "little")
ORDER_8 = bytes.fromhex("c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a")
MESSAGE = b"a message"


def scalar(number):
    return (number % ORDER).to_bytes(32, "little")


def point(number):
    return sodium.crypto_scalarmult_ed25519_base_noclamp(scalar(number))


def challenge(first, public, message):
    return int.from_bytes(hashlib.sha512(first + public + message).digest(), "little") % ORDER


def sign(secret, public, message, nonce):
    """An Ed25519 signature with a chosen nonce, under a chosen public key."""
    first = point(nonce)
    return first + scalar(nonce + challenge(first, public, message) * secret)


def message_with(condition):
    return next(text for text in (b"%d" % number for number in range(1000)) if condition(text))


def vectors():
    secret, nonce = 123456789, 987654321
    public = point(secret)
    mixed = sodium.crypto_core_ed25519_add(public, ORDER_8)
    honest = sign(secret, public, MESSAGE, nonce)
    first = point(nonce)
    small = IDENTITY + bytes(32)
    harmless = message_with(lambda text: challenge(first, mixed, text) % 8 == 0)
    cofactor = message_with(lambda text: challenge(first, mixed, text) % 8 != 0)
    order_8 = message_with(lambda text: challenge(IDENTITY, ORDER_8, text) % 8 == 0)
    noncanonical = (PRIME + 1).to_bytes(32, "little")
    signed_identity = (1 + 2**255).to_bytes(32, "little")
    at_identity = IDENTITY + scalar(challenge(IDENTITY, public, MESSAGE) * secret)
    too_large = honest[:32] + (int.from_bytes(honest[32:], "little") + ORDER).to_bytes(32, "little")
    return {
        "an honest signature": (public, MESSAGE, honest, True),
        "another nonce": (public, MESSAGE, sign(secret, public, MESSAGE, nonce + 1), True),
        "a mixed-order key, valid without cofactor": (mixed, harmless, sign(secret, mixed, harmless, nonce), True),
        "a mixed-order key, valid only with cofactor": (mixed, cofactor, sign(secret, mixed, cofactor, nonce), False),
        "the identity as key, which signs anything": (IDENTITY, MESSAGE, small, False),
        "a key of order 8": (ORDER_8, order_8, small, False),
        "the identity not canonical": (noncanonical, MESSAGE, small, False),
        "the identity with a sign": (signed_identity, MESSAGE, small, False),
        "an honest key with R the identity": (public, MESSAGE, at_identity, False),
        "S beyond the order": (public, MESSAGE, too_large, False),
        "another message": (public, b"another message", honest, False),
    }


@pytest.mark.parametrize("name", vectors())
def test_the_edge_cases_get_libsodiums_verdicts(name):
    public, message, signature, valid = vectors()[name]
    if valid:
        assert sodium.crypto_sign_open(signature + message, public) == message
    else:
        with pytest.raises(BadSignatureError):
            sodium.crypto_sign_open(signature + message, public)


class Forger:
    """Signs with a chosen nonce under a chosen key."""

    def __init__(self, public, make):
        self.public, self.sign = public, make


def admitted(record):
    return admit(record.raw, record.signature, NETWORK, now_ms=NOW_MS)


@pytest.mark.parametrize("public", [IDENTITY, ORDER_8, (PRIME + 1).to_bytes(32, "little")])
def test_a_key_that_signs_anything_signs_no_record(public):
    forged = sealed(Forger(public, lambda _: IDENTITY + bytes(32)), run_body())
    answer = admitted(forged)
    assert isinstance(answer, Refusal)
    assert answer.code == "signature"


def test_two_signatures_of_one_record_are_one_record():
    secret = 42
    public = point(secret)
    first = sealed(Forger(public, lambda text: sign(secret, public, text, 1000)), run_body())
    second = sealed(Forger(public, lambda text: sign(secret, public, text, 1001)), run_body())
    assert first.signature != second.signature
    assert isinstance(admitted(first), Record)
    assert admitted(first).id == admitted(second).id


def test_the_signature_is_over_dsses_encoding():
    record = sealed(key(1), run_body())
    payload = b"application/vnd.autoresearch.record.v1+cbor"
    assert (
        signed_bytes(record.raw) == b"DSSEv1 43 " + payload + b" " + str(len(record.raw)).encode() + b" " + record.raw
    )
