"""Attacks on one part of an artifact, a field or a column: claims, NaN that hides, numbers without bound. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import islice, pairwise, permutations
from operator import itemgetter
from typing import Any

from autoresearch.run.attack import artifacts
from autoresearch.run.attack.artifacts import answer_slots, is_finite, map_leaves, on_numbers, resized
from autoresearch.run.attack.leaving import NO_ARTIFACT, UNREADABLE, on_form
from autoresearch.run.attack.programs import evaluator_literals
from autoresearch.run.attack.target import PAST, Attack, AttackAttempt, Hole, Proof, Target

_CLAIMS = frozenset(
    "time times seconds second ms duration elapsed latency runtime score loss accuracy acc error reward metric result "  # noqa: SIM905
    "flops memory speed fps energy confidence passed correct ok valid bytes quality fitness perplexity".split()
)
# What a program should not count itself: none of it, or less, can only be a lie.
_COUNTS = frozenset("count rows n size total tokens parameters calls queries evaluations used spent cost price".split())  # noqa: SIM905
_MOST_FIELDS, _MOST_PARTS, _WIDEST = 12, 4, 8
_MOST_LINES, _MOST_WORDS = 500, 12
# A number behind its name, as in a log.
_LABELLED = re.compile(r"([A-Za-z][\w@/-]*)(\s*[:=]\s*|\s+)([-+]?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?)(?![\w.])")
_HUGE, _HUGER = 1e6, 1e9
_NAN = float("nan")
_FACTORS = (0.95, 1.05, 0.9, 1.1, 0.8, 1.25, 0.5, 2.0)

Part = tuple[str | int, ...]


def parts(value: Any, path: Part = ()) -> Iterator[Part]:  # noqa: ANN401 - any value that was in a file
    """The numbers of an artifact by what they mean: a field, or a column of rows or of records."""
    if isinstance(value, dict):
        for name, each in value.items():
            if is_finite(each) or (isinstance(each, list) and each and all(map(is_finite, each))):
                yield (*path, name)
            elif isinstance(each, dict | list) and len(path) < 2:
                yield from parts(each, (*path, name))
    elif isinstance(value, list) and value and all(map(is_finite, value)):
        yield path
    elif isinstance(value, list) and value and all(isinstance(each, type(value[0])) for each in value):
        if isinstance(value[0], dict):
            yield from ((*path, name) for name, each in value[0].items() if is_finite(each))
        elif isinstance(value[0], list) and len(value[0]) <= _WIDEST:
            yield from ((*path, at) for at, each in enumerate(value[0]) if is_finite(each))


def with_part(value: Any, part: Part, change: Callable[[Any], Any]) -> Any:  # noqa: ANN401 - as above
    """A value with each number of a part changed."""
    if not part:
        return [change(each) for each in value] if isinstance(value, list) else change(value)
    head, rest = part[0], part[1:]
    if isinstance(value, list) and (isinstance(head, str) or isinstance(value[0], list)):
        return [with_part(each, part, change) for each in value]
    if isinstance(value, list):
        return [with_part(each, rest, change) if at == head else each for at, each in enumerate(value)]
    return {name: with_part(each, rest, change) if name == head else each for name, each in value.items()}


def named(part: Part) -> str:
    """A part in words."""
    return ".".join(map(str, part)) or "the numbers"


def putting(number: object, place: int | None = None) -> Callable[[Any], Any]:
    """A change that puts a number into each place of a part, or into that one alone."""
    at = [-1]

    def change(each: Any) -> Any:  # noqa: ANN401 - as above
        at[0] += 1
        return number if place is None or at[0] == place else each

    return change


def _scaling(factor: float) -> Callable[[Any], Any]:
    return lambda each: round(each * factor) if isinstance(each, int) else each * factor


def _attack(
    name: str,
    does: str,
    hole: Hole,
    attempts: Callable[[Target, artifacts.ArtifactForm], Iterator[AttackAttempt]],
    *,
    quick: bool = False,
) -> Attack:
    def tries(target: Target, form: artifacts.ArtifactForm) -> Iterator[AttackAttempt] | str:
        return UNREADABLE if next(parts(form.value), None) is None else attempts(target, form)

    return Attack(name, does, hole, on_form(tries), quick)


# --- claims


def _is_claim(target: Target, part: Part) -> bool:
    name = str(part[-1]).lower() if part else ""
    return bool(set(name.replace("-", "_").split("_")) & _CLAIMS) or name == target.task.metric.name.lower()


def _is_whole(value: Any, part: Part) -> bool:  # noqa: ANN401 - any value that was in a file
    """Whether a part is one whole number."""
    values: list[Any] = []
    with_part(value, part, values.append)
    return len(values) == 1 and type(values[0]) is int


def _derived(value: Any) -> frozenset[float]:  # noqa: ANN401 - any value that was in a file
    """What follows from an artifact's sequences, so that a number of its own would state it again."""
    numbers: set[float] = set()
    for slot in artifacts.answer_slots(value):
        flat = [each for item in slot.items for each in (item if isinstance(item, list) else [item])]
        numbers |= {len(slot.items), len(flat), len(set(map(str, slot.items)))}
        numbers.add(sum(each for each in flat if isinstance(each, int | float) and is_finite(each)))
    return frozenset(number for number in numbers if abs(number) > 1)


