"""Peers that propose in one round: all different, and further apart for knowing each other's claims."""

from __future__ import annotations

import random
from statistics import fmean

import pytest

from autoresearch.propose.program.edits import patches_of
from autoresearch.propose.program.space import space_of
from autoresearch.propose.search.proposal import LiveClaim, Problem, Proposal
from autoresearch.propose.search.search import propose
from autoresearch.task.loading import shipped_task
from benchmarks.long_history import NOISE, history, landscape

PEERS = 16


def proposals(search: int, runs: int, *, claims_seen: bool) -> list[Proposal]:
    """One of each peer on a synthetic landscape; the claims of those before it are seen, or none of them yet."""
    task, dice = shipped_task(), random.Random(search)
    problem = Problem(task.digest, task.baseline.decode(), "minimize", NOISE, None, lambda _: None, patches_of(task))
    known = history(search, runs, landscape(search, dice), dice)
    made: list[Proposal] = []
    for peer in range(PEERS):
        claims = [LiveClaim(one.source_digest, one.replicate, one.genome) for one in made] if claims_seen else []
        made.append(propose(problem, known, claims, worker=f"{peer}", counter=0))
    return made


def apart(made: list[Proposal]) -> float:
    """The mean distance of a program to the nearest of the others, in widths of a range."""
    parameters = space_of(shipped_task().baseline.decode(), patches_of(shipped_task())).parameters.values()

    def distance(one: Proposal, other: Proposal) -> float:
        return sum(
            abs(each.place(one.genome[each.name]) - each.place(other.genome[each.name]))
            if each.ordered
            else 0.5 * (one.genome[each.name] != other.genome[each.name])
            for each in parameters
        )

    return fmean(min(distance(one, other) for other in made if other is not one) for one in made)


@pytest.mark.parametrize("runs", [2, pytest.param(60, marks=pytest.mark.slow)])
def test_peers_of_one_round_propose_different_programs(runs: int) -> None:
    rounds = {seen: [proposals(search, runs, claims_seen=seen) for search in range(3)] for seen in (True, False)}
    for made in (*rounds[True], *rounds[False]):
        assert len({one.source_digest for one in made}) == PEERS
    seen, unseen = (fmean(map(apart, rounds[each])) for each in (True, False))
    print(f"{runs} runs known: the nearest is {seen:.2f} away, and {unseen:.2f} where no claim is seen")
    assert seen > unseen > 1.0
