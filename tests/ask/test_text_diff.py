"""The difference of two sources."""

import difflib
import subprocess

import pytest
from hypothesis import given
from hypothesis import strategies as st

from autoresearch.ask.runs.diffs import MATCHED_LINES, genome_changes, unified_diff

lines = st.lists(st.sampled_from(["a", "b = 1", "", "  c\x0c", "d\u2028e"]), max_size=12)


def diff(old: str, new: str) -> str:
    return unified_diff(old, new, old_name="old", new_name="new")


def test_equal_sources_have_an_empty_diff():
    assert diff("x = 1\n", "x = 1\n") == ""
    assert diff("", "") == ""


def test_it_is_the_diff_that_people_know():
    assert diff("a\nb\nc\n", "a\nB\nc\n") == "--- old\n+++ new\n@@ -1,3 +1,3 @@\n a\n-b\n+B\n c\n"


@given(lines, lines)
def test_patch_turns_the_old_source_into_the_new_one(tmp_path_factory, old, new):
    old_text, new_text = ("".join(line + "\n" for line in source) for source in (old, new))
    text = diff(old_text, new_text)
    if not text:
        assert old_text == new_text
        return
    file = tmp_path_factory.mktemp("patch") / "train.py"
    file.write_text(old_text, newline="")
    subprocess.run(["patch", "-s", str(file)], input=text.encode(), check=True)
    assert (file.read_bytes().decode() if file.exists() else "") == new_text


@pytest.mark.parametrize(("old", "new"), [(MATCHED_LINES + 1, 3), (3, MATCHED_LINES + 1), (MATCHED_LINES + 1, 0)])
def test_a_source_too_long_to_match_is_replaced_as_a_whole(tmp_path, old, new):
    old_text, new_text = ("".join(f"{name}{i}\n" for i in range(count)) for name, count in (("a", old), ("b", new)))
    text = diff(old_text, new_text)
    assert text.count("\n") == 3 + old + new
    file = tmp_path / "train.py"
    file.write_text(old_text)
    subprocess.run(["patch", "-s", str(file)], input=text.encode(), check=True)
    assert (file.read_text() if file.exists() else "") == new_text


def test_text_made_to_be_slow_is_never_matched(monkeypatch):
    matched = []
    monkeypatch.setattr(difflib, "unified_diff", lambda a, b, *_, **__: matched.append((a, b)) or [])
    diff("x\n" * (MATCHED_LINES + 1), "y\n")
    assert matched == []


def test_changed_constants_are_listed_with_both_values():
    old = {"DEPTH": 4, "LR": 0.1, "NAME": "adam", "GONE": 1, "FLAG": 1}
    new = {"DEPTH": 6, "LR": 0.1, "NAME": "lion", "NEW": "x", "FLAG": True}
    assert genome_changes(old, new) == {
        "DEPTH": [4, 6],
        "NAME": ["adam", "lion"],
        "GONE": [1, None],
        "FLAG": [1, True],
        "NEW": [None, "x"],
    }
