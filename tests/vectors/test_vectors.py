"""The test vectors of docs/protocol.md are what the code does, read as another program would read them."""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import trio
from autoresearch_daemon.net.host.serving import BlobServer
from autoresearch_daemon.net.host.streams import first_frame
from autoresearch_daemon.net.model import decode_greeting, proven_device
from autoresearch_daemon.peers.blob_fetching import serve_part
from nacl.signing import SigningKey, VerifyKey

from autoresearch.log.blobs import BlobStore
from autoresearch.log.log import Log
from autoresearch.log.sync.index import LOWEST, KeyIndex, MalformedError, MessageReader, session_salt
from autoresearch.log.sync.messages import REPLY_BYTES, RangeWriter, decode_hello
from autoresearch.log.sync.reconciliation import put_parts
from autoresearch.record.encoding import decode
from autoresearch.record.record import DAY_MS, DEFAULT_NETWORK, Network, Refusal, admit
from autoresearch.task.program import join_files, source_digest
from autoresearch.trust.manifest import CONSTANTS
from autoresearch.trust.manifest_file import decode_manifest
from autoresearch.trust.roster import Trust
from autoresearch.words import AttestReason
from tests.record.making import NOW_MS
from tests.vectors.making import FOLDER, everything

SPECIFICATION = (FOLDER.parents[1] / "docs" / "protocol.md").read_text()
TITLES = ("admission", "retention", "networks", "exchange", "tasks")
STORED: dict[str, Any] = {title: json.loads((FOLDER / f"{title}.json").read_text()) for title in TITLES}


def test_the_files_are_what_the_code_makes(tmp_path: Path) -> None:
    assert everything(tmp_path) == STORED, "python -m tests.vectors.making"


@pytest.mark.parametrize("title", TITLES)
def test_the_document_names_each_file(title: str) -> None:
    assert f"tests/vectors/{title}.json" in SPECIFICATION


@pytest.mark.parametrize("case", STORED["admission"]["cases"], ids=lambda case: case["name"])
def test_admission(case: dict[str, str]) -> None:
    raw, signature = bytes.fromhex(case["record"]), bytes.fromhex(case["signature"])
    answer = admit(raw, signature, DEFAULT_NETWORK, now_ms=STORED["admission"]["clock_ms"])
    assert (answer.code if isinstance(answer, Refusal) else "admitted") == case["verdict"]


@pytest.mark.parametrize("case", STORED["retention"]["cases"], ids=lambda case: case["name"])
def test_retention(case: dict[str, Any], tmp_path: Path) -> None:
    """As the document states it, from the listed fields alone; and with a log, one by one and the other way round.

    They come twice: what went before its author was named comes back.
    """
    retained = {record["id"] for record in case["records"] if record["kept"]}
    assert retained == kept_of(case)
    network = Network(name=case["network"], **case["constants"])
    with Log.open(tmp_path / "log.sqlite", network, trust=trust_of(case)) as log:
        for record in [*reversed(case["records"]), *case["records"]]:
            pair = bytes.fromhex(record["record"]), bytes.fromhex(record["signature"])
            log.writer.ingest([pair], now_ms=NOW_MS + 10**9)
        assert {record_id.hex() for _, record_id in log.records.iter_keys()} == retained


def trust_of(case: dict[str, Any]) -> Trust:
    attestors, participants = (frozenset(map(bytes.fromhex, case[name])) for name in ("attestors", "participants"))
    return Trust(attestors=attestors, participants=participants)


