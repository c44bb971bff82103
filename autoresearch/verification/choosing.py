"""Who verifies what: private sortition by a verifiable random function, and the seeds that follow from it. Pure.

Nobody knows beforehand who will be chosen, the author least of all, and everybody can check it afterwards: the
verifier's proof goes into its record.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Sequence
from dataclasses import dataclass, fields
from functools import lru_cache

from autoresearch.records import DEFAULT_NETWORK, Network
from autoresearch.verification import ecvrf

_DOMAIN = b"autoresearch/verify/1"
_SEEDS = b"autoresearch/verify-seeds/1"
_TEXTS = b"autoresearch/verify-texts/1"
_CHALLENGES = b"autoresearch/challenges/1"
_AUDIT = b"autoresearch/audit/1"
_REPLICATED = b"autoresearch/replicated/1"
# Of those whose authors were always right at least one in so many runs is replicated.
LEAST_REPLICATED = 10


@dataclass(frozen=True, slots=True)
class Rules:
    """What all peers of a network hold to when they verify: its constants, without ``verify_``.

    ``quorum`` of the ``committee``, the number of voices expected to be chosen, must have spoken; the committee doubles
    every ``patience_ms`` in which too few did. Below ``everybody`` voices everybody is chosen, below ``least`` nothing
    gets further than provisional. Who is attested by mail verifies nothing that was published before, or less than
    ``age_ms`` after, it was attested. Of a thousand runs that lead nothing ``audit_permille`` are measured anyway.
    Who was right ``seasoned`` times in a row has fewer of its runs replicated. Proven fraud takes a participant's word
    away for ``ban_ms``.
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
def network_rules(network: Network) -> Rules:
    """The rules of a network."""
    return Rules(**{field.name: getattr(network, f"verify_{field.name}") for field in fields(Rules)})


def question(run: bytes, stage: str, round_number: int) -> bytes:
    """The function's input for a run, a stage and a round (0, or more after a dispute)."""
    return hashlib.sha256(_DOMAIN + run + stage.encode() + round_number.to_bytes(4, "big")).digest()


def expected(rules: Rules, round_number: int, waited_ms: int) -> int:
    """How many voices are to be chosen: three times as many after a dispute, twice as many for each wait in vain."""
    doublings: int = min(max(waited_ms, 0) // rules.patience_ms, 16)
    return int(rules.committee * 3**round_number) << doublings


def is_chosen(output: bytes, *, chosen: int, voices: int, devices: int, rules: Rules) -> bool:
    """Whether a device whose proof stands for ``output`` is chosen, where ``chosen`` of ``voices`` are expected to be.

    A participant's devices share its chance, so that more machines are not more lots.
    """
    if voices < rules.everybody:
        return True
    lot = int.from_bytes(output, "big")
    return lot * voices * max(devices, 1) < chosen << (8 * ecvrf.OUTPUT_BYTES)


def seeds(output: bytes, count: int) -> list[int]:
    """The seeds, below 2**63, of a verifier's pairs: drawn by its proof, so that nobody picks them."""
    return _numbers(_SEEDS, output, count)


def text_seeds(output: bytes, count: int) -> list[int]:
    """The seeds, below 2**63, of the new texts that a verifier's pairs are measured on.

    A program in training knows the seed it runs with. It must not follow from that what it will be asked about, or it
    could write that text itself.
    """
    return _numbers(_TEXTS, output, count)


def challenge_draw(output: bytes) -> bytes:
    """What the referee's challenges are drawn with when a verifier asks: nobody picks it, everybody can repeat it."""
    return hashlib.sha256(_CHALLENGES + output).digest()


def _numbers(domain: bytes, output: bytes, count: int) -> list[int]:
    digests = (hashlib.sha256(domain + output + number.to_bytes(4, "big")).digest() for number in range(count))
    return [int.from_bytes(digest[:8], "big") >> 1 for digest in digests]


def is_audited(seed: bytes, run: bytes, *, voices: int, rules: Rules) -> bool:
    """Whether the device with this secret measures a run that leads nothing, all the same.

    Of a thousand such runs ``audit_permille`` are to be measured by somebody: that share is divided among those who
    may. A keyed hash of the run's id draws; nobody else knows it, its author cannot steer it.
    """
    lot = int.from_bytes(hmac.digest(seed, _AUDIT + run, "sha256")[:8], "big")
    return lot * 1000 * max(min(voices - 1, rules.committee), 1) < rules.audit_permille << 64


def is_replicated(run: bytes, outputs: Sequence[bytes], *, consecutive_valid: int, rules: Rules) -> bool:
    """Whether a run that would lead nothing is replicated, where its author was right so many times in a row.

    Always below ``seasoned`` times, then once in so many times, and never less than once in ten. What draws is the
    proofs of those who evaluated it, ``outputs``: nobody chooses them, and everybody has the same.
    """
    if consecutive_valid < rules.seasoned:
        return True
    lot = hashlib.sha256(_REPLICATED + run + b"".join(outputs)).digest()[:8]
    return int.from_bytes(lot, "big") * min(consecutive_valid, LEAST_REPLICATED) < 1 << 64
