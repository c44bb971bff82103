"""A participant, an attestor, and what they say to each other."""

from __future__ import annotations

from dataclasses import replace

from autoresearch_attestor.rules import Pending

from autoresearch.trust.attestation import CodeAnswer, Parties, Request, answer_statement, request_statement
from autoresearch.trust.identity import Device, DeviceState
from autoresearch.trust.keys import KeyPair
from tests.record.making import NETWORK, NOW_MS, key

ADDRESS = "you@example.org"
ROOT, DEVICE, ATTESTOR = key(1), key(2), key(3)
PARTIES = Parties(NETWORK.id, ROOT.public, DEVICE.public, "peer-1", ATTESTOR.public, "peer-9")
ACTIVE = Device(DEVICE.public, DeviceState.ACTIVE, 0, None)
TOKEN1, TOKEN2 = bytes(range(10)), bytes(range(16))
PENDING = Pending(
    token=TOKEN2,
    statement=answer_statement(PARTIES, TOKEN1, TOKEN2),
    root=ROOT.public,
    device=DEVICE.public,
    peer="peer-1",
    tag=b"t" * 32,
    domain="big",
    expires_ms=NOW_MS + 1,
)


def request(
    *, signer: KeyPair = DEVICE, parties: Parties = PARTIES, address: str = ADDRESS, time_ms: int = NOW_MS
) -> Request:
    return Request(
        root=parties.root,
        device=parties.device,
        attestor=parties.attestor,
        address=address,
        time=time_ms,
        signature=signer.sign(request_statement(parties, address, time_ms)),
    )


def answer(signer: KeyPair = ROOT, token1: bytes = TOKEN1, **changes: object) -> CodeAnswer:
    statement = answer_statement(replace(PARTIES, **changes), token1, TOKEN2)  # type: ignore[arg-type]
    return CodeAnswer(token=TOKEN2, signature=signer.sign(statement))
