"""Whose word counts in a network: which root keys attest, and how many of them it takes. Pure."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Trust:
    """Whom a network believes about who is who.

    ``attestors`` are the root keys whose attestations count, ``needed`` is how many of them must have attested a
    participant, and ``participants`` are root keys that count as attested without that: named by hand, for groups
    whose members know each other. ``founders`` are root keys that count likewise, and whose admissions in the log let
    others count.
    """

    attestors: frozenset[bytes] = frozenset()
    needed: int = 2
    participants: frozenset[bytes] = frozenset()
    founders: frozenset[bytes] = frozenset()

    @property
    def names_anybody(self) -> bool:
        """Whether the network says whose word counts; otherwise all words are alike."""
        return bool(self.attestors or self.participants or self.founders)
