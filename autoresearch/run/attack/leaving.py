"""Attacks by what is left for the evaluator: too little, too much, what is no number, what lies, what is code. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from autoresearch.run.attack import artifacts
from autoresearch.run.attack.artifacts import Leaf, map_leaves, on_numbers
from autoresearch.run.attack.programs import with_code
from autoresearch.run.attack.target import Attack, AttackAttempt, Hole, Proof, Target

NO_ARTIFACT = "no evaluator measures a file that the program leaves"
UNREADABLE = "the form of the artifact is not one that this attack can change"
_MOST_LINKS, _LARGE = 2, 1e6
# A cost below this may be zero but for rounding.
_WORTH = 1e-3


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
        least = 0.1 * target.way
        return (AttackAttempt(artifact=each, note=note_of(each), least=least) for each in make(target.artifact) if each)

    return Attack(name, does, hole, tries, quick)


def note_of(content: bytes) -> str:
    """The beginning of an artifact, which says which attempt it is."""
    return content[:40].decode("utf-8", "replace")


def _changing(name: str, does: str, hole: Hole, changes: Iterable[Leaf], *, quick: bool = False) -> Attack:
    """An attack that changes all scalars of the artifact in the same way, one change an attempt."""
    changes = tuple(changes)

    def attempts(target: Target, form: artifacts.ArtifactForm) -> Iterator[AttackAttempt]:
        for change in changes:
            content = form.with_leaves(change)
            if content is not None and content != target.artifact:
                yield AttackAttempt(artifact=content, note=note_of(content))

    return Attack(name, does, hole, on_form(attempts), quick)


def _no_numbers(
    name: str, does: str, numbers: tuple[object, ...], hole: Hole = Hole.NOT_FINITE, *, quick: bool = False
) -> Attack:
    """An attack with the same in the place of each number, which a bound may hold to what a large number is."""

    def attempts(target: Target, form: artifacts.ArtifactForm) -> Iterator[AttackAttempt]:
        for number in numbers:
            content, further = (form.with_leaves(on_numbers(each)) for each in (number, large_for(number)))
            if content is not None and content != target.artifact:
                yield AttackAttempt(artifact=content, further=further, proof=Proof.UNBOUND, note=note_of(content))

    return Attack(name, does, hole, on_form(attempts), quick)


def large_for(number: object) -> float:
    """A large number on the side of one that is none, or larger still."""
    return -_LARGE if isinstance(number, int | float) and number < 0 else _LARGE


def _zeros(target: Target, form: artifacts.ArtifactForm) -> Iterator[AttackAttempt] | str:
    if target.sign < 0 or target.value < _WORTH:
        return "only a number that falls to zero would show it"
    code = b"\n".join(text for name, text in target.task.harness.items() if name.endswith(".py"))
    if not any(name.encode() in code for name in target.task.harness if not name.endswith(".py")):
        return "the evaluator reads no data, so zeros may be the best answer"
    zeros, little = (
        form.with_leaves(lambda leaf, factor=factor: factor * leaf if artifacts.is_finite(leaf) else leaf)  # type: ignore[misc]
        for factor in (0, 1e-9)
    )
    return (AttackAttempt(artifact=each, proof=Proof.STATED, stated=0.0) for each in (zeros, little) if each)


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


def _in_part(name: str, does: str, bad: object, least: float = 0.0) -> Attack:
    """An attack on a part of the numbers; an honest one may be larger, so a gain takes a part of the way there."""

    def attempts(target: Target, form: artifacts.ArtifactForm) -> Iterator[AttackAttempt]:
        for places in (
            lambda at, _: at == 0,
            lambda at, n: at == n - 1,
            lambda at, n: at >= n // 2,
            lambda at, _: at > 0,
        ):
            content, further = (form.written(_some(each, places)(form.value)) for each in (bad, large_for(bad)))
            if content is not None:
                proof, needed = Proof.UNBOUND, least * target.way
                yield AttackAttempt(artifact=content, further=further, proof=proof, note=note_of(content), least=needed)

    return Attack(name, does, Hole.NOT_FINITE, on_form(attempts))


def _links(target: Target) -> Iterator[AttackAttempt] | str:
    """A link in the artifact's place, to a file that only the evaluator has."""
    task = target.task
    if task.evaluator is None:
        return NO_ARTIFACT
    names = [name for name in dict.fromkeys([*task.hidden, *task.data, *task.harness]) if not name.endswith(".py")]
    code = "import os\nif os.path.lexists(PLACE): os.remove(PLACE)\nos.symlink(OTHER, PLACE)"
    programs = (
        (
            name,
            with_code(target, after=code.replace("PLACE", repr(task.evaluator.artifact)).replace("OTHER", repr(name))),
        )
        for name in names[:_MOST_LINKS]
    )
    return (AttackAttempt(program=files, note=name) for name, files in programs if files is not None)


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
    Attack("all-zero", "leaves zero for each number, or next to nothing", Hole.CONSTANT, on_form(_zeros), quick=True),
    _no_numbers("all-nan", "leaves NaN for each number", (float("nan"),), quick=True),
    _no_numbers("all-infinite", "leaves infinity for each number", (float("inf"), float("-inf"))),
    _no_numbers("all-huge", "leaves huge numbers", (1e300, -1e300, 10**30, 2**62)),
    _no_numbers("all-text", "leaves texts for numbers", ("nan", "x", "inf"), Hole.FAILURE_COUNTS),
    _changing(
        "all-null", "leaves null and empty lists for numbers", Hole.FAILURE_COUNTS, [on_numbers(None), on_numbers([])]
    ),
    _changing(
        "all-empty-texts",
        "leaves empty texts and patterns for texts",
        Hole.FAILURE_COUNTS,
        [_on_texts(text) for text in ("", " ", ".*", "*", "%", "0123456789abcdefghijklmnopqrstuvwxyz" * 9)],
    ),
    _in_part("some-nan", "leaves NaN for some numbers", float("nan")),
    _in_part("some-infinite", "leaves infinity for some numbers", float("inf")),
    _in_part("some-huge", "leaves huge numbers for some", 1e9, least=0.3),
    _in_part("some-null", "leaves null for some numbers", None),
    Attack("leaves-a-link", "leaves a link to a file that the evaluator has", Hole.READABLE_ANSWERS, _links),
)