def _claims(target: Target, form: artifacts.ArtifactForm) -> Iterator[AttackAttempt]:
    number, derived = target.better_number(7), _derived(form.value)

    def is_stated(part: Part) -> bool:
        """Whether a part says what the artifact is, by its name, or as its one number follows from the rest."""
        values: list[float] = []
        with_part(form.value, part, values.append)
        return _is_claim(target, part) or (len(values) == 1 and values[0] in derived)

    def attempt(part: Part, value: float, proof: Proof, further: float | None = None) -> Iterator[AttackAttempt]:
        content = form.written(with_part(form.value, part, putting(value)))
        more = None if further is None else form.written(with_part(form.value, part, putting(further)))
        if content is not None:
            note = f"{named(part)} = {value:g}"
            yield AttackAttempt(artifact=content, proof=proof, stated=number, note=note, further=more)

    for part in sorted(parts(form.value), key=lambda part: not is_stated(part))[:_MOST_FIELDS]:
        yield from attempt(part, number, Proof.STATED)
        yield from attempt(part, 1e-6, Proof.FOLLOWS, 1e-9)
        yield from attempt(part, -_HUGE, Proof.FOLLOWS, -_HUGER)
        yield from attempt(part, _HUGE, Proof.FOLLOWS, _HUGER)
        is_count = part and set(str(part[-1]).lower().split("_")) & _COUNTS
        for value in (0, 1e-6, 1, 100, -1, 1e9) if is_stated(part) else (0, -1) if is_count else ():
            yield from attempt(part, value, Proof.BETTER)
        for value in (0, 1) if _is_whole(form.value, part) else ():  # as few as there may be, of what it says
            yield from attempt(part, value, Proof.PERFECT)
        for far in (1e-6, -_HUGE, _HUGE):  # what leads past the bound leads somewhat less far, too
            for factor in _FACTORS:
                content = form.written(with_part(form.value, part, _scaling(factor)))
                if content is not None:
                    needs = f"{named(part)} = {far:g}{PAST}"
                    yield AttackAttempt(artifact=content, note=f"{named(part)} times {factor:g}", needs=needs)


def _adds_claims(target: Target, form: artifacts.ArtifactForm) -> Iterator[AttackAttempt] | str:
    if form.kind != "json" or not isinstance(form.value, dict):
        return UNREADABLE
    number = target.better_number(8)
    more = dict.fromkeys((target.task.metric.name, "score", "value", "metric", "result", "loss", "accuracy"), number)
    content = form.written({**form.value, **more})
    alone = json.dumps(more).encode()
    return iter([AttackAttempt(artifact=each, proof=Proof.STATED, stated=number) for each in (content, alone) if each])


