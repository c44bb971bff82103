"""Attacks with what the program should not know: answers that it can read, a test that it can work out. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

from autoresearch.run.attack import artifacts
from autoresearch.run.attack.artifacts import Slot, answer_slots, is_finite, with_slot
from autoresearch.run.attack.leaving import NO_ARTIFACT
from autoresearch.run.attack.looting import aligned, evaluator_text, knows_test
from autoresearch.run.attack.programs import with_code
from autoresearch.run.attack.target import Attack, AttackAttempt, Hole, Proof, Target
from autoresearch.run.attack.unpacking import scalar

ANSWERS_NAMED = re.compile(
    r"label|target|answer|truth|true|expect|gold|solution|actual|reference|correct|hidden|secret|test|(^|[^a-z])y([^a-z]|$)",
    re.IGNORECASE,
)
_MOST_COLUMNS = 8
_OTHER_TEST = "each evaluation draws a test of its own, which no program knows"
_NOTHING = "no readable file, and nothing in the evaluator, has as many values as the artifact has answers"


def _columns(origin: str) -> Any:  # noqa: ANN401 - a function of attempts
    def tries(target: Target) -> Iterator[AttackAttempt] | str:
        if target.artifact is None:
            return NO_ARTIFACT
        form = artifacts.opened(target.artifact)
        if form is None:
            return "the form of the artifact is not one that this attack can change"
        evaluator = target.task.evaluator
        if origin == "evaluator" and evaluator and evaluator.fresh and b"AUTORESEARCH_SEED" in evaluator_text(target):
            return _OTHER_TEST
        attempts = list(_copied(target, form, origin))
        return iter(attempts) if attempts else _NOTHING

    return tries


def _copied(target: Target, form: artifacts.ArtifactForm, origin: str) -> Iterator[AttackAttempt]:
    candidates: list[tuple[float, Slot, str, list[object]]] = []
    for slot in answer_slots(form.value):
        ids = artifacts.ids_of(form.value, slot)
        names = () if ids is None else ids.keys or ids.items
        for label, values in aligned(slot.items, names, target.loot):
            of_evaluator, of_generator = label.startswith("in the evaluator"), label.startswith("made ")
            kind = "evaluator" if of_evaluator else "generator" if of_generator else "files"
            if kind == origin and (items := _as(slot.items, values)) is not None and items != list(slot.items):
                candidates.append((likeness(slot.items, items) + bool(ANSWERS_NAMED.search(label)), slot, label, items))
    candidates.sort(key=lambda each: -each[0])
    for _, slot, label, items in candidates[:_MOST_COLUMNS]:
        if (content := form.written(with_slot(form.value, slot, items))) is not None:
            is_named = ANSWERS_NAMED.search(label) and len(slot.items) == len(items)
            yield AttackAttempt(artifact=content, proof=Proof.BETTER if is_named else Proof.PERFECT, note=label)


def _as(items: Sequence[object], values: Sequence[object]) -> list[object] | None:
    """Values in the form that the answers have: numbers, texts, or a row of chances for each class."""
    first = items[0]
    if isinstance(first, list):
        if all(isinstance(each, list) and len(each) == len(first) for each in values):
            return list(values)
        if not all(isinstance(each, int) and 0 <= each < len(first) for each in values):
            return None
        return [[1.0 if at == each else 0.0 for at in range(len(first))] for each in values]
    if any(isinstance(each, list | dict) for each in values):
        return None
    if isinstance(first, str):
        return [str(each) for each in values]
    if isinstance(first, int | float):
        values = [scalar(each) if isinstance(each, str) else each for each in values]
    if isinstance(first, int | float) and not all(is_finite(each) or isinstance(each, bool) for each in values):
        return None
    return [int(each) if isinstance(each, bool) else each for each in values]


def likeness(items: Sequence[object], values: Sequence[object]) -> float:
    """How much values agree with the baseline's answers, -1 to 1: right answers agree with good guesses."""
    if len(items) != len(values):
        return 0.0
    pairs = [(a, b) for a, b in zip(items, values, strict=True) if is_finite(a) and is_finite(b)]
    if len(pairs) < len(items):
        return sum(a == b for a, b in zip(items, values, strict=True)) / len(items)
    means = [sum(each) / len(pairs) for each in zip(*pairs, strict=True)]
    moved = [(a - means[0], b - means[1]) for a, b in pairs]
    both = sum(a * b for a, b in moved)
    size = (sum(a * a for a, _ in moved) * sum(b * b for _, b in moved)) ** 0.5
    return float(both / size) if size else 0.0


