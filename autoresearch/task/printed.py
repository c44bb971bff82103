"""What a program printed about itself: its numbers by name, the one it is judged by, and its last word on it. Pure.

A stranger's program prints it, so all work is bounded by the length of the text. The forms that are read:

==================  ============================================================================================
form                for example
==================  ============================================================================================
assignment          ``val_loss: 0.31`` · ``Test accuracy = 93.4%`` · ``accuracy (test): 0.93`` · ``score is 0.9``
among words         ``step 250: train loss 2.1, val loss 2.3`` · ``[9]  train-auc:0.9  eval-auc:0.8`` · ``loss 2.1``
mapping             ``{"val_loss": 0.31}`` · ``{'eval': {'loss': 0.31}}`` · ``"val_loss": 0.31,`` in lines of their own
wrapped number      ``tensor([0.93], grad_fn=<…>)`` · ``np.float64(0.93)`` · ``[12.]`` · ``'0.93'`` · ``**0.93**``
number and more     ``93.4%`` · ``0.93 ± 0.01`` · ``9912/10000 (99%)`` · ``1,234.5`` · ``12 ms`` · ``0.31 (best 0.30)``
mean of repetitions ``seed 0: acc 0.81`` · ``seed 1: acc 0.83`` · ``mean: 0.82 ± 0.01``: that is ``mean_acc``
before and now      ``acc 0.81 -> 0.83`` · ``loss decreased (inf --> 0.41)`` · ``improved from 0.81 to 0.83``
table               cells between ``|``, ``│``, tabs, commas or blanks: a name beside its number, or a line of names
                    above lines of numbers
no number           ``nan`` · ``-inf`` · ``None`` · ``null`` · nothing behind the name: the run has diverged
==================  ============================================================================================

:mod:`autoresearch.task.printed_lines` reads one line after another; here is what a whole text says.
A name is its words joined by ``_``. The number of a step is no part of it: ``epoch 3 val_loss`` is ``val_loss``.
Colours are left out, and each state of a line that is drawn over is a line. What stands last under a name counts.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from itertools import pairwise
from typing import NamedTuple

from autoresearch.record.kinds import NUMBER_MAX
from autoresearch.task.metric_names import DataPart, Kind, direction_of, meaning_of, part_word, words_of
from autoresearch.task.printed_forms import MAX_KEY_CHARACTERS, name_key
from autoresearch.task.printed_lines import HAS_VALUE, RULED, LineReader, PrintedItem

MAX_KEYS = 64  # as many as a run record holds
# Names that are remembered at a time; of more the ones that were not printed for the longest time are forgotten.
_NAMES = 2048
_LONGEST_LINE, _LONGEST_MAPPING = 2000, 65_536
# So many different lines are read of a text.
_MOST_LINES = 10_000
_QUOTED_CHARACTERS = 160

_ESCAPE = re.compile(r"\x1b(?:\[[0-?]{0,40}[ -/]{0,8}[@-~]|\][^\x07\x1b]{0,400}(?:\x07|\x1b\\)|[@-_])")
_NUMBERS = re.compile(r"(?<![\w@])(?<!\w-)(?<![Tt]op )(?<!\bk=)\.?\d[\d.]*(?:,\d[\d.]*)*(?:e[-+]?\d+)?")
_RULE = re.compile(r"-{3}\s*")

# A mean that says of what only by the lines above it: mean: 0.82; Average over 3 seeds = 0.82 (std 0.01).
_MEAN = re.compile(
    r"\W{0,8}(?:(?:cv|cross-validation|final|grand)\s)?(?P<word>mean|average|avg|overall)"
    r"(?:\s(?:over|of|across)\s[\w -]{1,30}|\scv|\scross-validation)?"
    r"(?:\s?(?:±|\+/?-|and|[/(,&])\s?(?:std|sd|stderr|sem|ci)\.?\)?)?(?:\s?[:=]\s?|\s)"
    r"(?P<number>[-+]?\d+(?:[.,]\d+)?(?:e[-+]?\d{1,2})?)(?![\w/]|[.,]\d)",
    re.IGNORECASE,
)
# Lines that tell of steps follow one on another, so that their mean is no result.
_STEPS = frozenset({"epoch", "epochs", "step", "steps", "iter", "iters", "iteration", "batch", "update", "generation"})
_MOST_REPETITIONS, _MOST_MEANS = 200, 8
# Of several numbers that are called alike, these come first.
_AVERAGED = frozenset({"mean", "average", "avg", "overall", "final"})
_TALLIED = frozenset(
    {"errors", "failures", "failed", "mistakes", "misses", "conflicts", "collisions", "passed", "matches"}
)
# One of several numbers, chosen by its size or its place: the number itself comes first.
_SELECTED = frozenset({"best", "max", "min", "maximum", "minimum", "highest", "lowest", "last", "current", "recent"})
# Another number of what is measured, which that is compared with: the number itself comes first.
_COMPARED = frozenset(
    {"baseline", "naive", "dummy", "majority", "chance", "untrained", "initial", "original"}
    | {"previous", "prev", "before", "old", "target", "goal"}
)
_DIFFERENCE = frozenset({"delta", "diff", "difference", "change"})


# Of the best five one is right: the best alone comes first.
_MORE_THAN_ONE = re.compile(r"(?:top|acc(?:uracy)?@)[\W_]?(?!1(?!\d))\d", re.IGNORECASE)
# speedup over the baseline: it is measured so
_ABOVE = frozenset({"vs", "versus", "over", "above", "than", "against", "relative"})
# The kind of a number, whether it is one that others are compared with, its part of the data, its worth, its place.
_Rank = tuple[Kind, bool, DataPart, int, int]


class _Printed(NamedTuple):
    """An item, the line that it stands in, and the number of that line."""

    item: PrintedItem
    line: str
    number: int

    @property
    def name(self) -> str:
        """The name, as long as a record's are at most."""
        return self.item.name[:MAX_KEY_CHARACTERS]

    @property
    def value(self) -> float | None:
        """The number."""
        return self.item.value


