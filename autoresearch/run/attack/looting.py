"""What a program can read in its sandbox that would tell it the answers."""

from __future__ import annotations

import ast
import base64
import hashlib
import json
import re
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from autoresearch.run.attack.programs import Place, place_of, with_code
from autoresearch.run.attack.target import Loot, Target
from autoresearch.run.bench import MIB, command_words
from autoresearch.run.sandbox.job import JobOutcome
from autoresearch.task.model import evaluation_seed, seed_for
from autoresearch.task.program import join_files, source_digest, split_program
from autoresearch.task.source import python_tree

_MOST_BYTES = 32 * MIB
# Rows of questions are in another table where so many of them are.
_SHARED_ROWS = 0.3
_LEAST_ROWS = 5
# How the evaluator's files say that there is a test: it is drawn, or it is read.
_DRAWS = re.compile(rb"\brandom\b|\brng\b|(?<![a-z])seed(?![a-z])|default_rng", re.IGNORECASE)

# What only a test is called: an evaluator may read settings too.
_TEST = re.compile(r"label|target|answer|truth|expect|gold|solution|hidden|secret|test|val|eval|hold", re.IGNORECASE)
_FUTURE = "from __future__ import annotations\n"
_SEEDED = re.compile(rb"(?:Random|RandomState|seed|default_rng)\(\s*\d+")


class _Report(msgspec.Struct):
    columns: dict[str, list[Any]]
    secrets: dict[str, str]
    names: list[str]
    reads: list[str]
    climbed: str | None = None
    draws: list[tuple[str, str, dict[str, Any]]] = []
    dialogue: list[tuple[str, str]] = []
    rehearsed: list[str] = []


def is_worth_it(target: Target) -> bool:
    """Whether there is something to look for: elsewhere the program states its number anyway."""
    return target.task.evaluator is not None and target.artifact is not None


def loot_of(target: Target, train: Callable[[str], JobOutcome], *, seconds: float) -> Loot:
    """What a program could read; ``train`` runs one in the sandbox, for at most so many ``seconds``."""
    drawn = _is_drawn(target, evaluator_text(target))
    program = _program(target, seconds)
    if program is None:
        return Loot(is_drawn=drawn)
    outcome = train(program)
    if outcome.checkpoint is None:
        return Loot(is_drawn=drawn)
    content = outcome.checkpoint.read_bytes()
    try:
        report = msgspec.json.decode(content[:_MOST_BYTES], type=_Report)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return Loot(is_drawn=drawn)
    baseline = target.task.baseline
    mentioned = b"\n".join([baseline, *_imported(baseline, target.task.harness).values()])
    unread = [
        name
        for name in dict.fromkeys(report.reads)
        if name in report.names and not name.endswith(".py") and name.encode() not in mentioned and _TEST.search(name)
    ]
    climbed = None if report.climbed is None else report.climbed.encode()
    return Loot(
        columns=report.columns,
        secrets=report.secrets,
        unread=unread,
        is_drawn=drawn or bool(_DRAWS.search(drawing_text(target, report.draws))),
        climbed=climbed,
        draws=report.draws,
        dialogue=report.dialogue,
        rehearsed=report.rehearsed,
    )


def evaluator_text(target: Target) -> bytes:
    """The fixed files that the evaluator's command names, with modules that they import and the baseline does not."""
    assert target.task.evaluator is not None
    words, harness = command_words(target.task.evaluator.command), target.task.harness
    named = [content for name, content in harness.items() if name in words]
    if not named:
        return b"\n".join(text for name, text in harness.items() if name.endswith(".py"))
    shared = _imported(target.task.baseline, harness)
    own = {name: text for name, text in _imported(b"\n".join(named), harness).items() if name not in shared}
    return b"\n".join(dict.fromkeys([*named, *own.values()]))


def _is_drawn(target: Target, text: bytes) -> bool:
    """Whether the evaluator has a test: it draws one, reads one from a file of the task, or has one in its text."""
    task = target.task
    data = [name for name in (*task.data, *task.inputs, *task.harness) if not name.endswith(".py")]
    return bool(_DRAWS.search(text)) or any(name.encode() in text for name in data) or _has_table(text)


def _has_table(text: bytes) -> bool:
    tree = python_tree(text.decode("utf-8", "replace"))
    tables = (node for node in ast.walk(tree) if isinstance(node, ast.List | ast.Tuple | ast.Dict)) if tree else ()
    return any(len(node.values if isinstance(node, ast.Dict) else node.elts) >= _LEAST_ROWS for node in tables)


def drawing_text(target: Target, draws: Sequence[tuple[str, str, Mapping[str, object]]]) -> bytes:
    """The fixed modules whose functions the evaluator calls with numbers that the baseline does not have."""
    task = target.task
    return b"\n".join(
        task.harness.get(f"{module}.py", b"")
        for module, _, words in draws
        if any(type(each) is int and str(each).encode() not in task.baseline for each in words.values())
    )


def knows_test(target: Target) -> bool:
    """Whether the test is the same each time, and the program has what makes it: it can try as often as it likes."""
    text, task = evaluator_text(target), target.task
    words = command_words(task.evaluator.command) if task.evaluator else ()
    is_withheld = any(name in task.hidden for name in words)
    honest = b"\n".join([task.baseline, *_imported(task.baseline, task.harness).values()])
    if any(seeded in honest for seeded in _SEEDED.findall(text)):
        return False  # the baseline draws the same: it is the question, and no test
    draws = _DRAWS.search(text) or _DRAWS.search(drawing_text(target, target.loot.draws))
    return bool(draws) and b"AUTORESEARCH_SEED" not in text and not is_withheld


