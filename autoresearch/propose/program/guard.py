"""A lint for programs that somebody else or a model wrote, before a run is paid for.

It finds accidents and lazy cheating; it isolates nothing. What keeps a hostile program in is the sandbox.
What a program may name belongs to its task, and is data: ``names.toml`` beside ``task.toml``.
"""

from __future__ import annotations

import ast
import difflib
from collections.abc import Iterator
from functools import lru_cache

import msgspec

from autoresearch.errors import UsageError
from autoresearch.task.folders import side_file
from autoresearch.task.loading import NAMES
from autoresearch.task.model import Task
from autoresearch.task.program import source_digest
from autoresearch.task.source import parse_python
from autoresearch.text import read_toml

DUNDERS = frozenset({"__init__", "__name__"})
LARGEST_BYTES = 64_000
MOST_CHANGED_LINES = 250
# A program of this size has a few thousand nodes; more is meant to keep somebody busy.
MOST_NODES = 50_000


class Names(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The names that a Python program of a task may use, must use and may not use.

    ``harness`` is the module that measures: of it only ``harness_names`` may be used, and ``harness_calls`` must be
    called. ``functions`` must be defined.
    """

    harness: str
    harness_names: frozenset[str]
    harness_calls: tuple[str, ...] = ()
    functions: tuple[str, ...] = ()
    imports: frozenset[str]
    forbidden_names: frozenset[str] = frozenset()
    forbidden_attributes: frozenset[str] = frozenset()


def names_of(task: Task) -> Names | None:
    """What a program of a task may name, from its folder; None where it has no ``names.toml``.

    Raises UsageError naming the file and the key where it can't be read.
    """
    content = side_file(NAMES, task.definition(), task.folder)
    return read_names(content, f"{task.folder / NAMES}") if content else None


@lru_cache(maxsize=16)
def read_names(content: bytes, path: str = NAMES) -> Names:
    """The names in a ``names.toml``; ``path`` names it in errors. Raises UsageError."""
    try:
        return msgspec.convert(read_toml(content), Names)
    except (msgspec.ValidationError, ValueError) as error:
        raise UsageError(f"{path}: {error}", hint="correct it there, or move the file away") from error


def static_guard(source: str, parent_source: str, names: Names) -> list[str]:
    """What is wrong with a program that changes ``parent_source``, in sentences; empty when nothing is.

    The program must be Python within the size limits, differ from its parent in more than comments and spacing,
    import only what its task allows, use only the public part of the harness and still call it.
    """
    if len(source.encode(errors="replace")) > LARGEST_BYTES:
        return [f"The file is larger than {LARGEST_BYTES} bytes."]
    try:
        digest = source_digest(source)
        tree = parse_python(source)
    except UsageError as error:
        return [f"The file is not Python: {error}."]
    nodes = list(ast.walk(tree))
    if len(nodes) > MOST_NODES:
        return [f"The program has more than {MOST_NODES} parts."]
    faults = set(_against_parent(source, digest, parent_source))
    for node in nodes:
        faults.update(_forbidden(node, names))
    faults.update(_missing(tree, nodes, names))
    return sorted(faults)


def _against_parent(source: str, digest: bytes, parent_source: str) -> Iterator[str]:
    if _digest_or_none(parent_source) == digest:
        yield "Nothing changed but comments, spacing or the spelling of numbers."
    before, after = parent_source.splitlines(), source.splitlines()
    # Not ndiff, which takes cubic time on hostile texts. The first two lines are a header.
    differences = list(difflib.unified_diff(before, after, n=0, lineterm=""))[2:]
    changed = sum(line[:1] in ("+", "-") for line in differences)
    if changed > MOST_CHANGED_LINES:
        yield f"{changed} lines changed; the limit is {MOST_CHANGED_LINES}."


def _digest_or_none(source: str) -> bytes | None:
    try:
        return source_digest(source)
    except UsageError:
        return None


def _forbidden(node: ast.AST, allowed: Names) -> Iterator[str]:
    match node:
        case ast.Import(names=names):
            yield from _imported(names, allowed)
        case ast.ImportFrom(module=module, level=level, names=names):
            package = (module or "").split(".")[0]
            if level or package not in allowed.imports or package == allowed.harness:
                yield f"It imports from {'.' * level}{module or ''}, which is not allowed."
            for alias in names:
                if alias.name in allowed.forbidden_attributes or alias.name in allowed.forbidden_names:
                    yield f"It imports {alias.name}, which is not allowed."
        case ast.Attribute():
            yield from _attribute(node, allowed)
        case ast.Name(id=name, ctx=context):
            if name in allowed.forbidden_names or (name.startswith("__") and name not in DUNDERS):
                yield f"It uses {name}, which is not allowed."
            if name == allowed.harness and not isinstance(context, ast.Load):
                yield f"It replaces {allowed.harness}."


def _imported(names: list[ast.alias], allowed: Names) -> Iterator[str]:
    for alias in names:
        parts = alias.name.split(".")
        if parts[0] not in allowed.imports or any(part in allowed.forbidden_attributes for part in parts):
            yield f"It imports {alias.name}, which a training program does not need."
        if alias.name == allowed.harness and alias.asname:
            yield f"It gives {allowed.harness} another name."


def _attribute(node: ast.Attribute, allowed: Names) -> Iterator[str]:
    name, harness = node.attr, allowed.harness
    if name in allowed.forbidden_attributes or (name.startswith("__") and name not in DUNDERS):
        yield f"It uses .{name}, which is not allowed."
    if isinstance(node.value, ast.Name) and node.value.id == harness:
        if name not in allowed.harness_names:
            yield f"It uses {harness}.{name}, which is not for the program."
        if not isinstance(node.ctx, ast.Load):
            yield f"It changes {harness}.{name}."


def _missing(tree: ast.Module, nodes: list[ast.AST], names: Names) -> Iterator[str]:
    called = {
        node.func.attr
        for node in nodes
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and isinstance(node.func.value, ast.Name)
        and node.func.value.id == names.harness
    }
    for name in names.harness_calls:
        if name not in called:
            yield f"It no longer calls {names.harness}.{name}."
    defined = {item.name for item in tree.body if isinstance(item, ast.FunctionDef)}
    for name in names.functions:
        if name not in defined:
            yield f"It no longer defines {name}()."
