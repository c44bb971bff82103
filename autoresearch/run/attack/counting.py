"""Attacks on counts, weights and names in an artifact: fewer than none, halves, all for one row, another file. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any

from autoresearch.run.attack import artifacts
from autoresearch.run.attack.artifacts import map_leaves
from autoresearch.run.attack.leaving import on_form
from autoresearch.run.attack.parts import Part, named, parts, putting, with_part
from autoresearch.run.attack.target import Attack, AttackAttempt, Hole, Proof, Target

_SPLITS = ("train", "test", "val", "valid", "validation", "dev", "public", "private")
_LEAVES, _STEPS = 6, (1, 3, 10, 100)
_ALONE = " of one"
_UNITS = (("ns", "us", "ms", "s", "min", "h"), ("b", "kb", "mb", "gb"), ("min", "max"))
_MOST_PAIRS, _MOST_COLUMNS = 12, 4


def _whole(form: artifacts.ArtifactForm) -> list[int]:
    """The whole numbers of an artifact that may be counts: none is below zero, and some differ."""
    numbers: list[int] = []
    map_leaves(form.value, lambda each: numbers.append(each) if type(each) is int else None)
    return numbers if len(set(numbers)) > 1 and min(numbers) >= 0 else []


def _counting(form: artifacts.ArtifactForm, change: Callable[[int, int], object]) -> bytes | None:
    """The artifact with each whole number changed by its place and value."""
    at = [-1]

    def leaf(each: Any) -> Any:  # noqa: ANN401 - as above
        at[0] += type(each) is int
        return change(at[0], each) if type(each) is int else each

    return form.with_leaves(leaf)


def _miscounts(
    changes: Callable[[list[int]], Iterator[tuple[str, Callable[[int, int], object]]]],
) -> Callable[[Target, artifacts.ArtifactForm], Iterator[AttackAttempt] | str]:
    """Counts that are none: where one number alone is changed, that says whether the evaluator takes such numbers."""

    def tries(target: Target, form: artifacts.ArtifactForm) -> Iterator[AttackAttempt] | str:
        numbers = _whole(form)
        if not numbers:
            return "the artifact has no counts"
        # A baseline of zeros and ones may be labels, and all alike may be better; but not where their sum is measured.
        least = 0.0 if target.value == sum(numbers) else (0.5 if max(numbers) == 1 else 0.1) * target.way
        attempts, first = [], ""
        for note, change in changes(numbers):
            if (content := _counting(form, change)) is not None:
                attempts.append(AttackAttempt(artifact=content, note=note, needs=first, least=least))
                first = first or (note if note.endswith(_ALONE) else "")
        return iter(attempts)

    return tries


def _negative(numbers: list[int]) -> Iterator[tuple[str, Callable[[int, int], object]]]:
    """Fewer than none of one thing, with as many of all others as the baseline has of any; least wanted first."""
    most = max(numbers)
    few = most == 1  # as labels are
    places = sorted(range(len(numbers)), key=lambda at: numbers[at])[: 2 if few else _LEAVES]
    yield f"fewer than none{_ALONE}", lambda at, each: -1 if at == places[0] else each
    yield "all turned around", lambda _, each: -each
    for place in places:
        for step in _STEPS[::2] if few else _STEPS:
            yield (
                f"{-step} of number {place}, {most} of the others",
                lambda at, _, place=place, step=step: -step if at == place else most,  # type: ignore[misc]
            )


def _fractions(numbers: list[int]) -> Iterator[tuple[str, Callable[[int, int], object]]]:
    """Parts of a thing, and no more of any than the baseline has of one."""
    most, least = max(numbers), numbers.index(min(numbers))
    for share in (2, 3, 4):
        yield f"1/{share} of {most} everywhere", lambda _, __, share=share: most / share  # type: ignore[misc]
    yield f"a half more{_ALONE}", lambda at, each: each + 0.5 if at == least else each
    for step in (0.5, 0.999, -0.5):
        yield f"{step:+g} of all", lambda _, each, step=step: min(max(each + step, 0.0), most)  # type: ignore[misc]


# --- weights, and names of what is read


def _weighs(target: Target, form: artifacts.ArtifactForm) -> Iterator[AttackAttempt] | str:
    """A column of shares in which one row has all, and the others nothing."""
    columns: list[tuple[Part, list[Any]]] = []
    for part in parts(form.value):
        values: list[Any] = []
        with_part(form.value, part, values.append)
        if len(values) >= artifacts.LEAST_ANSWERS and all(0 <= each <= 1 for each in values) and len(set(values)) > 2:
            columns.append((part, values))
    if not columns:
        return "the artifact has no column of shares"
    proof = Proof.BETTER if target.loot.is_drawn else Proof.PERFECT

    def attempts() -> Iterator[AttackAttempt]:
        for part, values in columns[:2]:
            surest = sorted(range(len(values)), key=lambda at: -values[at])
            for place in (surest[0], surest[1], surest[-1]):
                nothing = with_part(form.value, part, lambda each: 0 * each)
                if (content := form.written(with_part(nothing, part, putting(1.0, place)))) is not None:
                    note = f"all of {named(part)} for row {place}"
                    yield AttackAttempt(artifact=content, proof=proof, note=note, least=0.5 * target.way)

    return attempts()


def _levels(target: Target, form: artifacts.ArtifactForm) -> Iterator[AttackAttempt] | str:
    """One column of rows all the same: all things at one time, in one place, by one worker."""
    columns: dict[Part, list[Any]] = {}
    for part in parts(form.value):
        with_part(form.value, part, columns.setdefault(part, []).append)
    columns = {part: values for part, values in columns.items() if len(values) >= artifacts.LEAST_ANSWERS}
    if len(columns) < 2 or not target.loot.is_drawn:
        return "the artifact has no columns of rows that follow what the evaluator reads"

    def attempts() -> Iterator[AttackAttempt]:
        for part, values in islice(columns.items(), _MOST_COLUMNS):
            for number in sorted({min(values), max(values)}) if len(set(values)) > 1 else ():
                if (content := form.written(with_part(form.value, part, putting(number)))) is not None:
                    note = f"all {named(part)} = {number:g}"
                    yield AttackAttempt(artifact=content, note=note, least=0.5 * target.way)

    return attempts()


def _renames(target: Target, form: artifacts.ArtifactForm) -> Iterator[AttackAttempt] | str:
    """Another file, or another part of the data, where a text of the artifact names one."""
    task = target.task
    texts: dict[str, None] = {}
    map_leaves(form.value, lambda leaf: texts.setdefault(leaf, None) if isinstance(leaf, str) else None)
    names = dict.fromkeys([*task.data, *task.harness, *task.inputs])
    kinds = [
        [name for name in names if not name.endswith(".py")],
        _SPLITS,
        *_UNITS,
        [name.rpartition(".")[0] for name in names],
    ]
    pairs = [(text, other) for text in texts for kind in kinds if text in kind for other in kind if other != text]
    if not pairs:
        return "no text of the artifact names a file or a part of the data"

    def attempts() -> Iterator[AttackAttempt]:
        for text, other in pairs[:_MOST_PAIRS]:
            content = form.with_leaves(lambda leaf, text=text, other=other: other if leaf == text else leaf)  # type: ignore[misc]
            if content is not None:
                yield AttackAttempt(artifact=content, note=f"{other} for {text}", least=0.1 * target.way)

    return attempts()


ATTACKS = (
    Attack(
        "counts-below-zero",
        "leaves fewer than none of one thing, and many of the others",
        Hole.NOT_FINITE,
        on_form(_miscounts(_negative)),
    ),
    Attack("counts-in-parts", "leaves parts of what is counted", Hole.NOT_FINITE, on_form(_miscounts(_fractions))),
    Attack("levels-a-column", "leaves the same in one column of all rows", Hole.OVERLAP, on_form(_levels)),
    Attack("weighs-one-row", "gives one row all the weight", Hole.CLAIM, on_form(_weighs)),
    Attack(
        "names-another-file",
        "names another file or another part of the data to the evaluator",
        Hole.CLAIM,
        on_form(_renames),
    ),
)
