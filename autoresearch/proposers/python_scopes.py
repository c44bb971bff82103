"""Literals of a Python program that lie deeper than its top level: in calls, in function defaults, in functions.

``RandomForestClassifier(n_estimators=100)`` is ``RandomForestClassifier.n_estimators``; ``lr = 0.1`` in ``def main()``
is ``main.lr``. There only a well-known name or a comment makes a number a setting.
"""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import NamedTuple, TypeAlias

Function: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef

# Of a function, as against a class, only these arguments are settings: `dim=1` or `alpha=0.5` there mean other things.
_OF_FUNCTIONS = re.compile(r"(?:mini_?)?batch_size|lr|learning_rate|weight_decay|momentum|dropout|max_(?:grad_)?norm")
# Which axis, not how many.
_AXES = frozenset({"dim", "axis"})
# What calls of these hold has its name from elsewhere, or none.
_NAMELESS = frozenset({"dict", "add_argument"})


class Place(NamedTuple):
    """A value with a name, and whether something reads it there."""

    name: str
    node: ast.expr
    free: bool = True


def in_calls(nodes: Sequence[ast.AST]) -> Iterator[Place]:
    """The keyword arguments of calls: of classes by their names, of functions those that are surely settings."""
    for node in nodes:
        if isinstance(node, ast.Call) and (called := _called(node)) and called not in _NAMELESS:
            for word in node.keywords:
                is_class = called[0].isupper() and word.arg not in _AXES
                if word.arg and (is_class or _OF_FUNCTIONS.fullmatch(word.arg)):
                    yield Place(f"{called}.{word.arg}", word.value)


def in_functions(nodes: Sequence[ast.AST]) -> Iterator[Place]:
    """The defaults of functions, and what is assigned once in them; those of ``__init__`` belong to the class."""
    owners = {id(inner): node.name for node in nodes if isinstance(node, ast.ClassDef) for inner in node.body}
    for node in nodes:
        if isinstance(node, Function):
            owner = owners.get(id(node))
            if owner is None or node.name == "__init__":
                yield from _defaults(node, owner, nodes)
            yield from _assigned(node)


def _called(call: ast.Call) -> str:
    """The last part of the name of what is called."""
    return call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")


def _defaults(function: Function, owner: str | None, nodes: Sequence[ast.AST]) -> Iterator[Place]:
    name, given = owner or function.name, function.args
    usual = [*given.posonlyargs, *given.args]
    names = [argument.arg for argument in usual[0 if owner is None else 1 :]]
    calls = [
        {*names[: len(node.args)], *(word.arg for word in node.keywords)}
        for node in nodes
        if isinstance(node, ast.Call) and _called(node) == name
    ]
    always = set.intersection(*calls) if calls else set()
    late = zip(given.kwonlyargs, given.kw_defaults, strict=True)
    tail = usual[len(usual) - len(given.defaults) :]
    for argument, default in [*zip(tail, given.defaults, strict=True), *late]:
        if default is not None and argument.arg not in always:
            yield Place(f"{name}.{argument.arg}", default)


def _assigned(function: Function) -> Iterator[Place]:
    inside = [node for node in ast.walk(function) if isinstance(node, ast.Name)]
    bound = Counter(node.id for node in inside if not isinstance(node.ctx, ast.Load))
    read = {node.id for node in inside if isinstance(node.ctx, ast.Load)}
    arguments = {node.arg for node in ast.walk(function) if isinstance(node, ast.arg)}
    for statement in ast.walk(function):
        match statement:
            case ast.Assign(targets=[ast.Name(id=name)], value=node) if bound[name] == 1 and name not in arguments:
                yield Place(f"{function.name}.{name}", node, free=name in read)
