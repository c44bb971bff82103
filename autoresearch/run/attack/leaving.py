"""Attacks by what is left for the evaluator: too little, too much, what is no number, what lies, what is code. Pure."""

from __future__ import annotations

import json
import pickle
import tarfile
import zipfile
from collections.abc import Callable, Iterable, Iterator
from io import BytesIO
from typing import Any

from autoresearch.run.attack import artifacts
from autoresearch.run.attack.artifacts import Leaf, map_leaves, on_numbers
from autoresearch.run.attack.programs import evaluator_literals, with_code
from autoresearch.run.attack.target import Attack, AttackAttempt, Hole, Proof, Target

NO_ARTIFACT = "no evaluator measures a file that the program leaves"
UNREADABLE = "the form of the artifact is not one that this attack can change"
_MOST_WORDS, _MOST_LINKS = 500, 2
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
            if (content := form.written(_some(bad, places)(form.value))) is not None:
                yield AttackAttempt(artifact=content, note=note_of(content), least=least * target.way)

    return Attack(name, does, Hole.NOT_FINITE, on_form(attempts))


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
            yield AttackAttempt(artifact=content, proof=Proof.STATED, stated=number, note=note_of(content))


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
            yield AttackAttempt(artifact=content, proof=Proof.STATED, stated=number, note=note_of(content))


def _says_all(target: Target) -> Iterator[AttackAttempt] | str:
    """Every word that the evaluator's text and what a program reads have, in each text, and one word many times."""
    if target.artifact is None:
        return NO_ARTIFACT
    form = artifacts.opened(target.artifact)
    words = dict.fromkeys(evaluator_literals(target))
    for values in target.loot.columns.values():
        words |= dict.fromkeys(word for each in values[:_MOST_WORDS] if isinstance(each, str) for word in each.split())
    texts = [" ".join([*words][:_MOST_WORDS]), "\n".join([*words][:_MOST_WORDS])]
    if form is None:
        try:
            target.artifact.decode()
        except UnicodeDecodeError:
            return UNREADABLE
        return (AttackAttempt(artifact=text.encode(), note="all words", least=0.3 * target.way) for text in texts)
    leaves: list[str] = []
    map_leaves(form.value, lambda leaf: leaves.append(leaf) if isinstance(leaf, str) else None)
    return _in_texts(target, form, texts[:1]) if any(len(leaf) > 1 for leaf in leaves) else "the artifact has no texts"


def _in_texts(target: Target, form: artifacts.ArtifactForm, texts: list[str]) -> Iterator[AttackAttempt]:
    changes: tuple[Callable[[str], str], ...] = (
        *(lambda _, text=text: text for text in texts),
        lambda leaf: leaf[:1],
        lambda leaf: f"{leaf} {leaf}",
        lambda leaf: f"{leaf} " * 50,
        lambda leaf: leaf.split()[0] if leaf.split() else leaf,
        lambda leaf: " ".join(leaf.split()[:1] * len(leaf.split())),
        lambda leaf: " ".join(f"{word}{at}" for at, word in enumerate(leaf.split())),
        lambda leaf: " ".join(sorted(set(leaf.split()))),
    )
    for change in changes:
        content = form.with_leaves(lambda leaf, change=change: change(leaf) if isinstance(leaf, str) else leaf)  # type: ignore[misc]
        if content is not None and content != target.artifact:
            yield AttackAttempt(artifact=content, note=note_of(content), least=0.3 * target.way)


def _unpacks(target: Target) -> Iterator[AttackAttempt] | str:
    """The baseline's archive, with fixed files in it that print a number when they are imported."""
    content = target.artifact or b""
    names = [name for name in target.task.harness if name.endswith(".py")]
    code, number = _code(target, 13)
    more = {name: code.encode() for name in [*names, "random.py", "json.py"]}
    out = BytesIO(content)
    try:
        if zipfile.is_zipfile(out):
            with zipfile.ZipFile(out, "a") as archive:
                for name, text in more.items():
                    archive.writestr(name, text)
        else:
            out = BytesIO()
            with tarfile.open(fileobj=BytesIO(content)) as old, tarfile.open(fileobj=out, mode="w") as new:
                for member in old:
                    new.addfile(member, old.extractfile(member))
                for name, text in more.items():
                    member = tarfile.TarInfo(name)
                    member.size = len(text)
                    new.addfile(member, BytesIO(text))
    except (tarfile.TarError, zipfile.BadZipFile, OSError):
        return "the artifact is no archive"
    return iter([AttackAttempt(artifact=out.getvalue(), proof=Proof.STATED, stated=number)])


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
    _changing("all-nan", "leaves NaN for each number", Hole.NOT_FINITE, [on_numbers(float("nan"))], quick=True),
    _changing(
        "all-infinite",
        "leaves infinity for each number",
        Hole.NOT_FINITE,
        [on_numbers(float("inf")), on_numbers(float("-inf"))],
    ),
    _changing("all-huge", "leaves huge numbers", Hole.NOT_FINITE, [*map(on_numbers, (1e300, -1e300, 10**30, 2**62))]),
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
    _in_part("some-huge", "leaves huge numbers for some", 1e9, least=0.3),
    _in_part("some-null", "leaves null for some numbers", None),
    Attack(
        "injects-a-line", "has a line with a number in the artifact's texts", Hole.PRINTS_TEXT, _injects, quick=True
    ),
    Attack("leaves-a-pickle", "leaves a pickle that runs code when it is read", Hole.RUNS_CODE, _pickles, quick=True),
    Attack("leaves-an-expression", "leaves code where the evaluator may evaluate a text", Hole.RUNS_CODE, _evaluated),
    Attack(
        "says-all-words", "leaves all words that may be looked for, one word many times", Hole.INCOMPLETE, _says_all
    ),
    Attack("unpacks-over-files", "leaves an archive with files of the evaluator in it", Hole.RUNS_CODE, _unpacks),
    Attack("leaves-a-link", "leaves a link to a file that the evaluator has", Hole.READABLE_ANSWERS, _links),
)
