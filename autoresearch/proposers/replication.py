"""When a seed more is worth more than a new idea: before a lucky run leads everybody astray."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from autoresearch.proposers.evidence import Candidate, Evidence


@dataclass(frozen=True, slots=True)
class Replication:
    """The policy; the defaults were chosen on real runs of the shipped task."""

    start: int = 10
    """Working sources before any is repeated: early leaders do not last."""
    most: int = 3
    """Seeds that the apparent best gets."""
    share: float = 0.25
    """Of all runs, at most this share are replicates."""
    certain: float = 3.0
    """A lead of so many standard errors needs no further seed."""


def wants_replicate(evidence: Evidence, in_flight: Mapping[bytes, int], policy: Replication) -> Candidate | None:
    """The source whose next seed should be run now, or None. ``in_flight`` counts live claims by source."""
    working = evidence.working
    if len(working) < policy.start:
        return None
    first, second = working[0], working[1]
    seeds = first.runs + in_flight.get(first.source_digest, 0)
    spent = sum(candidate.runs - 1 for candidate in working) + sum(in_flight.values())
    if seeds >= policy.most or spent >= policy.share * sum(candidate.runs for candidate in working):
        return None
    error = evidence.noise * math.sqrt(1 / first.runs + 1 / second.runs)
    return first if second.mean - first.mean < policy.certain * error or first.runs == 1 else None
