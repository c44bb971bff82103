"""Values, their places on a range, and their changes in a few characters."""

from __future__ import annotations

from autoresearch.proposers import LARGEST, Parameter, Range, Value
from autoresearch.sanitise import one_line

TEXT_CHARACTERS = 24
# Of a name at least so many characters are shown, then of the values what is left.
_NAME_LEAST = 8
_VALUE_CHARACTERS = 64
# From here on a number is shown with an exponent.
_MANY_DIGITS = 1_000_000
# From here on a factor is shown without decimals.
_LARGE_FACTOR = 10


def place(value: Value, allowed: Range | None) -> float | None:
    """The place of a value on its range, 0 to 1; None where it has none."""
    if allowed is None or not _is_number(value):
        return None
    parameter = Parameter("", allowed, value)
    if not parameter.ordered or (allowed.kind == "log" and not float(value) > 0):
        return None
    return min(1.0, max(0.0, parameter.place(value)))


def distance(before: Value, after: Value, allowed: Range | None) -> float:
    """The part of its range that a constant moved, 0 to 1; 1 where values are only equal or different.

    Without a range it is the relative change.
    """
    old, new = place(before, allowed), place(after, allowed)
    if old is not None and new is not None:
        return abs(new - old)
    if allowed is None and _is_number(before) and _is_number(after):
        low, high = sorted((float(before), float(after)))
        return min(1.0, (high - low) / max(abs(low), abs(high)))
    return 1.0


def value_text(value: Value, digits: int = 3) -> str:
    """A value on its own: ``on``, ``0.0012``, ``gelu``."""
    if isinstance(value, bool):
        return "on" if value else "off"
    if isinstance(value, float) or (isinstance(value, int) and abs(value) >= _MANY_DIGITS):
        return f"{value:.{digits}g}"
    return one_line(str(value), _VALUE_CHARACTERS)


def pair_text(before: Value, after: Value) -> tuple[str, str]:
    """Two different values, numbers with as many digits as tell them apart."""
    digits = 3
    if _is_number(before) and _is_number(after) and before != after:
        while value_text(before, digits) == value_text(after, digits):
            digits += 1
    return value_text(before, digits), value_text(after, digits)


def change_text(name: str, before: Value, after: Value, allowed: Range | None) -> str:
    """A change in at most 24 characters: ``LR ×1.4`` on a logarithmic range, else ``DEPTH 3→4``."""
    factor = _factor(before, after) if allowed is not None and allowed.kind == "log" else ""
    if factor:
        return f"{short_name(name, TEXT_CHARACTERS - len(factor) - 1)} {factor}"
    old, new = pair_text(before, after)
    room = (TEXT_CHARACTERS - _NAME_LEAST - 2) // 2
    if len(old) + len(new) > 2 * room:
        left = max(room, 2 * room - min(len(old), len(new)))
        old, new = one_line(old, left), one_line(new, max(room, 2 * room - min(len(old), left)))
    values = f"{old}→{new}"
    return f"{short_name(name, TEXT_CHARACTERS - len(values) - 1)} {values}"


def short_name(name: str, characters: int) -> str:
    """A name of at most so many characters: of a long one the last part, behind its file and its section."""
    line = one_line(name)
    for mark in (":", "."):
        if len(line) > characters and line.rpartition(mark)[2]:
            line = line.rpartition(mark)[2]
    return one_line(line, characters)


def _factor(before: Value, after: Value) -> str:
    """How many times larger or smaller a number is; empty where no factor of a few digits says it."""
    if not (_is_number(before) and _is_number(after) and float(before) > 0 and float(after) > 0):
        return ""
    up = float(after) >= float(before)
    factor = float(after) / float(before) if up else float(before) / float(after)
    for digits in (2, 3):
        text = f"{factor:.0f}" if _LARGE_FACTOR <= factor < _MANY_DIGITS else f"{factor:.{digits}g}"
        if text != "1" and factor < LARGEST:
            return f"{'×' if up else '÷'}{text}"
    return ""


def _is_number(value: Value) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and -LARGEST < value < LARGEST
