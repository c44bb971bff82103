"""The search builds on what others stand behind, learns from all that is believed, and repeats nothing."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from autoresearch.propose.search.evidence import gather
from autoresearch.propose.search.search import propose
from tests.propose.conftest import memory, problem


def proposals(runs, count=6):
    return [propose(problem(), runs, [], worker="me", counter=counter) for counter in range(count)]


@pytest.mark.slow
def test_new_sources_start_from_the_first_tier_that_there_is():
    runs = memory(1, 40)
    ranked = sorted((run for run in runs if run.value is not None), key=lambda run: run.value)
    behind = {ranked[5].id, ranked[9].id}
    tiered = [replace(run, tier=0 if run.id in behind else 3) for run in runs]
    made = [proposal for proposal in proposals(tiered) if proposal.kind in ("local", "model")]
    assert made
    assert {proposal.parent for proposal in made} <= behind


@pytest.mark.slow
def test_nothing_starts_from_what_may_never_be_built_upon():
    runs = memory(2, 30)
    best = min((run for run in runs if run.value is not None), key=lambda run: run.value)
    barred = [replace(run, tier=None) if run.id == best.id else run for run in runs]
    assert best.id in {proposal.parent for proposal in proposals(runs, 12)}
    assert best.id not in {proposal.parent for proposal in proposals(barred, 12)}
    nothing = [replace(run, tier=None) for run in runs if run.parent is not None]
    assert {run.id for run in nothing}.isdisjoint(proposal.parent for proposal in proposals([runs[0], *nothing], 6))


def test_what_the_log_prefers_leads_whatever_else_is_known_of_it():
    runs = memory(1, 40)
    worst = max((run for run in runs if run.value is not None), key=lambda run: run.value)
    failed = replace(worst, id=b"f" * 32, value=None, replicate=worst.replicate + 1)
    preferred = [replace(run, preferred=run.value) if run.id == worst.id else run for run in (*runs, failed)]
    leader = gather(preferred, direction="minimize", noise=0.02, floor=None).leader()
    assert (leader.first.id, leader.mean) == (worst.id, worst.value)


@pytest.mark.slow
def test_what_is_not_believed_moves_nothing_and_is_not_tried_again():
    runs = memory(3, 25)
    liar = replace(memory(4, 1)[1], value=0.1, believed=False, tier=None)
    evidence = gather([*runs, liar], direction="minimize", noise=0.02, floor=None)
    assert evidence == gather(runs, direction="minimize", noise=0.02, floor=None)
    for proposal in proposals([*runs, liar]):
        assert (proposal.source_digest, proposal.replicate) != (liar.source_digest, liar.replicate)


@settings(max_examples=10, deadline=None)
@given(st.integers(0, 3), st.integers(0, 100))
def test_where_all_words_are_alike_the_tier_changes_nothing(tier, seed):
    runs = memory(seed, 15)
    alike = [replace(run, tier=tier) for run in runs]
    assert proposals(alike, 1) == proposals(runs, 1)
