"""Hours of the week, in local time: ``mon-fri 19:00-07:00, sat-sun``. When they begin and end, over a change of clocks.

A span is days, times, or both. It belongs to the day on which it begins, also where it ends after midnight.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime, timedelta, tzinfo

from autoresearch.errors import UsageError

DAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
EXAMPLE = "such as: mon-fri 19:00-07:00, sat-sun"
DAY_MINUTES = 24 * 60
WEEK_MINUTES = 7 * DAY_MINUTES
# Clocks change at whole quarters of an hour. Nobody looks further ahead than a week and the day of such a change.
QUARTER_MS = 15 * 60_000
AHEAD_DAYS = 8
_SPAN = re.compile(r"(?:([a-z]{3})(?:-([a-z]{3}))?)? ?(?:(\d{1,2}):(\d\d)-(\d{1,2}):(\d\d))?")


@dataclass(frozen=True, slots=True)
class Hours:
    """Spans as minutes of the week from Monday 0:00, from a first one on to before a last one. None: all of the time.

    ``zone`` is the local time's, None the machine's.
    """

    spans: tuple[tuple[int, int], ...] = ()
    zone: tzinfo | None = None

    def has(self, now_ms: int) -> bool:
        """Whether a moment is in them."""
        local = datetime.fromtimestamp(now_ms / 1000, self.zone)
        minute = local.weekday() * DAY_MINUTES + local.hour * 60 + local.minute
        spans = ((minute - first) % WEEK_MINUTES < last - first for first, last in self.spans)
        return not self.spans or any(spans)

    def change_ms(self, now_ms: int) -> int | None:
        """When they begin or end next; None where they never do."""
        local = datetime.fromtimestamp(now_ms / 1000, self.zone).replace(hour=0, minute=0, second=0, microsecond=0)
        monday = local - timedelta(days=local.weekday())
        marks = {minute % WEEK_MINUTES for span in self.spans for minute in span}
        walls = (monday + timedelta(minutes=minute + week * WEEK_MINUTES) for minute in marks for week in (0, 1, 2))
        # A wall clock shows some times twice, and some never: each candidate is looked at.
        moments = {round(wall.replace(fold=fold).timestamp() * 1000) for wall in walls for fold in (0, 1)}
        first = now_ms // QUARTER_MS + 1
        moments.update(number * QUARTER_MS for number in range(first, first + AHEAD_DAYS * 96))
        state = self.has(now_ms)
        later = sorted(moment for moment in moments if now_ms < moment <= now_ms + AHEAD_DAYS * 86_400_000)
        return next((moment for moment in later if self.has(moment) != state), None)


def parse_hours(text: str, zone: tzinfo | None = None) -> Hours:
    """Hours as a person writes them; empty: all of the time.

    Raises:
        UsageError: they can't be read.
    """
    parts = [part.strip() for part in text.lower().split(",") if part.strip()]
    return Hours(tuple(span for part in parts for span in _spans(part)), zone)


def _spans(part: str) -> list[tuple[int, int]]:
    match = _SPAN.fullmatch(re.sub(r"\s*-\s*", "-", " ".join(part.split())))
    if match is None:
        raise UsageError(f"{part!r} is no span of hours", hint=EXAMPLE)
    first, last, *times = match.groups()
    for day in (first, last):
        if day and day not in DAYS:
            raise UsageError(f"{day!r} is no day: {', '.join(DAYS)}", hint=EXAMPLE)
    begin = DAYS.index(first) if first else 0
    count = 7 if not first else (DAYS.index(last or first) - begin) % 7 + 1
    start, end = 0, DAY_MINUTES
    if times[0] is not None:
        hour, minute, end_hour, end_minute = map(int, times)
        start, end = hour * 60 + minute, end_hour * 60 + end_minute
        if minute > 59 or end_minute > 59 or start >= DAY_MINUTES or end > DAY_MINUTES:
            raise UsageError(f"{part!r} has a time that no clock shows", hint="0:00 to 24:00")
        if end == start:
            raise UsageError(f"{part!r} begins and ends at one time", hint=EXAMPLE)
    length = (end - start) % DAY_MINUTES or DAY_MINUTES
    days = ((begin + number) % 7 * DAY_MINUTES + start for number in range(count))
    return [(first_minute, first_minute + length) for first_minute in days]
