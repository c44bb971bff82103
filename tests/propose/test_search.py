"""The search is a function of the set of runs and claims, and never repeats what is held."""

from __future__ import annotations

import math
import random
from collections.abc import Mapping
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from autoresearch.propose.program.edits import NO_PATCHES, set_constants
from autoresearch.propose.program.guard import static_guard
from autoresearch.propose.program.ranges import Value
from autoresearch.propose.program.space import space_of
from autoresearch.propose.search.evidence import PastRun, gather
from autoresearch.propose.search.proposal import LiveClaim, NothingToTry
from autoresearch.propose.search.search import Base, Replication, propose, samples
from autoresearch.task.program import source_digest
from tests.propose.conftest import NAMES, PATCHES, TRAIN, best_run, memory, past, problem


def test_the_first_proposal_is_the_baseline_unchanged() -> None:
    proposal = propose(problem(), [], [], worker="a", counter=0)

    assert (proposal.kind, proposal.source, proposal.replicate) == ("baseline", TRAIN, 0)
    assert proposal.change == {}


@settings(max_examples=6, deadline=None)
@given(st.integers(0, 10**6), st.integers(0, 60), st.randoms(use_true_random=False))
def test_the_order_of_the_memory_does_not_matter(seed: int, count: int, order: random.Random) -> None:
    runs = memory(seed, count)
    claims = [LiveClaim(bytes([i]) * 32, 0, run.genome) for i, run in enumerate(memory(seed + 1, 3))]
    first = propose(problem(), runs, claims, worker="w", counter=3)

    order.shuffle(runs)
    order.shuffle(claims)

    assert propose(problem(), runs, claims, worker="w", counter=3) == first


@settings(max_examples=6, deadline=None)
@given(st.integers(0, 10**6), st.integers(0, 80), st.integers(0, 99))
def test_every_proposal_compiles_passes_the_guard_and_is_new(seed: int, count: int, counter: int) -> None:
    runs = memory(seed, count)

    proposal = propose(problem(), runs, [], worker="w", counter=counter)

    compile(proposal.source, "train.py", "exec")
    assert source_digest(proposal.source) == proposal.source_digest
    assert (proposal.source_digest, proposal.replicate) not in {(r.source_digest, r.replicate) for r in runs}
    assert 0 < len(proposal.title) <= 60
    assert len(proposal.hypothesis) <= 1000
    if proposal.kind != "replicate":
        assert static_guard(proposal.source, TRAIN, NAMES) == []
        space = space_of(TRAIN, PATCHES)
        assert space.build(proposal.genome) == proposal.source
        assert space.allows(proposal.genome)


@pytest.mark.slow
def test_two_workers_and_two_counters_go_different_ways() -> None:
    runs = memory(1, 50)
    made = {
        propose(problem(), runs, [], worker=worker, counter=counter).source_digest
        for worker in "ab"
        for counter in range(3)
    }

    assert len(made) > 3


@pytest.mark.slow
def test_what_is_claimed_is_not_proposed_again() -> None:
    runs = memory(2, 20)
    claims: list[LiveClaim] = []
    for _ in range(12):
        proposal = propose(problem(), runs, claims, worker="w", counter=0)
        claim = LiveClaim(proposal.source_digest, proposal.replicate, proposal.genome)
        assert claim not in claims
        claims.append(claim)

    assert len({(claim.source_digest, claim.replicate) for claim in claims}) == 12


def test_a_space_with_nothing_left_gives_a_few_replicates_and_then_says_so() -> None:
    source = "A = 1  # int [1, 2]\n"
    sources = [source, set_constants(source, {"A": 2})]
    runs = [past(s, source_digest(s), {"A": i + 1}, 1.0 + i) for i, s in enumerate(sources)]
    for counter in range(6):
        proposal = propose(problem(baseline=source), runs, [], worker="w", counter=counter)
        assert proposal.kind == "replicate"
        runs.append(past(f"{counter}", proposal.source_digest, proposal.genome, 1.0, replicate=proposal.replicate))

    assert {(run.source_digest, run.replicate) for run in runs} == {
        (source_digest(text), number) for text in sources for number in range(4)
    }
    with pytest.raises(NothingToTry, match=r"the search has tried all values of train\.py: "):
        propose(problem(baseline=source), runs, [], worker="w", counter=6)


