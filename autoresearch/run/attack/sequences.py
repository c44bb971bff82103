"""Attacks by a sequence of answers: how many, all the same, all different, in blocks, under other names. Pure."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import permutations
from typing import Any

from autoresearch.run.attack import artifacts
from autoresearch.run.attack.artifacts import Slot, answer_slots, ids_of, resized, with_slot
from autoresearch.run.attack.leaving import NO_ARTIFACT, UNREADABLE, note_of, on_form
from autoresearch.run.attack.target import Attack, AttackAttempt, Hole, Proof, Target

_FEW = "the artifact has no sequence of answers"
_NOT_DRAWN = "the evaluator has no test, so a constant may be the best answer"
_MOST_NAMES, _MOST_PAIRS, _MOST_DOUBLED = 5000, 4, 6
_MOST_SPELLINGS, _LEAST_PART = 10, 0.3


def _proof(target: Target, slot: Slot) -> tuple[Proof, float]:
    """By what answers that are no work got through, and the least gain: half of the way to the best value.

    A baseline may be weak, and few questions are luck: a cost has to fall further there.
    """
    is_few, is_test = len(slot.items) < 4 * artifacts.LEAST_ANSWERS, target.loot.is_drawn and target.share == 1
    if artifacts.is_order(slot.items) or (is_test and not is_few):
        return Proof.BETTER, 0.5 * target.way
    return (Proof.BETTER, 0.7 * target.way) if is_test and target.sign > 0 else (Proof.PERFECT, 0.0)


def attempts_with(
    target: Target, form: artifacts.ArtifactForm, slot: Slot, sequences: Iterable[Sequence[Any]], note: str = ""
) -> Iterator[AttackAttempt]:
    """Attempts with other items in a slot."""
    for items in sequences:
        content = form.written(_resized(form.value, slot, list(items)))
        if content is not None and content != target.artifact:
            proof, least = _proof(target, slot)
            yield AttackAttempt(artifact=content, note=note or note_of(content), proof=proof, least=least)


def _answers(
    name: str,
    does: str,
    hole: Hole,
    make: Callable[[list[Any]], Iterable[list[Any]]],
    *,
    needs_test: bool = False,
    quick: bool = False,
) -> Attack:
    """An attack that changes how many answers there are, or all of them; ``make`` gets the baseline's."""

    def tries(target: Target, form: artifacts.ArtifactForm) -> Iterator[AttackAttempt] | str:
        slots = answer_slots(form.value)
        if needs_test and not target.loot.is_drawn and not any(artifacts.is_order(slot.items) for slot in slots):
            return _NOT_DRAWN
        if not slots:
            return _FEW
        return (each for slot in slots[:2] for each in attempts_with(target, form, slot, make(list(slot.items))))

    return Attack(name, does, hole, on_form(tries), quick)


def _resized(value: Any, slot: Slot, items: list[Any]) -> Any:  # noqa: ANN401 - any value that was in a file
    """A value with these items in a slot; where there are more or fewer, all sequences beside it are as long."""
    count, old_items = len(slot.items), set(map(repr, slot.items))
    if len(items) == count or any(repr(each) not in old_items for each in items):
        return with_slot(value, slot, items)
    places = [at % count for at in _places(slot.items, items)]
    return resized(value, lambda old: [old[at] for at in places], count)


def _places(old: Any, new: list[Any]) -> list[int]:  # noqa: ANN401 - a sequence
    """Where items of a shorter or longer sequence stood in the old one, in their order."""
    at, places = 0, []
    for item in new:
        while at < len(old) and old[at] != item:
            at += 1
        if at >= len(old):
            at = next((place for place, each in enumerate(old) if each == item), 0)
        places.append(at)
        at += 1
    return places


# --- how many


