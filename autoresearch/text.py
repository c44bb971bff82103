"""Texts for people: what others wrote, made harmless; numbers, times and sizes in words.

Also whether less or more of a metric is better. Pure. Harmful is a character that steers a terminal (C0, C1), turns the
direction of writing, breaks a line where one is meant, or cannot be seen: format characters, Unicode tags, variation
selectors, fillers. Everything that goes to a person passes here where it leaves; files that are data (a source in a
pipe, a bundle) do not.
"""

from __future__ import annotations

import json
import math
import re
import unicodedata
from collections.abc import Iterable
from datetime import UTC, datetime
from itertools import pairwise
from typing import Any

import msgspec

from autoresearch.errors import UsageError

# Shown in place of what is harmful: a reader sees that something was there.
INSTEAD = "\N{REPLACEMENT CHARACTER}"
NAME_CHARACTERS = 24
# From here on a number has seven digits and not four decimals.
_LARGE, _DIGITS, _DECIMALS = 1000, 7, 4
# From here on, and below, a number has an exponent, and so many decimals before that.
_HUGE, _TINY, _EXPONENT_DIGITS = 1e7, 1e-4, 3
# Steps between values that are smaller are not shown.
_FINEST = 1e-8
# With so many decimals a small number still reads well without one.
_MOST_DECIMALS = 6
# What is behind these, a computer does not know of a number that has no exponent.
_ALL_DECIMALS = 16
# Differences that are smaller than this share of the numbers come of rounding.
_ROUNDING = 1e-12
# A name stands in quotes beside a key; what closes them could make the rest look like ours.
_QUOTES = str.maketrans("", "", '"“”„‟«»＂')
# Letters, marks and symbols by category, and yet nothing is to be seen of them (Default_Ignorable_Code_Point, and the
# empty Braille pattern).
_UNSEEN = frozenset(
    map(
        chr,
        (
            *(0x034F, 0x115F, 0x1160, 0x17B4, 0x17B5, 0x180B, 0x180C, 0x180D, 0x180F, 0x2800, 0x3164, 0xFFA0),
            *range(0xFE00, 0xFE10),
            *range(0xE0100, 0xE01F0),
        ),
    )
)


# Characters that neither can be seen nor part words.
_ASCII_UNSEEN = dict.fromkeys(
    number for number in range(128) if not (chr(number).isprintable() or chr(number).isspace())
)


def is_harmful(character: str) -> bool:
    """Whether a character does something else than be read; newline and tab do too."""
    # Not printable are the categories C*, Zl, Zp, and spaces other than the common one, which harm nobody.
    return character in _UNSEEN or not (character.isprintable() or unicodedata.category(character) == "Zs")


def sanitised(text: str, *, lines: bool = False) -> str:
    """Text with a replacement character for each harmful one.

    Newlines and tabs become spaces, so that it is one line; with ``lines`` they stay.
    """
    if text.isascii() and text.isprintable():
        return text
    if lines:
        text = text.replace("\r\n", "\n")
    instead = {ord(character): INSTEAD for character in set(text) if is_harmful(character)}
    instead |= {ord(space): space if lines else " " for space in "\n\t"}
    return text.translate(instead)


def one_line(text: str, characters: int | None = None) -> str:
    """Text for a cell: one line, single spaces, of at most so many characters."""
    line = sanitised(" ".join(text.split()))
    return line if characters is None or len(line) <= characters else line[: characters - 1] + "…"


def folded(text: str) -> str:
    """Text as it is compared with other text: small letters, single spaces, nothing that cannot be seen."""
    if text.isascii():
        return " ".join(text.lower().translate(_ASCII_UNSEEN).split())
    text = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())
    unseen = {ord(character): "" for character in set(text) if is_harmful(character) and not character.isspace()}
    return " ".join(text.lower().translate(unseen).split())


def json_text(answer: object) -> str:
    """An answer as JSON in one line; what would be harmful on a terminal is escaped, so the document says the same.

    Raises:
        TypeError: msgspec can't encode it.
    """
    text = msgspec.json.encode(answer).decode()
    return text.translate({ord(character): _escape(character) for character in filter(is_harmful, set(text))})


