"""Hours of the week: which moments are in them, and when they change, also over a change of the clocks."""

from __future__ import annotations

from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from autoresearch.errors import UsageError
from autoresearch.hours import DAYS, parse_hours

BERLIN = ZoneInfo("Europe/Berlin")
NIGHTS = "mon-fri 19:00-07:00, sat-sun"


def at(text: str) -> int:
    return round(datetime.fromisoformat(text).replace(tzinfo=BERLIN).timestamp() * 1000)


def formatted(moment: int | None) -> str:
    assert moment is not None
    return datetime.fromtimestamp(moment / 1000, BERLIN).isoformat(timespec="minutes")


@pytest.mark.parametrize(
    ("text", "moment", "is_in", "changes"),
    [
        (NIGHTS, "2026-11-25T12:00", False, "2026-11-25T19:00+01:00"),
        (NIGHTS, "2026-11-26T03:00", True, "2026-11-26T07:00+01:00"),  # Wednesday's night
        (NIGHTS, "2026-11-27T20:00", True, "2026-11-30T00:00+01:00"),  # a Friday, up to the end of Sunday
        (NIGHTS, "2026-11-30T03:00", False, "2026-11-30T19:00+01:00"),  # no night belongs to Sunday
        ("sun-mon 22:00-2:00", "2026-11-24T01:59", True, "2026-11-24T02:00+01:00"),
        ("22:00-24:00", "2026-11-24T23:59", True, "2026-11-25T00:00+01:00"),
        ("Fri - Mon", "2026-11-24T12:00", False, "2026-11-27T00:00+01:00"),
        ("2:30-4:00", "2027-03-28T01:59", False, "2027-03-28T03:00+02:00"),  # 2:30 does not come: it is 3:00 then
        ("2:30-4:00", "2026-10-25T02:00", False, "2026-10-25T02:30+02:00"),
        ("1:00-2:30", "2026-10-25T02:00", True, "2026-10-25T02:30+02:00"),
    ],
)
def test_hours_of_the_week(text: str, moment: str, is_in: bool, changes: str) -> None:
    hours = parse_hours(text, BERLIN)
    assert hours.has(at(moment)) is is_in
    assert formatted(hours.change_ms(at(moment))) == changes


@given(
    st.lists(st.tuples(st.integers(0, 6), st.integers(0, 1439), st.integers(1, 1440)), min_size=1, max_size=4),
    st.sampled_from(["2026-03-26T00:00", "2026-10-22T00:00", "2026-06-03T11:11"]),
)
def test_they_change_at_no_minute_before_the_one_that_is_named(
    spans: list[tuple[int, int, int]], beginning: str
) -> None:
    """Compared with a look at each minute of nine days, over both changes of the clocks."""

    def written(day: int, start: int, length: int) -> str:
        end = (start + length) % 1440 or 1440
        if end == start:
            return DAYS[day]
        return f"{DAYS[day]} {start // 60}:{start % 60:02d}-{end // 60}:{end % 60:02d}"

    hours = parse_hours(", ".join(written(*span) for span in spans), BERLIN)
    now_ms = at(beginning)
    minutes = range(now_ms + 60_000, now_ms + round(timedelta(days=8).total_seconds() * 1000), 60_000)
    state = hours.has(now_ms)
    assert hours.change_ms(now_ms) == next((minute for minute in minutes if hours.has(minute) != state), None)


@pytest.mark.parametrize("text", ["mo", "mon-fry", "8:00", "8:00-8:00", "24:00-1:00", "8:00-25:00", "8:60-9:00", "x-y"])
def test_what_is_no_span_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(UsageError) as refused:
        parse_hours(f"sat-sun, {text}")
    assert refused.value.hint
