"""The constants that all peers of one network share, and the name that stands for them. Pure."""

from __future__ import annotations

import hashlib
from dataclasses import asdict, dataclass, fields
from functools import cached_property

from autoresearch.records.encoding import encode

DAY_MS = 86_400_000
# All others came after the first networks were founded: they are left out of the id at their default, so that it stays.
EARLY = frozenset({"name", "record_bytes", "ahead_ms", "start_ms", "per_day_seq", "per_day", "per_author"})


@dataclass(frozen=True)
class Network:
    """A network's constants. Peers whose constants differ are in different networks, because ``id`` differs.

    ``nonce``: 16 random bytes from the founding, so that two networks of one name differ; none for the built-in one.
    ``record_bytes``: the largest record. ``ahead_ms``: how far ahead of the clock here a record's time may be.
    ``start_ms``: the earliest time, UTC. ``per_day_seq``, ``per_day``, ``per_author``: how many records are kept
    for one author, UTC day and sequence number; one author and day; one author. See :mod:`autoresearch.log.quota`.
    ``tag_memory_bytes`` and ``tag_passes``: what the tag of a mailbox costs, so that all make the same (Argon2id, RFC
    9106). ``domain_voices``: how many mailboxes of one domain, unless it serves everybody, count at a time.
    ``unattested``: how many records are kept of all authors together whom the network does not name, where it names
    any.
    ``verify_…``: how many verify what and who counts, see :class:`autoresearch.verification.Rules`.
    """

    name: str
    record_bytes: int = 16_384
    ahead_ms: int = 600_000
    start_ms: int = 1_767_225_600_000  # 2026-01-01
    per_day_seq: int = 4
    per_day: int = 16_384
    per_author: int = 1_000_000
    nonce: bytes = b""
    tag_memory_bytes: int = 64 << 20
    tag_passes: int = 3
    domain_voices: int = 3
    verify_committee: int = 9
    verify_quorum: int = 3
    verify_everybody: int = 10
    verify_least: int = 4
    verify_patience_ms: int = 1_800_000
    verify_age_ms: int = DAY_MS
    verify_audit_permille: int = 20
    verify_seasoned: int = 10
    verify_ban_ms: int = 180 * DAY_MS
    unattested: int = 65_536

    @cached_property
    def id(self) -> bytes:
        """16 bytes that every record of the network carries: SHA-256 of the encoded constants and the nonce, cut."""
        constants = asdict(self)
        for field in fields(self):
            if field.name not in EARLY and constants[field.name] == field.default:
                del constants[field.name]
        return hashlib.sha256(encode(constants)).digest()[:16]


DEFAULT_NETWORK = Network(name="commons")