def plain_name(text: str) -> str:
    """A name that a participant gave itself, fit to stand in quotes beside its key; empty when nothing is left of it.

    Marks that pile up on a letter are dropped after the second: they reach into the lines above and below.
    """
    characters: list[str] = []
    marks = 0
    for character in unicodedata.normalize("NFC", text.translate(_QUOTES)):
        marks = marks + 1 if unicodedata.category(character) in {"Mn", "Me"} else 0
        if marks <= 2:
            characters.append(" " if is_harmful(character) else character)
    return one_line("".join(characters), NAME_CHARACTERS)


# Letters that are no other letter with a mark.
_LETTERS = str.maketrans(
    {"ß": "ss", "ẞ": "SS", "ø": "o", "Ø": "O", "ł": "l", "Ł": "L", "đ": "d", "Đ": "D", "ð": "d", "Ð": "D", "ħ": "h"}
    | {"æ": "ae", "Æ": "AE", "œ": "oe", "Œ": "OE", "þ": "th", "Þ": "Th", "ı": "i", "ŋ": "n", "Ħ": "H", "Ŋ": "N"}
)


def latin(text: str) -> str:
    """Text with plain letters in place of those with marks: ``pä th`` is ``pa th``. Other scripts stay as they are."""
    plain = unicodedata.normalize("NFKD", text.translate(_LETTERS))
    return "".join(character for character in plain if not unicodedata.combining(character))


def _escape(character: str) -> str:
    units = character.encode("utf-16-be")
    return "".join(f"\\u{units[at : at + 2].hex()}" for at in range(0, len(units), 2))


