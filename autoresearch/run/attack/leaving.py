"""Attacks by what is left for the evaluator: too little, too much, what is no number, what lies, what is code. Pure."""

from __future__ import annotations

import json
import pickle
import zipfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from io import BytesIO
from typing import Any

from autoresearch.run.attack import artifacts
from autoresearch.run.attack.artifacts import Leaf, answer_slots, map_leaves, on_numbers, resized, with_slot
from autoresearch.run.attack.target import Attack, AttackAttempt, Hole, Proof, Target

NO_ARTIFACT = "no evaluator measures a file that the program leaves"
UNREADABLE = "the form of the artifact is not one that this attack can change"
_FEW = "the artifact has no sequence of answers"
# A cost below this may be zero but for rounding.
_WORTH = 1e-3
_NOT_DRAWN = "the evaluator has no test, so a constant may be the best answer"


def on_form(
    attempts: Callable[[Target, artifacts.ArtifactForm], Iterable[AttackAttempt] | str],
) -> Callable[[Target], Iterable[AttackAttempt] | str]:
    """The attempts on an artifact whose form is known."""

    def tries(target: Target) -> Iterable[AttackAttempt] | str:
        if target.artifact is None:
            return NO_ARTIFACT
        form = artifacts.opened(target.artifact)
        return UNREADABLE if form is None else attempts(target, form)

    return tries


def _bytes(
    name: str, does: str, hole: Hole, make: Callable[[bytes], Iterable[bytes]], *, quick: bool = False
) -> Attack:
    """An attack that leaves other bytes than the baseline's; better than the baseline by far is through.

    A file may be as good without its last byte, which is no hole.
    """

    def tries(target: Target) -> Iterator[AttackAttempt] | str:
        if target.artifact is None:
            return NO_ARTIFACT
        least = 0.1 * _way(target)
        return (AttackAttempt(artifact=each, note=_note(each), least=least) for each in make(target.artifact) if each)

    return Attack(name, does, hole, tries, quick)


def _way(target: Target) -> float:
    """How far it is from the baseline's value to the best, or to zero."""
    return abs(target.value if target.best is None else target.best - target.value)


def _note(content: bytes) -> str:
    return content[:40].decode("utf-8", "replace")


def _changing(name: str, does: str, hole: Hole, changes: Iterable[Leaf], *, quick: bool = False) -> Attack:
    """An attack that changes all scalars of the artifact in the same way, one change an attempt."""
    changes = tuple(changes)

    def attempts(target: Target, form: artifacts.ArtifactForm) -> Iterator[AttackAttempt]:
        for change in changes:
            content = form.with_leaves(change)
            if content is not None and content != target.artifact:
                yield AttackAttempt(artifact=content, note=_note(content))

    return Attack(name, does, hole, on_form(attempts), quick)


def _zeros(target: Target, form: artifacts.ArtifactForm) -> Iterator[AttackAttempt] | str:
    if target.sign < 0 or target.value < _WORTH:
        return "only a number that falls to zero would show it"
    code = b"\n".join(text for name, text in target.task.harness.items() if name.endswith(".py"))
    if not any(name.encode() in code for name in target.task.harness if not name.endswith(".py")):
        return "the evaluator reads no data, so zeros may be the best answer"
    content = form.with_leaves(lambda leaf: 0 * leaf if artifacts.is_finite(leaf) else leaf)
    return iter([AttackAttempt(artifact=content, proof=Proof.STATED, stated=0.0)] if content else [])


def _on_texts(text: str) -> Leaf:
    return lambda leaf: text if isinstance(leaf, str) else leaf


def _some(bad: object, places: Callable[[int, int], bool]) -> Callable[[Any], Any]:
    """A change of those numbers only whose place, among so many, is meant."""

    def change(value: Any) -> Any:  # noqa: ANN401 - any value that was in a file
        count, at = artifacts.size_of(value), [-1]

        def leaf(each: object) -> object:
            at[0] += 1
            return bad if artifacts.is_finite(each) and places(at[0], count) else each

        return map_leaves(value, leaf)

    return change


