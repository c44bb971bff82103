"""Titles fit in 60 characters and name first what was seen to gain most."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from autoresearch.propose.search.moves import SearchSettings
from autoresearch.propose.search.proposal import TITLE_LENGTH, hypothesis, title
from autoresearch.propose.search.search import propose
from tests.propose.conftest import PATCHES, memory, problem

MANY: dict[str, list[Any]] = {f"+{patch.name}": [False, True] for patch in PATCHES.patches} | {
    "BETA1": [0.85, 0.84],
    "LR": [0.01, 0.02],
}
names = st.sampled_from(sorted(MANY)) | st.text("ABCDEFGHIJ_", min_size=1, max_size=80)
changes = st.dictionaries(names, st.tuples(st.floats(0, 1), st.floats(0, 1)), min_size=1, max_size=30)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"+bigram": [False, True]}, "bigram table"),
        ({"+bigram": [True, False]}, "no bigram table"),
        ({"LR": [0.0083, 0.006]}, "LR 0.0083 → 0.006"),
        ({"LR": [0.0083, 0.006], "+muon": [False, True]}, "Muon optimizer, LR 0.0083 → 0.006"),
        ({"+elsewhere": [False, True], "A": ["x" * 50, "y"]}, f"elsewhere, A {'x' * 40} → y"),
        ({"SVC.C": [1.0, 2.5], "PCA.whiten": [1, 2]}, "PCA.whiten 1 → 2, SVC.C 1 → 2.5"),
        (
            {"RandomForestClassifier.max_depth": [6, 12], "RandomForestClassifier.n_estimators": [40, 95]},
            "max_depth 6 → 12, n_estimators 40 → 95",
        ),
        ({f"{'A' * 21}.lr": [1, 2], f"{'B' * 21}.lr": [1, 2]}, f"{'A' * 21}.lr 1 → 2 (+1)"),
        ({"A" * 70: [1, 2]}, f"{'A' * 59}…"),
        ({"A" * 70: [1, 2], "B": [1, 2]}, f"{'A' * 54}… (+1)"),
    ],
)
def test_a_change_in_words(change: dict[str, list[Any]], words: str) -> None:
    assert title(change, {}, PATCHES) == words


def test_the_largest_gain_comes_first_and_patches_before_constants() -> None:
    gains = {"+cosine": 0.1, "+bigram": 0.2, "+averaging": 0.05, "+tied": -0.3, "LR": 9.0}

    assert title(MANY, gains, PATCHES) == "bigram table, cosine schedule, weight averaging (+19)"


@given(changes, st.dictionaries(names, st.floats(-1, 1)))
def test_a_title_fits_and_counts_what_it_leaves_out(change: dict[str, Any], gains: dict[str, float]) -> None:
    text = title(change, gains, PATCHES)

    assert 0 < len(text) <= TITLE_LENGTH
    assert title(dict(reversed(change.items())), gains, PATCHES) == text
    if "…" not in text:
        listed, _, more = text.partition(" (+")
        assert len(listed.split(", ")) + int(more.removesuffix(")") or 0) == len(change)


@pytest.mark.slow
def test_a_proposal_names_first_what_pairs_of_runs_have_shown() -> None:
    medians = {"+averaging": -0.5, "+bigram": -0.1, "+adam-eps": -0.01}
    with_medians, everywhere = replace(problem(), median_of=medians.get), SearchSettings(random_share=1.0)
    made = [
        propose(with_medians, memory(4, 30), [], worker="w", counter=counter, settings=everywhere)
        for counter in range(16)
    ]
    both = [proposal for proposal in made if {"+averaging", "+adam-eps"} <= set(proposal.change)]

    assert both
    assert all(proposal.title.startswith("weight averaging, ") for proposal in both)


def test_one_run_has_a_value_and_no_median() -> None:
    def reason(good: list[dict[str, object]], rest: list[dict[str, object]], change: dict[str, object]) -> str:
        return hypothesis(change, {}, good, rest, "End.", PATCHES)

    rate = {"RATE": (1, 2)}
    assert reason([{"RATE": 3}], [{"RATE": 5}], rate) == "RATE 2: the best run has 3, the other run 5. End."
    assert reason([{"RATE": 3}] * 3, [{"RATE": 5}] * 2, rate) == (
        "RATE 2: the median of the best 3 runs is 3, the median of the other 2 5. End."
    )
    assert reason([{"+a": True}], [], {"+a": (False, True)}).endswith("the best run has it. End.")
    # What does not set the best runs apart, or speaks against the change, is no reason for it.
    for good, rest, speaks in ((8, 8, False), (2, 2, False), (8, 3, False), (1, 2, False), (3, 1, True), (1, 3, True)):
        assert ("runs is" in reason([{"RATE": good}] * 3, [{"RATE": rest}] * 37, {"RATE": (16, 2)})) == speaks
    assert reason([{"KIND": "a"}] * 3, [{"KIND": "b"}] * 9, {"KIND": ("a", "b")}) == "End."
    assert "runs is a" in reason([{"KIND": "a"}] * 3, [{"KIND": "b"}] * 9, {"KIND": ("b", "a")})
    for new in (True, False):
        change = {"+a": (not new, new)}
        assert reason([{"+a": not new}] * 3, [{"+a": new}] * 9, change) == "End."
        assert reason([{"+a": new}] * 3, [{"+a": new}] * 9, change) == "End."
        assert "of the best 3 runs" in reason([{"+a": new}] * 3, [{"+a": not new}] * 9, change)
    assert reason([{"+a": False}], [], {"+a": (False, True)}).endswith("the best run has it not. End.")