def _constants(items: list[Any]) -> Iterator[list[Any]]:
    values = [tuple(each) if isinstance(each, list) else each for each in items]
    common = [value for value, _ in Counter(values).most_common(4)]
    numbers = [each for each in items if artifacts.is_finite(each)]
    if numbers:
        mean = sum(numbers) / len(numbers)
        common += [0, 1, 0.5, mean, sorted(numbers)[len(numbers) // 2], min(numbers), max(numbers)]
        common.append((min(numbers) + max(numbers)) / 2)
    for value in dict.fromkeys(common):
        yield [list(value) if isinstance(value, tuple) else value] * len(items)


def _few(target: Target, form: artifacts.ArtifactForm) -> Iterator[AttackAttempt] | str:
    """Fewer answers, then a few with no answer in the place of the others."""

    def cut(slot: Slot) -> Iterator[AttackAttempt]:
        items = list(slot.items)
        is_count = target.sign > 0 and target.value == len(items)
        for place in range(min(6, len(items))):
            for each in attempts_with(target, form, slot, [[items[place]]]):
                # Where the value is how many there are, no value is the best for sure: one of them is one.
                yield AttackAttempt(**{**_fields(each), "stated": 1.0 if is_count and not place else None})
        yield from attempts_with(target, form, slot, (items[: len(items) // 2], items[:-1], [items[0], items[-1]]))
        none = "" if isinstance(items[0], str) else -1
        if not isinstance(items[0], list):
            yield from attempts_with(target, form, slot, [items[:few] + [none] * (len(items) - few) for few in (1, 3)])

    slots = answer_slots(form.value)
    return (each for slot in slots[:2] for each in cut(slot)) if slots else _FEW


def _fields(attempt: AttackAttempt) -> dict[str, Any]:
    return {name: getattr(attempt, name) for name in ("artifact", "proof", "note", "least")}


def _repeated(target: Target, form: artifacts.ArtifactForm) -> Iterator[AttackAttempt] | str:
    def longer(slot: Slot) -> Iterator[AttackAttempt]:
        items: list[Any] = list(slot.items)
        more = [items * 2, items * 50, *(items + [items[place]] * 20 * len(items) for place in range(3))]
        if isinstance(items[0], list):
            more.append(items + [each[::-1] for each in items])
        yield from attempts_with(target, form, slot, more)
        ten, hundred = (form.written(_resized(form.value, slot, items * times)) for times in (10, 100))
        if ten is not None and len(items) < _MOST_NAMES:
            yield AttackAttempt(artifact=ten, further=hundred, proof=Proof.FOLLOWS, note="ten times as long")

    slots = answer_slots(form.value)
    return (each for slot in slots[:2] for each in longer(slot)) if slots else _FEW


def _one_row(_: Target, form: artifacts.ArtifactForm) -> Iterator[AttackAttempt] | str:
    """Each row is the same, with its number and its answer; then its number is written in many ways."""
    slots = sorted(answer_slots(form.value), key=lambda slot: ids_of(form.value, slot) is None)
    return _rows_of_one(form, slots[0]) if slots else _FEW


def _rows_of_one(form: artifacts.ArtifactForm, slot: Slot) -> Iterator[AttackAttempt]:
    count = len(slot.items)

    def same(value: Any, at: int) -> Any:  # noqa: ANN401 - any value that was in a file
        return resized(value, lambda old: [old[at]] * count, count)

    for at in range(min(4, count)):
        if (content := form.written(same(form.value, at))) is not None:
            yield AttackAttempt(artifact=content, proof=Proof.PERFECT, note=note_of(content))
    if (ids := ids_of(form.value, slot)) is None:
        return
    for at in range(2):
        for other in _other_names((ids.keys or ids.items)[at], count):
            if ids.keys:
                value: Any = with_slot(form.value, Slot(slot.path, (), other), [slot.items[at]] * count)
            else:
                value = with_slot(same(form.value, at), ids, other)
            if (content := form.written(value)) is not None:
                yield AttackAttempt(artifact=content, proof=Proof.PERFECT, note=note_of(content))


def _other_names(name: object, count: int) -> Iterator[list[Any]]:
    """So many ways to write one number or name, all different; a number as text, then as a fraction."""
    yield [f"{'0' * at}{name}" if str(name).isdigit() else f"{name}{' ' * at}" for at in range(count)]
    if type(name) is int:
        yield [name + at / (4 * count) for at in range(count)]


def _renamed(target: Target, form: artifacts.ArtifactForm) -> Iterator[AttackAttempt] | str:
    """An order in which few things stand under many names, so that each name is there once."""
    slot = next((slot for slot in answer_slots(form.value) if artifacts.is_order(slot.items)), None)
    return "the artifact is no order in which each thing stands once" if slot is None else _renaming(target, form, slot)


def _renaming(target: Target, form: artifacts.ArtifactForm, slot: Slot) -> Iterator[AttackAttempt]:
    items: list[Any] = list(slot.items)
    count, half = len(items), items[: len(items) // 2]
    names = [[each for item in half for each in (item, item - count)] + items[len(half) : len(half) + count % 2]]
    for other in [*names, *_other_names(items[0], count)]:
        if (content := form.written(with_slot(form.value, slot, other))) is not None:
            yield AttackAttempt(artifact=content, note=note_of(content), least=0.1 * target.way)


# Ways to write one text; each has the text and how often it was written before.
_SPELLINGS: dict[str, Callable[[str, int], str]] = {
    "with blanks behind it": lambda text, at: text + " " * at,
    "with blanks before it": lambda text, at: " " * at + text,
    "with wide gaps": lambda text, at: (
        text.replace(" ", " " * (1 + at)) if " " in text else text.replace(",", "," + " " * at)
    ),
    "with zeros before numbers": lambda text, at: re.sub(r"(?<![\w.])(?=\d)", "0" * at, text),
    "with zeros behind numbers": lambda text, at: re.sub(
        r"(?<=\.)\d+(?![\w.])", lambda digits: digits[0] + "0" * at, text
    ),
    "in other letters": lambda text, at: "".join(
        each.upper() if at >> place & 1 else each.lower() for place, each in enumerate(text)
    ),
    "in wide digits": lambda text, at: (
        text if at % 2 else re.sub(r"[0-9]", lambda digit: chr(ord(digit[0]) + 0xFEE0), text)
    ),
    "with other blanks": lambda text, at: text + "\u00a0" * at,
    "with marks that nobody sees": lambda text, at: text + "\u200b" * at,
}


def _respelled(target: Target) -> Iterator[AttackAttempt] | str:
    """All answers, each in ten spellings: the lines of a text, or the texts of a list."""
    if target.artifact is None:
        return NO_ARTIFACT
    form = artifacts.opened(target.artifact)
    texts = (
        next((slot for slot in answer_slots(form.value) if all(isinstance(each, str) for each in slot.items)), None)
        if form
        else None
    )
    if form is not None and form.kind not in ("table", "lines") and texts is not None:
        return (
            AttackAttempt(artifact=content, note=note, least=_LEAST_PART * target.way)
            for note, items in _spelled([str(each) for each in texts.items])
            if (content := form.written(_resized(form.value, texts, items))) is not None
        )
    try:
        lines = target.artifact.decode().splitlines()
    except UnicodeDecodeError:
        return UNREADABLE
    if len(lines) < artifacts.LEAST_ANSWERS or (form is not None and form.kind == "json"):
        return "the artifact has no lines and no texts to spell otherwise"
    has_header = form is not None and form.kind == "table" and "column 0" not in form.value
    head, rest = lines[:has_header], lines[has_header:]
    return (
        AttackAttempt(artifact="\n".join([*head, *items, ""]).encode(), note=note, least=_LEAST_PART * target.way)
        for note, items in _spelled(rest)
    )


def _spelled(texts: list[str]) -> Iterator[tuple[str, list[Any]]]:
    for note, spell in _SPELLINGS.items():
        items = list(dict.fromkeys(spell(text, at) for text in texts for at in range(_MOST_SPELLINGS)))
        if len(items) > len(texts):
            yield note, items


def _all_at_once(items: list[Any]) -> Iterator[list[Any]]:
    if isinstance(items[0], list):  # several answers to each question
        every = sorted({each for item in items for each in item})[:50]
        yield from ([order] * len(items) for order in (every, every[::-1]))
        yield [[item[0]] * len(item) for item in items]
        yield [[item[0]] * 20 for item in items]
        yield [item[:1] for item in items]
    values = list(dict.fromkeys(tuple(each) if isinstance(each, list) else each for each in items))[:50]
    yield [values] * len(items)
    yield [" ".join(map(str, values))] * len(items)
    yield [{str(value): 1 for value in values}] * len(items)


# --- which


def _different(items: list[Any]) -> Iterator[list[Any]]:
    """Each answer is another: each point is a group of its own, each colour is one below the last."""
    count = len(items)
    if all(type(each) is int for each in items):
        yield from ([*range(count)], [-at for at in range(count)], [at / count for at in range(count)])
    elif all(isinstance(each, str) for each in items):
        yield [f"x{at}" for at in range(count)]


def _everything(target: Target, form: artifacts.ArtifactForm) -> Iterator[AttackAttempt] | str:
    """All things of which the baseline names some: the rows of a table that it reads, or its numbers."""
    slots = [
        slot
        for slot in answer_slots(form.value)
        if not slot.keys and not isinstance(slot.items[0], list) and len(set(slot.items)) == len(slot.items)
    ]
    if not slots or not target.loot.is_drawn:
        return "the artifact does not choose some things out of many"
    return (each for slot in slots[:2] for each in _all_of(target, form, slot))


def _all_of(target: Target, form: artifacts.ArtifactForm, slot: Slot) -> Iterator[AttackAttempt]:
    named, columns = set(slot.items), target.loot.columns.values()
    flat = [values for values in columns if all(type(each) is type(slot.items[0]) for each in values)]
    universes = [tuple(dict.fromkeys(values)) for values in flat if named < set(values)]
    if all(type(each) is int and each >= 0 for each in slot.items):
        lengths = sorted({min(len(values), _MOST_NAMES) for values in columns})
        ranges = [tuple(range(low, low + length)) for length in lengths[:8] for low in (0, 1)]
        universes += [each for each in ranges if named < set(each)]
    for universe in [*dict.fromkeys(universes)][:_MOST_PAIRS]:
        content = form.written(with_slot(form.value, slot, universe))
        if content is not None and len(universe) <= _MOST_NAMES:
            yield AttackAttempt(artifact=content, note=note_of(content), least=0.5 * target.way)


def _doubles(target: Target, form: artifacts.ArtifactForm) -> Iterator[AttackAttempt] | str:
    """One of the things that the baseline chooses, many times; the first attempt says whether twice is allowed."""
    for slot in answer_slots(form.value):
        is_choice = all(type(each) in (int, str) for each in slot.items) and len(set(slot.items)) == len(slot.items)
        if is_choice and not slot.keys:
            return _many_of_one(target, form, slot)
    return "the artifact does not choose some things out of many"


def _many_of_one(target: Target, form: artifacts.ArtifactForm, slot: Slot) -> Iterator[AttackAttempt]:
    items: list[Any] = list(slot.items)
    twice = [("one thing twice", [items[0], *items[:-1]])]
    for item in items[:_MOST_DOUBLED]:
        twice += [(f"{item} {times} times", [item] * times) for times in (len(items) // 2, len(items), 2 * len(items))]
    for note, sequence in twice:
        if (content := form.written(with_slot(form.value, slot, sequence))) is not None:
            needs = "" if note == twice[0][0] else twice[0][0]
            yield AttackAttempt(artifact=content, note=note, needs=needs, least=0.3 * target.way)


def _agrees(target: Target, form: artifacts.ArtifactForm) -> Iterator[AttackAttempt] | str:
    """One sequence of the artifact in the place of another."""
    pairs = [
        (slot, other)
        for slot, other in permutations(answer_slots(form.value), 2)
        if len(slot.items) == len(other.items) and list(slot.items) != list(other.items)
    ]
    if not pairs:
        return "the artifact has no two sequences of one length"
    return (
        each for slot, other in pairs[:_MOST_PAIRS] for each in attempts_with(target, form, slot, [list(other.items)])
    )


ATTACKS = (
    _answers(
        "one-constant",
        "leaves the same answer to all questions",
        Hole.CONSTANT,
        _constants,
        needs_test=True,
        quick=True,
    ),
    Attack("few-answers", "answers a few questions only", Hole.INCOMPLETE, on_form(_few), quick=True),
    Attack("repeats-answers", "answers the same questions many times", Hole.INCOMPLETE, on_form(_repeated), quick=True),
    Attack(
        "repeats-a-row",
        "answers one question as often as there are questions, also under other names",
        Hole.INCOMPLETE,
        on_form(_one_row),
    ),
    Attack(
        "renames-a-thing",
        "puts half of the things, or one alone, into an order under many names",
        Hole.INCOMPLETE,
        on_form(_renamed),
    ),
    Attack(
        "spells-it-otherwise",
        "leaves each answer in ten spellings: blanks, zeros, letters, digits of another script",
        Hole.INCOMPLETE,
        _respelled,
    ),
    _answers("all-answers-at-once", "gives every answer to each question", Hole.INCOMPLETE, _all_at_once),
    _answers("all-different", "gives another answer to each question", Hole.INCOMPLETE, _different),
    Attack(
        "names-everything", "names all things of which the baseline names some", Hole.INCOMPLETE, on_form(_everything)
    ),
    Attack("chooses-one-many-times", "chooses one thing many times", Hole.INCOMPLETE, on_form(_doubles)),
    Attack("agrees-with-itself", "puts one of its own columns into the place of another", Hole.CLAIM, on_form(_agrees)),
)
