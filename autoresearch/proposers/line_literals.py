"""The constants of a program that is not Python: ``name = number`` in a line.

A comment behind it declares the range, or the declaration says that it is a constant and its name what it may be.

    constexpr int N = 16;   // 1 .. 64
    RATE=0.01               # 0.001 .. 0.1
    #define UNROLL 4
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator

from autoresearch.proposers.known_names import guess_compiled
from autoresearch.proposers.ranges import LARGEST, NUMBER, Constant, Range, Value, is_fixed, read_range

_LINE = re.compile(
    rf"(?P<before>.*?)\b(?P<name>[A-Za-z_]\w*)(?:\s*:\s*\w+)?\s*=\s*(?P<number>{NUMBER})[A-Za-z]{{0,3}}\s*[;,]?\s*(?:(?:/{{2,}}|#+|--)(?P<comment>.*))?"
)
_DEFINE = re.compile(
    rf"(?P<before>\s*#\s*define\s+)(?P<name>[A-Za-z_]\w*)\s+\(?(?P<number>{NUMBER})[A-Za-z]{{0,3}}\)?\s*(?:/{{2,}}(?P<comment>.*))?"
)
# What declares a constant in C, C++, CUDA, Rust, Go, Zig and Java.
_DECLARES = re.compile(r"\s*(?:\w+\s+)*?(?:constexpr|const|final)\b")
_MARKS = re.compile(r"//|#|--")


def line_literals(lines: list[bytes]) -> list[Constant]:
    """The numbers of lines, in the order of the file. A name that is there twice is left out."""
    found = list(_read(lines))
    named = Counter(constant.name for constant in found)
    return [constant for constant in found if named[constant.name] == 1]


def _read(lines: list[bytes]) -> Iterator[Constant]:
    for count, raw in enumerate(lines, 1):
        line = raw.decode(errors="surrogateescape").rstrip("\r\n")
        defined = _DEFINE.fullmatch(line)
        match = defined or _LINE.fullmatch(line)
        if match is None or (defined is None and _MARKS.search(match["before"])):
            continue
        text, comment = match["number"], match["comment"] or ""
        value = int(text) if text.lstrip("+-").isdigit() and len(text) < 18 else float(text)
        if not -LARGEST < value < LARGEST:
            continue
        declared = read_range(comment, value)
        is_constant = defined is not None or _DECLARES.match(match["before"]) is not None
        allowed = declared or (_by_name(match["name"], value, comment) if is_constant else None)
        if allowed is not None:
            before = len(_bytes(line[: match.start("number")]))
            width = len(_bytes(text))
            yield Constant(match["name"], value, count, before, before + width, allowed, declared is not None)


def _by_name(name: str, value: Value, comment: str) -> Range | None:
    return None if is_fixed(comment) else guess_compiled(name, value)


def _bytes(text: str) -> bytes:
    return text.encode(errors="surrogateescape")
