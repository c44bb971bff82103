"""Text laid out for the width of a terminal: lines broken between words, tables that give way. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from autoresearch.face.columns.column import Column, Face, Row, visible

# Between the columns of a table.
GAP = "  "
# What the last column needs to be read beside the others.
ROOM_CHARACTERS = 28
# A space, unless it stands inside an interval or a change, before a separator, or between a number and its unit.
_BREAK = re.compile(r" (?![±·]|->|→ [\d–])(?<!± )(?<!> )(?<!→ )(?!(?<=\d )(?:s|min|h|d|B|[KMGT]iB)\b)")


class TableLine(NamedTuple):
    """A line of a table: its text, and whether it is of the header, or below the line of its row.

    ``looks`` are parts of the text, from and to a character, with how they look: ``good`` or ``bad``.
    """

    text: str
    header: bool = False
    below: bool = False
    looks: tuple[tuple[int, int, str], ...] = ()


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


def table(
    columns: Sequence[Column[Row]], rows: Sequence[Row], width: int, now_ms: int = 0, *, cut: bool = False
) -> list[TableLine]:
    """A header and the rows, in lines of at most ``width``; none where there is no row.

    The last column is broken into lines, or ``cut`` so that a row has one line. Where it has no room, ``optional``
    columns are left out in their order; where that does not help it stands below its row, and more columns with it
    where even they have no room. Then ``cut`` leaves them out.
    """
    if not rows:
        return []
    all_cells = [
        _Cells(column, [column.title, *(column.text(row, now_ms) for row in rows)], ["", *map(column.looks, rows)])
        for column in visible(columns, rows, Face.TERMINAL, now_ms)
    ]
    fewer = [all_cells]
    for each in sorted((each for each in all_cells if each.column.optional), key=lambda each: each.column.optional):
        fewer.append([other for other in fewer[-1] if other is not each])
    for laid_out in filter(None, fewer):
        *before, last = laid_out
        room = width - _taken(before) - (len(GAP) if before else 0)
        longest = 0 if cut else max(cells(word) for text in last.texts for word in _BREAK.split(text))
        is_kept = before or len(fewer[0]) == 1  # a table of one column has nothing to stand below
        if last.width <= room or (is_kept and room >= ROOM_CHARACTERS and longest <= room):
            fitted = [shortened(text, room) if cut else "\n".join(wrapped(text, room)) for text in last.texts]
            lines = _aligned([*before, last._replace(texts=fitted)])
            return [line for row in lines for line in row]
    laid_out = next((laid_out for laid_out in fewer if _taken(laid_out[:-1]) <= width), fewer[-1])
    inline = next((count for count in range(len(laid_out) - 1, 0, -1) if _taken(laid_out[:count]) <= width), 1)
    placed = []
    for number, row in enumerate(_aligned(laid_out[:inline])):
        placed += row
        if cut:
            continue
        rest = " · ".join(filter(None, (each.texts[number] for each in laid_out[inline:])))
        below = wrapped(rest, width, first=GAP, indent=GAP) if rest else []
        placed += [TableLine(text, header=not number, below=True) for text in below]
    return placed


class _Cells(NamedTuple):
    """A column with its heading and its text in each row, and how each looks."""

    column: Column[Any]
    texts: list[str]
    looks: list[str]

    @property
    def width(self) -> int:
        return max(cells(line) for text in self.texts for line in text.split("\n"))

    def padded(self, text: str) -> str:
        """A line of the column, as wide as all of it."""
        space = " " * (self.width - cells(text))
        return space + text if self.column.format.right else text + space


def _taken(laid_out: Sequence[_Cells]) -> int:
    """What these columns take of a line."""
    return sum(each.width for each in laid_out) + len(GAP) * max(0, len(laid_out) - 1)


def _aligned(laid_out: Sequence[_Cells]) -> Iterator[list[TableLine]]:
    """The lines of each row of these columns below each other, as wide as they are; the header first."""
    for number in range(len(laid_out[0].texts)):
        parts = [each.texts[number].split("\n") for each in laid_out]
        lines = []
        for place in range(max(map(len, parts))):
            text, looks = "", []
            for each, part in zip(laid_out, parts, strict=True):
                cell = each.padded(part[place] if place < len(part) else "")
                if each.looks[number]:
                    looks.append((len(text), len(text) + len(cell), each.looks[number]))
                text += cell + GAP
            lines.append(TableLine(text.rstrip(), header=not number, looks=tuple(looks)))
        yield lines


def shortened(text: str, width: int) -> str:
    """The beginning of a text that takes at most ``width`` columns, with an ellipsis where some of it is left out."""
    from rich.cells import set_cell_size

    return text if cells(text) <= width else set_cell_size(text, max(width - 1, 0)).rstrip() + "…" * (width > 0)