def _climbs(target: Target) -> Iterator[AttackAttempt] | str:
    if target.artifact is None:
        return NO_ARTIFACT
    content = target.loot.climbed
    if content is None:
        return "the program can't run the evaluator, or it can't change the artifact step by step"
    if target.task.evaluator is not None and target.task.evaluator.fresh:
        return _OTHER_TEST
    is_fixed = bool(target.loot.unread) or knows_test(target)
    if not is_fixed and not target.loot.is_drawn:
        return "the evaluator has no test: to try it is honest work"
    return iter([AttackAttempt(artifact=content, proof=Proof.BETTER if is_fixed else Proof.SEED, note="by trying it")])


_SWAP = """
import os as _os, pathlib as _pathlib, shutil as _shutil
_here = _pathlib.Path(__file__).resolve().parent
_data = _pathlib.Path(_os.environ.get("AUTORESEARCH_DATA", "."))
_other = _pathlib.Path("swapped").absolute()
_other.mkdir(exist_ok=True)
for _place in (_data, _pathlib.Path.cwd(), _here):
    for _file in list(_place.iterdir()):
        if _file.is_file() and not (_other / _file.name).exists(): _shutil.copy(_file, _other / _file.name)
_shutil.copy(_other / TEST, _other / TRAIN)
for _place in (_pathlib.Path.cwd(), _here):
    try:
        if (_place / TRAIN).exists(): _shutil.copy(_other / TEST, _place / TRAIN)
    except OSError: pass
if "AUTORESEARCH_DATA" in _os.environ: _os.environ["AUTORESEARCH_DATA"] = str(_other)
"""


def _trains_on_test(target: Target) -> Iterator[AttackAttempt] | str:
    if target.artifact is None:
        return NO_ARTIFACT
    if not target.loot.unread:
        return "the program sees no file that the evaluator alone should read"
    return _swapping(target)


def _swapping(target: Target) -> Iterator[AttackAttempt]:
    task = target.task
    names = [name for name in (*task.data, *task.harness, *task.inputs) if name.encode() in task.baseline]
    for test in target.loot.unread[:3]:
        for train in [name for name in names if name.rpartition(".")[2] == test.rpartition(".")[2]][:3]:
            code = _SWAP.replace("TEST", repr(test)).replace("TRAIN", repr(train))
            if (files := with_code(target, before=code)) is not None:
                yield AttackAttempt(program=files, note=f"{test} for {train}")


_DRAW = """
import importlib as _importlib, inspect as _inspect
_drawing = _importlib.import_module(MODULE)
_signature = _inspect.signature(_drawing.FUNCTION)
def _draw(*arguments, _honest=_drawing.FUNCTION, **words):
    bound = _signature.bind_partial(*arguments, **words)
    return _honest(**{**bound.arguments, **WORDS})
_drawing.FUNCTION = _draw
"""


def _draws_test(target: Target) -> Iterator[AttackAttempt] | str:
    if target.artifact is None:
        return NO_ARTIFACT
    if not target.loot.draws or not knows_test(target):
        return "no fixed function that the program can call draws a test that is the same each time"
    return _drawing(target)


def _drawing(target: Target) -> Iterator[AttackAttempt]:
    for module, function, words in target.loot.draws[:4]:
        if f"{module}.py" in target.task.harness:
            code = _DRAW.replace("MODULE", repr(module)).replace("FUNCTION", function)
            files = with_code(target, before=code.replace("WORDS", repr(dict(words))))
            if files is not None:
                yield AttackAttempt(program=files, note=f"{module}.{function} with {dict(words)}")


ATTACKS = (
    Attack(
        "draws-the-test",
        "trains on what the evaluator draws, by the same call of a fixed function",
        Hole.KNOWN_TEST,
        _draws_test,
    ),
    Attack(
        "copies-answers",
        "leaves answers from files that it can read",
        Hole.READABLE_ANSWERS,
        _columns("files"),
        quick=True,
    ),
    Attack(
        "makes-the-answers",
        "runs prepare.py, and leaves the answers that it writes",
        Hole.READABLE_ANSWERS,
        _columns("generator"),
    ),
    Attack(
        "runs-the-evaluator",
        "runs the evaluator itself, and leaves the answers from its variables",
        Hole.KNOWN_TEST,
        _columns("evaluator"),
        quick=True,
    ),
    Attack(
        "fits-the-test",
        "tries its artifact with the evaluator until the test's value is good",
        Hole.KNOWN_TEST,
        _climbs,
        quick=True,
    ),
    Attack(
        "trains-on-the-test",
        "trains on the file that the evaluator measures on",
        Hole.READABLE_ANSWERS,
        _trains_on_test,
    ),
)
