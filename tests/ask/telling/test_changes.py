"""How a run differs from its parent: chips in order, headlines, reasons; examples and properties."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from autoresearch.ask.runs.telling import because, changes, headline, is_jump
from autoresearch.propose.program.edits import patches_of
from autoresearch.propose.program.ranges import ValueRange
from autoresearch.propose.search.effects import Effect
from autoresearch.task.loading import shipped_task
from autoresearch.text import is_harmful
from tests.nasty import NASTY

LOG, FLOAT, INT = ValueRange("log", 1e-4, 1.0), ValueRange("float", 0.0, 1.0), ValueRange("int", 1.0, 11.0, whole=True)
SIZES, WORDS = ValueRange("one of", choices=(32, 64, 128)), ValueRange("one of", choices=("relu", "gelu"))
PATCHES = patches_of(shipped_task())
RANGES = {"LR": LOG, "WEIGHT_DECAY": LOG, "DROPOUT": FLOAT, "DEPTH": INT, "WIDTH": SIZES, "ACTIVATION": WORDS}


def effect(pairs, better, worse, median, failed=0):
    return Effect("", pairs, better, worse, median, None, None, pairs, 0, failed, failed)


def change_texts(before, after, seen=None):
    return [change.text for change in changes(before, after, RANGES, seen or {})]


@pytest.mark.parametrize(
    ("name", "before", "after", "text"),
    [
        ("+muon", False, True, "+muon"),
        ("+cosine", True, False, "−cosine"),
        ("LR", 0.01, 0.014, "LR ×1.4"),
        ("LR", 0.01, 0.0102, "LR ×1.02"),
        ("LR", 0.01, 0.010001, "LR 0.01→0.010001"),
        ("WEIGHT_DECAY", 0.5, 0.1, "WEIGHT_DECAY ÷5"),
        ("WEIGHT_DECAY", 0.5, 0.0, "WEIGHT_DECAY 0.5→0"),
        ("DEPTH", 3, 4, "DEPTH 3→4"),
        ("WIDTH", 64, 32, "WIDTH 64→32"),
        ("DROPOUT", 0.1, 0.25, "DROPOUT 0.1→0.25"),
        ("ACTIVATION", "relu", "gelu", "ACTIVATION relu→gelu"),
        ("BIAS", True, False, "BIAS on→off"),
        ("model.py:Config.hidden_dropout", 0.1, 0.2, "hidden_dropout 0.1→0.2"),
    ],
)
def test_a_change_is_told_in_a_few_characters(name, before, after, text):
    assert change_texts({name: before}, {name: after}) == [text]


def test_without_evidence_parts_come_first_and_then_what_moved_the_farthest():
    before = {"LR": 0.01, "DEPTH": 3, "DROPOUT": 0.1, "+muon": False, "+cosine": True}
    after = {"LR": 0.011, "DEPTH": 9, "DROPOUT": 0.1, "+muon": True, "+cosine": False}
    assert change_texts(before, after) == ["−cosine", "+muon", "DEPTH 3→9", "LR ×1.1"]


def test_a_change_that_did_much_in_earlier_pairs_comes_first_but_not_after_two_pairs():
    before, after = {"LR": 0.01, "+muon": False}, {"LR": 0.1, "+muon": True}
    seen = {"LR": effect(9, 7, 2, -0.3), "+muon": effect(2, 2, 0, -5.0)}
    assert change_texts(before, after, seen) == ["LR ×10", "+muon"]
    assert change_texts(before, after, {"LR": seen["LR"], "+muon": effect(3, 3, 0, -5.0)}) == ["+muon", "LR ×10"]


def test_a_change_has_its_values_its_places_and_what_a_part_is():
    part, depth = changes({"DEPTH": 1, "+muon": False}, {"DEPTH": 6, "+muon": True}, RANGES, {}, PATCHES)
    assert (part.name, part.kind, part.before, part.after, part.label) == (
        "+muon",
        "added",
        "off",
        "on",
        "Muon optimizer",
    )
    assert (depth.kind, depth.before, depth.after, depth.place_before, depth.place_after) == ("set", "1", "6", 0.0, 0.5)


def test_an_unknown_genome_tells_no_change_and_the_headline_is_the_title():
    assert changes({}, {"LR": 0.1}, RANGES, {}) == changes({"LR": 0.1}, {}, RANGES, {}) == []
    assert headline([], replicate=0, baseline=False, title="warm up\nlonger") == "warm up longer"
    assert headline([], replicate=0, baseline=False, title="") == "A change without a title"


def test_headlines_of_the_study():
    before = {"+muon": False, "WIDTH": 96, "LR": 0.01, "DEPTH": 3}
    after = {"+muon": True, "WIDTH": 64, "LR": 0.0101, "DEPTH": 4}
    result = changes(before, after, {**RANGES, "WIDTH": ValueRange("one of", choices=(64, 96))}, {})
    assert (
        headline(result, replicate=0, baseline=False, title="x") == "Add muon, WIDTH 96 → 64, DEPTH 3 → 4, and 1 more"
    )
    assert headline(result, replicate=1, baseline=False, title="x") == "Again, with another seed"
    assert headline([], replicate=0, baseline=True, title="x") == "The baseline"
    assert headline(changes({"LR": 0.1}, {"LR": 0.2}, RANGES, {}), replicate=0, baseline=False, title="") == "LR ×2"


def test_more_than_six_changes_are_a_jump():
    six = {f"+part{i}": False for i in range(4)} | {"LR": 0.1, "DEPTH": 3}
    result = changes(
        six, {name: not value if isinstance(value, bool) else 2 for name, value in six.items()}, RANGES, {}
    )
    assert not is_jump(result)
    before = {f"+part{i}": i < 2 for i in range(12)} | {f"C{i}": i for i in range(18)}
    after = {f"+part{i}": i >= 2 for i in range(12)} | {f"C{i}": i + 1 for i in range(18)}
    result = changes(before, after, {}, {})
    assert is_jump(result)
    sentence = "A jump: 30 settings at once, 10 parts added and 2 parts dropped"
    assert headline(result, replicate=0, baseline=False, title="x") == sentence
    assert "Many changes" in because(result, {}, replicate=0, baseline=False, searched=True, hypothesis="long")


def reason(before, after, seen, **options):
    result = changes(before, after, RANGES, seen)
    return because(
        result,
        seen,
        patches=PATCHES,
        **{"replicate": 0, "baseline": False, "searched": True, "hypothesis": "long"} | options,
    )


def test_reasons_are_the_idea_of_a_part_else_the_record_of_a_setting():
    seen = {"LR": effect(12, 9, 2, -0.1), "DEPTH": effect(4, 1, 3, 0.1, failed=2), "+odd": effect(3, 0, 3, 0.1)}
    muon = "Muon for the matrices of the blocks: steps that are orthogonal move all directions of a matrix alike"
    assert reason({"+muon": False, "LR": 0.1}, {"+muon": True, "LR": 0.2}, seen).startswith(muon)
    assert reason({"LR": 0.1}, {"LR": 0.2}, seen) == "Raising LR helped in 9 of 12 earlier comparisons."
    assert reason({"LR": 0.2}, {"LR": 0.1}, seen) == "So far lowering LR helped in only 2 of 12 comparisons."
    both = reason({"LR": 0.2, "DEPTH": 4}, {"LR": 0.1, "DEPTH": 3}, seen)
    assert both == "Lowering DEPTH, one of the 2 changes, helped in 3 of 4 earlier comparisons and failed in 2 more."
    assert reason({"+odd": True}, {"+odd": False}, seen) == "Dropping odd helped in 3 of 3 earlier comparisons."
    assert reason({"DROPOUT": 0.1}, {"DROPOUT": 0.2}, seen) == "Nothing like it was compared before."
    assert reason({"ACTIVATION": "a"}, {"ACTIVATION": "b"}, seen) == "Nothing like it was compared before."


def test_a_person_s_reason_is_the_first_sentence_of_its_hypothesis():
    sentence = "LR 0.01 was too low, e.g. in run\u202e x. More follows."
    assert reason({"LR": 0.1}, {"LR": 0.2}, {}, searched=False, hypothesis=sentence).startswith(
        "LR 0.01 was too low, e.g."
    )
    assert reason({}, {}, {}, searched=False, hypothesis="") == ""
    assert reason({"LR": 0.1}, {"LR": 0.2}, {}, searched=False, hypothesis="") == "Nothing like it was compared before."


names = st.one_of(
    st.text(min_size=1, max_size=64), st.sampled_from(["+muon", "+x", "LR", "WIDTH", "a.b:c", NASTY[:60]])
)
scalars = st.one_of(
    st.integers(-(2**63), 2**63 - 1),
    st.floats(allow_nan=True, allow_infinity=True),
    st.booleans(),
    st.text(max_size=80),
    st.just(NASTY),
)
genomes = st.dictionaries(names, scalars, max_size=9)
numbers = st.floats(allow_nan=False, allow_infinity=False) | st.none()
seens = st.dictionaries(names, st.builds(effect, st.integers(1, 9), st.just(1), st.just(1), numbers), max_size=5)


@given(genomes, genomes, seens, st.integers(0, 2), st.booleans(), st.booleans(), st.text(max_size=200))
def test_whatever_the_genomes_are_nothing_raises_or_gets_too_long_or_harms(
    before, after, seen, replicate, baseline, searched, words
):
    ranges = {**RANGES, **dict.fromkeys(list(before)[::2], LOG), **dict.fromkeys(list(before)[1::3], WORDS)}
    result = changes(before, after, ranges, seen, PATCHES)
    assert result == changes(dict(reversed(before.items())), dict(reversed(after.items())), ranges, seen, PATCHES)
    message = headline(result, replicate=replicate, baseline=baseline, title=words)
    why = because(
        result, seen, replicate=replicate, baseline=baseline, searched=searched, hypothesis=words, patches=PATCHES
    )
    assert message
    assert len(message) <= 80
    assert len(why) <= 140
    assert all(1 <= len(change.text) <= 24 for change in result)
    texts = [message, why, *(text for c in result for text in (c.name, c.text, c.before, c.after, c.label))]
    assert not any(map(is_harmful, "".join(texts)))
    places = [place for c in result for place in (c.place_before, c.place_after) if place is not None]
    assert all(0 <= place <= 1 for place in places)