def kept_of(case: dict[str, Any]) -> set[str]:
    constants = STORED["networks"]["usual"] | case["constants"]
    records = sorted(case["records"], key=lambda record: (record["seq"], record["id"]))
    for limit, bucket in [
        ("per_day_seq", lambda record: (record["author"], record["time"] // DAY_MS, record["seq"])),
        ("per_day", lambda record: (record["author"], record["time"] // DAY_MS)),
        ("per_author", lambda record: record["author"]),
    ]:
        taken: Counter[object] = Counter()
        left = []
        for record in records:
            taken[bucket(record)] += 1
            if taken[bucket(record)] <= constants[limit]:
                left.append(record)
        records = left
    named = named_by(case)
    crowd = sorted((record for record in records if record["author"] not in named), key=place)
    most = constants["unattested"] if named else len(crowd)
    return {record["id"] for record in [*(record for record in records if record["author"] in named), *crowd[:most]]}


def place(record: dict[str, Any]) -> tuple[int, bytes, int, str]:
    day, author = record["time"] // DAY_MS, bytes.fromhex(record["author"])
    drawn = hashlib.sha256(b"autoresearch/unattested/1" + day.to_bytes(8, "big") + author).digest()
    return -day, drawn, record["seq"], record["id"]


def named_by(case: dict[str, Any]) -> set[str]:
    bodies: list[tuple[str, Any]] = [
        (record["author"], decode(bytes.fromhex(record["record"]))) for record in case["records"]
    ]
    devices = [
        (author, record["body"]["device"].hex())
        for author, record in bodies
        if record["kind"] == "identity" and record["body"]["action"] == "delegate"
    ]

    def with_devices(roots: set[str]) -> set[str]:
        return roots | {device for root, device in devices if root in roots}

    attestors = with_devices(set(case["attestors"]))
    attested = {
        record["body"]["subject"].hex()
        for author, record in bodies
        if record["kind"] == "attestation" and author in attestors
    }
    return with_devices(set(case["attestors"]) | set(case["participants"]) | attested)


@pytest.mark.parametrize("network", STORED["networks"]["networks"], ids=lambda network: network["name"])
def test_networks(network: dict[str, Any]) -> None:
    made = Network(name=network["name"], nonce=bytes.fromhex(network["nonce"]), **network["constants"])
    assert hashlib.sha256(bytes.fromhex(network["hashed"])).digest()[:16] == made.id == bytes.fromhex(network["id"])
    assert decode_manifest(bytes.fromhex(network["manifest"])).network == made


def test_the_document_has_the_usual_value_and_the_bounds_of_every_constant() -> None:
    usual = STORED["networks"]["usual"]
    assert usual.keys() == CONSTANTS.keys()
    for name, (least, most) in CONSTANTS.items():
        assert f"| `{name}` | {usual[name]:,} | {least:,} | {most:,} |" in SPECIFICATION, name


def test_task_definitions() -> None:
    """Whole floats are floats, and no entry goes beside those of the document."""
    stored = STORED["tasks"]
    assert source_digest(stored["baseline"]["source"]).hex() == stored["baseline"]["digest"]
    program = stored["program"]
    assert join_files(program["files"]) == program["source"]
    assert source_digest(program["source"]).hex() == program["digest"]
    for stored_task in stored["tasks"]:
        raw = bytes.fromhex(stored_task["definition"])
        assert hashlib.sha256(raw).hexdigest() == stored_task["digest"]
        definition: Any = decode(raw)
        assert all(f"| `{name}` |" in SPECIFICATION for name in definition)
        assert type(definition["budget"]["amount"]) is type(definition["limits"]["seconds"]) is float
        assert definition["harness"]["prepare.py"] == hashlib.sha256(bytes.fromhex(stored["prepare.py"])).digest()


def test_the_document_has_every_reason_of_an_attestor() -> None:
    assert f"`no` has `why`, one of {', '.join(f'`{reason.value}`' for reason in AttestReason)}." in " ".join(
        SPECIFICATION.split()
    )


def test_varints_and_frames() -> None:
    for item in STORED["exchange"]["varints"]:
        reader = MessageReader(bytes.fromhex(item["bytes"]))
        if item["value"] is None:
            with pytest.raises(MalformedError):
                reader.varint(2**63)
        else:
            assert reader.varint(2**63) == item["value"]
    for item in STORED["exchange"]["frames"]:
        framed = bytes.fromhex(item["frame"])
        start, end = first_frame(bytearray(framed), 1000) or (0, 0)
        assert framed[start:end].hex() == item["data"]


def test_the_salt() -> None:
    salt = STORED["exchange"]["salt"]
    nonces = bytes.fromhex(salt["opener"]), bytes.fromhex(salt["leader"])
    by_hand = hashlib.blake2b(b"".join(nonces), digest_size=32, person=bytes.fromhex(salt["personalisation"]))
    assert session_salt(*nonces) == by_hand.digest() == bytes.fromhex(salt["salt"])


@pytest.mark.parametrize("split", STORED["exchange"]["splits"], ids=lambda split: split["keys"])
def test_splits(split: dict[str, Any]) -> None:
    index = KeyIndex((number, bytes(32)) for number in range(split["keys"]))
    upper = b"\xff" * 41
    bounds = put_parts(RangeWriter(REPLY_BYTES, LOWEST), index, bytes(32), 0, len(index), upper)
    assert [0, *(index.lower_bound(end) for _, end in bounds)] == split["edges"]


@pytest.mark.parametrize("hello", STORED["exchange"]["hellos"], ids=lambda hello: hello["name"])
def test_hellos(hello: dict[str, Any]) -> None:
    payload = bytes.fromhex(hello["payload"])
    if hello["accepted"]:
        assert decode_hello(payload).network == DEFAULT_NETWORK.id
    else:
        with pytest.raises(MalformedError):
            decode_hello(payload)


def test_the_greeting_proves_its_device() -> None:
    stored = STORED["exchange"]["greeting"]
    message = decode_greeting(bytes.fromhex(stored["frame"]))
    assert message is not None
    network = bytes.fromhex(stored["network"])
    assert proven_device(message, network, stored["peer"]).hex() == stored["device_key"]
    assert proven_device(message, network, stored["peer"][:-1] + "M") == b""


def test_what_a_token_signs_for_a_join() -> None:
    stored = STORED["exchange"]["join"]
    network, root, seed, proof = (bytes.fromhex(stored[name]) for name in ("network", "participant", "seed", "proof"))
    signed = b"autoresearch/join/1\0" + hashlib.sha256(network + root).digest()
    assert signed.hex() == stored["signed"]
    assert bytes(SigningKey(seed).verify_key).hex() == stored["token"]
    assert VerifyKey(bytes.fromhex(stored["token"])).verify(signed, proof) == signed


def test_what_is_signed_for_an_attestation() -> None:
    """Computed as the document says."""
    stored = STORED["exchange"]["attestation"]
    network, root, device, attestor = (
        bytes.fromhex(stored[name]) for name in ("network", "root", "device", "attestor")
    )
    peer, attestor_peer = stored["peer"].encode(), stored["attestor_peer"].encode()
    parties = [network, root, device, peer, attestor, attestor_peer]
    tokens = [bytes.fromhex(token) for token in stored["tokens"]]
    for purpose, name, parts in [
        ("attestor", "here", [network, bytes.fromhex(stored["nonce"]), attestor_peer, peer]),
        ("request", "request", [*parties, stored["address"].encode(), stored["time"].to_bytes(8, "big")]),
        ("answer", "answer", [*parties, *tokens]),
    ]:
        digest = hashlib.sha256(b"".join(len(part).to_bytes(4, "big") + part for part in parts)).digest()
        signed = f"autoresearch/attest/1/{purpose}".encode() + b"\0" + digest
        assert signed.hex() == stored[f"{name}_signed"]
    bits = int.from_bytes(
        tokens[0] + hashlib.sha256(b"autoresearch/attest-code/1\0" + b"".join(tokens) + attestor).digest()[:3]
    )
    letters = "".join("0123456789ABCDEFGHJKMNPQRSTVWXYZ"[bits >> 4 >> 5 * place & 31] for place in reversed(range(20)))
    assert "-".join(letters[at : at + 5] for at in range(0, 20, 5)) == stored["code"]


@pytest.mark.parametrize("size", ["small", "large"])
def test_blob_answers(size: str, tmp_path: Path) -> None:
    stored = STORED["exchange"]["blobs"][size]
    blobs = BlobStore(tmp_path)
    blob = blobs.put(bytes.fromhex(stored["bytes"]) if size == "small" else bytes(stored["zero_bytes"]))
    assert blob.sha256.hex() == stored["sha256"]
    assert (blob.manifest or b"").hex() == stored.get("manifest_sha256", "")

    async def source(_: str, name: bytes, first: int, length: int) -> bytes | None:
        return await trio.to_thread.run_sync(lambda: asyncio.run(serve_part(blobs, name, first, length)))

    for exchange in stored["requests"]:
        stream = Stream(bytes.fromhex(exchange["request"]))
        trio.run(BlobServer(source).serve, stream)
        assert stream.answer == exchange["answer"]


class Stream:
    """A stream in memory with one frame to read."""

    peer = "peer"

    def __init__(self, request: bytes) -> None:
        self._request = request
        self.answer: list[str] = []

    async def receive(self) -> bytes:
        return self._request

    async def send(self, data: bytes) -> None:
        self.answer.append(data.hex())
