"""Peers that propose in one round: all different, and further apart for knowing each other's claims."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from statistics import fmean

import pytest

from autoresearch.propose.program.edits import patches_of
from autoresearch.propose.program.ranges import Draws
from autoresearch.propose.program.space import Genome, Parameter, space_of
from autoresearch.propose.search.moves import anywhere
from autoresearch.propose.search.proposal import LiveClaim, SearchProblem, SearchProposal
from autoresearch.propose.search.search import propose
from autoresearch.task.loading import shipped_task
from autoresearch.task.program import source_digest
from benchmarks.long_history import NOISE, history, landscape
from tests.propose.conftest import no_source, past

PEERS = 8


def proposals(search: int, runs: int, *, claims_seen: bool) -> list[SearchProposal]:
    """One of each peer on a synthetic landscape; the claims of those before it are seen, or none of them yet."""
    task, dice = shipped_task(), random.Random(search)
    problem = SearchProblem(
        task.digest, task.baseline.decode(), "minimize", NOISE, None, lambda _: None, patches_of(task)
    )
    past_runs = history(search, runs, landscape(search, dice), dice)
    made: list[SearchProposal] = []
    for peer in range(PEERS):
        claims = (
            [LiveClaim(proposal.source_digest, proposal.replicate, proposal.genome) for proposal in made]
            if claims_seen
            else []
        )
        made.append(propose(problem, past_runs, claims, worker=f"{peer}", counter=0))
    return made


def apart(made: list[SearchProposal]) -> float:
    """The mean distance of a program to the nearest of the others, in widths of a range."""
    parameters = list(space_of(shipped_task().baseline.decode(), patches_of(shipped_task())).parameters.values())
    return _nearest([proposal.genome for proposal in made], parameters)


def _nearest(genomes: Sequence[Genome], parameters: Sequence[Parameter]) -> float:
    def distance(first: Genome, second: Genome) -> float:
        return sum(
            abs(each.place(first[each.name]) - each.place(second[each.name]))
            if each.ordered
            else 0.5 * (first[each.name] != second[each.name])
            for each in parameters
        )

    return fmean(min(distance(genome, other) for other in genomes if other is not genome) for genome in genomes)


@pytest.mark.slow
@pytest.mark.parametrize("runs", [2, pytest.param(60, marks=pytest.mark.slow)])
def test_peers_of_one_round_propose_different_programs(runs: int) -> None:
    rounds = {seen: [proposals(search, runs, claims_seen=seen) for search in range(2)] for seen in (True, False)}
    for made in (*rounds[True], *rounds[False]):
        assert len({proposal.source_digest for proposal in made}) == PEERS
    seen, unseen = (fmean(map(apart, rounds[each])) for each in (True, False))
    print(f"{runs} runs known: the nearest is {seen:.2f} away, and {unseen:.2f} where no claim is seen")
    assert seen > unseen > 1.25


WAVES = """
RATE = 0.01   # log [0.0001, 1.0]
DECAY = 0.5   # float [0.0, 1.0]
"""


@pytest.mark.slow
def test_a_round_in_a_small_space_does_not_crowd_around_one_point() -> None:
    space = space_of(WAVES)
    rate, decay = parameters = list(space.parameters.values())

    def proposed(draws: Draws) -> list[Genome]:
        past_runs = []
        for genome in [space.default(), *(anywhere(parameters, draws) for _ in range(23))]:
            value = math.sin(7 * rate.place(genome["RATE"])) + 0.3 * math.cos(9 * decay.place(genome["DECAY"]))
            past_runs.append(past(f"{genome}", source_digest(space.build(genome) or ""), genome, value))
        problem = SearchProblem(b"small", WAVES, "minimize", 0.0, None, no_source)
        made: list[SearchProposal] = []
        for peer in range(8):
            claims = [LiveClaim(proposal.source_digest, proposal.replicate, proposal.genome) for proposal in made]
            made.append(propose(problem, past_runs, claims, worker=f"{peer}", counter=0))
        return [proposal.genome for proposal in made]

    assert fmean(_nearest(proposed(Draws(b"round", bytes([i]))), parameters) for i in range(4)) > 0.1


@pytest.mark.parametrize("count", [5, 12])
def test_a_first_round_comes_from_the_middle_of_the_whole_space(count: int) -> None:
    text = "".join(
        f"X{at} = 0.01  # log [0.0001, 1.0]\n" if at % 2 else f"X{at} = 1.0  # float [0.0, 1.0]\n"
        for at in range(count)
    )
    space, made = space_of(text), list[SearchProposal]()
    problem = SearchProblem(b"first", text, "minimize", 0.0, None, no_source)
    for peer in range(30):
        claims = [LiveClaim(proposal.source_digest, proposal.replicate, proposal.genome) for proposal in made]
        made.append(propose(problem, [], claims, worker=f"{peer}", counter=0))

    whole = [proposal for proposal in made if proposal.kind == "random"]
    off = fmean(
        abs(each.place(proposal.genome[each.name]) - 0.5) for proposal in whole for each in space.parameters.values()
    )
    assert made[0].kind == "baseline"
    assert 20 < len(whole) < 29, "a few are steps from the first program"
    assert off == pytest.approx(1 / 6, abs=0.03), "1/4 if each place were equally likely"
