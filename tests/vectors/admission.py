"""Cases of admission: what is a record and what is none. Written to ``admission.json`` by ``making.py``."""

from __future__ import annotations

import hashlib
import math
import struct
from typing import Any

import msgspec
from nacl.bindings import crypto_core_ed25519_add, crypto_scalarmult_ed25519_base_noclamp

from autoresearch.record.encoding import encode
from autoresearch.record.record import DEFAULT_NETWORK, Network, signed_bytes
from tests.record.making import NOW_MS, key, run_body

ORDER = 2**252 + 27742317777372353535851937790883648493
# A point of order 8, and the neutral one.
TORSION = bytes.fromhex("26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05")
NEUTRAL = (1).to_bytes(32, "little")
AUTHOR = key(1)
SECRET = 12345678901234567890
LINK = b"\xd8\x2a\x58\x25\x00\x01\x71\x12\x20" + b"a" * 32

Case = tuple[str, bytes, bytes, str]  # name, record, signature, verdict


def envelope(**fields: object) -> dict[str, object]:
    """A record of a kind that nobody knows, with some fields changed."""
    return {
        "v": 1,
        "net": DEFAULT_NETWORK.id,
        "author": AUTHOR.public,
        "seq": 1,
        "prev": b"",
        "kind": "tea",
        "time": NOW_MS,
        "links": [],
        "body": {},
    } | fields


def case(name: str, verdict: str, raw: bytes) -> Case:
    return name, raw, AUTHOR.sign(signed_bytes(raw)), verdict


def of(name: str, verdict: str, **fields: object) -> Case:
    return case(name, verdict, encode(envelope(**fields)))


def spelled(name: str, verdict: str, value: bytes) -> Case:
    """A record whose body has these bytes as its one value, whether they are an encoding or not."""
    whole = encode(envelope(body={"a": None}))
    return case(name, verdict, whole.replace(b"\xa1\x61a\xf6", b"\xa1\x61a" + value))


def body_of_run(**fields: object) -> dict[str, Any]:
    return msgspec.to_builtins(run_body(), builtin_types=(bytes,)) | fields


def run(name: str, verdict: str, **fields: object) -> Case:
    return of(name, verdict, kind="run", body=body_of_run(**fields))


def scalar(number: int) -> bytes:
    return (number % ORDER).to_bytes(32, "little")


def challenge(first: bytes, author: bytes, raw: bytes) -> int:
    digest = hashlib.sha512(first + author + signed_bytes(raw)).digest()
    return int.from_bytes(digest, "little") % ORDER


def crafted(name: str, verdict: str, *, author: bytes, first: bytes, fitting: int) -> Case:
    """A signature that begins with ``first`` and whose challenge leaves the remainder ``fitting`` divided by 8.

    It satisfies the equation up to what points of small order add to it.
    """
    nonce = 999 if first not in (TORSION, NEUTRAL) else 0
    for number in range(1000):
        raw = encode(envelope(author=author, body={"try": number}))
        hashed = challenge(first, author, raw)
        if hashed % 8 == fitting:
            return name, raw, first + scalar(nonce + hashed * SECRET), verdict
    raise AssertionError("no number fits")


def encodings() -> list[Case]:
    nested = {levels: b"\x81" * (levels - 2) for levels in (16, 17, 18)}  # the record and its body are two levels
    return [
        spelled("16 levels around a number", "admitted", nested[16] + b"\x01"),
        spelled("16 levels and an empty list inside them", "admitted", nested[16] + b"\x80"),
        spelled("16 levels and an empty map inside them", "admitted", nested[16] + b"\xa0"),
        spelled("17 levels around a number", "encoding", nested[17] + b"\x01"),
        spelled("17 levels and an empty list inside them", "encoding", nested[17] + b"\x80"),
        spelled("a whole float", "admitted", b"\xfb" + struct.pack(">d", 2.0)),
        spelled("a float of 32 bits", "encoding", b"\xfa" + struct.pack(">f", 2.0)),
        spelled("negative zero", "encoding", b"\xfb" + struct.pack(">d", -0.0)),
        spelled("infinity", "encoding", b"\xfb" + struct.pack(">d", math.inf)),
        spelled("not a number", "encoding", b"\xfb" + struct.pack(">d", math.nan)),
        spelled("the largest integer", "admitted", b"\x1b\x7f" + b"\xff" * 7),
        spelled("the smallest integer", "admitted", b"\x3b\x7f" + b"\xff" * 7),
        spelled("an integer of 64 bits without a sign", "encoding", b"\x1b\x80" + bytes(7)),
        spelled("an integer longer than it has to be", "encoding", b"\x18\x17"),
        spelled("keys in another order", "encoding", b"\xa2\x61b\x01\x61a\x02"),
        spelled("the longer key first", "encoding", b"\xa2\x62aa\x01\x61b\x02"),
        spelled("a key twice", "encoding", b"\xa2\x61a\x01\x61a\x02"),
        spelled("a link", "encoding", LINK),
        spelled("a byte string that holds the bytes of a link", "admitted", b"\x58" + bytes([len(LINK)]) + LINK),
        case("a byte too many", "encoding", encode(envelope()) + b"\x00"),
    ]


