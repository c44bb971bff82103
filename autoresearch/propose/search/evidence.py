"""What a set of runs says about each source: seeds pooled, luck taken out. Smaller scores are better here.

Knows no genes and no proposals; a value that nobody can have measured counts as a failure.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from typing import Literal

from autoresearch.propose.program.ranges import Value
from autoresearch.task.model import possible_value
from autoresearch.text import sign_of

# Without any measured noise, one seed is taken to move the value by this share of it.
DEFAULT_NOISE = 0.01
# How many seed pairs the task's own noise figure is worth against pairs seen in the runs.
NOISE_WEIGHT = 4.0


@dataclass(frozen=True, slots=True)
class PastRun:
    """One published run, as a proposer sees it."""

    id: bytes
    source_digest: bytes
    genome: Mapping[str, Value]
    """Constants and ``+patch`` switches relative to ``base``; empty when unknown (a hand-written source)."""
    value: float | None
    """The measured metric; None when it failed, for whatever reason."""
    replicate: int
    parent: bytes | None
    base: bytes | None
    """Canonical digest of the source that the genome changes; None is the task's baseline."""
    tier: int | None = 0
    """Among what may be built upon the smallest comes first; None: never."""
    believed: bool = True
    """Whether its value counts as evidence; when not, it is only known to have been tried."""
    fault: str = ""
    """The error of a run that failed; runs with one error, numbers aside, failed for one cause."""
    preferred: float | None = None
    """Where this is the run that the log says to build upon: the value that it has there."""
    seedless: bytes | None = None
    """The digest of its source without the seeds that it fixes, where it fixes any."""

    @property
    def idea(self) -> bytes:
        """What the runs of sources that differ in their seeds alone have in common."""
        return self.seedless or self.source_digest


@dataclass(frozen=True, slots=True)
class Candidate:
    """All that is known of one source, whatever the seeds in it are: its runs over seeds, as one."""

    source_digest: bytes
    first: PastRun
    """The run that the log says to build upon, else that with the smallest replicate number, the discovery."""
    runs: int
    """How many seeds gave a value."""
    mean: float
    """Mean over these seeds, smaller is better; infinite when it mostly fails."""
    estimate: float
    """The mean pulled towards the better half of all sources by as much as luck explains."""
    cautious: float
    """The estimate with its standard error added: what ranks the leader."""
    children: int
    """How many other sources start from it."""
    tier: int | None = 0
    """The first tier among its runs; None when nothing may be built upon it."""


@dataclass(frozen=True, slots=True)
class SearchEvidence:
    """Every source that was tried, best estimate first, and the standard deviation over seeds.

    ``noise`` is what the search reckons with, where need be an assumed one. ``spread`` is the same as the task or the
    runs have it; None: nobody knows it.
    """

    candidates: tuple[Candidate, ...]
    noise: float
    spread: float | None = None

    @property
    def working(self) -> list[Candidate]:
        """The sources that have a value."""
        return [candidate for candidate in self.candidates if candidate.mean < math.inf]

    @property
    def leaders(self) -> list[Candidate]:
        """The sources that may be built upon: what the log prefers, then by tier and what is left beyond luck."""
        return sorted((candidate for candidate in self.working if candidate.tier is not None), key=_leading)

    def leader(self) -> Candidate | None:
        """The source that leads, or None before anything worked that may be built upon."""
        return next(iter(self.leaders), None)


def _leading(candidate: Candidate) -> tuple[bool, float, float, bytes]:
    # First what the log says to build upon.
    return candidate.first.preferred is None, by_tier(candidate.tier), candidate.cautious, candidate.source_digest


def by_tier(tier: int | None) -> float:
    """A tier as a number to sort by: what is never built upon comes last."""
    return math.inf if tier is None else tier


