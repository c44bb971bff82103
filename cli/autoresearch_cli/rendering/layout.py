"""Text laid out for the width of a terminal: lines broken between words, tables that give way. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, NamedTuple

from autoresearch.face.columns.column import Column, Face, Row, visible

# Between the columns of a table.
GAP = "  "
# What the last column needs to be read beside the others.
ROOM_CHARACTERS = 28
# A space, unless it stands inside an interval or a change, before a separator, or between a number and its unit.
_BREAK = re.compile(r" (?![±·]|->|→ [\d–])(?<!± )(?<!> )(?<!→ )(?!(?<=\d )(?:s|min|h|d|B|[KMGT]iB)\b)")


class Line(NamedTuple):
    """A line of a table: its text, and whether it is of the header, or below the line of its row."""

    text: str
    header: bool = False
    below: bool = False


def cells(text: str) -> int:
    """How many columns of a terminal the text takes."""
    from rich.cells import cell_len

    return cell_len(text)


def wrapped(text: str, width: int, *, first: str = "", indent: str = "") -> list[str]:
    """The text in lines of at most ``width``, the first after ``first``, the others after ``indent``.

    Lines are broken between words. A word that is wider than a line stays whole and has a line of its own from the
    left edge, so that a terminal breaks it and it can be copied.
    """
    lines, line, used = [], first, cells(first)
    begun = False
    for word in _BREAK.split(text):
        size = cells(word)
        if used + begun + size <= width:
            line, used, begun = f"{line}{' ' * begun}{word}", used + begun + size, True
            continue
        if line.strip():
            lines.append(line.rstrip())
        before = next((space for space in (indent, GAP) if cells(space) + size <= width), "")
        line, used, begun = before + word, cells(before) + size, True
    return [*lines, line.rstrip()]


def table(columns: Sequence[Column[Row]], rows: Sequence[Row], width: int, now_ms: int = 0) -> list[Line]:
    """A header and the rows, in lines of at most ``width``; none where there is no row.

    The last column is broken into lines. Where it has no room, ``optional`` columns are left out in their order; where
    that does not help it stands below its row, and more columns with it where even they have no room.
    """
    if not rows:
        return []
    shown = [
        _Cells(column, [column.title, *(column.text(row, now_ms) for row in rows)])
        for column in visible(columns, rows, Face.TERMINAL, now_ms)
    ]
    fewer = [shown]
    for one in sorted((one for one in shown if one.column.optional), key=lambda one: one.column.optional):
        fewer.append([other for other in fewer[-1] if other is not one])
    for shown in filter(None, fewer):
        *before, last = shown
        room = width - _taken(before) - (len(GAP) if before else 0)
        longest = max(cells(word) for text in last.texts for word in _BREAK.split(text))
        if last.width <= room or (before and room >= ROOM_CHARACTERS and longest <= room):
            wide = _Cells(last.column, ["\n".join(wrapped(text, room)) for text in last.texts])
            return [Line(text, header=not number) for number, text in enumerate(_aligned([*before, wide]))]
    shown = next((shown for shown in fewer if _taken(shown[:-1]) <= width), fewer[-1])
    inline = next((count for count in range(len(shown) - 1, 0, -1) if _taken(shown[:count]) <= width), 1)
    placed = []
    for number, text in enumerate(_aligned(shown[:inline])):
        placed.append(Line(text, header=not number))
        rest = " · ".join(filter(None, (one.texts[number] for one in shown[inline:])))
        below = wrapped(rest, width, first=GAP, indent=GAP) if rest else []
        placed += [Line(text, header=not number, below=True) for text in below]
    return placed


class _Cells(NamedTuple):
    """A column with its heading and its text in each row."""

    column: Column[Any]
    texts: list[str]

    @property
    def width(self) -> int:
        return max(map(cells, self.texts))


def _taken(shown: Sequence[_Cells]) -> int:
    """What these columns take of a line."""
    return sum(one.width for one in shown) + len(GAP) * max(0, len(shown) - 1)


def _aligned(shown: Sequence[_Cells]) -> list[str]:
    """The lines of these columns below each other, as wide as they are."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    grid = Table.grid(padding=(0, len(GAP), 0, 0))
    for one in shown:
        grid.add_column(justify="right" if one.column.format.right else "left", no_wrap=True)
    for texts in zip(*(one.texts for one in shown), strict=True):
        grid.add_row(*map(Text, texts))
    wide = Console(width=_taken(shown) + len(GAP), color_system=None, soft_wrap=False)
    return ["".join(segment.text for segment in line).rstrip() for line in wide.render_lines(grid, pad=False)]
