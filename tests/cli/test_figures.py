"""Numbers, times and strangers' text in words."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from autoresearch.errors import UsageError
from autoresearch.text import age, change, counted, duration, figure, moment, parse_duration, percent, size, value


@pytest.mark.parametrize(
    ("text", "milliseconds"),
    [("90s", 90_000), ("30m", 1_800_000), ("2h", 7_200_000), ("1h30m", 5_400_000), ("3d", 259_200_000),
     ("1.5h", 5_400_000), ("1h 5s", 3_605_000), ("2H", 7_200_000)],
)  # fmt: skip
def test_a_length_of_time_is_read_as_people_write_it(text: str, milliseconds: int) -> None:
    assert parse_duration(text) == milliseconds


@pytest.mark.parametrize(
    "text", ["", "2", "h", "two hours", "-2h", "2h!", "0s", "2h--", "1e9d", "99999999d", "nan", "٣h-"]
)
def test_what_is_no_length_of_time_is_refused_with_examples(text: str) -> None:
    with pytest.raises(UsageError):
        parse_duration(text)


@given(st.text())
def test_reading_a_length_of_time_answers_or_refuses(text: str) -> None:
    with contextlib.suppress(UsageError):
        assert parse_duration(text) > 0


@pytest.mark.parametrize(
    ("milliseconds", "words"),
    [(0, "0 s"), (12_400, "12 s"), (185_000, "3 min 5 s"), (180_000, "3 min"), (15_000_000, "4 h 10 min"),
     (7_200_000, "2 h"), (273_600_000, "3 d 4 h"), (86_400_000, "1 d")],
)  # fmt: skip
def test_a_duration_has_its_two_largest_units(milliseconds: int, words: str) -> None:
    assert duration(milliseconds) == words


def test_ages_look_back_and_ahead() -> None:
    assert age(1_000_000, 1_060_000) == "1 min ago"
    assert age(1_000_000, 1_000_100) == "just now"
    assert age(1_200_000, 1_000_000) == "in 3 min 20 s"


def test_values_have_a_dash_when_there_is_none() -> None:
    assert value(None) == "–"
    assert value(1.23456) == "1.2346"
    assert (value(0.00005), value(3.4071e-10), value(-2e-6)) == ("5e-5", "3.407e-10", "-2e-6")
    assert (value(0.0), value(-0.0), value(-1e-17)) == ("0", "0", "-1e-17")
    assert change(1.2, 1.3) == "-0.1000"
    assert change(1.2, None) == ""
    assert change(0.94441, 0.94442) == "-1e-5"
    assert change(0.1 + 0.2, 0.3) == "0", "what comes of rounding is no change"
    assert (figure(-0.0), figure(-1e-9)) == ("0", "-1e-09")
    assert percent(0.421) == "42%"
    assert percent(None) == "–"
    assert counted(1, "run") == "1 run"
    assert counted(0, "run") == "0 runs"


def test_sizes_and_moments() -> None:
    assert size(12) == "12 B"
    assert size(2048) == "2.0 KiB"
    assert size(3 << 40) == "3.0 TiB"
    assert moment(0) == "1970-01-01T00:00:00Z"
    assert moment(2**53) == "9999-12-31T23:59:59Z"  # what a stranger's record may say
