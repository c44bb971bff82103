"""What travels between two nodes, in bytes. Written to ``exchange.json`` by ``making.py``."""

from __future__ import annotations

import hashlib

from autoresearch_daemon.net.host.serving import BLOB_REQUEST_END
from autoresearch_daemon.net.host.streams import frame
from autoresearch_daemon.net.model import Greeting, device_statement, encode_greeting

from autoresearch.log.chunks import encode_manifest
from autoresearch.log.sync.index import session_salt
from autoresearch.log.sync.messages import Hello, encode_hello
from autoresearch.record.record import DEFAULT_NETWORK
from autoresearch.trust.attestation import (
    TOKEN1_BYTES,
    TOKEN2_BYTES,
    Parties,
    answer_statement,
    attestor_statement,
    request_statement,
    write_code,
)
from autoresearch.trust.invite import join_statement, join_with
from tests.record.making import NOW_MS, key
from tests.trust.networks.making import PEER

OPENER, LEADER = b"o" * 16, b"l" * 16
MOST = 2**53
VARINTS = {
    "00": 0,
    "7f": 127,
    "8001": 128,
    "ffffffffffffffff7f": 2**63 - 1,
    "8000": None,
    "80808080808080808001": None,
    "80": None,
}
SPLITS = (33, 48, 49, 100, 255, 256, 1_500)
# A blob of five bytes; a large one is a chunk and a byte, all zero.
SMALL = b"hello"
LARGE_BYTES = (1 << 20) + 1
# The bytes of the blob that are asked for, and the frames that answer: a status, then the part.
ASKED = [
    (0, 5, ["00", SMALL.hex()]),
    (1, 3, ["00", SMALL[1:4].hex()]),
    (0, 1 << 20, ["00", SMALL.hex()]),
    (5, 1, ["00"]),
    (1 << 40, 1, ["00"]),
    (0, 0, ["01"]),
    (0, (1 << 20) + 1, ["01"]),
]


def hello(since_ms: int = 0, count: int = 0) -> bytes:
    return encode_hello(Hello(DEFAULT_NETWORK.id, OPENER, since_ms, count))


def hellos() -> list[dict[str, object]]:
    good = hello()
    cases = [
        ("nothing", good, True),
        ("the largest numbers", hello(MOST, MOST), True),
        ("since too large", hello(MOST + 1), False),
        ("count too large", hello(0, MOST + 1), False),
        ("since of ten bytes", good[:-2] + bytes.fromhex("80808080808080808001") + b"\0", False),
        ("since not in its shortest form", good[:-2] + b"\x80\x00\x00", False),
        ("another version", b"\x02" + good[1:], False),
        ("a byte too many", good + b"\0", False),
        ("too short", good[:-1], False),
    ]
    return [{"name": name, "payload": payload.hex(), "accepted": accepted} for name, payload, accepted in cases]


def splits() -> list[dict[str, object]]:
    """Where ⌊i·n/p⌋ cuts."""
    parts = {count: min(16, -(-count // 16)) for count in SPLITS}
    return [{"keys": count, "edges": [i * count // p for i in range(p + 1)]} for count, p in parts.items()]


def request(name: bytes, first: int, length: int) -> bytes:
    return name + BLOB_REQUEST_END.pack(first, length)


def blobs() -> dict[str, object]:
    zeros = bytes(LARGE_BYTES)
    hashes = [hashlib.sha256(zeros[:-1]).digest(), hashlib.sha256(zeros[-1:]).digest()]
    manifest = encode_manifest(LARGE_BYTES, hashes)
    small, large, named = (hashlib.sha256(data).digest() for data in (SMALL, zeros, manifest))
    return {
        "small": {
            "bytes": SMALL.hex(),
            "sha256": small.hex(),
            "requests": [
                {"request": request(small, first, length).hex(), "answer": frames} for first, length, frames in ASKED
            ],
        },
        "large": {
            "zero_bytes": LARGE_BYTES,
            "sha256": large.hex(),
            "manifest": manifest.hex(),
            "manifest_sha256": named.hex(),
            "requests": [
                {"request": request(large + named, 1 << 20, 1 << 20).hex(), "answer": ["00", "00"]},
                {"request": request(large, 1 << 20, 1 << 20).hex(), "answer": ["01"]},
                {"request": request(large + small, 1 << 20, 1 << 20).hex(), "answer": ["01"]},
            ],
        },
    }


def greeting() -> dict[str, object]:
    device = key(1)
    message = Greeting(
        agent="tea/1",
        network=DEFAULT_NETWORK.id,
        time_ms=NOW_MS,
        devices=["kettle"],
        device_key=device.public,
        device_proof=device.sign(device_statement(DEFAULT_NETWORK.id, PEER)),
    )
    return {
        "peer": PEER,
        "network": DEFAULT_NETWORK.id.hex(),
        "device_key": device.public.hex(),
        "signed": device_statement(DEFAULT_NETWORK.id, PEER).hex(),
        "frame": encode_greeting(message).hex(),
    }


def attestation() -> dict[str, object]:
    peer, attestor_peer = PEER, PEER[:-1] + "M"
    root, device, attestor = (key(number).public for number in (1, 2, 3))
    parties = Parties(DEFAULT_NETWORK.id, root, device, peer, attestor, attestor_peer)
    nonce, tokens, address = b"n" * 16, (b"1" * TOKEN1_BYTES, b"2" * TOKEN2_BYTES), "tea@example.org"
    return {
        "network": DEFAULT_NETWORK.id.hex(),
        "root": root.hex(),
        "device": device.hex(),
        "peer": peer,
        "attestor": attestor.hex(),
        "attestor_peer": attestor_peer,
        "nonce": nonce.hex(),
        "address": address,
        "time": NOW_MS,
        "tokens": [token.hex() for token in tokens],
        "here_signed": attestor_statement(DEFAULT_NETWORK.id, nonce, attestor_peer, peer).hex(),
        "request_signed": request_statement(parties, address, NOW_MS).hex(),
        "answer_signed": answer_statement(parties, *tokens).hex(),
        "code": write_code(*tokens, attestor),
    }


def join() -> dict[str, object]:
    seed, root = b"s" * 32, key(1).public
    made = join_with(seed, DEFAULT_NETWORK.id, root)
    return {
        "network": DEFAULT_NETWORK.id.hex(),
        "participant": root.hex(),
        "seed": seed.hex(),
        "token": made.token.hex(),
        "signed": join_statement(DEFAULT_NETWORK.id, root).hex(),
        "proof": made.proof.hex(),
    }


def everything() -> dict[str, object]:
    return {
        "varints": [{"bytes": data, "value": value} for data, value in VARINTS.items()],
        "salt": {
            "opener": OPENER.hex(),
            "leader": LEADER.hex(),
            "personalisation": b"autoresearch/1".ljust(16, b"\0").hex(),
            "salt": session_salt(OPENER, LEADER).hex(),
        },
        "splits": splits(),
        "hellos": hellos(),
        "greeting": greeting(),
        "attestation": attestation(),
        "join": join(),
        "blobs": blobs(),
        "frames": [{"data": data.hex(), "frame": frame(data).hex()} for data in (b"", b"abc", bytes(300))],
    }
