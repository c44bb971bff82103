"""A unified diff as rows of a table: files, lines with their numbers, and what of a line is new. Pure.

Its lines are a stranger's program. They are cleaned and clipped here, and escaped where they are written.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from typing import NamedTuple

from autoresearch.sanitise import one_line, sanitised

# A page shows so many lines, and so much of each; `autoresearch diff` prints all.
MOST_LINES = 2_000
MOST_CHARACTERS = 400
MOST_FILES = 50
NAME_CHARACTERS = 120
_HUNK = re.compile(r"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")


class Line(NamedTuple):
    """One line: ``kind`` is add, del, same or gap, ``old`` and ``new`` its numbers, 0 where it has none.

    ``before``, ``changed`` and ``after`` are its text. ``changed`` is empty where the whole line is new.
    """

    kind: str
    old: int = 0
    new: int = 0
    before: str = ""
    changed: str = ""
    after: str = ""


@dataclass(slots=True)
class ChangedFile:
    """A file of the program, and how many lines were added and removed."""

    name: str
    lines: list[Line] = field(default_factory=list)
    added: int = 0
    removed: int = 0


class ChangedProgram(NamedTuple):
    """What changed, file by file. ``left_out``: so many lines more than a page shows."""

    files: list[ChangedFile]
    left_out: int

    @property
    def added(self) -> int:
        """The lines that were added, in all files."""
        return sum(file.added for file in self.files)

    @property
    def removed(self) -> int:
        """The lines that were removed, in all files."""
        return sum(file.removed for file in self.files)


def changed_program(diff: str) -> ChangedProgram:
    """The files and lines of a unified diff, as `autoresearch.answers` writes it."""
    files: list[ChangedFile] = []
    shown = left_out = 0
    lines = iter(diff.split("\n"))
    for line in lines:
        if line.startswith("--- "):
            files.append(ChangedFile(_name(next(lines, ""))))
        elif files and (found := _HUNK.match(line)):
            file = files[-1]
            for one in _hunk(found, lines):
                file.added += one.kind == "add"
                file.removed += one.kind == "del"
                if shown < MOST_LINES and len(files) <= MOST_FILES:
                    shown += 1
                    file.lines.append(one)
                else:
                    left_out += one.kind != "gap"
    for file in files:
        file.lines = list(_marked(file.lines))
    return ChangedProgram(files[:MOST_FILES], left_out)


def _name(line: str) -> str:
    """The file of a line such as ``+++ 7fq2xk1a/train.py``."""
    return one_line(line.removeprefix("+++ ").partition("/")[2], NAME_CHARACTERS)


def _hunk(found: re.Match[str], lines: Iterator[str]) -> Iterator[Line]:
    """The lines of a hunk, counted by its head: a line of the program may look like a head itself."""
    old, new = int(found[1]), int(found[3])
    old_left, new_left = int(found[2] or 1), int(found[4] or 1)
    if old > 1 or new > 1:
        yield Line("gap")
    while old_left > 0 or new_left > 0:
        line = next(lines, None)
        if line is None:
            return
        text = _shown(line[1:])
        if line.startswith("+"):
            yield Line("add", 0, new, text)
            new, new_left = new + 1, new_left - 1
        elif line.startswith("-"):
            yield Line("del", old, 0, text)
            old, old_left = old + 1, old_left - 1
        else:
            yield Line("same", old, new, text)
            old, new, old_left, new_left = old + 1, new + 1, old_left - 1, new_left - 1


def _shown(text: str) -> str:
    clean = sanitised(text[: MOST_CHARACTERS + 1].expandtabs(4))
    return clean if len(clean) <= MOST_CHARACTERS else f"{clean[:MOST_CHARACTERS]}…"


def _marked(lines: list[Line]) -> Iterable[Line]:
    """The lines, where as many stand in the place of others with what differs marked."""
    marked = list(lines)
    starts = [0, *(at for at, (a, b) in enumerate(pairwise(lines), 1) if a.kind != b.kind), len(lines)]
    blocks = list(pairwise(starts))
    for (first, middle), (_, last) in pairwise(blocks):
        is_exchange = lines[first].kind == "del" and middle < len(lines) and lines[middle].kind == "add"
        if is_exchange and middle - first == last - middle:
            for place in range(middle - first):
                marked[first + place], marked[middle + place] = _pair(lines[first + place], lines[middle + place])
    return marked


def _pair(old: Line, new: Line) -> tuple[Line, Line]:
    """Two lines, one in the place of the other, split where they begin and stop to differ."""
    a, b = old.before, new.before
    shortest = min(len(a), len(b))
    head = next((at for at in range(shortest) if a[at] != b[at]), shortest)
    tail = next((at for at in range(shortest - head) if a[-1 - at] != b[-1 - at]), shortest - head)
    if not a[:head].strip() and not a[len(a) - tail :].strip():
        return old, new  # nothing of it stayed
    return _split(old, head, len(a) - tail), _split(new, head, len(b) - tail)


def _split(line: Line, start: int, end: int) -> Line:
    text = line.before
    return line._replace(before=text[:start], changed=text[start:end], after=text[end:])