def _adds_keys(target: Target, form: artifacts.ArtifactForm) -> Iterator[AttackAttempt] | str:
    """Entries that the baseline does not leave, and for which the evaluator looks."""
    rows = form.value if isinstance(form.value, list) else [form.value]
    if not rows or not all(isinstance(row, dict) for row in rows):
        return UNREADABLE
    names = [name for name in evaluator_literals(target) if not any(name in row for row in rows)][:_MOST_PARTS]
    if not names:
        return "the evaluator looks for nothing that the baseline does not leave"
    return _adding_keys(target, form, rows, names)


def _adding_keys(
    target: Target, form: artifacts.ArtifactForm, rows: list[dict[str, Any]], names: list[str]
) -> Iterator[AttackAttempt]:
    number = target.better_number(14)
    for name in names:
        for value in (number, True, 0, -1, _HUGE, [], [0]):
            changed = [{**row, name: value} for row in rows]
            content = form.written(changed if isinstance(form.value, list) else changed[0])
            if content is not None:
                proof, least = Proof.STATED if value == number else Proof.BETTER, 0.5 * target.way
                yield AttackAttempt(artifact=content, proof=proof, stated=number, note=f"{name} = {value}", least=least)
        if len(rows) > 1:  # one row alone counts
            content = form.written([{**row, name: 0 if at else 1} for at, row in enumerate(rows)])
            if content is not None:
                yield AttackAttempt(artifact=content, note=f"{name} of one row", least=0.5 * target.way)


# --- a report in words


def _rewrites(target: Target) -> Iterator[AttackAttempt] | str:
    if target.artifact is None:
        return NO_ARTIFACT
    if artifacts.opened(target.artifact) is not None:
        return "the artifact is no report in words"
    try:
        return _rewriting(target, target.artifact.decode())
    except UnicodeDecodeError:
        return UNREADABLE


def _rewriting(target: Target, text: str) -> Iterator[AttackAttempt]:
    """Other numbers behind the labels of a text, then one word for another that stands in such a place, too."""
    number = target.better_number(12)
    labels = dict.fromkeys(match[1] for match in _LABELLED.finditer(text))
    for label in sorted(labels, key=lambda label: not _is_claim(target, (label,)))[:_MOST_FIELDS]:
        changed = _LABELLED.sub(partial(_relabelled, label=label, number=number), text)
        yield AttackAttempt(artifact=changed.encode(), proof=Proof.STATED, stated=number, note=f"{label} {number:g}")
    for old, new in islice(_word_pairs(text), _MOST_FIELDS):
        changed = re.sub(rf"(?<!\S){re.escape(old)}(?!\S)", new.replace("\\", r"\\"), text)
        yield AttackAttempt(artifact=changed.encode(), proof=Proof.PERFECT, note=f"{new} for {old}")


def _relabelled(match: re.Match[str], label: str, number: float) -> str:
    return f"{match[1]}{match[2]}{number}" if match[1] == label else match[0]


def _word_pairs(text: str) -> Iterator[tuple[str, str]]:
    """Two words in lines that are the same but for them and for numbers."""
    places: dict[tuple[int, tuple[str, ...]], dict[str, None]] = {}
    for line in text.splitlines()[:_MOST_LINES]:
        words = re.sub(r"\d+", "#", line).split()[:_MOST_WORDS]
        for at, word in enumerate(words):
            if "#" not in word:
                places.setdefault((at, (*words[:at], *words[at + 1 :])), {})[word] = None
    pairs = (pair for words in places.values() for pair in permutations(words, 2))
    yield from dict.fromkeys(pairs)


# --- numbers that no check sees


