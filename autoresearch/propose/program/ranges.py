"""Constants of a program, the ranges that they may take, how a comment declares one.

Also random draws that are the same on every machine and Python version. Of ``random.Random`` only ``random()`` is
promised to stay as it is; the draws are built on it, and the normal draw is a sum of uniforms, because ``log`` and
``cos`` differ in the last bit between C libraries.
"""

from __future__ import annotations

import ast
import hashlib
import random
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal, TypeVar

from autoresearch.task.source import parsing

T = TypeVar("T")


class Draws:
    """A stream of random draws that follows from its seed parts alone."""

    def __init__(self, *parts: bytes) -> None:
        digest = hashlib.sha256(b"".join(len(part).to_bytes(8, "big") + part for part in parts)).digest()
        self._uniform = random.Random(int.from_bytes(digest, "big")).random  # noqa: S311 - not for secrets

    def uniform(self) -> float:
        """A number in [0, 1)."""
        return self._uniform()

    def chance(self, probability: float) -> bool:
        """True with this probability."""
        return self._uniform() < probability

    def below(self, count: int) -> int:
        """A whole number from 0 to ``count - 1``."""
        return min(count - 1, int(self._uniform() * count))

    def choice(self, items: Sequence[T]) -> T:
        """One of the items."""
        return items[self.below(len(items))]

    def sample(self, items: Iterable[T], count: int) -> list[T]:
        """``count`` different items, or all of them when there are fewer, in random order."""
        pool = list(items)
        count = min(count, len(pool))
        for i in range(count):
            j = i + self.below(len(pool) - i)
            pool[i], pool[j] = pool[j], pool[i]
        return pool[:count]

    def normal(self) -> float:
        """Nearly a standard normal number (twelve uniforms, so never beyond 6)."""
        return sum(self._uniform() for _ in range(12)) - 6.0

    def geometric(self, probability: float) -> int:
        """How many times a coin that ends the series with this probability goes on."""
        count = 0
        while count < 1000 and not self.chance(probability):
            count += 1
        return count


Value = int | float | str | bool
RangeKind = Literal["int", "float", "log", "one of"]

# No number beyond this is turned or read as a bound.
LARGEST = 1e15
# A range that spans this factor is searched on the logarithm, where its comment doesn't say how.
_WIDE = 10.0

# A number as comments and other languages write it.
NUMBER = r"[-+]?(?:\d[\d_]*(?:\.\d+)?|\.\d+)(?:[eE][-+]?\d+)?"
_SPAN = re.compile(rf"({NUMBER})\s*\.\.\s*({NUMBER})(?![\w.])")
_INTERVAL = re.compile(r"(int|float|log)\s*\[\s*([^,\]\s]+)\s*,\s*([^,\]\s]+)\s*\]")
_CHOICES = re.compile(r"one of\s+([^;]+)")
_FIXED = re.compile(r"fixed\b")


@dataclass(frozen=True, slots=True)
class ValueRange:
    """What a constant may be: an interval (``low``, ``high``) or some ``choices``."""

    kind: RangeKind
    low: float = 0.0
    high: float = 0.0
    choices: tuple[Value, ...] = ()
    whole: bool = False
    """Whether the numbers of the interval are whole."""

    def __str__(self) -> str:
        """As a person reads it: ``0.0001 .. 0.1 (log)``, ``one of 16 32 64``."""
        if self.kind == "one of":
            return f"one of {' '.join(str(choice) for choice in self.choices)}"
        suffix = " (log)" if self.kind == "log" else ""
        return f"{self.low:.4g} .. {self.high:.4g}{suffix}"


@dataclass(frozen=True, slots=True)
class Constant:
    """A literal with a name; line is counted from 1, columns are UTF-8 bytes of that line."""

    name: str
    value: Value
    line: int
    start: int
    end: int
    range: ValueRange | None
    """What it may be: by its comment, else by its name and value; None: it is not turned."""
    guessed: bool = False
    """Whether the range is a guess by the name, and not what the program says of it."""
    is_flag: bool = False
    """Whether it is a compiler's flag: ``-O3`` is its name and value, a switch its name or nothing."""


def is_fixed(comment: str) -> bool:
    """Whether the comment says that the search leaves the constant alone."""
    return _FIXED.match(comment.strip()) is not None


def read_range(comment: str, value: Value) -> ValueRange | None:
    """The range that a comment declares; None for other comments and for ranges that make no sense."""
    comment = comment.strip()
    if match := _CHOICES.match(comment):
        return _choices(match[1].replace(",", " ").split(), value)
    if isinstance(value, str | bool):
        return None
    if match := _SPAN.match(comment):
        low, high = float(match[1]), float(match[2])
        whole = isinstance(value, int) and low.is_integer() and high.is_integer()
        wide = low > 0 and high >= _WIDE * low
        return interval("log" if wide else "int" if whole else "float", low, high, whole=whole)
    if match := _INTERVAL.match(comment):
        below, above = _word(match[2]), _word(match[3])
        if isinstance(below, str | bool) or isinstance(above, str | bool):
            return None
        whole = isinstance(value, int)
        if match[1] == "int":
            return interval("int", below, above, whole=True) if whole else None
        if match[1] == "log":
            return interval("log", below, above, whole=whole and below >= 1)
        return interval("float", below, above)
    return None


def interval(kind: RangeKind, low: float, high: float, *, whole: bool = False) -> ValueRange | None:
    """A range between two bounds; None where these make none."""
    if not -LARGEST < low < high < LARGEST or (kind == "log" and low <= 0):
        return None
    return ValueRange(kind, float(low), float(high), whole=whole)


def _choices(texts: list[str], value: Value) -> ValueRange | None:
    words = [_word(text) for text in texts]
    if isinstance(value, float):
        words = [float(word) if type(word) is int else word for word in words]
    choices = tuple(dict.fromkeys(word for word in words if type(word) is type(value)))
    return ValueRange("one of", choices=choices) if len(choices) == len(words) > 1 else None


def _word(text: str) -> Value:
    try:
        with parsing():
            value = literal_value(ast.parse(text, mode="eval").body)  # noqa: TID251 - an expression
    except (SyntaxError, ValueError, RecursionError):
        value = None
    return text if value is None else value


def literal_value(node: ast.expr) -> Value | None:
    """The number, text or truth value that this expression spells, or None. ``2**19`` and ``1 << 19`` are numbers."""
    match node:
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            value = literal_value(operand)
            return None if value is None or isinstance(value, bool | str) else -value
        case ast.BinOp(left=ast.Constant(value=2), op=ast.Pow(), right=ast.Constant(value=int() as power)):
            return 2**power if 0 <= power < 50 else None
        case ast.BinOp(left=ast.Constant(value=1), op=ast.LShift(), right=ast.Constant(value=int() as power)):
            return 1 << power if 0 <= power < 50 else None
        case ast.Constant(value=bool() | str() as value):
            return value
        case ast.Constant(value=int() | float() as value) if abs(value) < 1e300:
            return value
    return None
