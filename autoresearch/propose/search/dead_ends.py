"""Dead ends: changes that were tried often enough and never gained, or that failed each time. Pure.

A change is a setting that goes into a region: at least 0.1, at most 0.001, = "adam". It is a dead end

- where at least three programs changed this alone, and that it gains as much as one seed moves the value is ruled out
  at 97.5 %, for all regions of a task together. An error of a parent is in each of its children; and parents are chosen
  because they looked good: the best of N equal programs is lucky by ``sqrt(2 ln N)`` deviations. Nor may a program have
  gained that went there with other changes.
- where at least three programs went there, all failed for one cause, and no program there has a value.

A cause alone is one as well where all programs that ended so have lines of code that no working program has.
"""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import Literal, NamedTuple

from autoresearch.log.tables.differences import FEW_CHANGES, raised
from autoresearch.propose.program.ranges import Value
from autoresearch.record.encoding import short_id
from autoresearch.text import brief, counted, one_line

# So many tries are enough.
TRIES = 3
# One-sided: so often at most a task has an entry that would have gained.
_TAIL = 0.025
# So many bounds of a setting in one direction are looked at.
_REGIONS = 24
# One value that exploded counts for no more than so many deviations.
_CLIP = 6.0
# A gain beyond so many standard errors is one.
_GAINED = 1.96
_NUMBER = re.compile(r"\d+(?:\.\d+)?")
_FAULT, _LINE, _LINES, _NAMED_RUNS = 120, 60, 2, 6
_WORDS = {">=": "at least", "<=": "at most"}

Settings = Mapping[str, Value]


class Try(NamedTuple):
    """A program beside the program that it changes.

    ``changed`` are the settings in which they differ, each before and after, ``settings`` all of its own. ``value`` is
    the mean of ``runs`` runs, None where it failed, for ``fault``. ``parent`` names the other one. ``added`` are its
    new lines, where it failed. ``is_alone``: nothing but ``changed`` differs.
    """

    id: bytes
    author: bytes
    changed: Mapping[str, tuple[Value, Value]]
    settings: Settings
    value: float | None
    runs: int
    parent: bytes
    parent_value: float
    parent_runs: int
    is_alone: bool = True
    fault: str = ""
    added: frozenset[str] = frozenset()


class Noise(NamedTuple):
    """The standard deviation over seeds, and the one for intervals: larger where it is known from few runs."""

    deviation: float
    wide: float


class Region(NamedTuple):
    """Values of a setting: at least, at most, or equal to a bound."""

    setting: str
    relation: Literal[">=", "<=", "="]
    bound: Value

    def has(self, value: Value | None) -> bool:
        """Whether a value lies in it."""
        if self.relation == "=":
            return type(value) is type(self.bound) and value == self.bound
        if value is None or isinstance(value, str | bool) or isinstance(self.bound, str | bool):
            return False
        return value >= self.bound if self.relation == ">=" else value <= self.bound

    def is_entered(self, before: Value | None, after: Value | None) -> bool:
        """Whether a change leads into it."""
        return self.has(after) and before is not None and not self.has(before)

    def __str__(self) -> str:
        name = one_line(self.setting, _LINE)
        if isinstance(self.bound, bool):
            return f"{name} {'on' if self.bound else 'off'}"
        if isinstance(self.bound, str):
            return f"{name} = “{one_line(self.bound, _LINE)}”"
        return f"{name} {_WORDS.get(self.relation, '=')} {brief(self.bound)}"


