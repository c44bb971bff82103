"""How a participant stands with the attestors, and what its answer to their codes is bound to."""

from __future__ import annotations

from collections.abc import Sequence

from autoresearch.ask.people.participants import AttestAnswer, AttestationView, AttestRefusal, CodeView, ConfirmRequest
from autoresearch.log.log import Log
from autoresearch.log.standing.cache import roster_of
from autoresearch.record.record import DAY_MS
from autoresearch.trust.attestation import Parties, answer_statement, find_codes, read_code
from autoresearch.trust.attestor import DUE_MS
from autoresearch.trust.keys import KeyPair
from autoresearch.trust.roster import Word


def attest_answer(
    log: Log,
    root: bytes,
    *,
    now_ms: int,
    awaited: Sequence[CodeView] = (),
    refused: Sequence[AttestRefusal] = (),
    reachable: int | None = None,
) -> AttestAnswer:
    """How a root key stands, from the log and the network's trust."""
    trust, words = log.trust, roster_of(log).words(root, now_ms)
    voter = roster_of(log).voter(root, now_ms)
    unmailed = _without_mail(log, root)
    until_ms = 0 if unmailed or not voter.attested else quorum_ends(words, voter.voter, trust.needed)
    return AttestAnswer(
        participant=root.hex(),
        attested=voter.attested,
        reason=f"{unmailed}: no mail is needed" if unmailed else _reason(log, words, voter.attested, until_ms, now_ms),
        until_ms=until_ms,
        needed=trust.needed,
        attestors=len(trust.attestors),
        reachable=reachable,
        attestations=[
            AttestationView(
                attestor=word.attestor.hex(),
                tag=word.tag.hex(),
                since_ms=word.start_ms,
                until_ms=word.end_ms,
                method=word.method,
            )
            for word in words
        ],
        awaited=list(awaited),
        refused=list(refused),
    )


def _without_mail(log: Log, root: bytes) -> str:
    """Why a participant counts without a mailbox; empty when it needs one."""
    if root in log.trust.founders:
        return "a founder of this network"
    if root in log.trust.participants:
        return "named by hand"
    return "admitted by a founder" if root in roster_of(log).admitted else ""


def confirmations(
    text: str,
    awaited: Sequence[CodeView],
    root: KeyPair,
    device: bytes,
    network_id: bytes,
) -> list[ConfirmRequest]:
    """The signed answers to the codes in a text, typed or pasted, as far as they are awaited."""
    requests: dict[str, ConfirmRequest] = {}
    for typed in find_codes(text):
        for code in awaited:
            attestor, token2 = bytes.fromhex(code.attestor), bytes.fromhex(code.token)
            if token1 := read_code(typed, token2, attestor):
                parties = Parties(network_id, root.public, device, code.peer, attestor, code.attestor_peer)
                signature = root.sign(answer_statement(parties, token1, token2)).hex()
                requests[code.token] = ConfirmRequest(token=code.token, signature=signature)
    return list(requests.values())


def quorum_ends(words: Sequence[Word], tag: bytes, needed: int) -> int:
    """When fewer than ``needed`` attestors stand for a mailbox, Unix milliseconds; 0 when they are too few already."""
    ends: dict[bytes, int] = {}
    for word in words:
        if word.tag == tag:
            ends[word.attestor] = max(word.end_ms, ends.get(word.attestor, 0))
    return sorted(ends.values(), reverse=True)[needed - 1] if len(ends) >= needed else 0


def _reason(log: Log, words: Sequence[Word], attested: bool, until_ms: int, now_ms: int) -> str:  # noqa: FBT001
    trust = log.trust
    if attested:
        due = "; show the mailbox again: autoresearch node id attest" if until_ms - now_ms < DUE_MS else ""
        return f"{trust.needed} attestors saw control of a mailbox; good for {(until_ms - now_ms) // DAY_MS} days{due}"
    if len(trust.attestors) < trust.needed:
        return f"this network trusts {len(trust.attestors)} attestors and needs {trust.needed}"
    most = max((len({w.attestor for w in words if w.tag == word.tag}) for word in words), default=0)
    if most >= trust.needed:
        return "attested, but the mailbox's domain has as many voters as this network counts"
    return f"{most} of {trust.needed} attestors have seen a mailbox"
