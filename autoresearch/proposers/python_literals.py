"""The literals of a Python program that a search may turn: constants, config classes, config dicts, argparse defaults.

Each has a name that other edits leave alone: ``LR``, ``BETAS[0]``, ``Config.lr``, ``config.optim.lr``, ``--lr``.
Those in calls and functions (:mod:`autoresearch.proposers.python_scopes`) are ``SVC.C``, ``main.lr``.
"""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from autoresearch.proposers.python_scopes import in_calls, in_functions
from autoresearch.proposers.ranges import Range, Value, literal_value

_CONFIG = re.compile(
    r"(^|_)(config|cfg|conf|h?params?|hparams|hyperparameters|args|options|opts|settings|defaults)(_|$)"
)
# What may stand between a literal and the comment of its line: code, with the texts in it.
_COMMENT = re.compile(rb"""(?:[^#'"]|'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")*#(.*)""", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Literal:
    """A literal of the program: its name, its place, and what its code says of it."""

    name: str
    value: Value
    node: ast.expr
    free: bool = True
    """Whether something reads it, as far as can be seen."""
    declared: Range | None = None
    """What ``choices=`` of argparse allows."""
    known_only: bool = False
    """Whether only a well-known name makes it a setting: in a call, or in a dict that is not called a config."""
    is_deep: bool = False
    """Whether it lies in a call or a function, where most literals are no settings."""

    @property
    def group(self) -> str:
        """The name of the whole tuple: all its numbers share a comment."""
        return self.name.partition("[")[0]

    @property
    def root(self) -> str:
        """The name that its statement binds."""
        return re.split(r"[.\[]", self.name, maxsplit=1)[0]


def python_literals(source: str) -> list[Literal]:
    """All literals that have a name, in the order of the file; none if the source doesn't parse.

    A name that is bound more than once is left out: its value is not in one place.
    """
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return []
    nodes = list(ast.walk(tree))
    found = [*_top_level(tree, nodes), *_arguments(nodes)]
    found += _deeper(nodes, {literal.name: literal for literal in found})
    bound, named = Counter(_bound(tree, nodes)), Counter(literal.name for literal in found)
    once = [one for one in found if bound[one.root] <= 1 and named[one.name] == 1]
    in_line = [one for one in once if one.node.end_lineno == one.node.lineno]
    return sorted(in_line, key=lambda literal: (literal.node.lineno, literal.node.col_offset))


def comments(literals: Iterable[Literal], lines: list[bytes]) -> dict[str, str]:
    """The comment behind each literal, by name. Of several literals in a line the last one has it."""
    last = {literal.node.lineno: literal for literal in literals}
    found = {}
    for literal in literals:
        node, owner = literal.node, last[literal.node.lineno]
        match = _COMMENT.fullmatch(lines[node.lineno - 1], node.end_col_offset or 0)
        if match and literal.group == owner.group:
            found[literal.name] = match[1].decode(errors="replace").lstrip("#")
    return found


def _top_level(tree: ast.Module, nodes: list[ast.AST]) -> Iterator[Literal]:
    read = {node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)}
    for statement in tree.body:
        if isinstance(statement, ast.ClassDef):
            yield from _fields(statement, nodes)
        elif (assigned := _assignment(statement)) is not None:
            is_config = _CONFIG.search(assigned[0].lower()) is not None
            for name, value, node in _spread(*assigned):
                yield Literal(name, value, node, free=assigned[0] in read, known_only="." in name and not is_config)


def _deeper(nodes: list[ast.AST], known: Mapping[str, Literal]) -> Iterator[Literal]:
    """The literals in calls and functions; what a config class has under the same name is known from there."""
    for place in (*in_calls(nodes), *in_functions(nodes)):
        for name, value, node in _spread(place.name, place.node):
            if name not in known:
                yield Literal(name, value, node, free=place.free, known_only=True, is_deep=True)


def _assignment(statement: ast.stmt) -> tuple[str, ast.expr] | None:
    match statement:
        case ast.Assign(targets=[ast.Name(id=name)], value=node):
            return name, node
        case ast.AnnAssign(target=ast.Name(id=name), annotation=annotation, value=ast.Call(keywords=words)):
            # of a dataclass: field(default=...)
            default = next((word.value for word in words if word.arg == "default"), None)
            return None if default is None else (name, _as_declared(annotation, default))
        case ast.AnnAssign(target=ast.Name(id=name), annotation=annotation, value=ast.expr() as node):
            return name, _as_declared(annotation, node)
    return None


