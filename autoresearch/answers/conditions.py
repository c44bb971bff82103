"""Conditions on runs, as people write them: ``value<1.1``, ``status=crashed``, ``title~warm-up``. Pure."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Sequence

from autoresearch.errors import UsageError
from autoresearch.records import Record, Run

Condition = Callable[[Record], bool]
_NUMBERS = {"value": "value", "replicate": "replicate", "seconds": "duration_ms", "cpu_seconds": "cpu_ms"}
_TEXTS = ("status", "title", "hypothesis")
_COMPARISONS = {
    "<=": operator.le,
    ">=": operator.ge,
    "!=": operator.ne,
    "<": operator.lt,
    ">": operator.gt,
    "=": operator.eq,
}
_FORM = re.compile(r"\s*([a-z_]+)\s*(<=|>=|!=|<|>|=|~)\s*(.*?)\s*", re.DOTALL)
_HINT = f"such as value<1.1, status=crashed, title~warm-up; names: {', '.join((*_NUMBERS, *_TEXTS))}"


def parse_conditions(texts: Sequence[str]) -> Condition | None:
    """A function that says whether a record is a run that meets all conditions; None of no condition.

    Raises:
        UsageError: one of them has another form.
    """
    conditions = [_parse(text) for text in texts]
    if not conditions:
        return None
    return lambda record: all(condition(record) for condition in conditions)


def _parse(text: str) -> Condition:
    match = _FORM.fullmatch(text)
    name, sign, wanted = match.groups() if match else ("", "", "")
    if name in _NUMBERS and sign != "~":
        return _of_number(name, sign, _number(text, wanted))
    if name in _TEXTS and sign in ("=", "!=", "~"):
        return _of_text(name, sign, wanted.casefold())
    raise UsageError(f"“{text[:80]}” is no condition on runs", hint=_HINT)


def _of_number(name: str, sign: str, wanted: float) -> Condition:
    field, scale = _NUMBERS[name], 1000 if _NUMBERS[name].endswith("_ms") else 1

    def holds(record: Record) -> bool:
        found = getattr(record.body, field) if isinstance(record.body, Run) else None
        return found is not None and bool(_COMPARISONS[sign](found, scale * wanted))

    return holds


def _of_text(name: str, sign: str, wanted: str) -> Condition:
    def holds(record: Record) -> bool:
        if not isinstance(record.body, Run):
            return False
        found = getattr(record.body, name).casefold()
        return wanted in found if sign == "~" else (found == wanted) == (sign == "=")

    return holds


def _number(text: str, wanted: str) -> float:
    try:
        return float(wanted)
    except ValueError:
        raise UsageError(f"“{text[:80]}” compares with no number", hint=_HINT) from None
