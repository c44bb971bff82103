"""The shipped task as a proposer sees it, and made-up memories of runs on it."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any

import pytest

from autoresearch.propose.program.edits import patches_of
from autoresearch.propose.program.guard import names_of
from autoresearch.propose.program.ranges import Draws
from autoresearch.propose.program.space import Space, space_of
from autoresearch.propose.search.evidence import PastRun, gather
from autoresearch.propose.search.moves import anywhere
from autoresearch.propose.search.proposal import SearchProblem
from autoresearch.task.loading import shipped_task
from autoresearch.task.program import source_digest

SHIPPED = shipped_task()
TRAIN, PATCHES, NAMES = SHIPPED.baseline.decode(), patches_of(SHIPPED), names_of(SHIPPED)


def no_source(_: bytes) -> str | None:
    return None


def problem(**changes: Any) -> SearchProblem:
    """The shipped task, or what these changes make of it."""
    return replace(SearchProblem(b"task", TRAIN, "minimize", 0.02, None, no_source, PATCHES), **changes)


def past(
    name: str,
    digest: bytes,
    genome: Mapping[str, Any],
    value: float | None,
    *,
    replicate: int = 0,
    base: bytes | None = None,
) -> PastRun:
    return PastRun(hashlib.sha256(name.encode()).digest(), digest, genome, value, replicate, None, base)


def best_run(problem: SearchProblem, runs: Collection[PastRun]) -> PastRun | None:
    """The first run of the source that leads: its mean over seeds, shrunk, plus a standard error."""
    evidence = gather(runs, direction=problem.direction, noise=problem.noise, floor=problem.floor)
    leader = evidence.leader()
    return None if leader is None else leader.first


def memory(seed: int, count: int, *, space: Space | None = None) -> list[PastRun]:
    """The baseline and random genomes with made-up values: better with a rate near 0.01 and with muon."""
    space = space or space_of(TRAIN, PATCHES)
    draws, noise = Draws(seed.to_bytes(8, "big")), random.Random(seed)
    runs = [past(f"{seed} baseline", source_digest(TRAIN), space.default(), 3.0)]
    for i in range(count):
        genome = anywhere(list(space.parameters.values()), draws)
        digest = hashlib.sha256(repr(sorted(genome.items())).encode()).digest()
        value = 2.0 + abs(float(genome["LR"]) - 0.01) * 20 - 0.3 * bool(genome["+muon"]) + noise.gauss(0, 0.02)
        runs.append(past(f"{seed} {i}", digest, genome, value if space.allows(genome) else None))
    return runs


@pytest.fixture(scope="session")
def space() -> Space:
    return space_of(TRAIN, PATCHES)
