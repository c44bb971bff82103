"""When a seed more is worth more than a new idea: before much is built on a lucky run.

While the search makes large steps, its leaders soon fall to better ones and their luck does not matter. So a
leader earns its seeds by what is built on it: the first after a few children, the next after as many again.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from autoresearch.proposers.evidence import Candidate, Evidence


@dataclass(frozen=True, slots=True)
class Replication:
    """The policy; the defaults were chosen by trying others on the shipped task."""

    children: int = 6
    """So many sources must start from the apparent best for each further seed of it."""
    most: int = 4
    """Seeds that the apparent best gets."""
    share: float = 0.2
    """Of all runs, at most this share are replicates."""


SEEDLESS = Replication(most=1)
"""Of a task whose author says that the seed changes nothing."""


def wants_replicate(evidence: Evidence, in_flight: Mapping[bytes, int], policy: Replication) -> Candidate | None:
    """The source whose next seed should be run now, or None. ``in_flight`` counts live claims by source."""
    working = evidence.working
    first = next((candidate for candidate in working if candidate.tier is not None), None)
    if first is None:
        return None
    seeds = first.runs + in_flight.get(first.source_digest, 0)
    spent = sum(candidate.runs - 1 for candidate in working) + sum(in_flight.values())
    if spent >= policy.share * sum(candidate.runs for candidate in working):
        return None
    return first if seeds < min(policy.most, 1 + first.children // policy.children) else None
