"""Nothing that others wrote steers a terminal, turns or hides text, or makes a line of its own."""

from __future__ import annotations

import json
import unicodedata

from hypothesis import given
from hypothesis import strategies as st

from autoresearch.text import is_harmful, json_text, one_line, sanitised
from tests.nasty import NASTY, harms

CONTROLLING = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}


@given(st.text() | st.text(st.sampled_from(NASTY)))
def test_no_text_can_steer_a_terminal(text: str) -> None:
    for output in (sanitised(text), one_line(text), sanitised(text, lines=True)):
        assert not harms(output)
        assert not any(unicodedata.category(c) in CONTROLLING for c in output if c not in "\n\t")
    assert len(sanitised(text).splitlines()) <= 1
    assert len(one_line(text).splitlines()) <= 1
    assert "\t" not in sanitised(text) + one_line(text)


def test_what_people_write_stays() -> None:
    for text in ("größer ☃ 模型 ± 95 % → “x” …", "e\u0301", "नमस्ते", "עברית", "👍🏽", "a\u00a0b", "[b]x[/b]", "━"):
        assert sanitised(text) == text
    assert sanitised("a\r\n\tb\n", lines=True) == "a\n\tb\n"
    assert one_line(" a\n b\t c ", 4) == "a b…"


def test_every_character_of_the_set_is_shown_as_something() -> None:
    assert sanitised("a\x1b[2Jb\u202ec\U000e0041") == "a\ufffd[2Jb\ufffdc\ufffd"
    assert all(is_harmful(character) for character in "\x00\x1b\x7f\x9b\u200d\u2067\ufe0f\U000e01ef\u115f\ue000")


@given(st.text() | st.text(st.sampled_from(NASTY)))
def test_json_says_the_same_and_holds_nothing_harmful(text: str) -> None:
    document = json_text({text: [text, 1.5, None]})
    assert not harms(document)
    assert document.isprintable() or all(unicodedata.category(c) == "Zs" for c in document if not c.isprintable())
    assert json.loads(document) == {text: [text, 1.5, None]}
