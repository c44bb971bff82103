"""Runs in groups by one or two of their settings: how many there are, the best, the median and the spread of each."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from statistics import median
from typing import NamedTuple

import msgspec

from autoresearch.ask.lookup import FoundTask
from autoresearch.ask.requests import WHERE_CHARACTERS, GroupsOf
from autoresearch.ask.runs.answers import GroupsAnswer, GroupView
from autoresearch.ask.runs.boards import task_status
from autoresearch.ask.runs.filtering import check_settings, conditions_in, counts_of, filter_of, within
from autoresearch.errors import UsageError
from autoresearch.log.log import Log
from autoresearch.log.standing.cache import cached_answer
from autoresearch.log.tables.filters import Condition
from autoresearch.record.encoding import format_id
from autoresearch.text import brief, one_line, sign_of
from autoresearch.words import DISCREDITED, RunMark

# More numbers are cut into so many ranges, with about as many runs in each; of more words the rest is one group.
MOST_VALUES, RANGES = 12, 8
# The middle half of fewer values says nothing.
SPREAD_LEAST = 4
NAME_CHARACTERS = 60
NONE, OTHERS = "none", "others"
_DISCREDITED = frozenset(state.value for state in DISCREDITED)
_FAILED = RunMark.FAILED.value
Setting = int | float | str | None


class _Bin(NamedTuple):
    """Values of a setting that go together. ``where`` is the condition that finds their runs; empty: none does."""

    name: str
    where: str = ""


def groups_answer(log: Log, task: FoundTask, request: GroupsOf, *, me: bytes | None = None) -> GroupsAnswer:
    """The runs that a filter finds, in groups. Raises UsageError where it is none, or no setting has such a name.

    It reads the settings of all these runs, so it is kept until the log changes.
    """
    place = task.digest, msgspec.json.encode(request), me
    return cached_answer(log, "groups", place, lambda: _groups(log, task, request, me))


def _groups(log: Log, task: FoundTask, request: GroupsOf, me: bytes | None) -> GroupsAnswer:
    if not request.setting:
        raise UsageError("groups are by a setting or two", hint="setting=LR; autoresearch task effects lists settings")
    if any('"' in name or "\\" in name or one_line(name) != name or not name for name in request.setting):
        raise UsageError("no setting has such a name", hint="autoresearch task effects")
    criteria = within(filter_of(log, task.digest, request, me=me), log.listing.places(task.digest), request)
    if criteria and not log.hidden:
        criteria = replace(criteria, hidden=True)
    runs = log.listing.by_settings(criteria, request.setting) if criteria else []
    if criteria and not runs:
        counts_of(log, criteria)  # a condition on what no run has is an error there
    columns = list(zip(*runs, strict=True)) if runs else [()] * (3 + len(request.setting))
    ns, marks, reported, *settings = columns
    unset = [name for name, column in zip(request.setting, settings, strict=True) if {*column} <= {None}]
    check_settings(log, task.digest, unset)
    binned = [_bins(name, Counter(column)) for name, column in zip(request.setting, settings, strict=True)]
    parts = [map(of.places.__getitem__, column) for of, column in zip(binned, settings, strict=True)]
    placed = list(zip(*parts, strict=True))
    counts = Counter(placed)
    failed = Counter(places for places, mark in zip(placed, marks, strict=True) if mark == _FAILED)
    groups = defaultdict[tuple[int, ...], list[tuple[float, int]]](list)
    sign = sign_of(task.direction)
    for places, n, mark, value in zip(placed, ns, marks, reported, strict=True):
        if value is not None and mark not in _DISCREDITED:
            groups[places].append((sign * value, n))
    views: list[GroupView] = []
    best: list[int] = []  # numbers of runs, 0 where a group has none
    for places in sorted(counts):
        bins = [of.bins[at] for of, at in zip(binned, places, strict=True)]
        ranked = sorted(groups[places])
        values = [sign * value for value, _ in ranked]
        quarter = (len(values) + 1) // 4
        ends = sorted((values[quarter], values[-1 - quarter])) if len(values) >= SPREAD_LEAST else (None, None)
        where = ",".join(each.where for each in bins) if all(each.where for each in bins) else ""
        best.append(ranked[0][1] if ranked else 0)
        views.append(
            GroupView(
                settings=[each.name for each in bins],
                where=where if len(where) <= WHERE_CHARACTERS else "",
                runs=counts[places],
                failed=failed[places],
                best=values[0] if values else None,
                median=median(values) if values else None,
                low=ends[0],
                high=ends[1],
            )
        )
    ids = log.listing.ids(best)
    for view, n in zip(views, best, strict=True):
        view.best_run = format_id(ids[n]) if n else ""
    return GroupsAnswer(
        task=task_status(log, task, author=me),
        setting=request.setting,
        values=[[each.name for each in of.bins] for of in binned],
        groups=views,
        runs=len(runs),
    )


class _Bins(NamedTuple):
    """The groups of a setting's values, in order, and in which of them each value is."""

    bins: list[_Bin]
    places: dict[Setting, int]


def _bins(setting: str, counts: Mapping[Setting, int]) -> _Bins:
    numbers = sorted(value for value in counts if isinstance(value, int | float))
    words = sorted((value for value in counts if isinstance(value, str)), key=lambda word: (-counts[word], word))
    bins: list[_Bin] = []
    places: dict[Setting, int] = {}
    parts = [[number] for number in numbers] if len(numbers) <= MOST_VALUES else _ranges(numbers, counts)
    switch = ("off", "on") if setting[0] == "+" else ()
    for at, part in enumerate(parts):
        name = brief(part[0]) if len(part) == 1 else f"{brief(part[0])} .. {brief(part[-1])}"
        name = switch[int(part[0])] if switch and part[0] in (0, 1) else name
        lower = [f"{setting}>={part[0]!r}"] if at else []
        upper = [f"{setting}<{parts[at + 1][0]!r}"] if at + 1 < len(parts) else []
        bins.append(_Bin(name, f"{setting}={part[0]!r}" if len(part) == 1 else ",".join([*lower, *upper])))
        places |= dict.fromkeys(part, at)
    for word in words[:MOST_VALUES]:
        places[word] = len(bins)
        where = f"{setting}={word}"
        bins.append(_Bin(one_line(word, NAME_CHARACTERS) or "“”", where if _finds(where, setting, word) else ""))
    if words[MOST_VALUES:]:
        places |= dict.fromkeys(words[MOST_VALUES:], len(bins))
        bins.append(_Bin(OTHERS))
    if None in counts:
        places[None] = len(bins)
        bins.append(_Bin(NONE))
    names = [each.name for each in bins]
    # What is rounded or cut off may read alike.
    alike = [f"{name} ({names[:at].count(name) + 1})" if name in names[:at] else name for at, name in enumerate(names)]
    return _Bins([each._replace(name=name) for each, name in zip(bins, alike, strict=True)], places)


def _ranges(numbers: Sequence[float], counts: Mapping[Setting, int]) -> list[list[float]]:
    """Numbers in order in ranges with about as many runs in each."""
    total, before = sum(counts[number] for number in numbers), 0
    ranges = defaultdict[int, list[float]](list)
    for number in numbers:
        ranges[RANGES * before // total].append(number)
        before += counts[number]
    return list(ranges.values())


def _finds(where: str, setting: str, word: str) -> bool:
    """Whether a condition finds the runs with a word: it may have signs of conditions in it, or look like a number."""
    try:
        return conditions_in(where) == (Condition(setting, "=", (word,)),)
    except UsageError:
        return False