@pytest.mark.slow
@pytest.mark.parametrize("run_count", [0, 2])
def test_few_things_change_around_the_best_while_little_is_known(run_count: int) -> None:
    runs = memory(1, run_count)
    best = min((run for run in runs if run.value is not None), key=lambda run: float(run.value or 0))
    for counter in range(12):
        proposal = propose(problem(), runs, [], worker="w", counter=counter)
        assert proposal.kind == "local"
        assert 1 <= len(proposal.change) <= 3
        assert proposal.parent == best.id


def _climb(direction: str, steps: int) -> float:
    """The value of the leader after some steps on a smooth made-up problem, noise included; smaller is better."""
    sign = 1.0 if direction == "minimize" else -1.0
    search_problem = problem(direction=direction)
    noise = random.Random(5)
    runs: list[PastRun] = []

    def true_value(genome: Mapping[str, Value]) -> float:
        return (
            2.0
            + abs(float(genome["LR"]) - 0.01) * 30
            + abs(float(genome["BETA1"]) - 0.9)
            - (0.3 * bool(genome["+muon"]))
        )

    for counter in range(steps):
        p = propose(search_problem, runs, [], worker="w", counter=counter)
        value = sign * (true_value(p.genome) + noise.gauss(0, 0.02))
        runs.append(PastRun(str(counter).encode(), p.source_digest, p.genome, value, p.replicate, None, None))
    best = best_run(search_problem, runs)
    assert best is not None
    return true_value(best.genome)


@pytest.mark.slow
def test_it_climbs_both_ways_alike() -> None:
    down = _climb("minimize", 40)

    assert down < 1.9
    assert _climb("maximize", 40) == down


@pytest.mark.slow
def test_a_hand_written_leader_becomes_the_base() -> None:
    runs = memory(3, 30)
    better = set_constants(TRAIN.replace("F.gelu(self.up(x))", "F.silu(self.up(x))"), {"LR": 0.02})
    hand = past("hand", source_digest(better), {}, 0.5)
    search_problem = problem(source_of=lambda run: better if run == hand.id else None)
    runs += [hand, *(past(f"hand{k}", hand.source_digest, {}, 0.5, replicate=k) for k in range(1, 4))]

    proposal = propose(search_problem, runs, [], worker="w", counter=1)

    assert proposal.base == hand.source_digest
    assert proposal.kind in {"local", "model"}
    assert "F.silu" in proposal.source
    assert "+relu2" not in proposal.genome  # its search text is gone
    assert proposal.parent == hand.id


@pytest.mark.slow
def test_a_good_structure_that_does_not_lead_is_tuned_for_a_few_runs() -> None:
    runs = memory(3, 30)
    other = TRAIN.replace("F.gelu(self.up(x))", "F.silu(self.up(x))")
    digest = source_digest(other)
    good = sorted(run.value for run in runs if run.value is not None)[3]
    hand = replace(past("hand", digest, {"LR": 0.02}, good + 1e-3), base=digest)
    search_problem = problem(source_of=lambda run: other if run == hand.id else None)

    def bases(past_runs: list[PastRun]) -> list[bytes | None]:
        return [propose(search_problem, past_runs, [], worker="w", counter=number).base for number in range(16)]

    base_digests = bases([*runs, hand])
    assert 1 <= base_digests.count(digest) <= 8
    assert set(base_digests) == {digest, None}
    children = [
        replace(past(f"child{number}", bytes([number]) * 32, {"LR": 0.02 + number / 100}, good + 0.1), base=digest)
        for number in range(1, 4)
    ]
    assert set(bases([*runs, hand, *children])) == {None}, "it was tuned"
    assert set(bases([*runs, replace(hand, value=9.0)])) == {None}, "it is a bad one"
    assert set(bases([*runs, replace(hand, tier=None)])) == {None}, "nothing may be built upon it"


def test_a_program_that_is_its_own_base_says_nothing_of_its_settings_elsewhere() -> None:
    runs, ground = memory(3, 30), Base(space_of(TRAIN, PATCHES), None)
    for value in (5.0, None):
        hand = replace(past("hand", b"a" * 32, {"LR": 0.02}, value), base=b"a" * 32)
        child = replace(past("child", b"c" * 32, {"LR": 0.03}, value), base=hand.base)
        evidence = gather([*runs, hand, child], direction="minimize", noise=0.02, floor=None)
        sampled = {sample.run.id for group in samples(ground, evidence, source_digest(TRAIN)) for sample in group}
        assert hand.id not in sampled
        assert {child.id, runs[0].id} <= sampled


