"""Strangers' genomes, values and sources can mislead the search a little; they cannot stop it."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from autoresearch.propose.program.space import assertions, holds, space_of
from autoresearch.propose.search.evidence import PastRun
from autoresearch.propose.search.proposal import LiveClaim
from autoresearch.propose.search.search import propose
from autoresearch.task.program import source_digest
from tests.propose.conftest import PATCHES, TRAIN, memory, past, problem

NAMES = [*space_of(TRAIN, PATCHES).parameters, "NO_SUCH", "+", "+no-such", "", "ä"]
WEIRD = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=5), st.just(10**400), st.just(-(10**30)),
    st.just([1]), st.just({}), st.binary(max_size=3), st.just(0), st.just(-0.0), st.just(5e-324),
)  # fmt: skip
GENOMES = st.dictionaries(st.sampled_from(NAMES), WEIRD, max_size=40)
VALUES = st.one_of(st.none(), st.floats(), st.integers(), st.just(10**400), st.just("1.0"), st.just(True))


@settings(max_examples=10, deadline=None)
@given(
    st.lists(st.tuples(GENOMES, VALUES, st.integers(0, 2**63)), max_size=20),
    st.lists(GENOMES, max_size=3),
    st.sampled_from(["minimize", "maximize"]),
)
def test_weird_genomes_and_values_never_stop_it(
    strangers: list[tuple[dict[str, Any], Any, int]], claimed: list[dict[str, Any]], direction: str
) -> None:
    runs = memory(1, 25) + [
        past(f"s{i}", bytes([i]) * 32, genome, value, replicate=replicate)
        for i, (genome, value, replicate) in enumerate(strangers)
    ]
    claims = [LiveClaim(bytes([100 + i]) * 32, 0, genome) for i, genome in enumerate(claimed)]

    proposal = propose(problem(direction=direction), runs, claims, worker="ä", counter=7)

    compile(proposal.source, "train.py", "exec")
    assert (proposal.source_digest, proposal.replicate) not in {(r.source_digest, r.replicate) for r in runs}
    assert proposal.expected is None or math.isfinite(proposal.expected)
    space = space_of(TRAIN, PATCHES)
    assert set(proposal.genome) <= set(space.parameters)


@pytest.mark.slow
def test_values_outside_the_ranges_are_used_as_they_are_and_no_others_are_made_up() -> None:
    space = space_of(TRAIN, PATCHES)
    runs = memory(4, 30)
    outside = {**space.default(), "LR": 0.05, "DEPTH": 9}
    runs += [past(f"o{i}", bytes([i]) * 32, outside, 0.9 + i / 100) for i in range(6)]
    for counter in range(6):
        proposal = propose(problem(), runs, [], worker="w", counter=counter)
        rate, depth = float(proposal.genome["LR"]), int(proposal.genome["DEPTH"])
        assert 0.0003 <= rate <= 0.03 or rate == 0.05
        assert 1 <= depth <= 6 or depth == 9


def test_values_below_the_floor_do_not_lead() -> None:
    runs = [*memory(5, 30), past("x", b"x" * 32, {"LR": 0.0003}, 0.1)]

    with_floor = propose(problem(floor=0.76), runs, [], worker="w", counter=1)

    assert with_floor.parent != past("x", b"x" * 32, {}, 0.1).id


@pytest.mark.slow
def test_a_failure_report_does_not_unseat_a_leader_with_many_seeds() -> None:
    good = [past(f"g{k}", b"g" * 32, {"LR": 0.01}, 1.0, replicate=k) for k in range(3)]
    runs = [*memory(6, 30), *good, past("lie", b"g" * 32, {"LR": 0.01}, None, replicate=9)]
    made = [propose(problem(), runs, [], worker="w", counter=c) for c in range(10)]

    assert any(proposal.parent == good[0].id for proposal in made)


def test_two_values_for_one_seed_count_once() -> None:
    runs = memory(6, 30)
    double = [PastRun(bytes([i]) * 32, b"d" * 32, {"LR": 0.01}, 1.0, 0, None, None) for i in range(5)]

    proposal = propose(problem(), [*runs, *double], [], worker="w", counter=0)

    assert (proposal.kind, proposal.source_digest) != ("replicate", source_digest(TRAIN))


@pytest.mark.parametrize(
    ("source", "values", "expected"),
    [
        ("A = 4\nB = 2\nassert A % B == 0\n", {"A": 5, "B": 2}, False),
        ("A = 4\nB = 2\nassert A % B == 0, 'text'\n", {"A": 6, "B": 2}, True),
        ("A = 4\nB = 2\nassert A % B == 0\n", {"A": 6, "B": 0}, False),
        ("A = 4\nassert 0 < A <= 8 and not A == 5\n", {"A": 5}, False),
        ("A = 4\nassert open('x') or A > 9\n", {"A": 1}, True),
        ("A = 4\nassert A ** A ** A ** A > 1\n", {"A": 9}, True),
        ("A = 'x'\nassert A < 3\n", {"A": "y"}, True),
        ("A = 4\nassert " + "A + " * 500 + "A > 1\n", {"A": 0}, True),
    ],
)
def test_top_level_assertions_are_conditions(source: str, values: dict[str, Any], expected: bool) -> None:
    assert holds(assertions(source), values) is expected


@settings(max_examples=50)
@given(st.sampled_from(NAMES[:16]), WEIRD)
def test_a_gene_admits_what_it_can_place_and_nothing_else(name: str, value: Any) -> None:
    parameter = space_of(TRAIN, PATCHES).parameters[name]

    admitted = parameter.admit(value)

    assert admitted is None or -0.3 <= parameter.place(admitted) <= 1.3