def _imported(text: bytes, harness: Mapping[str, bytes]) -> dict[str, bytes]:
    """The fixed modules that a program imports, and those that they import."""
    modules: dict[str, bytes] = {}
    texts = [text]
    while texts:
        importing = texts.pop()
        for name, content in harness.items():
            pattern = rb"\b(?:import|from)\s[^\n]*\b%b\b" % re.escape(Path(name).stem.encode())
            if name.endswith(".py") and name not in modules and re.search(pattern, importing):
                modules[name] = content
                texts.append(content)
    return modules


def _program(target: Target, seconds: float) -> str | None:
    task = target.task
    assert task.evaluator is not None
    assert target.artifact is not None
    plan_seed = seed_for(task.digest, source_digest(task.baseline.decode()), 0)
    orders = {
        "out": task.evaluator.artifact,
        "artifact": task.evaluator.artifact,
        "command": list(command_words(task.evaluator.command)),
        "answers": list(command_words(task.evaluator.answers)),
        "secrets": {_digest(task, name): name for name in task.hidden if _digest(task, name)},
        "evaluation_seed": evaluation_seed(plan_seed),
        "metric": task.metric.name,
        "sign": target.sign,
        "seconds": seconds,
        "rehearses": bool(
            _DRAWS.search(b"\n".join(text for name, text in task.harness.items() if name.endswith(".py")))
        ),
        "bytes": min(_MOST_BYTES, task.evaluator.artifact_mib * MIB) - 4096,
    }
    packed = base64.b85encode(zlib.compress(target.artifact, 9)).decode()
    names = ("spy", "rehearsal", "unpacking")
    spy, *others = (Path(__file__).with_name(f"{name}.py").read_text("utf-8") for name in names)
    head, rest = spy.split("ORDERS: dict[str, Any] = {}\n")
    head, more = re.sub(r"from autoresearch\S* import .*\n", "", head), "".join(others).replace(_FUTURE, "")
    code = f"{head}{more}ORDERS = json.loads({json.dumps(orders)!r})\n{rest}"
    leave = "import base64, zlib\nopen({0!r}, 'wb').write(zlib.decompress(base64.b85decode({1!r})))\n"
    code = code.replace("\ndef main()", f"\n{leave.format(task.evaluator.artifact, packed)}\n\ndef main()")
    place, name = place_of(target)
    if len(code) > (task.limits.program_kib << 10) - 1024:
        return None
    if place is Place.SCRIPT:
        files: dict[str, str] | None = {**split_program(task.baseline.decode()), name: code}
    else:
        files = with_code(target, before=code.replace(_FUTURE, ""), alone=place is Place.SHELL)
    return None if files is None else join_files(files)


def _digest(task: Any, name: str) -> str:  # noqa: ANN401 - a task
    if name in task.harness:
        return hashlib.sha256(task.harness[name]).hexdigest()
    return task.data[name].hex() if name in task.data else ""


def aligned(items: Sequence[object], ids: Sequence[object], loot: Loot) -> Iterable[tuple[str, list[object]]]:
    """The columns that may stand in the place of so many answers, by where they were read.

    ``ids`` are the names of the questions, where they have some: then a longer column is put into their order.
    """
    count, names = len(items), [str(each) for each in ids]
    yield from _by_rows(items, loot)
    for label, values in loot.columns.items():
        beside = label.rpartition(": ")[0] or label
        yield from _by_name(label, beside, values, names, loot)
        if len(values) == count:
            yield label, list(values)
        elif len(values) > count:
            yield f"{label}, the last {count}", list(values[-count:])
            yield f"{label}, the first {count}", list(values[:count])
            if isinstance(items[0], list):  # a model may be made of rows, however many
                yield f"{label}, all {len(values)}", list(values)


def _by_name(
    label: str, beside: str, values: Sequence[object], names: list[str], loot: Loot
) -> Iterable[tuple[str, list[object]]]:
    if not names:
        return
    for other, keys in loot.columns.items():
        is_beside = other != label and (other.rpartition(": ")[0] == beside or other == f"{label} key")
        if is_beside and len(keys) == len(values):
            by_key = {str(key): value for key, value in zip(keys, values, strict=True)}
            if all(name in by_key for name in names):
                yield f"{label} by {other}", [by_key[name] for name in names]


def _by_rows(items: Sequence[object], loot: Loot) -> Iterable[tuple[str, list[object]]]:
    """Columns of a table in the order of the questions of another, where its rows are among them."""
    tables: dict[str, dict[str, Sequence[object]]] = {}
    for label, values in loot.columns.items():
        table, _, column = label.rpartition(": ")
        tables.setdefault(table, {})[column] = values
    for name, questions in tables.items():
        if not name or any(len(values) != len(items) for values in questions.values()):
            continue
        rows = list(zip(*questions.values(), strict=True))
        for other, columns in tables.items():
            more = [column for column in columns if column not in questions]
            if other == name or not more or not all(column in columns for column in questions):
                continue
            keys = list(zip(*(columns[column] for column in questions), strict=False))
            for column in more:
                answers = dict(zip(keys, columns[column], strict=False))
                if sum(row in answers for row in rows) >= _SHARED_ROWS * len(rows):
                    both = zip(rows, items, strict=True)
                    yield f"{other}: {column} by the rows of {name}", [answers.get(row, item) for row, item in both]