@dataclass(frozen=True, slots=True)
class MetricReading:
    """The last word on a metric; ``line`` quotes it, empty where the metric was not printed.

    ``numbers`` are all finite numbers by name, the metric's with the others, at most ``MAX_KEYS``.
    """

    value: float | None = None
    line: str = ""
    numbers: dict[str, float] = field(default_factory=dict)

    @property
    def diverged(self) -> bool:
        """Whether what stands last under the metric's name is no finite number."""
        return bool(self.line) and self.value is None

    def divergence(self, name: str) -> str:
        """What it printed of the metric with this name where it diverged."""
        return f"the last it printed of {name} is no number up to {NUMBER_MAX:.0e}: “{self.line}”"


@dataclass(frozen=True, slots=True)
class Guess:
    """The number that a program is most likely judged by, and why. ``others``: further names, likelier ones first."""

    name: str
    value: float | None
    is_sure: bool
    why: str
    others: tuple[str, ...] = ()

    @property
    def diverged(self) -> bool:
        """Whether its last word is no finite number."""
        return self.value is None


def plain_text(text: str) -> str:
    """A text without what steers a terminal, such as colours."""
    return _ESCAPE.sub("", text)


def read_metric(text: str, name: str) -> MetricReading:
    """What a text says last of the metric with this name: ``epoch 3, val loss 2.1`` of ``val_loss`` 2.1.

    Letters' case does not count, nor which of ``_ - / .`` and blanks joins words. A line ``---`` begins a summary where
    the metric stands below it, as in karpathy/autoresearch: then only that counts.
    """
    entries, rule = _entries(text, keep=name_key(name))
    key = _matching(name, entries)
    if key is None:
        return MetricReading(numbers=_numbers(entries.values(), ""))
    if entries[key].number > rule:
        entries = {each: entry for each, entry in entries.items() if entry.number > rule}
    last = entries[key]
    numbers = _numbers(entries.values(), key)
    if last.value is not None:
        numbers.pop(last.name, None)
        numbers = {name: last.value, **numbers}
    return MetricReading(last.value, last.line, dict(list(numbers.items())[:MAX_KEYS]))