def _spread(name: str, node: ast.expr) -> Iterator[tuple[str, Value, ast.expr]]:
    """The literals of a value: itself, the numbers of a short tuple, the entries of a dict."""
    match node:
        case ast.Tuple(elts=parts) | ast.List(elts=parts) if 0 < len(parts) <= 4:
            for number, part in enumerate(parts):
                yield from _spread(f"{name}[{number}]", part) if "[" not in name else ()
        case ast.Dict(keys=keys, values=values):
            for key, entry in zip(keys, values, strict=True):
                if isinstance(key, ast.Constant) and isinstance(key.value, str):
                    yield from _spread(f"{name}.{key.value}", entry)
        case ast.Call(func=ast.Name(id="dict"), keywords=keywords):
            for keyword in keywords:
                if keyword.arg:
                    yield from _spread(f"{name}.{keyword.arg}", keyword.value)
        case _ if (value := literal_value(node)) is not None:
            yield name, value, node


def _as_declared(annotation: ast.expr | None, node: ast.expr) -> ast.expr:
    """A whole number that is declared as a float, as a float: ``lr: float = 1``."""
    is_float = isinstance(annotation, ast.Name) and annotation.id == "float"
    if is_float and isinstance(node, ast.Constant) and type(node.value) is int and abs(node.value) < 1e15:
        return ast.copy_location(ast.Constant(float(node.value)), node)
    return node


# --- config classes ---


def _fields(statement: ast.ClassDef, nodes: list[ast.AST]) -> Iterator[Literal]:
    """The defaults of a dataclass, or of a plain class that only holds values."""
    if not _is_config(statement):
        return
    assigned = [found for inner in statement.body if (found := _assignment(inner)) is not None]
    given = _given(statement, nodes)
    for field, node in assigned:
        for name, value, place in _spread(f"{statement.name}.{field}", node):
            yield Literal(name, value, place, free=field not in given)


def _is_config(statement: ast.ClassDef) -> bool:
    for decorator in statement.decorator_list:
        called = decorator.func if isinstance(decorator, ast.Call) else decorator
        if (called.attr if isinstance(called, ast.Attribute) else getattr(called, "id", "")) == "dataclass":
            return True
    values = (ast.Assign, ast.AnnAssign, ast.Expr, ast.Pass)
    return not statement.bases and all(isinstance(inner, values) for inner in statement.body)


def _given(statement: ast.ClassDef, nodes: list[ast.AST]) -> set[str]:
    """The fields that every call of the class sets: their defaults mean nothing."""
    names = [inner.target.id for inner in statement.body if isinstance(inner, ast.AnnAssign)
             and isinstance(inner.target, ast.Name)]  # fmt: skip
    calls = [
        {*names[: len(node.args)], *(word.arg for word in node.keywords if word.arg)}
        for node in nodes
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == statement.name
    ]
    return set.intersection(*calls) if calls else set()


# --- command line ---


def _arguments(nodes: list[ast.AST]) -> Iterator[Literal]:
    """The defaults of ``add_argument``; those with numbers as ``choices`` keep to them."""
    for node in nodes:
        if not (isinstance(node, ast.Call) and getattr(node.func, "attr", "") == "add_argument"):
            continue
        names = [flag.value for flag in node.args if isinstance(flag, ast.Constant) and isinstance(flag.value, str)]
        words = {word.arg: word.value for word in node.keywords if word.arg}
        if not names or "default" not in words:
            continue
        place = _as_declared(words.get("type"), words["default"])
        name = next((name for name in names if name.startswith("--")), names[0])
        choices = words.get("choices")
        for full, value, inner in _spread(name, place):
            yield Literal(full, value, inner, free=choices is None, declared=_numbers(choices, value))


def _numbers(choices: ast.expr | None, value: Value) -> Range | None:
    if not isinstance(choices, ast.List | ast.Tuple) or isinstance(value, bool | str):
        return None
    allowed = [literal_value(part) for part in choices.elts]
    numbers = tuple(dict.fromkeys(one for one in allowed if type(one) is type(value)))
    return Range("one of", choices=numbers) if len(numbers) == len(allowed) > 1 else None


# --- names that are bound in more than one place ---


def _bound(tree: ast.Module, nodes: list[ast.AST]) -> Iterator[str]:
    """The names that top-level statements bind, once for each time, and those that a function may bind."""
    for statement in tree.body:
        if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            continue
        if (assigned := _assignment(statement)) is not None:
            yield assigned[0]
            continue
        for node in ast.walk(statement):
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                yield node.id
    for node in nodes:
        if isinstance(node, ast.Global):
            yield from node.names
