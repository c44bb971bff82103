"""What people ask for in a list or chart of runs, as a filter that the log understands."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import chain

from autoresearch.ask.requests import Filtered
from autoresearch.errors import UsageError
from autoresearch.log.log import Log
from autoresearch.log.standing.cache import cached_answer, roster_of
from autoresearch.log.standing.context import board_hardware
from autoresearch.log.tables.filters import VALUE, Condition, Filter, Order, OwnDevice, RunCounts
from autoresearch.log.tables.places import Place, Places
from autoresearch.record.encoding import COMMON, prefix_range
from autoresearch.record.kinds import Run
from autoresearch.text import one_line
from autoresearch.words import RunMark

ORDERS: dict[str, Order] = {"number": "time", "time": "time", "value": "value", "change": "change", "cost": "cost"}
# Fewer characters begin too many ids.
ID_LEAST = 4
# Of the newest runs so many are read for the names of settings, and so many names told.
_NAMES_READ, _NAMES_TOLD = 20, 20
_FOR_EVER = 1 << 62
_CONDITION = re.compile(r'\s*([^"\\<>=|]+?)\s*(<=|>=|<|>|=)\s*([^<>=]+?)\s*')


def filter_of(log: Log, task: bytes, request: Filtered, *, me: bytes | None = None, until: int = 0) -> Filter | None:
    """The filter that is asked for; None where no run can match. ``until``: of the records up to that number.

    Raises UsageError where ``by`` is no beginning of a key, ``state`` no mark, or ``where`` no condition.
    """
    metric = log.tasks.stated(task, "metric", "name")
    marks, words = marks_in(request.state), request.q.strip()
    match, ids = (log.texts.matching_runs(task, words), _ids_beginning_with(words)) if words else ("", None)
    authors, own = _devices_of(log, task, request.by, me) if request.by else (None, ())
    if (words and not match and not ids) or (authors is not None and not authors and not own):
        return None
    return Filter(
        task=task,
        board=board_hardware(log, task) or "",
        marks=marks,
        until=until,
        authors=authors,
        own=own,
        hardware=request.hardware,
        match=match,
        ids=ids,
        setting=request.has,
        where=tuple(_of_value(condition, metric) for condition in conditions_in(request.where)),
    )


def counts_of(log: Log, criteria: Filter) -> RunCounts:
    """How many runs of each mark a filter finds; kept until the log changes.

    Raises UsageError where it finds none by the name of a setting that no run of the task has.
    """
    counts = cached_answer(log, "counts", criteria, lambda: log.listing.counts(criteria))
    if not counts.marks:
        names = [condition.setting for condition in criteria.where if condition.setting != VALUE]
        check_settings(log, criteria.task, names, also=["value"])
    return counts


def check_settings(log: Log, task: bytes, names: Iterable[str], *, also: Sequence[str] = ()) -> None:
    """Raises UsageError where runs of a task have settings, and none of them one of such a name.

    ``also`` are names that would do as well as those of settings.
    """
    for name in names:
        if log.listing.has_setting(task, name):
            continue
        newest = log.runs.newest(task, limit=_NAMES_READ)
        settings = dict.fromkeys(chain(*(stored.record.body_as(Run).genome for stored in newest)))
        choices = ", ".join(one_line(each, 60) for each in [*also, *settings][:_NAMES_TOLD])
        if newest and choices:
            raise UsageError(f"no run has a setting “{one_line(name, 60)}”", hint=f"there are: {choices}")


def within(base: Filter | None, places: Places, request: Filtered) -> Filter | None:
    """The filter, between the ends of the axis that are asked for; None where nothing is there."""
    if base is None:
        return None

    def first(least: int) -> Place | None:
        return (least, b"") if request.x == "time" else places.at(request.x, least)

    since = first(request.since) if request.since else (0, b"")
    if since is None:
        return None
    return replace(base, since=since, to=first(request.to + 1) if request.to else None)


def conditions_in(where: str) -> tuple[Condition, ...]:
    """The conditions in a text, with commas between them. Raises UsageError where one has another form."""
    return tuple(_condition(text) for text in where.split(",") if text.strip())


def _condition(text: str) -> Condition:
    match = _CONDITION.fullmatch(text)
    setting, sign, operand = match.groups() if match else ("", "", "")
    numbers = [_number(word) for word in operand.split("|")]
    if not match or (sign != "=" and None in numbers):
        raise UsageError(
            f"“{one_line(text, 60)}” is no condition on runs", hint="such as LR>=0.01,OPT=adam|sgd,value<1.1"
        )
    words = zip(numbers, operand.split("|"), strict=True)
    return Condition(setting, sign, tuple(word if number is None else number for number, word in words))


def _of_value(condition: Condition, metric: object) -> Condition:
    """The same condition; the metric's name stands for the value, unless it is compared with words."""
    is_value = condition.setting == metric and all(isinstance(operand, float) for operand in condition.operands)
    return condition._replace(setting=VALUE) if is_value else condition


def _number(word: str) -> float | None:
    try:
        return float(word)
    except ValueError:
        return None


def marks_in(state: str) -> frozenset[str]:
    """The marks in a text, with commas between them. Raises UsageError where there is no such mark."""
    names = [name.strip() for name in state.split(",") if name.strip()]
    states = [mark.value for mark in RunMark]
    if wrong := [name for name in names if name not in states]:
        raise UsageError(f"there is no state “{wrong[0][:40]}”", hint=f"states: {', '.join(states)}")
    return frozenset(names)


def order_of(sort: str) -> tuple[Order, bool]:
    """An order, and whether the largest comes first. Raises UsageError where there is no such order."""
    order = ORDERS.get(sort.removeprefix("-"))
    if order is None:
        hint = f"{', '.join(ORDERS)}; with - in front the largest first"
        raise UsageError(f"runs have no order “{sort[:40]}”", hint=hint)
    return order, sort.startswith("-")


def _devices_of(log: Log, task: bytes, by: str, me: bytes | None) -> tuple[frozenset[bytes], tuple[OwnDevice, ...]]:
    """The devices whose runs on a task are all of some participants, and those that were theirs for a time."""
    text, roster = by.lower(), roster_of(log)
    if text == "me":
        newest = log.runs.newest(task, limit=1)
        text = roster.voter(me, newest[0].record.time).root.hex() if me and newest else "-"
    elif any(character not in "0123456789abcdef" for character in text):
        raise UsageError(
            "a participant is named by the beginning of its key, or me", hint="autoresearch network credit"
        )
    always, own = set[bytes](), list[OwnDevice]()
    for device, (_, first_ms, last_ms) in log.listing.devices(task).items():
        spans = roster.spans(device)
        ends = [min(start_ms, _FOR_EVER) for start_ms, _ in spans[1:]]
        for (start_ms, root), end_ms in zip(spans, [*ends, _FOR_EVER], strict=True):
            if not root.hex().startswith(text) or last_ms < start_ms or first_ms >= end_ms:
                continue
            if start_ms <= first_ms and last_ms < end_ms:
                always.add(device)
            else:
                own.append(OwnDevice(device, start_ms, end_ms))
    return frozenset(always), tuple(own)


def _ids_beginning_with(words: str) -> tuple[bytes, bytes] | None:
    """The range of ids that begin so, where enough of an id is given."""
    if len(words.removeprefix(COMMON)) < ID_LEAST:
        return None
    try:
        return prefix_range(words)
    except UsageError:
        return None  # no id begins so