def envelopes() -> list[Case]:
    return [
        of("an unknown kind", "admitted", body={"any": ["thing", 1, None]}),
        of("an entry too many", "envelope", more=1),
        of("seq as a float", "envelope", seq=1.0),
        of("seq 0", "envelope", seq=0),
        of("prev in the first record", "envelope", prev=b"p" * 32),
        of("no prev in the second record", "envelope", seq=2),
        of("32 links", "admitted", links=[b"l" * 32] * 32),
        of("33 links", "envelope", links=[b"l" * 32] * 33),
        of("a kind with a capital", "envelope", kind="Tea"),
        of("the earliest time", "admitted", time=DEFAULT_NETWORK.start_ms),
        of("a time before the network", "before start", time=DEFAULT_NETWORK.start_ms - 1),
        of("the latest time", "admitted", time=NOW_MS + DEFAULT_NETWORK.ahead_ms),
        of("a time too far ahead", "early", time=NOW_MS + DEFAULT_NETWORK.ahead_ms + 1),
        of("another network", "network", net=Network(name="another").id),
    ]


def bodies() -> list[Case]:
    incomplete = body_of_run()
    del incomplete["seed"]
    return [
        run("a run", "admitted"),
        run("an entry that nobody knows", "admitted", colour="green"),
        of("an entry that is missing", "body", kind="run", body=incomplete),
        run("a whole float where a float stands", "admitted", budget=2.0),
        run("an integer where a float stands", "admitted", budget=2),
        run("a float where an integer stands", "body", seed=7.0),
        run("a boolean where a float stands", "body", budget=True),
        run("both sorts of numbers", "admitted", metrics={"a": 1, "b": 1.0}),
        run("null where it is allowed", "admitted", value=None),
        run("null where it is not", "body", reason=None),
        run("a value that could have been left out", "admitted", reason=""),
        run("120 characters of 4 bytes", "admitted", title="\U0001f375" * 120),
        run("121 characters", "body", title="a" * 121),
        run("an unknown word for mode", "body", mode="tea"),
        run("a hash of 31 bytes", "body", task=b"t" * 31),
    ]


def signatures() -> list[Case]:
    plain = encode(envelope())
    signature = AUTHOR.sign(signed_bytes(plain))
    late = signature[:32] + (int.from_bytes(signature[32:], "little") + ORDER).to_bytes(32, "little")
    public, first = (crypto_scalarmult_ed25519_base_noclamp(scalar(number)) for number in (SECRET, 999))
    mixed = crypto_core_ed25519_add(public, TORSION)
    return [
        ("a signature", plain, signature, "admitted"),
        ("a signature of the bytes alone", plain, AUTHOR.sign(plain), "signature"),
        ("S is not reduced", plain, late, "signature"),
        crafted("R with a part of small order", "signature", author=public, first=_added(first), fitting=0),
        crafted("A with a part of small order, h a multiple of 8", "admitted", author=mixed, first=first, fitting=0),
        crafted("A with a part of small order, h another number", "signature", author=mixed, first=first, fitting=1),
        crafted("R of small order, and the equation holds", "signature", author=mixed, first=TORSION, fitting=7),
        crafted("R is the neutral point", "signature", author=public, first=NEUTRAL, fitting=0),
        _of_a_small_key("A of small order", TORSION),
        _of_a_small_key("A is the neutral point, not canonical", (2**255 - 18).to_bytes(32, "little")),
    ]


def _added(point: bytes) -> bytes:
    return bytes(crypto_core_ed25519_add(point, TORSION))


def _of_a_small_key(name: str, author: bytes) -> Case:
    """A signature that satisfies the equation for a key of small order, which anybody can make."""
    first = crypto_scalarmult_ed25519_base_noclamp(scalar(999))
    for number in range(1000):
        raw = encode(envelope(author=author, body={"try": number}))
        if challenge(first, author, raw) % 8 == 0:
            return name, raw, first + scalar(999), "signature"
    raise AssertionError("no number fits")


def cases() -> list[Case]:
    return [*encodings(), *envelopes(), *bodies(), *signatures()]
