"""Numbers are written for people by one rule, in Python and in JavaScript: the examples are of both."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from autoresearch import text
from autoresearch.face.pages.rendering import FOLDERS
from tests.face.pages.browser import Browser

EXAMPLES = json.loads((Path(__file__).parent / "numbers.json").read_text())
FUNCTIONS = {"metric": text.value, "signed": text.signed, "brief": text.brief}
NUMBERS = st.floats(-1e307, 1e307)


def test_python_writes_the_examples() -> None:
    wrong = [
        (name, arguments, FUNCTIONS[name](*arguments))
        for name, arguments, text in EXAMPLES
        if FUNCTIONS[name](*arguments) != text
    ]
    assert wrong == []


async def test_javascript_writes_the_examples(browser: Browser) -> None:
    script = (FOLDERS[0] / "numbers.js").read_text()

    def written(page: Any) -> list[str]:
        page.evaluate(script)
        return page.evaluate("rows => rows.map(([name, given]) => autoresearchNumbers[name](...given))", EXAMPLES)

    seen = await browser.visit("about:blank", written)
    assert seen.complaints == []
    assert [row for row, answer in zip(EXAMPLES, seen.answer, strict=True) if row[2] != answer] == []


@pytest.mark.parametrize(
    ("number", "margin", "expected"),
    [
        (0.2394, 0.0063, "0.2394 ± 0.0063"),
        (0.2394, None, "0.2394"),
        (0.2394, 0.0, "0.2394"),  # nobody measured how far it may be off
        (1.0, 2e-5, "1.000000 ± 0.000020"),
        (120.3456, 0.5, "120.3456 ± 0.5000"),
        (123456.7, 15000, "123457 ± 15000"),
        (0.01234, 0.0000213, "0.012340 ± 0.000021"),
        (3.2e-9, 2.1e-11, "3.2e-9 ± 2.1e-11"),
        (2.4e54, 1e53, "2.4e54 ± 1e53"),
    ],
)
def test_two_digits_of_a_margin_are_shown(number: float, margin: float | None, expected: str) -> None:
    assert text.interval(number, margin) == expected


@pytest.mark.parametrize(
    ("noise", "best", "expected"),
    [
        (0.01, (), None),  # four decimals show more than two digits of it
        (0.00002, (), "0.500000 ± 0.000030"),
        (3e-9, (), "0.5000000000 ± 3e-5"),
        (12.3, (), "0.50000 ± 0.00003"),
        (None, (0.5, 0.50001, 0.7), "0.50000 ± 0.00003"),
        (0.0, (0.9, 0.9 + 1e-12, 0.91), None),  # they differ by rounding
        (0.0, (0.9, 0.9, 0.9), None),
        (None, (math.nan, 1.0, math.inf, 1e300), None),
        (None, (), None),
    ],
)
def test_values_of_a_task_are_told_apart(noise: float | None, best: tuple[float, ...], expected: str | None) -> None:
    decimals = text.decimals_apart(noise, best)
    assert (decimals is None) == (expected is None)
    if expected is not None:
        assert text.interval(0.5, 0.00003, decimals) == expected


@given(st.floats(1e-300, 1e300), st.none() | st.floats(1e-300, 1e300), st.lists(st.floats(), max_size=9))
def test_no_margin_is_written_as_zero(margin: float, noise: float | None, best: list[float]) -> None:
    written = text.interval(1.0, margin, text.decimals_apart(noise, best)).partition("± ")[2]
    assert float(written) == pytest.approx(margin, rel=0.51)


@given(NUMBERS, st.none() | st.integers(-300, 300))
def test_a_number_reads_back_and_is_short(number: float, decimals: int | None) -> None:
    for written in (text.value(number, decimals), text.signed(number, decimals), text.brief(number)):
        assert not written.startswith(("-0", "+0")) or float(written) != 0
    plain = text.value(number)
    assert len(plain) <= 12
    assert math.isclose(float(plain), number, rel_tol=0.005, abs_tol=5e-5 if abs(number) >= 0.0001 else 0.0)


@given(NUMBERS, NUMBERS)
def test_a_difference_of_rounding_is_none(number: float, other: float) -> None:
    assert text.change(number, number * (1 + 1e-15)) in {"0", "nan"}
    if abs(number - other) > 1e-9 * max(abs(number), abs(other)) and math.isfinite(number - other):
        assert text.change(number, other)[0] == ("+" if number > other else "-")


@pytest.mark.parametrize(
    ("milliseconds", "expected"),
    [
        (0, "0 s"),
        (3, "3 ms"),
        (45.4, "45 ms"),
        (99.6, "0.1 s"),
        (300, "0.3 s"),
        (1240, "1.2 s"),
        (8000, "8 s"),
        (9960, "10 s"),
        (12_345, "12 s"),
        (65_000, "1 min 5 s"),
        (3_600_000, "1 h"),
    ],
)
def test_a_short_time_has_two_digits(milliseconds: float, expected: str) -> None:
    assert text.duration(milliseconds) == expected
