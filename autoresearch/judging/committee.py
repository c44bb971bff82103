"""Committees, drawn by a verifiable random function (VRF), and the seeds that follow from it. Pure.

Nobody can predict a committee, least of all the author of the run. Everybody can check it afterwards: the verifier's
proof is part of its record.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Sequence
from dataclasses import dataclass, fields
from functools import lru_cache

from autoresearch.judging.ecvrf import OUTPUT_BYTES
from autoresearch.record.record import DEFAULT_NETWORK, Network

_DOMAIN = b"autoresearch/verify/1"
_SEEDS = b"autoresearch/verify-seeds/1"
_TEXTS = b"autoresearch/verify-texts/1"
_CHALLENGES = b"autoresearch/challenges/1"
_AUDIT = b"autoresearch/audit/1"
_REPLICATED = b"autoresearch/replicated/1"
# However often an author was right, at least one in so many of its runs is replicated.
LEAST_REPLICATED = 10


@dataclass(frozen=True, slots=True)
class VerificationRules:
    """The constants of a network for verification, without ``verify_``.

    ``committee`` is the expected number of voters that are chosen; ``quorum`` of them must reveal. The committee
    doubles every ``patience_ms`` while too few did. Below ``everybody`` voters all are chosen. Below ``least`` voters
    no run passes provisional. A voter attested by mail verifies runs that were published at least ``age_ms`` after its
    attestation. Of 1,000 runs that lead nothing, ``audit_permille`` are verified. A participant that was right
    ``seasoned`` times in a row has fewer runs replicated. Proven fraud bans a participant for ``ban_ms``.
    """

    committee: int = DEFAULT_NETWORK.verify_committee
    quorum: int = DEFAULT_NETWORK.verify_quorum
    everybody: int = DEFAULT_NETWORK.verify_everybody
    least: int = DEFAULT_NETWORK.verify_least
    patience_ms: int = DEFAULT_NETWORK.verify_patience_ms
    age_ms: int = DEFAULT_NETWORK.verify_age_ms
    audit_permille: int = DEFAULT_NETWORK.verify_audit_permille
    seasoned: int = DEFAULT_NETWORK.verify_seasoned
    ban_ms: int = DEFAULT_NETWORK.verify_ban_ms


@lru_cache(maxsize=64)
def network_rules(network: Network) -> VerificationRules:
    """The constants of a network, as rules."""
    return VerificationRules(
        **{field.name: getattr(network, f"verify_{field.name}") for field in fields(VerificationRules)}
    )


def question(run: bytes, stage: str, round_number: int) -> bytes:
    """The function's input for a run, a stage and a round (0, or more after a dispute)."""
    return hashlib.sha256(_DOMAIN + run + stage.encode() + round_number.to_bytes(4, "big")).digest()


def expected(rules: VerificationRules, round_number: int, waited_ms: int) -> int:
    """How many voters are to be chosen: three times as many in round 1, twice as many for each ``patience_ms``."""
    doublings: int = min(max(waited_ms, 0) // rules.patience_ms, 16)
    return int(rules.committee * 3**round_number) << doublings


def is_chosen(output: bytes, *, chosen: int, voters: int, devices: int, rules: VerificationRules) -> bool:
    """Whether a device with the VRF output ``output`` is chosen, where ``chosen`` of ``voters`` are expected to be.

    The devices of a participant share its chance: more machines are no more draws.
    """
    if voters < rules.everybody:
        return True
    lot = int.from_bytes(output, "big")
    return lot * voters * max(devices, 1) < chosen << (8 * OUTPUT_BYTES)


def seeds(output: bytes, count: int) -> list[int]:
    """The seeds of a verifier's pairs, below 2**63. They follow from its proof, so nobody can choose them."""
    return _numbers(_SEEDS, output, count)


def text_seeds(output: bytes, count: int) -> list[int]:
    """The seeds of the new texts and worlds of a verifier's pairs, below 2**63.

    A program in training knows its own seed. The new text must not follow from that seed, or the program could write
    the text itself.
    """
    return _numbers(_TEXTS, output, count)


def challenge_draw(output: bytes) -> bytes:
    """The bytes that draw a verifier's challenges: nobody can choose them, everybody can repeat the draw."""
    return hashlib.sha256(_CHALLENGES + output).digest()


def _numbers(domain: bytes, output: bytes, count: int) -> list[int]:
    digests = (hashlib.sha256(domain + output + number.to_bytes(4, "big")).digest() for number in range(count))
    return [int.from_bytes(digest[:8], "big") >> 1 for digest in digests]


def is_audited(seed: bytes, run: bytes, *, voters: int, rules: VerificationRules) -> bool:
    """Whether the device with this secret audits a run that leads nothing.

    Of 1,000 such runs, ``audit_permille`` are to be verified. That share is divided among the possible verifiers. A
    keyed hash of the run's id draws: only this device knows it, and the run's author cannot influence it.
    """
    lot = int.from_bytes(hmac.digest(seed, _AUDIT + run, "sha256")[:8], "big")
    return lot * 1000 * max(min(voters - 1, rules.committee), 1) < rules.audit_permille << 64


def is_replicated(run: bytes, outputs: Sequence[bytes], *, consecutive_valid: int, rules: VerificationRules) -> bool:
    """Whether a run that would lead nothing is replicated.

    ``consecutive_valid`` is how often its author was right in a row. Below ``seasoned`` times every run is replicated,
    above that one in so many, never fewer than one in ten. The proofs of its evaluators (``outputs``) draw: nobody can
    choose them, and every node has the same.
    """
    if consecutive_valid < rules.seasoned:
        return True
    lot = hashlib.sha256(_REPLICATED + run + b"".join(outputs)).digest()[:8]
    return int.from_bytes(lot, "big") * min(consecutive_valid, LEAST_REPLICATED) < 1 << 64
