"""The base that the search stands on: the task's baseline, or a hand-written source that leads.

What was tried on another base is weak knowledge here: its genomes are read as far as they make sense, its
scores are shifted so that the best of that base is as good as the best of this one, and it weighs half.
"""

from __future__ import annotations

from dataclasses import dataclass

from autoresearch.errors import UsageError
from autoresearch.proposers.evidence import Candidate, Evidence
from autoresearch.proposers.moves import Trial
from autoresearch.proposers.proposal import Problem
from autoresearch.proposers.space import Space, space_of
from autoresearch.tasks import source_digest

# How many leading sources are asked for their base before the search stays on the baseline.
LEADERS = 5
FOREIGN_WEIGHT = 0.5


@dataclass(frozen=True, slots=True)
class Base:
    """A base source, opened as a search space; ``base`` is None for the task's baseline."""

    space: Space
    base: bytes | None


def choose_ground(problem: Problem, evidence: Evidence, baseline: bytes) -> Base:
    """The base of the leading source whose base is at hand and can be changed; the baseline when there is none."""
    first_runs = {candidate.source_digest: candidate.first.id for candidate in evidence.candidates}
    for leader in evidence.leaders[:LEADERS]:
        base = base_of(leader, baseline)
        if base is None:
            break
        source = problem.source_of(first_runs[base]) if base in first_runs else None
        if source is not None and is_source(source, base):
            space = space_of(source)
            if space.parameters:
                return Base(space, base)
    return Base(space_of(problem.baseline), None)


def base_of(candidate: Candidate, baseline: bytes) -> bytes | None:
    """The base of a source: the one its genome changes, or itself when it was written by hand."""
    if candidate.source_digest == baseline:
        return None
    base = candidate.first.base if candidate.first.genome else candidate.source_digest
    return None if base == baseline else base


def trials(ground: Base, evidence: Evidence, baseline: bytes) -> tuple[list[Trial], list[Trial]]:
    """What was tried, as genomes of this space: what worked, best first, and what failed."""
    best: dict[bytes | None, float] = {}
    for candidate in evidence.working:
        best.setdefault(base_of(candidate, baseline), candidate.estimate)
    working: list[Trial] = []
    failed: list[Trial] = []
    for candidate in evidence.candidates:
        base = base_of(candidate, baseline)
        own = base == ground.base
        itself = candidate.source_digest == (ground.base or baseline)
        if not own and not candidate.first.genome:
            continue
        genome = ground.space.default() if itself else ground.space.read(candidate.first.genome)
        shift = 0.0 if own or ground.base not in best else best[ground.base] - best.get(base, 0.0)
        weight = 1.0 if own else FOREIGN_WEIGHT
        trial = Trial(genome, candidate.first, candidate.estimate + shift, weight, candidate.tier)
        (failed if candidate.runs == 0 else working).append(trial)
    return sorted(working, key=lambda t: (t.score, t.weight < 1, t.run.source_digest)), failed


def is_source(source: str, digest: bytes) -> bool:
    """Whether the text is the source of this canonical digest."""
    try:
        return source_digest(source) == digest
    except UsageError:
        return False
