"""What does not touch a disk: the order of commits, the text of others."""

from __future__ import annotations

import random
import sys
import unicodedata

from autoresearch_exports.git_commits import line, lines, message, parents_first
from hypothesis import given
from hypothesis import strategies as st

from autoresearch.record.kinds import Proposer
from tests.nasty import NASTY, harms
from tests.record.making import key, run_body, sealed


def tree(chance: random.Random) -> dict[bytes, bytes | None]:
    """Runs in any order, each with a run that was made before it, with none, or with one that nobody knows."""
    made = [bytes([number]) for number in range(chance.randrange(1, 30))]
    parents = {run: chance.choice([None, b"unknown", *made[:at]]) for at, run in enumerate(made)}
    return dict(chance.sample(list(parents.items()), len(parents)))


trees = st.integers(0, 2**32).map(random.Random).map(tree)


def reaches(run: bytes, parents: dict[bytes, bytes | None], lost: set[bytes]) -> bool:
    """Whether a run and all before it are there."""
    if run in lost or run not in parents:
        return False
    parent = parents[run]
    return parent is None or reaches(parent, parents, lost)


@given(trees, st.sets(st.integers(0, 30)))
def test_every_run_comes_after_its_parent_and_only_what_has_all_its_ancestors_comes(
    parents: dict[bytes, bytes | None], numbers: set[int]
) -> None:
    lost = {bytes([number]) for number in numbers}
    ordered_runs = [run for run, _ in parents_first(parents, set(), lambda run: None if run in lost else run)]
    assert len(ordered_runs) == len(set(ordered_runs))
    assert set(ordered_runs) == {run for run in parents if reaches(run, parents, lost)}
    for at, run in enumerate(ordered_runs):
        assert parents[run] is None or parents[run] in ordered_runs[:at]


def test_a_chain_may_be_long() -> None:
    names = [number.to_bytes(3, "big") for number in range(50_000)]
    parents = dict(zip(reversed(names), [*reversed(names[:-1]), None], strict=True))
    assert [run for run, _ in parents_first(parents, (), lambda run: run)] == names


@given(st.text())
def test_text_of_others_is_one_harmless_line(text: str) -> None:
    cleaned = line(NASTY + text)
    assert not harms(cleaned)
    assert "\n" not in cleaned
    assert not harms(lines(NASTY + text).replace("\n", ""))


def test_the_list_of_harmful_characters_covers_what_unicode_calls_controls_and_formats() -> None:
    # Later versions of Unicode may add some; a commit's text must not follow them.
    named = {character for character in map(chr, range(sys.maxunicode + 1)) if unicodedata.category(character) == "Cf"}
    missed = {character for character in named if character in line(f"a{character}b")}
    assert missed <= set(map(chr, (0x890, 0x891, 0x110BD, 0x110CD, *range(0x13430, 0x13440))))


def subject(before: dict[str, object], after: dict[str, object], by: str, **fields: object) -> str:
    parent = sealed(key(1), run_body(1.0, genome=before))
    body = run_body(0.9, title="LR 0.1 -> 0.2 (+1)", genome=after, proposer=Proposer(name=by), **fields)
    return message(sealed(key(1), body, seq=2), parent).splitlines()[0]


def test_the_subject_of_a_run_of_the_search_tells_its_change_and_of_others_their_title() -> None:
    before, after = {"LR": 0.1, "+muon": False}, {"LR": 0.2, "+muon": True}
    assert subject(before, after, "search") == "Add muon, LR 0.1 → 0.2"
    assert subject(before, before, "search", replicate=1) == "Again, with another seed"
    titled = "LR 0.1 -> 0.2 (+1)"
    assert subject(before, after, "llm/some-model") == titled
    assert subject({}, after, "search") == titled, "the change is not known"
    assert subject(before, after, "search", base=b"b" * 32) == titled, "it is one of another program"
    assert subject({"ü": 1}, {"ü": 2}, "search") == titled, "tables of letters differ between versions of Python"
