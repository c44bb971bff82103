"""A lint for programs that somebody else or a model wrote, before a run is paid for.

It finds accidents and lazy cheating; it isolates nothing. What keeps a hostile program in is the sandbox.
"""

from __future__ import annotations

import ast
import difflib
from collections.abc import Iterator

from autoresearch.errors import UsageError
from autoresearch.task.program import source_digest

HARNESS = "prepare"
# What train.py may use of its harness, and what it must call for the run to be measured.
HARNESS_NAMES = frozenset([
    "setup", "Budget", "finish", "VOCAB", "DOC",
])  # fmt: skip
HARNESS_CALLS = ("setup", "Budget", "finish")
IMPORTS = frozenset([
    "math", "torch", "prepare", "dataclasses", "typing", "functools", "itertools", "collections",
    "contextlib", "__future__",
])  # fmt: skip
NAMES = frozenset([
    "open", "exec", "eval", "compile", "input", "globals", "locals", "vars", "breakpoint", "setattr",
    "delattr", "getattr", "memoryview", "__import__", "__builtins__", "__loader__", "__spec__",
])  # fmt: skip
ATTRIBUTES = frozenset([
    "manual_seed", "seed", "load", "save", "hub", "load_library", "cpp_extension", "from_file",
    "set_num_threads", "multiprocessing", "set_num_interop_threads", "use_deterministic_algorithms",
    "system", "popen", "distributed", "fork",
])  # fmt: skip
DUNDERS = frozenset({"__init__", "__name__"})
LARGEST_BYTES = 64_000
MOST_CHANGED_LINES = 250
# A program of this size has a few thousand nodes; more is meant to keep somebody busy.
MOST_NODES = 50_000


def static_guard(source: str, parent_source: str) -> list[str]:
    """What is wrong with a program that changes ``parent_source``, in sentences; empty when nothing is.

    The program must be Python within the size limits, differ from its parent in more than comments and spacing,
    import only what training needs, use only the public part of the harness and still call it.
    """
    if len(source.encode(errors="replace")) > LARGEST_BYTES:
        return [f"The file is larger than {LARGEST_BYTES} bytes."]
    try:
        digest = source_digest(source)
        tree = ast.parse(source)
    except UsageError as error:
        return [f"The file is not Python: {error}."]
    nodes = list(ast.walk(tree))
    if len(nodes) > MOST_NODES:
        return [f"The program has more than {MOST_NODES} parts."]
    found = set(_against_parent(source, digest, parent_source))
    for node in nodes:
        found.update(_forbidden(node))
    found.update(_missing(tree, nodes))
    return sorted(found)


def _against_parent(source: str, digest: bytes, parent_source: str) -> Iterator[str]:
    if _digest_or_none(parent_source) == digest:
        yield "Nothing changed but comments, spacing or the spelling of numbers."
    before, after = parent_source.splitlines(), source.splitlines()
    changed = sum(line[:2] in ("+ ", "- ") for line in _differences(before, after))
    if changed > MOST_CHANGED_LINES:
        yield f"{changed} lines changed; the limit is {MOST_CHANGED_LINES}."


def _differences(before: list[str], after: list[str]) -> list[str]:
    """Changed lines with their sign; unified_diff, because ndiff takes cubic time on hostile texts."""
    lines = list(difflib.unified_diff(before, after, n=0, lineterm=""))[2:]
    return [f"{line[:1]} {line[1:]}" for line in lines]


def _digest_or_none(source: str) -> bytes | None:
    try:
        return source_digest(source)
    except UsageError:
        return None


def _forbidden(node: ast.AST) -> Iterator[str]:
    match node:
        case ast.Import(names=names):
            yield from _imported(names)
        case ast.ImportFrom(module=module, level=level, names=names):
            package = (module or "").split(".")[0]
            if level or package not in IMPORTS or package == HARNESS:
                yield f"It imports from {'.' * level}{module or ''}, which is not allowed."
            for alias in names:
                if alias.name in ATTRIBUTES or alias.name in NAMES:
                    yield f"It imports {alias.name}, which is not allowed."
        case ast.Attribute():
            yield from _attribute(node)
        case ast.Name(id=name, ctx=context):
            if name in NAMES or (name.startswith("__") and name not in DUNDERS):
                yield f"It uses {name}, which is not allowed."
            if name == HARNESS and not isinstance(context, ast.Load):
                yield f"It replaces {HARNESS}."


def _imported(names: list[ast.alias]) -> Iterator[str]:
    for alias in names:
        parts = alias.name.split(".")
        if parts[0] not in IMPORTS or any(part in ATTRIBUTES for part in parts):
            yield f"It imports {alias.name}, which a training program does not need."
        if alias.name == HARNESS and alias.asname:
            yield f"It gives {HARNESS} another name."


def _attribute(node: ast.Attribute) -> Iterator[str]:
    name = node.attr
    if name in ATTRIBUTES or (name.startswith("__") and name not in DUNDERS):
        yield f"It uses .{name}, which is not allowed."
    if isinstance(node.value, ast.Name) and node.value.id == HARNESS:
        if name not in HARNESS_NAMES:
            yield f"It uses {HARNESS}.{name}, which is not for train.py."
        if not isinstance(node.ctx, ast.Load):
            yield f"It changes {HARNESS}.{name}."


def _missing(tree: ast.Module, nodes: list[ast.AST]) -> Iterator[str]:
    called = {
        node.func.attr
        for node in nodes
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and isinstance(node.func.value, ast.Name)
        and node.func.value.id == HARNESS
    }
    for name in HARNESS_CALLS:
        if name not in called:
            yield f"It no longer calls {HARNESS}.{name}."
    if not any(isinstance(item, ast.FunctionDef) and item.name == "build_model" for item in tree.body):
        yield "It no longer defines build_model()."