def guess_metric(text: str) -> Guess | None:
    """The number that a program most likely wants to be judged by; None where it printed no result with a name.

    Held-out data come before training data, and results before speeds, times, counts and settings, which only a person
    can choose. Of several results that with the likelier name, of equal ones the later.
    """
    entries, rule = _entries(text, keep="")
    ranked = [(_rank(entry), entry) for entry in _current(entries.values())]
    below = [(place, entry) for place, entry in ranked if entry.number > rule >= 0 and place[0] is Kind.RESULT]
    ranked = below or [(place, entry) for place, entry in ranked if _can_be_meant(entry)]
    if not ranked:
        return None
    ranked.sort(key=lambda pair: (*pair[0], -pair[1].number))
    (rank, best), *others = ranked
    is_alone = all(_family(entry.name) == _family(best.name) for place, entry in others if place == rank)
    is_alone = is_alone and not (_is_tally(best) and any(_is_measure(entry.name) for _, entry in others))
    is_sure = rank[:3] <= (Kind.RESULT, False, DataPart.UNSTATED) and direction_of(best.name) is not None and is_alone
    name = best.name
    if (
        meaning_of(best.item.bare).part is meaning_of(name).part
        and [entry.item.bare for entry in entries.values()].count(best.item.bare) == 1
    ):
        name = best.item.bare  # of a table with one row, the name of the column
    return Guess(name, best.value, is_sure, _why(rank), tuple(entry.name for _, entry in others))


def numbers_in(text: str) -> dict[str, float]:
    """All finite numbers of a text by name: results first, then in the text's order; at most ``MAX_KEYS``."""
    entries, _ = _entries(text, keep="")
    return _numbers(sorted(entries.values(), key=lambda entry: meaning_of(entry.name).kind), "")


def _is_tally(entry: _Printed) -> bool:
    """Whether a result only says that all went well, such as ``errors: 0`` or ``max error: 1e-6``."""
    words = {*words_of(entry.name)}
    return bool(words & _TALLIED) or ("error" in words and bool(words & _SELECTED))


def _is_measure(name: str) -> bool:
    """Whether a number is a speed or a time of something, by its name."""
    meaning = meaning_of(name)
    return meaning.kind is Kind.OTHER and meaning.direction is not None


def _can_be_meant(entry: _Printed) -> bool:
    meaning = meaning_of(entry.name)
    return meaning.direction is not None or (meaning.kind is not Kind.OTHER and not entry.item.is_loose)


def _current(entries: Iterable[_Printed]) -> list[_Printed]:
    """The entries without those in a pass over the data whose bare name a later line has: ``* acc 0.8``."""
    plain = {name_key(entry.name): entry.number for entry in entries}
    last = ((each, plain.get(name_key(each.item.bare), -1)) for each in entries)
    return [entry for entry, number in last if not entry.item.in_progress or number <= entry.number]


def _why(rank: _Rank) -> str:
    kind, _, part, *_ = rank
    if kind is Kind.RESULT:
        held_out = "a result on held-out data"
        training = "a result on training data: none on held-out data was printed"
        return {DataPart.HELD_OUT: held_out, DataPart.TRAINING: training}.get(part, "a result")
    return (
        "no result by its name, and the likeliest of what was printed"
        if kind is Kind.UNKNOWN
        else "a speed, a time or a size, no result"
    )


def _rank(entry: _Printed) -> _Rank:
    """Where a number stands among those that may be meant: the smallest is the likeliest."""
    meaning, words = meaning_of(entry.name), {*words_of(entry.name)}
    place = 1 if _SELECTED & words else -1 if _AVERAGED & words else 0
    part = DataPart.UNSTATED if meaning.kind is Kind.OTHER or entry.item.in_progress else meaning.part
    is_compared = bool(_COMPARED & words) and not _ABOVE & words
    place += bool(_MORE_THAN_ONE.search(entry.name))
    place += 2 * (bool(_DIFFERENCE & words) or "Δ" in entry.name)
    return meaning.kind, is_compared, part, meaning.worth, place


def _family(name: str) -> tuple[str, ...]:
    """What a name has besides words for a part of the data and numbers: ``test_wer`` and ``valid_wer`` are of one."""
    other = (word for word in words_of(name) if word not in _SELECTED | _AVERAGED)
    return tuple("#" if word.isdigit() else word for word in other if meaning_of(word).part is DataPart.UNSTATED)


def _numbers(entries: Iterable[_Printed], metric: str) -> dict[str, float]:
    numbers: dict[str, float] = {}
    for entry in entries:
        if entry.value is not None and (len(numbers) < MAX_KEYS or name_key(entry.name) == metric):
            numbers[entry.name] = entry.value
    return numbers