def gather(
    runs: Collection[PastRun],
    *,
    direction: Literal["minimize", "maximize"],
    noise: float | None,
    floor: float | None,
) -> SearchEvidence:
    """Pool the runs that are believed by source. The order in which they come does not matter."""
    runs = [run for run in runs if run.believed]
    sign = sign_of(direction)

    def score(value: object) -> float | None:
        possible = possible_value(value, sign=sign, floor=floor)
        return None if possible is None else sign * possible

    grouped: dict[bytes, list[PastRun]] = {}
    for run in sorted(runs, key=_first):
        grouped.setdefault(run.idea, []).append(run)
    values = {idea: _by_seed(group, score) for idea, group in grouped.items()}
    deviation, measured = _noise(list(values.values()), noise)
    means = sorted(_mean(seeds) for seeds in values.values() if _mean(seeds) < math.inf)
    better = means[: max(2, (len(means) + 1) // 2)]
    centre = math.fsum(better) / len(better) if better else 0.0
    spread = math.fsum((mean - centre) ** 2 for mean in better) / len(better) if better else 0.0
    # How many sources have their first run's parent among the runs of each source.
    source_of = {run.id: run.idea for run in runs}
    children: dict[bytes, int] = {}
    for idea, group in grouped.items():
        parent = None if group[0].parent is None else source_of.get(group[0].parent)
        if parent is not None and parent != idea:
            children[parent] = children.get(parent, 0) + 1
    candidates = [
        replace(
            _candidate(group[0], values[idea], deviation, centre, spread, children.get(idea, 0)),
            tier=min((run.tier for run in group), key=by_tier),
        )
        for idea, group in grouped.items()
    ]
    return SearchEvidence(tuple(sorted(candidates, key=lambda c: (c.estimate, c.source_digest))), deviation, measured)


def _first(run: PastRun) -> tuple[object, ...]:
    """Sorts runs so that the one that stands for its source comes first: of several sources that without a parent."""
    stands = (run.preferred is None, run.seedless is not None and run.parent is not None)
    return (run.idea, *stands, run.replicate, not run.genome, run.id)


def _by_seed(group: list[PastRun], score: Callable[[object], float | None]) -> list[float | None]:
    """One value per seed; a seed measured more than once has the median of its values.

    Other seeds in a source are other seeds. Where a source fixes its own, equal values of other replicates are one. Of
    what the log says to build upon, no failure elsewhere says that it does not work.
    """
    seeds: dict[tuple[bytes, int], list[float | None]] = {}
    for run in group:
        seeds.setdefault((run.source_digest, run.replicate), []).append(score(run.value))
    result: list[float | None] = []
    fixed = set[tuple[bytes, float]]()
    for (source, _), measured in seeds.items():
        good = sorted(value for value in measured if value is not None)
        value = good[(len(good) - 1) // 2] if 2 * len(good) > len(measured) else None
        if group[0].seedless is not None and value is not None:
            if (source, value) in fixed:
                continue
            fixed.add((source, value))
        result.append(value)
    if _mean(result) == math.inf and (preferred := score(group[0].preferred)) is not None:
        return [preferred]
    return result


def _mean(seeds: list[float | None]) -> float:
    """The mean of the seeds that worked; infinite when half of them or more failed."""
    good = [value for value in seeds if value is not None]
    return math.fsum(good) / len(good) if 2 * len(good) > len(seeds) else math.inf


def _noise(groups: list[list[float | None]], declared: float | None) -> tuple[float, float | None]:
    """The standard deviation over seeds: the task's figure, corrected by what replicates show; an assumed one else.

    Beside it the same without anything assumed; None where neither task nor replicates have any.
    """
    squares, pairs, typical = 0.0, 0, []
    for seeds in groups:
        good = [value for value in seeds if value is not None]
        if good:
            mean = math.fsum(good) / len(good)
            typical.append(abs(mean))
            squares += math.fsum((value - mean) ** 2 for value in good)
            pairs += len(good) - 1
    is_stated = declared is not None and 0 < declared < math.inf
    spread = math.sqrt(squares / pairs) if pairs else 0.0 if declared == 0 else None
    if declared is None or not is_stated:
        declared = DEFAULT_NOISE * sorted(typical)[len(typical) // 2] if typical else 0.0
    noise = math.sqrt((NOISE_WEIGHT * declared**2 + squares) / (NOISE_WEIGHT + pairs))
    return noise, noise if is_stated else spread


def _candidate(
    first: PastRun,
    seeds: list[float | None],
    noise: float,
    centre: float,
    spread: float,
    children: int,
) -> Candidate:
    mean, digest = _mean(seeds), first.source_digest
    if mean == math.inf:
        return Candidate(digest, first, 0, mean, mean, mean, children)
    count = sum(value is not None for value in seeds)
    variance = noise**2 / count
    trust = spread / (spread + variance) if spread + variance > 0 else 1.0
    estimate = mean if mean > centre else trust * mean + (1 - trust) * centre
    return Candidate(digest, first, count, mean, estimate, estimate + math.sqrt(variance * trust), children)
