"""What was refused is remembered, for everybody where the bytes decide, and only so much of it."""

from __future__ import annotations

import hashlib

from autoresearch_daemon.peers.ingest import RefusedRecords

from autoresearch.log.rows import IngestVerdict, State
from autoresearch.record.record import Refusal


def verdict(number: int, code: str = "body", state: State = State.REFUSED) -> IngestVerdict:
    return IngestVerdict(state, number_id(number), refusal=Refusal(code, "why"))  # type: ignore[arg-type]


def number_id(number: int) -> bytes:
    return hashlib.sha256(b"%d" % number).digest()


def test_a_wrong_signature_counts_against_its_peer_alone() -> None:
    refused = RefusedRecords()
    refused.add("a", [verdict(1), verdict(2, "signature"), verdict(3, "early", State.EARLY)])
    refused.add("a", [IngestVerdict(State.STORED, number_id(4)), IngestVerdict(State.DUPLICATE, number_id(5))])
    assert refused.of("a") == {number_id(1), number_id(2)}
    assert refused.of("b") == {number_id(1)}


def test_the_oldest_go_when_there_is_no_room() -> None:
    refused = RefusedRecords(most=3)
    for number in range(5):
        refused.add("a", [verdict(number)])
    assert refused.of("b") == {number_id(number) for number in (2, 3, 4)}
