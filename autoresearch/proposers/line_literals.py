"""The constants of a program that is not Python: ``name = number`` in a line whose comment declares a range.

constexpr int N = 16;   // 1 .. 64
RATE=0.01               # 0.001 .. 0.1
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator

from autoresearch.proposers.ranges import LARGEST, NUMBER, Constant, read_range

_LINE = re.compile(
    rf"(?P<before>.*?)\b(?P<name>[A-Za-z_]\w*)\s*=\s*(?P<number>{NUMBER})[A-Za-z]{{0,3}}\s*[;,]?\s*(?:/{{2,}}|#+|--)(?P<comment>.*)"
)
_MARKS = re.compile(r"//|#|--")


def line_literals(lines: list[bytes]) -> list[Constant]:
    """The numbers whose line declares a range, in the order of the file. A name that is there twice is left out."""
    found = list(_read(lines))
    named = Counter(constant.name for constant in found)
    return [constant for constant in found if named[constant.name] == 1]


def _read(lines: list[bytes]) -> Iterator[Constant]:
    for count, raw in enumerate(lines, 1):
        line = raw.decode(errors="surrogateescape").rstrip("\r\n")
        match = _LINE.fullmatch(line)
        if match is None or _MARKS.search(match["before"]):
            continue
        text = match["number"]
        value = int(text) if text.lstrip("+-").isdigit() and len(text) < 18 else float(text)
        declared = read_range(match["comment"], value) if -LARGEST < value < LARGEST else None
        if declared is not None:
            before = len(_bytes(line[: match.start("number")]))
            width = len(_bytes(text))
            yield Constant(match["name"], value, count, before, before + width, declared, by_comment=True)


def _bytes(text: str) -> bytes:
    return text.encode(errors="surrogateescape")
