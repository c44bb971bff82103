"""How fast it is known whose word a record carries: 10,000 attestations read at a start, and questions after it."""

from __future__ import annotations

import hashlib
import time

from autoresearch.record.kinds import Attestation, Identity
from autoresearch.record.record import Network, Record, seal
from autoresearch.trust.keys import KeyPair
from autoresearch.trust.roster import Roster, Trust

COMPARED = "10,000 at a start within a second, microseconds for each record after it"
NETWORK = Network(name="benchmark")
NOW_MS = 1_800_000_000_000
SUBJECTS = {True: 500, False: 5_000}
ATTESTORS = 2
QUESTIONS = 200_000
YEAR_MS = 365 * 86_400_000


def measure(*, quick: bool) -> dict[str, float]:
    """Attestations read a second, and questions answered a second once they are read."""
    attestors = [KeyPair.from_seed(number.to_bytes(32, "big")) for number in range(1, ATTESTORS + 1)]
    subjects = [KeyPair.from_seed(number.to_bytes(32, "big")) for number in range(1000, 1000 + SUBJECTS[quick])]
    records = [
        record
        for number, subject in enumerate(subjects, start=1)
        for record in (*delegation(subject, number), *(attestation(who, subject, number) for who in attestors))
    ]
    began = time.perf_counter()
    trust = Trust(attestors=frozenset(who.public for who in attestors), needed=ATTESTORS)
    roster = Roster(records, trust)
    start = time.perf_counter() - began
    began = time.perf_counter()
    answered = 0
    while answered < QUESTIONS:
        for subject in subjects:
            assert roster.voter(subject.public, NOW_MS + 1).attested
        answered += len(subjects)
    asked = time.perf_counter() - began
    return {
        "checks_per_second": answered / asked,
        "start_seconds": start,
        "attestations": ATTESTORS * len(subjects),
    }


def delegation(subject: KeyPair, number: int) -> tuple[Record, Record]:
    """A subject with a device."""
    device = KeyPair.from_seed((1 << 200 | number).to_bytes(32, "big"))
    says = Identity(action="delegate", root=subject.public, device=device.public)
    agrees = Identity(action="profile", root=subject.public)
    return (
        seal(subject, NETWORK, "identity", says, seq=1, prev=b"", time_ms=NOW_MS),
        seal(device, NETWORK, "identity", agrees, seq=1, prev=b"", time_ms=NOW_MS),
    )


def attestation(attestor: KeyPair, subject: KeyPair, number: int) -> Record:
    """One attestor's word for a subject."""
    tag = hashlib.sha256(subject.public).digest()
    body = Attestation(subject=subject.public, tag=tag, method="code", issued=NOW_MS, expires=NOW_MS + YEAR_MS)
    return seal(
        attestor, NETWORK, "attestation", body, seq=number, prev=b"p" * 32 if number > 1 else b"", time_ms=NOW_MS
    )