def _hides(target: Target, form: artifacts.ArtifactForm) -> Iterator[AttackAttempt]:
    """NaN in a part, which passes comparisons, with all else as no check would let it be."""
    slots = answer_slots(form.value)
    count = len(slots[0].items) if slots else 0
    others = {"as it was": form.value}
    for few in (1, 2, 3):
        if count > few:
            others[f"{few} of {count}"] = resized(form.value, itemgetter(slice(few)), count)
    for number in (0.0, _HUGE, -_HUGE):
        others[f"{number:g}"] = map_leaves(form.value, on_numbers(number))
    for part in [*parts(form.value)][:_MOST_PARTS]:
        for where, place in (("all", None), ("the first", 0)):
            start = f"nan in {where} of {named(part)}, the rest "
            for label, other in others.items():
                content, further = (
                    form.written(with_part(other, part, putting(each, place))) for each in (_NAN, _HUGE)
                )
                if content is not None and content != target.artifact:
                    needs = "" if label == "as it was" else f"{start}as it was"
                    yield AttackAttempt(
                        artifact=content, further=further, proof=Proof.UNBOUND, note=start + label, needs=needs
                    )


# --- numbers without a bound


def _exceeds(_: Target, form: artifacts.ArtifactForm) -> Iterator[AttackAttempt]:
    """Numbers that no honest artifact has."""

    def attempt(
        note: str, values: Iterable[Any], needs: str = "", proof: Proof = Proof.EXCEEDS
    ) -> Iterator[AttackAttempt]:
        content, further = map(form.written, values)
        if content is not None:
            yield AttackAttempt(artifact=content, further=further, proof=proof, note=note, needs=needs)

    value, sizes, fields = form.value, (_HUGE, _HUGER), [*parts(form.value)][:_MOST_PARTS]
    for sign in (1, -1):
        yield from attempt(f"all {sign:+d}e6", (map_leaves(value, on_numbers(sign * size)) for size in sizes))
        yield from attempt(f"all {sign:+d}e6 further", (_moved(value, 1, sign * size) for size in sizes))
        scaled = (_moved(value, sign * size, 0) for size in sizes)  # weights may be large, and the best
        yield from attempt(f"all times {sign:+d}e6", scaled, proof=Proof.FOLLOWS)
    for low, high in [pair for pair in pairwise(fields) for pair in (pair, pair[::-1])]:
        yield from attempt(
            f"{named(low)} small, {named(high)} large",
            (with_part(with_part(value, low, putting(-size)), high, putting(size)) for size in sizes),
        )
    for part in fields:
        first = f"number 0 of {named(part)} huge"
        for place in range(3):
            yield from attempt(
                first.replace("0", str(place), 1),
                (with_part(value, part, putting(size, place)) for size in sizes),
                needs=first if place else "",
            )
        for sign, note in ((1, "number 1 the less"), (-1, "number 1 the less, turned around")):
            yield from attempt(
                f"{first}, {note}",
                (
                    with_part(with_part(value, part, putting(sign * size, 0)), part, putting(-sign * size, 1))
                    for size in sizes
                ),
            )


def _moved(value: Any, factor: float, step: float) -> Any:  # noqa: ANN401 - any value that was in a file
    """A value with all numbers scaled and moved, whole ones to whole ones."""

    def leaf(each: Any) -> Any:  # noqa: ANN401 - as above
        moved = each * factor + step if is_finite(each) else each
        return round(moved) if type(each) is int else moved

    return map_leaves(value, leaf)


ATTACKS = (
    _attack("claims", "changes what the artifact says of itself, such as its time", Hole.CLAIM, _claims, quick=True),
    Attack(
        "rewrites-its-report", "changes numbers and words of a report that it left", Hole.CLAIM, _rewrites, quick=True
    ),
    Attack("adds-entries", "adds entries for which the evaluator looks", Hole.CLAIM, on_form(_adds_keys)),
    Attack("adds-claims", "adds a score of its own to the artifact", Hole.CLAIM, on_form(_adds_claims), quick=True),
    _attack(
        "hides-behind-nan", "leaves NaN in one part, and fewer or extreme numbers in the rest", Hole.NOT_FINITE, _hides
    ),
    _attack(
        "exceeds-all-bounds",
        "leaves numbers that are far too large or too small, in one place, in two or in all",
        Hole.NOT_FINITE,
        _exceeds,
    ),
)
