"""Seed luck is not taken for progress, and repeats do not eat the search."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from autoresearch.propose.program.space import space_of
from autoresearch.propose.search.evidence import PastRun, gather
from autoresearch.propose.search.proposal import LiveClaim
from autoresearch.propose.search.search import propose
from autoresearch.task.program import source_digest
from autoresearch.task.seeds import seedless_digest, stated_seedless
from tests.propose.conftest import PATCHES, TRAIN, best_run, memory, past, problem

SPACE = space_of(TRAIN, PATCHES)


SEEDED = f"{TRAIN}\nSEED = 3\n"


def led(children: int, baseline: str = TRAIN) -> list[PastRun]:
    """A memory in which one run leads by far and some worse sources start from it."""
    runs = memory(1, 30)
    space = space_of(baseline, PATCHES)
    genome = {**space.default(), "LR": 0.01}
    source = space.build(genome)
    assert source is not None
    leader = past("leader", source_digest(source), genome, 1.2)
    leader = replace(leader, seedless=stated_seedless(source))
    young = [past(f"c{i}", bytes([i]) * 32, {**genome, "DEPTH": 4}, 1.3 + i) for i in range(children)]
    return [*runs, leader, *(replace(run, parent=leader.id) for run in young)]


def test_a_leader_is_repeated_once_something_is_built_on_it() -> None:
    assert propose(problem(), led(0), [], worker="w", counter=6).kind != "replicate"

    again = propose(problem(), led(6), [], worker="w", counter=6)

    assert (again.kind, again.replicate) == ("replicate", 1)
    assert (again.genome["LR"], again.change) == (0.01, {})
    assert again.parent == past("leader", b"", {}, None).id
    assert SPACE.build(again.genome) == again.source


def test_where_the_seed_changes_nothing_no_program_is_repeated() -> None:
    still = replace(problem(), noise=0.0)

    assert propose(still, led(6), [], worker="w", counter=6).kind != "replicate"


def test_a_repeat_that_runs_already_is_not_asked_for_twice() -> None:
    runs = led(8)
    first = propose(problem(), runs, [], worker="w", counter=6)
    claim = LiveClaim(first.source_digest, first.replicate, first.genome)

    second = propose(problem(), runs, [claim], worker="w", counter=6)

    assert (first.kind, second.kind == "replicate") == ("replicate", False)


@pytest.mark.slow
def test_a_leader_that_fixes_its_seeds_is_repeated_with_others_and_stays_one_program() -> None:
    runs, task = led(25, SEEDED), replace(problem(), baseline=SEEDED)
    base = past("base", source_digest(SEEDED), {}, 1.9)
    runs.append(replace(base, seedless=stated_seedless(SEEDED)))
    leader = next(run for run in runs if run.value == 1.2)
    for number in (1, 2, 3):
        again = propose(task, runs, [], worker="w", counter=6)
        assert (again.kind, again.replicate) == ("replicate", number)
        assert again.source_digest == source_digest(again.source) != leader.source_digest
        assert seedless_digest(again.source) == leader.seedless
        claim = LiveClaim(again.source_digest, again.replicate, again.genome)
        assert propose(task, runs, [claim], worker="w", counter=6).source_digest != again.source_digest
        run = past(f"again {number}", again.source_digest, again.genome, 1.2 + number / 1000, replicate=number)
        runs.append(replace(run, seedless=stated_seedless(again.source)))
    evidence = gather(runs, direction="minimize", noise=None, floor=None)
    candidate = next(candidate for candidate in evidence.candidates if candidate.first.id == leader.id)
    assert (candidate.runs, candidate.source_digest) == (4, leader.source_digest)
    assert propose(task, runs, [], worker="w", counter=6).kind != "replicate"


def test_equal_values_of_a_program_that_fixes_its_seed_say_nothing_of_the_noise() -> None:
    source = "SEED = 3"
    fixed = [past(f"r{k}", source_digest(source), {}, 1.2, replicate=k) for k in range(3)]
    fixed = [replace(run, seedless=stated_seedless(source)) for run in fixed]
    evidence = gather(fixed, direction="minimize", noise=None, floor=None)
    assert (evidence.candidates[0].runs, evidence.spread) == (1, None)
    assert evidence.noise == pytest.approx(0.012)
    other = past("other", source_digest("SEED = 4"), {}, 1.3)
    evidence = gather(
        [*fixed, replace(other, seedless=stated_seedless("SEED = 4"))], direction="minimize", noise=None, floor=None
    )
    assert evidence.candidates[0].runs == 2
    assert evidence.spread == pytest.approx(0.0707, abs=1e-3)


def test_a_leader_gets_only_so_many_seeds() -> None:
    runs = led(25)
    for _ in range(8):
        p = propose(problem(), runs, [], worker="w", counter=6)
        if p.kind != "replicate":
            break
        runs.append(past(f"again {p.replicate}", p.source_digest, p.genome, 1.2, replicate=p.replicate))

    assert sum(run.replicate > 0 for run in runs) == 3


def test_a_lucky_run_does_not_outrank_what_many_seeds_show() -> None:
    steady = [past(f"s{k}", b"s" * 32, {"LR": 0.01}, 1.0 + k / 1000, replicate=k) for k in range(4)]
    lucky = past("l", b"l" * 32, {"LR": 0.02}, 0.997)

    best = best_run(problem(), [*memory(3, 20), *steady, lucky])

    assert best is not None
    assert best.source_digest == b"s" * 32


def test_the_noise_is_learnt_from_repeats() -> None:
    draws = random.Random(1)
    runs = [
        past(f"{i} {k}", bytes([i]) * 32, {"LR": 0.01}, 2.0 + draws.gauss(0, 0.3), replicate=k)
        for i in range(20)
        for k in range(5)
    ]

    evidence = gather(runs, direction="minimize", noise=0.02, floor=None)

    assert 0.25 < evidence.noise < 0.35


@pytest.mark.slow
def test_better_and_worse_turn_round_with_the_direction() -> None:
    runs = memory(4, 40)
    turned = [replace(run, value=None if run.value is None else -run.value) for run in runs]

    up = propose(problem(direction="maximize"), turned, [], worker="w", counter=1)
    down = propose(problem(), runs, [], worker="w", counter=1)

    assert up.source == down.source
    assert (up.expected is None) == (down.expected is None)
    if up.expected is not None and down.expected is not None:
        assert up.expected == -down.expected


@pytest.mark.slow
def test_repeats_stay_a_minor_share_of_a_whole_search() -> None:
    noise = random.Random(3)
    runs: list[PastRun] = []
    for counter in range(60):
        p = propose(problem(), runs, [], worker="w", counter=counter)
        value = 2.0 + abs(float(p.genome["LR"]) - 0.01) * 30 + noise.gauss(0, 0.05)
        run = past(str(counter), p.source_digest, p.genome, value, replicate=p.replicate)
        runs.append(replace(run, parent=p.parent))

    assert 1 <= sum(run.replicate > 0 for run in runs) <= 12
