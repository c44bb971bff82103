"""Attacks by the place of a row, or the name of its question: what those say of its answer. Pure."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Hashable, Iterator, Sequence
from itertools import pairwise
from typing import Any

from autoresearch.run.attack import artifacts
from autoresearch.run.attack.artifacts import Slot, answer_slots, ids_of
from autoresearch.run.attack.leaving import on_form
from autoresearch.run.attack.sequences import attempts_with
from autoresearch.run.attack.target import Attack, AttackAttempt, Hole, Target

_MOST_KINDS, _MOST_GROUPINGS = 12, 4
_PERIODS = range(2, 13)


def _by_place(target: Target, form: artifacts.ArtifactForm) -> Iterator[AttackAttempt] | str:
    flat = [slot for slot in answer_slots(form.value) if not isinstance(slot.items[0], list)]
    slot = min(flat, key=_is_name, default=None)
    if slot is None or len(slot.items) < 4 * artifacts.LEAST_ANSWERS:
        return "the artifact has no long sequence of answers"
    return _placed(target, form, slot)


def _is_name(slot: Slot) -> bool:
    """Whether a sequence is one of names: whole numbers or texts, of which none comes twice."""
    return len(set(slot.items)) == len(slot.items) and all(isinstance(each, str | int) for each in slot.items)


def _placed(target: Target, form: artifacts.ArtifactForm, slot: Slot) -> Iterator[AttackAttempt]:
    """What the place of a row, or the name of its question, says of its answer, by the baseline's guesses."""
    items: list[Any] = list(slot.items)
    for order_note, order in _orders(target, form, slot):
        for note, answers in _monotone([items[at] for at in order]):
            answer_of = dict(zip(order, answers, strict=True))
            sequence = [answer_of[at] for at in range(len(items))]
            yield from attempts_with(target, form, slot, [sequence], f"{note}, by {order_note}")
    for note, groups in _groupings(target, form, slot):
        if (major := _majority(items, groups)) is not None and len(set(major)) > 1:
            yield from attempts_with(target, form, slot, [major], note)
    if len(kinds := Counter(items)) == 2:  # a few at equal distances, of the rarer kind
        (usual, _), (rare, _) = kinds.most_common()
        for step in (5, 15):
            sequence = [rare if at % step == step // 2 else usual for at in range(len(items))]
            yield from attempts_with(target, form, slot, [sequence], f"every {step}th")


def _names(target: Target, form: artifacts.ArtifactForm, slot: Slot) -> Iterator[tuple[str, list[str]]]:
    """The names of the questions, by where they stand: in the artifact, or in a table that is as long."""
    if (ids := ids_of(form.value, slot)) is not None:
        yield "its ids", [str(each) for each in ids.keys or ids.items]
    for label, values in target.loot.columns.items():
        is_named = len(values) == len(slot.items) and all(isinstance(each, str | int) for each in values)
        if is_named and len(set(values)) == len(values) and not label.startswith("in the evaluator"):
            yield label, [str(each) for each in values]


def _orders(target: Target, form: artifacts.ArtifactForm, slot: Slot) -> Iterator[tuple[str, list[int]]]:
    places = list(range(len(slot.items)))
    if not any(_is_sorted(values) for values in target.loot.columns.values() if len(values) == len(places)):
        yield "their place", places
    for label, names in _names(target, form, slot):
        digits = [[int(each) for each in re.findall(r"\d{1,15}", name)] for name in names]
        order = sorted(places, key=lambda at: (digits[at], names[at]))
        if order != places:
            yield label, order


def _is_sorted(values: Sequence[object]) -> bool:
    """Whether a column of numbers rises or falls at steps of many sizes: what follows it is no work of the order."""
    numbers = [each for each in values if isinstance(each, int | float)]
    steps = {round(b - a, 9) for a, b in pairwise(numbers)}
    is_sorted = all(step >= 0 for step in steps) or all(step <= 0 for step in steps)
    return len(numbers) == len(values) and len(steps) > 2 and is_sorted


def _groupings(target: Target, form: artifacts.ArtifactForm, slot: Slot) -> Iterator[tuple[str, list[Hashable]]]:
    """Rows in groups that say more than all rows together: at equal distances, or with the same part of a name."""
    items, count = list(slot.items), len(slot.items)
    all_as_one = _agreement(items, [0] * count)

    def informs(groups: Sequence[Hashable]) -> float:
        """How many more rows agree within groups than on the whole, and than are so by chance."""
        return _agreement(items, groups) - all_as_one - 0.5 * math.sqrt(count * len(set(groups)))

    candidates: dict[str, Sequence[Hashable]] = {}
    candidates |= {f"at each {period}th place": [at % period for at in range(count)] for period in _PERIODS}
    for label, values in target.loot.columns.items():
        if len(values) == count and all(isinstance(each, str) for each in values):
            candidates[f"the length of {label}"] = [len(str(each)) for each in values]
    for label, names in _names(target, form, slot):
        parts = [re.findall(r"[A-Za-z]+|\d+", name) for name in names]
        ends: dict[str, list[Hashable]] = {"first": [name[:1] for name in names], "last": [name[-1:] for name in names]}
        for at in range(min(4, *map(len, parts))):
            ends[f"part {at}"] = [part[at] for part in parts]
        numbers = [int(part[-1]) if part and part[-1].isdigit() else 0 for part in parts]
        ends |= {f"rest by {period}": [number % period for number in numbers] for period in _PERIODS}
        candidates |= {f"{end} of {label}": groups for end, groups in ends.items()}
    fitting = {note: informs(groups) for note, groups in candidates.items() if 2 <= len(set(groups)) <= count // 4}
    for note in sorted(fitting, key=lambda note: -fitting[note])[:_MOST_GROUPINGS]:
        if fitting[note] > 0:
            yield note, list(candidates[note])


def _majority(items: Sequence[Any], groups: Sequence[Hashable]) -> list[Any] | None:
    """The commonest answer of each group in the place of its own; None where answers are not of few kinds."""
    if len(set(items)) > _MOST_KINDS:
        return None
    counts: dict[Hashable, Counter[Any]] = {}
    for item, group in zip(items, groups, strict=True):
        counts.setdefault(group, Counter())[item] += 1
    return [counts[group].most_common(1)[0][0] for group in groups]


def _agreement(items: Sequence[Any], groups: Sequence[Hashable]) -> float:
    major = _majority(items, groups)
    return 0.0 if major is None else sum(a == b for a, b in zip(items, major, strict=True))


def _monotone(items: Sequence[Any]) -> Iterator[tuple[str, list[Any]]]:
    """Answers that only rise or fall: in blocks where they are of few kinds, else as the nearest numbers that do."""
    kinds = Counter(items)
    if 2 <= len(kinds) <= _MOST_KINDS:
        middles = {kind: sum(at for at, each in enumerate(items) if each == kind) / kinds[kind] for kind in kinds}
        order = sorted(kinds, key=lambda kind: middles[kind])
        yield "in blocks", _blocks(items, order)
        share = len(items) / len(order)
        yield "in equal blocks", [order[min(int(at / share), len(order) - 1)] for at in range(len(items))]
    elif all(map(artifacts.is_finite, items)):
        rising, falling = _rising(items), [-each for each in _rising([-each for each in items])]
        yield (
            "monotone",
            min(rising, falling, key=lambda other: sum((a - b) ** 2 for a, b in zip(items, other, strict=True))),
        )


def _blocks(items: Sequence[Any], order: Sequence[Any]) -> list[Any]:
    """A block of each kind, in this order, with the ends that agree with most items."""
    # For each kind, where the items so far end in its block: how many agree, and where each block began.
    paths: list[tuple[int, tuple[int, ...]]] = [(0, (0,) * (at + 1)) for at in range(len(order))]
    for place, item in enumerate(items):
        for at in range(len(order) - 1, -1, -1):
            before = [(paths[at - 1][0], (*paths[at - 1][1], place))] if at else []
            agree, begins = max([paths[at], *before])
            paths[at] = (agree + (item == order[at]), begins)
    begins = max(paths)[1]
    return [order[sum(begin <= at for begin in begins) - 1] for at in range(len(items))]


def _rising(items: Sequence[float]) -> list[float]:
    """The nearest sequence that never falls, by pooling neighbours."""
    pools: list[tuple[float, int]] = []
    for item in items:
        pools.append((item, 1))
        while len(pools) > 1 and pools[-2][0] > pools[-1][0]:
            (low, few), (high, more) = pools[-2:]
            pools[-2:] = [((low * few + high * more) / (few + more), few + more)]
    return [mean for mean, count in pools for _ in range(count)]


ATTACKS = (
    Attack(
        "answers-by-place",
        "answers by the place of a row, or by the name of its question",
        Hole.ORDERED,
        on_form(_by_place),
    ),
)