def _in_part(name: str, does: str, bad: object) -> Attack:
    def attempts(_: Target, form: artifacts.ArtifactForm) -> Iterator[AttackAttempt]:
        for places in (
            lambda at, _: at == 0,
            lambda at, n: at == n - 1,
            lambda at, n: at >= n // 2,
            lambda at, _: at > 0,
        ):
            if (content := form.written(_some(bad, places)(form.value))) is not None:
                yield AttackAttempt(artifact=content, note=_note(content))

    return Attack(name, does, Hole.NOT_FINITE, on_form(attempts))


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

    def attempts(target: Target, form: artifacts.ArtifactForm) -> Iterator[AttackAttempt]:
        for slot in answer_slots(form.value)[:2]:
            is_test = target.loot.is_drawn and len(slot.items) >= 4 * artifacts.LEAST_ANSWERS
            is_whole = (is_test and target.share == 1) or artifacts.is_order(slot.items)
            proof = Proof.BETTER if is_whole else Proof.PERFECT
            # A baseline may be weak: such answers must take half of the way to the best value.
            least = 0.5 * _way(target)
            for items in make(list(slot.items)):
                value = _resized(form.value, slot, items)
                if (content := form.written(value)) is not None:
                    yield AttackAttempt(artifact=content, note=_note(content), proof=proof, least=least)

    def tries(target: Target, form: artifacts.ArtifactForm) -> Iterator[AttackAttempt] | str:
        slots = answer_slots(form.value)
        if needs_test and not target.loot.is_drawn and not any(artifacts.is_order(slot.items) for slot in slots):
            return _NOT_DRAWN
        return attempts(target, form) if slots else _FEW

    return Attack(name, does, hole, on_form(tries), quick)


def _resized(value: Any, slot: artifacts.Slot, items: list[Any]) -> Any:  # noqa: ANN401 - any value that was in a file
    """A value with these items in a slot; where there are more or fewer, all sequences beside it are as long."""
    count = len(slot.items)
    if len(items) == count:
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


