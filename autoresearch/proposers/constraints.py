"""Which combinations of constants a program allows: its own top-level ``assert`` statements.

``assert WIDTH % HEAD_DIM == 0`` near the constants says what no range can. Only arithmetic, comparisons and
``and``/``or``/``not`` over constants are understood; any other assertion is left to the run.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Mapping, Sequence

from autoresearch.proposers.edits import constants, python_files
from autoresearch.proposers.ranges import Value

_BINARY: dict[type[ast.operator], Callable[[float, float], float]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
}
_COMPARE: dict[type[ast.cmpop], Callable[[object, object], bool]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,  # type: ignore[dict-item]  # numbers only: checked by _number
    ast.LtE: operator.le,  # type: ignore[dict-item]
    ast.Gt: operator.gt,  # type: ignore[dict-item]
    ast.GtE: operator.ge,  # type: ignore[dict-item]
}
# Longer assertions are not constraints between constants; the limit also bounds the recursion.
_NODES = 60
_LARGEST = 1e18


class _Unknown(Exception):
    """The expression holds something that cannot be decided from the constants."""


def assertions(source: str) -> list[ast.expr]:
    """The conditions of the top-level assertions that speak about constants alone."""
    values = {name: constant.value for name, constant in constants(source).items()}
    return [test for text in python_files(source) for test in _asserted(text) if _decide(test, values) is not None]


def _asserted(text: str) -> list[ast.expr]:
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return []
    return [
        statement.test
        for statement in tree.body
        if isinstance(statement, ast.Assert) and sum(1 for _ in ast.walk(statement.test)) <= _NODES
    ]


def divides(name: str, divisor: str) -> ast.expr:
    """The condition that one constant is a multiple of another."""
    rest = ast.BinOp(ast.Name(name, ast.Load()), ast.Mod(), ast.Name(divisor, ast.Load()))
    return ast.Compare(rest, [ast.Eq()], [ast.Constant(0)])


def holds(tests: Sequence[ast.expr], values: Mapping[str, Value]) -> bool:
    """Whether no assertion fails with these constants; one that cannot be decided does not count."""
    return all(_decide(test, values) is not False for test in tests)


def _decide(test: ast.expr, values: Mapping[str, Value]) -> bool | None:
    try:
        return bool(_evaluate(test, values))
    except ZeroDivisionError:
        return False
    except _Unknown:
        return None


def _evaluate(node: ast.expr, values: Mapping[str, Value]) -> Value:
    match node:
        case ast.Constant(value=bool() | int() | float() | str() as value):
            return value
        case ast.Name(id=name) if name in values:
            return values[name]
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            return not _evaluate(operand, values)
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return -_number(_evaluate(operand, values))
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _BINARY:
            a, b = _number(_evaluate(left, values)), _number(_evaluate(right, values))
            return _number(_BINARY[type(op)](a, b))
        case ast.BoolOp(op=op, values=parts):
            results = [bool(_evaluate(part, values)) for part in parts]
            return all(results) if isinstance(op, ast.And) else any(results)
        case ast.Compare(left=left, ops=ops, comparators=comparators):
            sides = [_evaluate(side, values) for side in (left, *comparators)]
            return all(_compare(op, a, b) for op, a, b in zip(ops, sides, sides[1:], strict=False))
    raise _Unknown


def _compare(op: ast.cmpop, left: Value, right: Value) -> bool:
    if type(op) not in _COMPARE:
        raise _Unknown
    if not isinstance(op, ast.Eq | ast.NotEq):
        left, right = _number(left), _number(right)
    return _COMPARE[type(op)](left, right)


def _number(value: Value) -> float:
    if isinstance(value, str) or abs(value) > _LARGEST:
        raise _Unknown
    return value
