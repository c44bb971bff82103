"""Whom the founders of a network admitted: a function of the set of records, in whatever order they came. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

# How many admitted participants count, as many as a manifest may name.
ADMITTED_MAX = 256


class Decision(NamedTuple):
    """A founder's word on a participant, by its record. Of several the greatest counts: the latest, in this order."""

    time_ms: int
    seq: int
    id: bytes
    founder: bytes
    participant: bytes
    admits: bool
    token: bytes | None = None


def latest_decisions(said: Iterable[Decision]) -> dict[bytes, Decision]:
    """By participant what the founders decided last. Forks of a founder's device change nothing: all records count."""
    latest: dict[bytes, Decision] = {}
    for decision in said:
        before = latest.get(decision.participant)
        latest[decision.participant] = decision if before is None else max(before, decision)
    return latest


def admitted(latest: Mapping[bytes, Decision]) -> frozenset[bytes]:
    """The participants that count by these decisions: of too many those whose admission is the earliest."""
    admitting = sorted(decision for decision in latest.values() if decision.admits)
    return frozenset(decision.participant for decision in admitting[:ADMITTED_MAX])