# The last second that a date can name; what a stranger signed may say any time.
LAST_MS = 253_402_300_799_000
UNIT_MS = {"s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}


def duration(milliseconds: float) -> str:
    """A length of time in its two largest units: ``12 s``, ``3 min 5 s``, ``4 h 10 min``; short ones in two digits."""
    if 0 < milliseconds < 10_000:
        return f"{milliseconds:.2g} ms" if milliseconds < 99.5 else f"{float(f'{milliseconds / 1000:.2g}'):g} s"
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


def ending(ends_ms: int, now_ms: int) -> str:
    """When something ends: ``ends in 3 d 4 h``, ``ended 2 h ago``."""
    return f"ended {duration(now_ms - ends_ms)} ago" if ends_ms <= now_ms else f"ends in {duration(ends_ms - now_ms)}"


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


def written(number: float, decimals: int | None = None, sign: str = "") -> str:
    """A number for people. :func:`value` and :func:`signed` say which digits; ``numbers.js`` writes the same."""
    amount = abs(number)
    if not amount:
        return f"{0:.{max(0, decimals or 0)}f}" if (decimals or 0) <= _MOST_DECIMALS else "0"
    if not math.isfinite(amount):
        return f"{number:{sign}}"
    power = math.floor(math.log10(amount))
    if amount >= _HUGE or (amount < _TINY and (decimals is None or decimals > _MOST_DECIMALS)):
        digits = _EXPONENT_DIGITS if decimals is None else min(max(0, decimals + power), _DIGITS - 1)
        mantissa, _, exponent = f"{number:{sign}.{digits}e}".partition("e")
        return f"{_trimmed(mantissa)}e{int(exponent)}"
    if decimals is not None:
        text = f"{number:{sign}z.{min(max(0, decimals), _ALL_DECIMALS)}f}"
        return text if text.strip("+0.") else written(0, decimals)
    if amount >= _LARGE:
        return _trimmed(f"{number:{sign}.{_DIGITS - 1 - power}f}")
    whole, _, part = f"{number:{sign}.{max(_DECIMALS, 2 - power)}f}".partition(".")
    return f"{whole}.{part[:_DECIMALS]}{part[_DECIMALS:].rstrip('0')}"


def _trimmed(text: str) -> str:
    return text.rstrip("0").rstrip(".") if "." in text else text


def value(number: float | None, decimals: int | None = None) -> str:
    """A metric; a dash when there is none.

    With so many ``decimals`` that tell it from its neighbours. Where these are not known: four and at least three
    digits of a small one, seven digits of a large one, and an exponent below 0.0001 and from 10 million on.
    """
    return "–" if number is None else written(number, decimals)


def signed(number: float | None, decimals: int | None = None) -> str:
    """A change of a metric, with its sign unless it is zero; empty when there is none."""
    return "" if number is None else written(number, decimals, "+")


def brief(number: float, digits: int = 4) -> str:
    """A number that somebody chose, or that stands at an axis: the whole part, so many digits, no zeros behind them."""
    amount = abs(number)
    if not amount or not math.isfinite(amount):
        return written(number)
    power = math.floor(math.log10(amount))
    if _TINY <= amount < _HUGE:
        return _trimmed(f"{number:.{max(0, digits - 1 - power)}f}")
    mantissa, _, exponent = f"{number:.{digits - 1}e}".partition("e")
    return f"{_trimmed(mantissa)}e{int(exponent)}"


def decimals_beside(margin: float | None, decimals: int | None = None) -> int | None:
    """So many decimals show a value with its margin: ``decimals``, those of its task, with one digit of the margin.

    Where the task has none: those that show two digits of the margin, or None where the usual ones do.
    """
    if not margin or not math.isfinite(margin):
        return decimals
    first = -math.floor(math.log10(margin))
    if decimals is not None:
        return max(decimals, first)
    return first + 1 if first >= _DECIMALS or margin >= _LARGE else None


def decimals_apart(noise: float | None, best: Iterable[float]) -> int | None:
    """So many decimals tell the values of a task apart; None where the usual ones do.

    They show two digits of the ``noise`` over seeds. Without noise they tell the ``best`` values from each other.
    """
    if noise:
        decimals = 1 - math.floor(math.log10(noise)) if math.isfinite(noise) else 0
        return decimals if decimals > _DECIMALS or noise >= 1 else None
    steps = [high - low for low, high in pairwise(sorted({number for number in best if math.isfinite(number)}))]
    steps = [step for step in steps if _FINEST < step < math.inf]
    # What a subtraction took from the last digits of a step takes it below a power of ten.
    decimals = -math.floor(math.log10(1.001 * min(steps, default=1)))
    return decimals if decimals > _DECIMALS else None


def interval(number: float | None, margin: float | None, decimals: int | None = None) -> str:
    """A metric with half of its 95 % interval, if that is known, in so many decimals of its task."""
    decimals = decimals_beside(margin, decimals)
    return f"{value(number, decimals)} ± {value(margin, decimals)}" if margin else value(number, decimals)


def change_interval(number: float | None, margin: float | None, decimals: int | None = None) -> str:
    """A change of a metric with half of its 95 % interval, if that is known, in so many decimals of its task."""
    decimals = decimals_beside(margin, decimals)
    return f"{signed(number, decimals)} ± {value(margin, decimals)}" if margin else signed(number, decimals)


def difference(number: float, other: float) -> float:
    """``number`` less ``other``; 0 where they differ by rounding alone."""
    less = number - other
    return 0.0 if abs(less) < _ROUNDING * max(abs(number), abs(other)) else less


def change(number: float | None, parent: float | None) -> str:
    """The difference of a metric to its parent's, with its sign; what comes of rounding is none."""
    return "" if number is None or parent is None else signed(difference(number, parent))


def figure(number: float | None) -> str:
    """A number for another program: all digits, but twelve where the rest comes of rounding; nothing for none."""
    if number is None:
        return ""
    text = f"{number:z.12g}"
    return text if abs(float(text) - number) <= _ROUNDING / 10 * abs(number) else str(number)


def counted(number: int, thing: str, things: str = "") -> str:
    """A number of things: ``1 run``, ``2 runs``; ``things`` where the plural is not formed so."""
    return f"{number} {thing}" if number == 1 else f"{number} {things or f'{thing}s'}"


def number_form(kind: type, least: float | None, most: float | None) -> str:
    """What an ``int`` or a ``float`` may be: "whole number from 1 to 64"."""
    bounds = "" if least is None else f" of {least} and more" if most is None else f" from {least} to {most}"
    return f"{'whole ' if kind is int else ''}number{bounds}"


def did_you_mean(word: str, names: Iterable[str], likeness: float = 0.6) -> str:
    """The hint for one of these names mistyped: ``did you mean grammar?``; empty where none is so like the word."""
    import difflib  # most commands start without it

    near = difflib.get_close_matches(word, list(names), 1, likeness)
    return f"did you mean {near[0]}?" if near else ""


def unsettled(number: int) -> str:
    """That runs are still to be judged, so that numbers may change; empty where none is."""
    return f"{number:,} {'run is' if number == 1 else 'runs are'} still being judged" if number else ""


def failures(raised: int, raised_failed: int, lowered: int, lowered_failed: int, failed_as: str = "") -> str:
    """How many runs that changed a setting failed, in words: ``raised: 4 of 6 diverged``; empty where none did."""
    tried, how = (("raised", raised_failed, raised), ("lowered", lowered_failed, lowered)), failed_as or "failed"
    how = how.replace("_", " ")
    return ", ".join(f"{word}: {failed} of {runs} {how}" for word, failed, runs in tried if failed)


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
        raise UsageError(f"{text!r} is not above zero and below ten years", hint="such as 90s, 30m, 2h, 1h30m or 3d")
    return int(total)


MINIMIZE, MAXIMIZE = "minimize", "maximize"


def sign_of(direction: str | None) -> float:
    """The factor that makes smaller values better; 1 where the direction is not known."""
    return -1.0 if direction == MAXIMIZE else 1.0


ADDRESS_MAX = 254  # RFC 5321, 4.5.3.1.3, less the angle brackets
# Of a text in a record.
NOTE_CHARACTERS = 2048
# Of why something is hidden, and of what is said of a list of such things.
HIDE_REASON_CHARACTERS = 240
# So many runs are the evidence of a note.
NOTE_EVIDENCE = 16
QUESTION_CHARACTERS = 500


# Deeper than any settings are; what walks over the values calls itself for each level.
_LEVELS = 64
_QUOTED = re.compile(r'"(?:[^"\\]|\\.)*"|' r"'[^']*'")
_DOT, _NO_KEY = re.compile(r"[ \t]*\.[ \t]*"), re.compile(r"[^\w.-]")


def unreadable(error: OSError | UnicodeDecodeError) -> str:
    """Why a file can't be read as text: ``Permission denied``, ``line 3 is not UTF-8``."""
    if isinstance(error, UnicodeDecodeError):
        line = error.object.count(b"\n", 0, error.start) + 1
        return f"line {line} is not UTF-8"
    return error.strerror or str(error)


def read_toml(text: str | bytes) -> dict[str, Any]:
    """TOML from elsewhere. Raises ValueError: it is none, no UTF-8, nested deep, or has a number of many digits."""
    import tomllib

    try:
        text = text if isinstance(text, str) else text.decode()
        # A dotted key of thousands of parts keeps the parser busy for minutes.
        lines = (_DOT.sub(".", _QUOTED.sub("q", line)) for line in text.splitlines() if line.count(".") > _LEVELS)
        if any(word.count(".") > _LEVELS for line in lines for word in _NO_KEY.split(line)):
            raise ValueError(_DEEP)
        table = tomllib.loads(text)
        _check_levels(table)
    except RecursionError:
        raise ValueError(_DEEP) from None
    except UnicodeDecodeError as error:
        raise ValueError(unreadable(error)) from None
    return table


def read_json(text: str | bytes) -> Any:  # noqa: ANN401 - any value
    """JSON from elsewhere. Raises ValueError as :func:`read_toml` does."""
    try:
        value = json.loads(text)
        _check_levels(value)
    except RecursionError:
        raise ValueError(_DEEP) from None
    return value


_DEEP = f"values are nested in more than {_LEVELS} levels"


def _check_levels(value: object) -> None:
    level = [value]
    for _ in range(_LEVELS):
        inner = [each.values() if isinstance(each, dict) else each for each in level if isinstance(each, dict | list)]
        level = [each for values in inner for each in values]
        if not level:
            return
    raise ValueError(_DEEP)
