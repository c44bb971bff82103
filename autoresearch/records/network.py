"""The constants that all peers of one network share, and the name that stands for them. Pure."""

from __future__ import annotations

import hashlib
from dataclasses import asdict, dataclass, fields
from functools import cached_property

from autoresearch.records.encoding import encode

DAY_MS = 86_400_000
# What came after the first networks were founded is left out of the id at its default, so that theirs stays.
LATER = ("nonce", "tag_memory_bytes", "tag_passes", "domain_voices")


@dataclass(frozen=True)
class Network:
    """A network's constants. Peers whose constants differ are in different networks, because ``id`` differs.

    ``nonce``: 16 random bytes from the founding, so that two networks of one name differ; none for the built-in one.
    ``record_bytes``: the largest record. ``ahead_ms``: how far ahead of the clock here a record's time may be.
    ``start_ms``: the earliest time, UTC. ``per_day_seq``, ``per_day``, ``per_author``: how many records are kept
    for one author, UTC day and sequence number; one author and day; one author. See :mod:`autoresearch.log.quota`.
    ``tag_memory_bytes`` and ``tag_passes``: what the tag of a mailbox costs, so that all make the same (Argon2id, RFC
    9106). ``domain_voices``: how many mailboxes of one domain, unless it serves everybody, count at a time.
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

    @cached_property
    def id(self) -> bytes:
        """16 bytes that every record of the network carries: SHA-256 of the encoded constants and the nonce, cut."""
        constants = asdict(self)
        for field in fields(self):
            if field.name in LATER and constants[field.name] == field.default:
                del constants[field.name]
        return hashlib.sha256(encode(constants)).digest()[:16]


DEFAULT_NETWORK = Network(name="commons")