def test_another_seed_of_a_program_whose_base_is_not_at_hand_has_its_settings() -> None:
    hand = TRAIN.replace("F.gelu(self.up(x))", "F.silu(self.up(x))")
    digest, settings, base = source_digest(hand), {"LR": 0.02}, b"b" * 32
    leader = replace(past("hand", digest, settings, 0.1), base=base)
    child = replace(past("child", b"c" * 32, {"LR": 0.03}, 0.9), base=base, parent=leader.id)
    search_problem = problem(source_of=lambda run: hand if run == leader.id else None)
    policy = Replication(children=1, share=1.0)
    made = propose(search_problem, [*memory(3, 30), leader, child], [], worker="w", counter=0, replication=policy)
    assert (made.kind, made.source_digest, made.base, made.genome) == ("replicate", digest, base, settings)


@pytest.mark.slow
def test_a_leader_whose_source_is_not_at_hand_or_is_another_is_passed_over() -> None:
    runs = memory(3, 30)
    runs += [past(f"hand{k}", b"h" * 32, {}, 0.5, replicate=k) for k in range(4)]
    for answer in (None, TRAIN, "not ( python", "\0"):
        search_problem = problem(source_of=lambda _, answer=answer: answer)
        assert propose(search_problem, runs, [], worker="w", counter=1).base is None


GUESSED = "LEARNING_RATE = 0.001\nDEPTH = 2\nprint(LEARNING_RATE, DEPTH)\n"


def searched(source: str, count: int) -> list[Mapping[str, Value]]:
    """The settings of runs whose best would be a rate of 0.1 and a depth of 8."""
    runs: list[PastRun] = []
    search_problem = problem(baseline=source, patches=NO_PATCHES, noise=0.0)
    for counter in range(count):
        made = propose(search_problem, runs, [], worker="w", counter=counter)
        rate, depth = float(made.genome["LEARNING_RATE"]), float(made.genome["DEPTH"])
        value = math.log10(rate / 0.1) ** 2 + (depth - 8) ** 2 / 10
        runs.append(past(str(counter), made.source_digest, made.genome, value, replicate=made.replicate))
    return [run.genome for run in runs]


@pytest.mark.slow
def test_a_guessed_range_goes_on_where_the_best_setting_lies_at_its_end() -> None:
    tried = searched(GUESSED, 40)

    assert max(float(genome["LEARNING_RATE"]) for genome in tried) > 0.03
    assert 8 in {genome["DEPTH"] for genome in tried}


@pytest.mark.slow
def test_a_range_that_somebody_stated_is_kept() -> None:
    stated = GUESSED.replace("0.001", "0.001  # 0.0001 .. 0.01").replace("= 2", "= 2  # int [1, 4]")
    tried = searched(stated, 30)

    assert max(float(genome["LEARNING_RATE"]) for genome in tried) <= 0.01
    assert max(float(genome["DEPTH"]) for genome in tried) <= 4


WORDS = "".join(f"X{at} = 0.5  # float [0.0, 1.0]\n" for at in range(10)) + (
    'KIND = "a"  # one of a b c d e f\nWAY = "left"  # one of left right\n'
)


def genomes_of(source: str, count: int) -> list[Mapping[str, Value]]:
    """The settings of so many proposals, of which those with the first word are always best."""
    runs: list[PastRun] = []
    search_problem = problem(baseline=source, patches=NO_PATCHES, noise=0.0)
    for counter in range(count):
        made = propose(search_problem, runs, [], worker="w", counter=counter)
        value = (made.genome["KIND"] != "a") + sum(float(made.genome[f"X{at}"]) for at in range(10))
        runs.append(past(str(counter), made.source_digest, made.genome, value, replicate=made.replicate))
    return [run.genome for run in runs]


@pytest.mark.slow
def test_each_word_of_a_setting_is_tried_early_and_none_twice_alike() -> None:
    tried = genomes_of(WORDS, 13)

    assert {genome["KIND"] for genome in tried} == set("abcdef")
    assert {genome["WAY"] for genome in tried} == {"left", "right"}
    assert len({tuple(genome.items()) for genome in tried}) == 13
    assert genomes_of(WORDS, 13) == tried


@pytest.mark.slow
def test_a_space_of_twelve_settings_has_some_proposals_from_the_whole_space() -> None:
    tried = genomes_of(WORDS, 40)

    def moved(genome: Mapping[str, Value]) -> int:
        return sum(value != tried[0][name] for name, value in genome.items())

    assert any(moved(genome) >= 9 for genome in tried[:13])
    assert any(moved(genome) >= 9 for genome in tried[30:])