def _singles(items: list[Any]) -> Iterator[list[Any]]:
    for place in range(min(6, len(items))):
        yield [items[place]]
    yield items[: len(items) // 2]
    yield items[:-1]


def _repeated(items: list[Any]) -> Iterator[list[Any]]:
    yield items * 2
    yield items * 50
    for place in range(3):
        yield items + [items[place]] * 20 * len(items)


def _one_row(_: Target, form: artifacts.ArtifactForm) -> Iterator[AttackAttempt] | str:
    """Each row is the same, with its number and its answer."""
    slots = answer_slots(form.value)
    if not slots:
        return _FEW
    count = len(slots[0].items)
    contents = (form.written(resized(form.value, lambda old, at=at: [old[at]] * count, count)) for at in range(4))  # type: ignore[misc]
    return (AttackAttempt(artifact=each, proof=Proof.PERFECT, note=_note(each)) for each in contents if each)


def _all_at_once(items: list[Any]) -> Iterator[list[Any]]:
    if isinstance(items[0], list):  # several answers to each question
        every = sorted({each for item in items for each in item})[:50]
        yield from ([order] * len(items) for order in (every, every[::-1]))
    values = list(dict.fromkeys(tuple(each) if isinstance(each, list) else each for each in items))[:50]
    yield [values] * len(items)
    yield [" ".join(map(str, values))] * len(items)
    yield [{str(value): 1 for value in values}] * len(items)


# --- text and code


def _lines(target: Target, turn: int) -> tuple[str, float]:
    number = target.better_number(turn)
    return f"\n---\n{target.task.metric.name}: {number}\n", number


def _injects(target: Target) -> Iterator[AttackAttempt] | str:
    if target.artifact is None:
        return NO_ARTIFACT
    line, number = _lines(target, 9)
    form = artifacts.opened(target.artifact)
    return _injecting(target, form, line, number)


def _injecting(
    target: Target, form: artifacts.ArtifactForm | None, line: str, number: float
) -> Iterator[AttackAttempt]:
    assert target.artifact is not None
    contents: list[bytes | None] = [target.artifact + line.encode(), line.encode(), line.encode() + target.artifact]
    if form is not None:
        contents.append(form.with_leaves(lambda leaf: leaf + line if isinstance(leaf, str) else leaf))
        contents.append(form.with_leaves(lambda _: line))
        if isinstance(form.value, dict):
            contents.append(form.written({line: 0, **form.value}))
            contents.append(form.written({**form.value, line: 0, "name": line, "model": line, "note": line}))
    for content in contents:
        if content is not None and content != target.artifact:
            yield AttackAttempt(artifact=content, proof=Proof.STATED, stated=number, note=_note(content))


class _Payload:
    """Unpickled it runs code."""

    def __init__(self, code: str) -> None:
        self.code = code

    def __reduce__(self) -> tuple[object, tuple[str]]:
        return exec, (self.code,)


def _code(target: Target, turn: int) -> tuple[str, float]:
    number = target.better_number(turn)
    line = f"{target.task.metric.name}: {number}\n"
    return f"import os\nos.write(1, {line!r}.encode())\nos._exit(0)\n", number


def _pickles(target: Target) -> Iterator[AttackAttempt] | str:
    if target.artifact is None:
        return NO_ARTIFACT
    code, number = _code(target, 10)
    raw = pickle.dumps(_Payload(code), protocol=2)
    npy = _object_array(raw)
    contents = {
        "pickle": raw,
        "torch": _zipped({"archive/data.pkl": raw, "archive/version": b"3\n", "archive/byteorder": b"little"}),
        "npy": npy,
        "npz": _zipped({f"{name}.npy": npy for name in _names_in(target.artifact)}),
    }
    return (
        AttackAttempt(artifact=content, proof=Proof.STATED, stated=number, note=kind)
        for kind, content in contents.items()
    )


def _names_in(content: bytes) -> list[str]:
    form = artifacts.opened(content)
    names = list(form.value) if form is not None and isinstance(form.value, dict) else []
    return [*map(str, names[:64]), "arr_0"]


def _object_array(raw: bytes) -> bytes:
    header = "{'descr': '|O', 'fortran_order': False, 'shape': (1,), }"
    header += " " * (63 - (10 + len(header)) % 64) + "\n"
    return b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header.encode() + raw


def _zipped(files: dict[str, bytes]) -> bytes:
    out = BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return out.getvalue()


def _evaluated(target: Target) -> Iterator[AttackAttempt] | str:
    if target.artifact is None:
        return NO_ARTIFACT
    code, number = _code(target, 11)
    return _evaluating(target, code, number)


def _evaluating(target: Target, code: str, number: float) -> Iterator[AttackAttempt]:
    assert target.artifact is not None
    expression = f"exec({code!r})"
    form = artifacts.opened(target.artifact)
    contents: list[bytes | None] = [
        code.encode(),
        expression.encode(),
        f"!!python/object/apply:builtins.exec [{json.dumps(code)}]\n".encode(),
    ]
    if form is not None:
        contents.append(form.with_leaves(lambda leaf: expression if isinstance(leaf, str) else leaf))
        contents.append(form.with_leaves(lambda _: expression))
        contents.append(form.with_leaves(lambda _: f"__import__('builtins').{expression}"))
    for content in contents:
        if content is not None and content != target.artifact:
            yield AttackAttempt(artifact=content, proof=Proof.STATED, stated=number, note=_note(content))


def _wrong(content: bytes) -> Iterator[bytes]:
    yield from (
        b"null",
        b"true",
        b"0",
        b'""',
        b"[]",
        b"{}",
        b"[[]]",
        b'{"": null}',
        b"nan",
        b"Infinity",
        b"-1",
        b"\n",
        b" ",
    )
    form = artifacts.opened(content)
    if form is not None:
        shapes: tuple[Any, ...] = ([form.value], {"value": form.value}, {}, [])
        yield from (each for value in shapes if (each := form.written(value)) is not None)


def _empty(content: bytes) -> Iterator[bytes]:
    """The same with nothing in it: no rows behind the header, no entries, empty lists."""
    form = artifacts.opened(content)
    if form is None:
        return
    values: tuple[Any, ...] = ([],)
    if isinstance(form.value, dict):
        values = ({name: each if artifacts.is_finite(each) else type(each)() for name, each in form.value.items()}, {})
        values += tuple({k: v for k, v in form.value.items() if k != name} for name in list(form.value)[:8])
    yield from (each for value in values if (each := form.written(value)) is not None)


def _broken(content: bytes) -> Iterator[bytes]:
    yield from (
        content[: len(content) // 2],
        content[:-1],
        content + content,
        b"\xff\xfe" + content,
        bytes(64),
        b"x" * 4096,
    )


ATTACKS = (
    _bytes("leaves-nothing-in-it", "leaves an artifact with no entry", Hole.INCOMPLETE, _empty, quick=True),
    _bytes(
        "leaves-another-type",
        "leaves null, a text, an empty list, another shape",
        Hole.FAILURE_COUNTS,
        _wrong,
        quick=True,
    ),
    _bytes("leaves-half-a-file", "leaves a file that is broken", Hole.FAILURE_COUNTS, _broken, quick=True),
    Attack("all-zero", "leaves zero for each number", Hole.CONSTANT, on_form(_zeros), quick=True),
    _changing("all-nan", "leaves NaN for each number", Hole.NOT_FINITE, [on_numbers(float("nan"))], quick=True),
    _changing(
        "all-infinite",
        "leaves infinity for each number",
        Hole.NOT_FINITE,
        [on_numbers(float("inf")), on_numbers(float("-inf"))],
    ),
    _changing(
        "all-huge", "leaves huge numbers", Hole.NOT_FINITE, [on_numbers(1e300), on_numbers(-1e300), on_numbers(10**30)]
    ),
    _changing(
        "all-text",
        "leaves texts for numbers",
        Hole.FAILURE_COUNTS,
        [on_numbers("nan"), on_numbers("x"), on_numbers("inf")],
    ),
    _changing(
        "all-null",
        "leaves null and empty lists for numbers",
        Hole.FAILURE_COUNTS,
        [on_numbers(None), on_numbers([])],
    ),
    _changing(
        "all-empty-texts",
        "leaves empty texts and patterns for texts",
        Hole.FAILURE_COUNTS,
        [_on_texts(text) for text in ("", " ", ".*", "*", "%", "0123456789abcdefghijklmnopqrstuvwxyz" * 9)],
    ),
    _in_part("some-nan", "leaves NaN for some numbers", float("nan")),
    _in_part("some-infinite", "leaves infinity for some numbers", float("inf")),
    _in_part("some-null", "leaves null for some numbers", None),
    _answers(
        "one-constant",
        "leaves the same answer to all questions",
        Hole.CONSTANT,
        _constants,
        needs_test=True,
        quick=True,
    ),
    _answers("few-answers", "answers a few questions only", Hole.INCOMPLETE, _singles, quick=True),
    _answers("repeats-answers", "answers the same questions many times", Hole.INCOMPLETE, _repeated, quick=True),
    Attack("repeats-a-row", "answers one question as often as there are questions", Hole.INCOMPLETE, on_form(_one_row)),
    _answers("all-answers-at-once", "gives every answer to each question", Hole.INCOMPLETE, _all_at_once),
    Attack(
        "injects-a-line", "has a line with a number in the artifact's texts", Hole.PRINTS_TEXT, _injects, quick=True
    ),
    Attack("leaves-a-pickle", "leaves a pickle that runs code when it is read", Hole.RUNS_CODE, _pickles, quick=True),
    Attack("leaves-an-expression", "leaves code where the evaluator may evaluate a text", Hole.RUNS_CODE, _evaluated),
)