@dataclass(frozen=True, slots=True)
class DeadEnd:
    """What was tried often enough, with the first run of each program.

    ``gain`` is the mean gain over the parents, positive where better, and ``margin`` half of its 95 % interval, both
    None where all failed, for ``fault``. ``lines`` are what these programs share and no working one has, where that is
    no setting's ``region``.
    """

    runs: tuple[bytes, ...]
    participants: int
    region: Region | None = None
    gain: float | None = None
    margin: float | None = None
    fault: str = ""
    lines: tuple[str, ...] = ()

    @property
    def sentence(self) -> str:
        """What was tried, how it ended, and by which runs. Names, lines and errors in it are their authors' words."""
        names = ", ".join(short_id(run) for run in self.runs[:_NAMED_RUNS])
        more = f" and {len(self.runs) - _NAMED_RUNS} more" if len(self.runs) > _NAMED_RUNS else ""
        by = f", by {self.participants} participants" if self.participants > 1 else ""
        what = str(self.region or " and ".join(f"“{one_line(line, _LINE)}”" for line in self.lines[:_LINES]))
        tries = f"{what}: {counted(len(self.runs), 'try', 'tries')}{by}"
        if self.gain is None:
            return f"{tries}, all failed: {one_line(self.fault, _FAULT)} ({names}{more})"
        interval = f"{self.gain:+.3g} ± {self.margin:.2g}" if self.margin else f"{self.gain:+.3g}"
        return f"{tries}, no gain: {interval} on average, where + is better ({names}{more})"

    def is_repeated(self, before: Settings, after: Settings, program: str) -> bool:
        """Whether a change of a program goes there again: from settings to settings, or by the lines of the new one."""
        if self.region is not None:
            return self.region.is_entered(before.get(self.region.setting), after.get(self.region.setting))
        return bool(self.lines) and code_lines(program) >= {*self.lines}

    def is_answered(self, hypothesis: str) -> bool:
        """Whether a hypothesis names one of the runs, as one does that says why it differs."""
        return any(short_id(run) in hypothesis for run in self.runs)


def code_lines(program: str) -> frozenset[str]:
    """The lines of a program that say something, without comments and indents."""
    lines = (line.split("#", maxsplit=1)[0].strip() for line in program.splitlines())
    return frozenset(line for line in lines if sum(map(str.isalnum, line)) >= TRIES)


def dead_ends(
    tries: Iterable[Try],
    *,
    noise: Noise | None,
    sign: float,
    best: Settings,
    working: Collection[str] = (),
) -> list[DeadEnd]:
    """The dead ends of a task, in the order of their settings; the same for the same tries in any order.

    Args:
        tries: each program once, beside its parent.
        noise: how far a seed moves the value; None: nobody knows it, so that only failures count.
        sign: 1 where smaller values are better, else -1.
        best: the settings of the best program, which is in no dead end.
        working: programs that have a value.
    """
    tries = sorted(tries, key=lambda each: each.id)
    changing: dict[str, list[Try]] = defaultdict(list)
    for each in tries:
        for setting in each.changed if len(each.changed) <= FEW_CHANGES else ():
            changing[setting].append(each)
    entered = {
        region: group
        for setting, changed in sorted(changing.items())
        for region in _regions(setting, changed)
        if len(group := [each for each in changed if region.is_entered(*each.changed[setting])]) >= TRIES
    }
    open_ones = [region for region in entered if not region.has(best.get(region.setting))]
    programs = sum(each.value is not None for each in tries) + 1
    ends: dict[tuple[str, str], list[tuple[Region, DeadEnd]]] = defaultdict(list)
    for region in open_ones:
        end = _failing(region, entered[region], tries)
        if end is None and noise is not None:
            end = _without_gain(region, entered[region], noise, sign, programs=programs, looks=len(open_ones))
        if end is not None:
            key = str(region.bound) if region.relation == "=" else ""
            ends[region.setting, region.relation + key].append((region, end))
    widest = [max(group, key=lambda pair: len(pair[1].runs))[1] for group in ends.values()]
    covered = {run for end in widest if end.fault for run in end.runs}
    return widest + list(_by_lines([each for each in tries if each.id not in covered], working))