def _matching(name: str, entries: dict[str, _Printed]) -> str | None:
    """The key of the entry with a name.

    Without one, of the last that has it behind a word earlier in its line, or of the only one behind a section:
    ``rollout/name``.
    """
    if (key := name_key(name)) in entries:
        return key
    if behind := [each for each, entry in entries.items() if name_key(entry.item.bare) == key]:
        return behind[-1]
    inside = [
        each for each, entry in entries.items() if "/" in entry.name and name_key(entry.name.rpartition("/")[2]) == key
    ]
    return inside[0] if len(inside) == 1 else None


def _entries(text: str, *, keep: str) -> tuple[dict[str, _Printed], int]:
    """The last entry of each name, and the number of the last line ``---``; -1 without one.

    ``keep`` is never forgotten.
    """
    latest: dict[str, _Printed] = {}
    lines = plain_text(text).splitlines()
    rule = max((number for number, line in enumerate(lines) if _RULE.fullmatch(line)), default=-1)
    reader = LineReader()
    telling = _telling(lines)
    means = _means(lines, telling)
    for number in telling:
        line = lines[number]
        for item in [*reader.read(line), *filter(None, [means.get(number)])]:
            key = name_key(item.name)
            if not key or (item.is_empty and key not in latest):
                continue  # a heading
            latest.pop(key, None)
            latest[key] = _Printed(item, line.strip()[:_QUOTED_CHARACTERS], number)
            if len(latest) > _NAMES:
                del latest[next(other for other in latest if other != keep)]
    return latest, rule


def _means(lines: Sequence[str], telling: Sequence[int]) -> dict[int, PrintedItem]:
    """The means of repetitions by the number of their line, each by the name of what it is the mean of.

    It is that of the result in the line above it, and in all lines that are alike but for their numbers.
    """
    means: dict[int, PrintedItem] = {}
    stated = [(above, at) for above, at in pairwise(telling) if _MEAN.match(lines[at])][-_MOST_MEANS:]
    forms = [_NUMBERS.sub("0", line) for line in lines] if stated else []
    for above, at in stated:
        form = forms[above]
        alike = [line for line, other in zip(lines[:at], forms, strict=False) if other == form]
        if not (2 <= len(alike) <= _MOST_REPETITIONS and _STEPS.isdisjoint(words_of(form))):
            continue
        match, reader = _MEAN.match(lines[at]), LineReader()
        assert match is not None
        number, values = match["number"].replace(",", "."), dict[str, list[float]]()
        mean = float(number)
        for item in (item for line in alike for item in reader.read(line)):
            if item.value is not None and meaning_of(item.name).kind is Kind.RESULT:
                values.setdefault(item.name, []).append(item.value)
        for name, each in values.items():
            rounding = 0.6 * (_last_digit(number) + min(_last_digit(f"{value:.12g}") for value in each))
            if len(each) == len(alike) and abs(math.fsum(each) / len(each) - mean) <= rounding:
                means[at] = PrintedItem(f"mean_{name}", mean, f"mean_{name}")
                break
    return means


def _last_digit(number: str) -> float:
    """What one in the last digit of a number is worth: 0.01 for 0.82, and 1e-5 for 1.25e-3."""
    return 10.0 ** int(Decimal(number).as_tuple().exponent)


def _telling(lines: Sequence[str]) -> list[int]:
    """The numbers of the lines that are worth reading.

    Of lines that differ in their numbers alone, below one line of words, or one heading that names a part of the data,
    only the last says anything. Of a text with too many different lines the first and the last are read.
    """
    last: dict[tuple[str, int], tuple[int, int]] = {}
    words, above = -1, 0
    for number, line in enumerate(lines):
        if len(line) > _LONGEST_LINE and not (line.lstrip().startswith("{") and len(line) <= _LONGEST_MAPPING):
            continue
        if HAS_VALUE.search(line) or line.rstrip().endswith((":", "=", "：")):
            last[_NUMBERS.sub("0", line), above] = (number, words)
            if line.rstrip().endswith(":") and part_word(line):
                above = hash(line)
        elif line.strip() and not RULED.fullmatch(line):
            words, above = number, hash(line)
    pairs = sorted(last.values())
    if len(pairs) > _MOST_LINES:
        pairs = [*pairs[: _MOST_LINES // 4], *pairs[-_MOST_LINES * 3 // 4 :]]
    return sorted({number for pair in pairs for number in pair} - {-1})
