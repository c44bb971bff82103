"""Numbers and times in words. Pure."""

from __future__ import annotations

import re
from datetime import UTC, datetime

from autoresearch.errors import UsageError

# The last second that a date can name; what a stranger signed may say any time.
LAST_MS = 253_402_300_799_000
UNIT_MS = {"s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}


def duration(milliseconds: float) -> str:
    """A length of time in its two largest units: ``12 s``, ``3 min 5 s``, ``4 h 10 min``, ``3 d 4 h``."""
    seconds = int(milliseconds / 1000)
    if seconds < 60:
        return f"{seconds} s"
    minutes, seconds = divmod(seconds, 60)
    if minutes < 60:
        return f"{minutes} min {seconds} s" if seconds else f"{minutes} min"
    hours, minutes = divmod(minutes, 60)
    if hours < 24:
        return f"{hours} h {minutes} min" if minutes else f"{hours} h"
    days, hours = divmod(hours, 24)
    return f"{days} d {hours} h" if hours else f"{days} d"


def largest_unit(milliseconds: float) -> str:
    """A length of time in its largest unit: ``12 s``, ``3 min``, ``4 h``, ``3 d``."""
    return " ".join(duration(milliseconds).split()[:2])


def age(time_ms: int, now_ms: int) -> str:
    """How long ago something was."""
    if now_ms - time_ms < -60_000:
        return f"in {duration(time_ms - now_ms)}"
    if now_ms - time_ms < 1000:
        return "just now"
    return f"{duration(now_ms - time_ms)} ago"


def lately(time_ms: int, now_ms: int) -> str:
    """How long ago something was, in its largest unit: for tables."""
    return re.sub(r"^((?:in )?\d+ \w+) \d+ \w+", r"\1", age(time_ms, now_ms))


def moment(time_ms: int) -> str:
    """A time in UTC, to the second: ``2026-11-21T00:35:12Z``; the end of the year 9999 for whatever is later."""
    return datetime.fromtimestamp(min(time_ms, LAST_MS) / 1000, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def clock(time_ms: int, *, seconds: bool = False) -> str:
    """A time on the local clock; with the date unless it is today."""
    local = datetime.fromtimestamp(min(time_ms, LAST_MS) / 1000, UTC).astimezone()
    today = datetime.now(UTC).astimezone().date()
    time = "%H:%M:%S" if seconds else "%H:%M"
    return local.strftime(time if local.date() == today else f"%Y-%m-%d {time}")


def value(number: float | None) -> str:
    """A metric: four decimals, or a dash when there is none."""
    return "–" if number is None else f"{number:.4f}"


def interval(number: float | None, margin: float | None) -> str:
    """A metric with half of its 95 % interval."""
    return value(number) if margin is None else f"{value(number)} ± {value(margin)}"


def figure(number: float | None) -> str:
    """A number for another program: six digits, or nothing when there is none."""
    return "" if number is None else f"{number:.6g}"


def change(number: float | None, parent: float | None) -> str:
    """The difference of a metric to its parent's, with its sign."""
    return "" if number is None or parent is None else f"{number - parent:+.4f}"


def signed(number: float | None) -> str:
    """A change of a metric, with its sign."""
    return "" if number is None else f"{number:+.4f}"


def counted(number: int, thing: str, things: str = "") -> str:
    """A number of things: ``1 run``, ``2 runs``; ``things`` where the plural is not formed so."""
    return f"{number} {thing}" if number == 1 else f"{number} {things or f'{thing}s'}"


def percent(share: float | None) -> str:
    """A share of 0..1."""
    return "–" if share is None else f"{share:.0%}"


def size(count: float) -> str:
    """Bytes in binary units."""
    for unit in ("B", "KiB", "MiB", "GiB"):
        if abs(count) < 1024:
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1024
    return f"{count:.1f} TiB"


def parse_duration(text: str) -> int:
    """Milliseconds of ``90s``, ``30m``, ``2h``, ``1h30m`` or ``3d``.

    Raises:
        UsageError: it is not a length of time, or is not above zero.
    """
    parts = re.findall(r"(\d+(?:\.\d+)?)\s*([smhd])", text.lower())
    if not parts or re.sub(r"\d+(?:\.\d+)?\s*[smhd]|\s", "", text.lower()):
        raise UsageError(f"{text!r} is not a length of time", hint="write it like 90s, 30m, 2h, 1h30m or 3d")
    total = sum(float(number) * UNIT_MS[unit] for number, unit in parts)
    if not 0 < total <= 3650 * UNIT_MS["d"]:
        raise UsageError(f"{text!r} is not a length of time above zero and below ten years")
    return int(total)