def _regions(setting: str, tries: Sequence[Try]) -> Iterator[Region]:
    """The regions into which these tries went, of many only some, from one end of the setting to the other."""
    bounds: dict[Literal[">=", "<=", "="], set[Value]] = defaultdict(set)
    for before, after in (each.changed[setting] for each in tries):
        is_number = not isinstance(before, str | bool) and not isinstance(after, str | bool)
        bounds[(">=" if raised(before, after) > 0 else "<=") if is_number else "="].add(after)
    for relation in sorted(bounds):
        ordered = sorted(
            bounds[relation], key=lambda value: (isinstance(value, str), value if relation != "=" else str(value))
        )
        for bound in ordered[:: 1 + len(ordered) // _REGIONS]:
            yield Region(setting, relation, bound)


def _failing(region: Region, entered: Sequence[Try], tries: Sequence[Try]) -> DeadEnd | None:
    """The dead end of a region where all failed for one cause."""
    causes = {cause_of(each) for each in entered}
    if len(causes) != 1 or "" in causes or not any(each.is_alone and len(each.changed) == 1 for each in entered):
        return None
    if any(each.value is not None and region.has(each.settings.get(region.setting)) for each in tries):
        return None
    return _end(entered, region=region, fault=entered[0].fault)


def _without_gain(
    region: Region, entered: Sequence[Try], noise: Noise, sign: float, *, programs: int, looks: int
) -> DeadEnd | None:
    """The dead end of a region where that it gains is ruled out."""
    chance = math.sqrt(2 * math.log(programs)) * noise.wide
    alone, corrected = list[Try](), list[float]()
    for each in entered:
        if each.value is None:
            continue
        gain = sign * (each.parent_value - each.value)
        if each.is_alone and len(each.changed) == 1:
            alone.append(each)
            corrected.append(
                max(gain, -_CLIP * noise.wide if noise.wide else gain) + chance / math.sqrt(each.parent_runs)
            )
            if corrected[-1] > noise.deviation:
                return None
        elif gain > _GAINED * noise.wide * math.sqrt(1 / each.runs + 1 / each.parent_runs):
            return None
    if len(alone) < TRIES:
        return None
    # A parent's error is in the gain of each of its children.
    children, runs = Counter(each.parent for each in alone), {each.parent: each.parent_runs for each in alone}
    squares = sum(1 / each.runs for each in alone) + sum(n**2 / runs[parent] for parent, n in children.items())
    error = noise.wide * math.sqrt(squares) / len(alone)
    bound = NormalDist().inv_cdf(1 - _TAIL / looks) * error
    if sum(corrected) / len(corrected) + bound > noise.deviation:
        return None
    gains = [sign * (each.parent_value - (each.value or 0.0)) for each in alone]
    return _end(alone, region=region, gain=sum(gains) / len(gains), margin=_GAINED * error)


def _by_lines(tries: Sequence[Try], working: Collection[str]) -> Iterator[DeadEnd]:
    """Causes of failing programs that share lines which no working program has."""
    groups: dict[str, list[Try]] = defaultdict(list)
    for each in tries:
        if cause_of(each) and each.added:
            groups[cause_of(each)].append(each)
    sound = frozenset[str]().union(*map(code_lines, working))
    for _, group in sorted(groups.items()):
        if len(group) >= TRIES and (shared := frozenset.intersection(*(each.added for each in group)) - sound):
            yield _end(group, lines=tuple(sorted(shared)), fault=group[0].fault)


def cause_of(each: Try) -> str:
    """Why a program failed, without the numbers in it; empty where it has a value."""
    return _NUMBER.sub("#", each.fault) if each.value is None else ""


def _end(
    tries: Sequence[Try],
    *,
    region: Region | None = None,
    gain: float | None = None,
    margin: float | None = None,
    fault: str = "",
    lines: tuple[str, ...] = (),
) -> DeadEnd:
    authors = {each.author for each in tries}
    return DeadEnd(tuple(each.id for each in tries), len(authors), region, gain, margin, fault, lines)
