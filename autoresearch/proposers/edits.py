"""Edits of a program's source: constants by their span, and SEARCH/REPLACE blocks that match exactly once.

Whatever an edit does not name stays as it is, byte for byte. Knows no search and no patches.
"""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from autoresearch.errors import UsageError

Value = int | float | str | bool
RangeKind = Literal["int", "float", "log", "one of"]

_INTERVAL = re.compile(r"(int|float|log)\s*\[\s*([^,\]\s]+)\s*,\s*([^,\]\s]+)\s*\]")
_CHOICES = re.compile(r"one of\s+([^;]+)")


class EditError(UsageError):
    """An edit does not apply to this source."""


@dataclass(frozen=True, slots=True)
class Range:
    """What a constant's comment allows: an interval (``low``, ``high``) or some ``choices``."""

    kind: RangeKind
    low: float = 0.0
    high: float = 0.0
    choices: tuple[Value, ...] = ()


@dataclass(frozen=True, slots=True)
class Constant:
    """A top-level ``NAME = literal``; line is counted from 1, columns are UTF-8 bytes of that line."""

    name: str
    value: Value
    line: int
    start: int
    end: int
    range: Range | None


@dataclass(frozen=True, slots=True)
class Block:
    """One SEARCH/REPLACE edit."""

    search: str
    replace: str


def constants(source: str) -> dict[str, Constant]:
    """The top-level UPPERCASE constants, in the order of the file; none if the source does not parse.

    A name that is bound more than once at the top level is left out: its value is not in one place.
    """
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return {}
    lines = source.encode().splitlines(keepends=True)
    found: dict[str, Constant] = {}
    twice: set[str] = set()
    for statement in tree.body:
        for name, value in _assigned(statement):
            constant = None if value is None else _constant(name, value, lines)
            if name in found or constant is None:
                twice.add(name)
            else:
                found[name] = constant
    return {name: constant for name, constant in found.items() if name not in twice}


def set_constants(source: str, values: Mapping[str, Value]) -> str:
    """The source with these constants set.

    Raises:
        EditError: a name is no constant of the source, or a value cannot be written as a literal.
    """
    known = constants(source)
    lines = source.encode().splitlines(keepends=True)
    for constant in reversed(known.values()):
        if constant.name in values:
            new = _literal(constant.name, values[constant.name])
            line = lines[constant.line - 1]
            lines[constant.line - 1] = line[: constant.start] + new.encode() + line[constant.end :]
    if missing := sorted(set(values) - set(known)):
        raise EditError(f"the source has no constant {missing[0]}")
    return b"".join(lines).decode()


def apply_blocks(source: str, blocks: Sequence[Block]) -> str:
    """The source after each block in turn.

    Raises:
        EditError: a block is empty, or its search text is not there exactly once.
    """
    for number, block in enumerate(blocks, 1):
        count = source.count(block.search) if block.search else 0
        if count != 1:
            found = "is empty" if not block.search else f"occurs {count} times, not once"
            raise EditError(f"the search text of block {number} {found}")
        source = source.replace(block.search, block.replace)
    return source


def _assigned(statement: ast.stmt) -> list[tuple[str, ast.expr | None]]:
    """The UPPERCASE names that a top-level statement binds, with the value when it is a plain assignment."""
    if isinstance(statement, ast.Assign) and len(statement.targets) == 1:
        target, value = statement.targets[0], statement.value
        if isinstance(target, ast.Name):
            return [(target.id, value)] if target.id.isupper() else []
    if isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
        return [(statement.target.id, statement.value)] if statement.target.id.isupper() else []
    if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return []
    return [
        (node.id, None)
        for node in ast.walk(statement)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) and node.id.isupper()
    ]


def _constant(name: str, node: ast.expr, lines: list[bytes]) -> Constant | None:
    value = literal_value(node)
    if value is None or node.end_lineno != node.lineno or node.end_col_offset is None:
        return None
    rest = lines[node.lineno - 1][node.end_col_offset :].decode(errors="replace").strip()
    declared = _read_range(rest.lstrip("#"), value) if rest.startswith("#") else None
    return Constant(name, value, node.lineno, node.col_offset, node.end_col_offset, declared)


def literal_value(node: ast.expr) -> Value | None:
    """The number, text or truth value that this expression spells, or None."""
    sign = 1
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        sign, node = -1, node.operand
    if not isinstance(node, ast.Constant):
        return None
    value = node.value
    if isinstance(value, bool | str):
        return value if sign == 1 else None
    if isinstance(value, int | float) and abs(value) < 1e300:
        return sign * value
    return None


def _read_range(comment: str, value: Value) -> Range | None:
    """The range that a comment declares; None for other comments and for ranges that make no sense."""
    comment = comment.strip()
    if match := _CHOICES.match(comment):
        words = [_word(word) for word in match[1].replace(",", " ").split()]
        if isinstance(value, float):
            words = [float(word) if type(word) is int else word for word in words]
        choices = tuple(dict.fromkeys(word for word in words if type(word) is type(value)))
        return Range("one of", choices=choices) if len(choices) == len(words) > 1 else None
    if (match := _INTERVAL.match(comment)) and not isinstance(value, str | bool):
        low, high = _word(match[2]), _word(match[3])
        if isinstance(low, str | bool) or isinstance(high, str | bool) or not -1e15 < low < high < 1e15:
            return None
        if (match[1] == "log" and low <= 0) or (match[1] == "int" and not isinstance(value, int)):
            return None
        kind: RangeKind = "int" if match[1] == "int" else "log" if match[1] == "log" else "float"
        return Range(kind, float(low), float(high))
    return None


def _word(text: str) -> Value:
    try:
        value = literal_value(ast.parse(text, mode="eval").body)
    except (SyntaxError, ValueError, RecursionError):
        value = None
    return text if value is None else value


def _literal(name: str, value: Value) -> str:
    if isinstance(value, float) and not math.isfinite(value):
        raise EditError(f"{name} cannot be {value}")
    return repr(value)
