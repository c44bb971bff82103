"""Text laid out for the width of a terminal: lines broken between words, tables that give way.

Also ids, participants (as much of the key as is needed to type it again, and the name) and runs as people read them.
Pure.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from typing import NamedTuple

from autoresearch.errors import UsageError
from autoresearch.log.standing.answers import MarkView, ParticipantView, ProgramView, RunView
from autoresearch.record.encoding import parse_id, short_id
from autoresearch.words import RunState

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


def table(
    columns: Sequence[str],
    rows: Sequence[Sequence[str]],
    width: int,
    *,
    right: Collection[str] = (),
    optional: Sequence[str] = (),
) -> list[Line]:
    """A header and the rows, in lines of at most ``width``.

    The last column is broken into lines, or stands below its row where it has no room. Where even that is too wide,
    ``optional`` columns are left out in their order, then more columns move below. Empty columns are left out.
    """
    shown = [number for number in range(len(columns)) if any(row[number] for row in rows)]
    left_out = [number for name in optional for number in shown if columns[number] == name]
    while shown:
        picked = _Table(
            [columns[number] for number in shown], [[row[number] for number in shown] for row in rows], right
        )
        if picked.fits(width) or not left_out:
            return picked.lines(width)
        shown.remove(left_out.pop(0))
    return []


class _Table:
    """A table with the columns that it is to have."""

    def __init__(self, columns: Sequence[str], rows: Sequence[Sequence[str]], right: Collection[str]) -> None:
        self._columns, self._rows, self._right = columns, rows, right
        self._widths = [max(map(cells, column)) for column in zip(columns, *rows, strict=True)]

    def _taken(self, count: int) -> int:
        """What so many first columns take."""
        return sum(self._widths[:count]) + len(GAP) * max(0, count - 1)

    def fits(self, width: int) -> bool:
        """Whether all columns but the last have room in one line."""
        return self._taken(len(self._columns) - 1) <= width

    def lines(self, width: int) -> list[Line]:
        """The header and the rows."""
        last = len(self._columns) - 1
        room = width - self._taken(last) - (len(GAP) if last else 0)
        if self._widths[-1] <= room or (room >= ROOM_CHARACTERS and last):
            return self._beside(width, last)
        inline = next((count for count in range(last, 0, -1) if self._taken(count) <= width), 1)
        return self._below(width, min(inline, last) or 1)

    def _beside(self, width: int, last: int) -> list[Line]:
        indent = " " * (self._taken(last) + (len(GAP) if last else 0))
        found = []
        for number, row in enumerate((self._columns, *self._rows)):
            begin = self._padded(row, last) + (GAP if last else "")
            end = row[-1]
            if self._columns[-1] in self._right:
                end = " " * (self._widths[-1] - cells(end)) + end
                found.append(Line((begin + end).rstrip(), header=not number))
            else:
                found += [Line(text, header=not number) for text in wrapped(end, width, first=begin, indent=indent)]
        return found

    def _below(self, width: int, inline: int) -> list[Line]:
        found = []
        for number, row in enumerate((self._columns, *self._rows)):
            found.append(Line(self._padded(row, inline).rstrip(), header=not number))
            rest = " · ".join(filter(None, row[inline:]))
            if rest:
                below = wrapped(rest, width, first=GAP, indent=GAP)
                found += [Line(text, header=not number, below=True) for text in below]
        return found

    def _padded(self, row: Sequence[str], count: int) -> str:
        parts = []
        for name, cell, wide in zip(self._columns[:count], row, self._widths, strict=False):
            space = " " * (wide - cells(cell))
            parts.append(space + cell if name in self._right else cell + space)
        return GAP.join(parts)


# Of a key or digest so many characters tell it apart, and are enough to find it by.
DIGEST_CHARACTERS = 12


def short(text: str) -> str:
    """The short form of an id in text form; anything else as it is."""
    try:
        return short_id(parse_id(text))
    except UsageError:
        return text


def shortened(text: str) -> str:
    """Text with the short form of each id in it, and the beginning of each long key or digest."""
    return re.sub(r"\b(?:bafy[a-z2-7]{40,}|[0-9a-f]{32,})\b", lambda found: _brief(found.group()), text)


def _brief(word: str) -> str:
    return short(word) if word.startswith("bafy") else f"{word[:DIGEST_CHARACTERS]}…"


def person(participant: ParticipantView) -> str:
    """One participant: ``88224d45 “ann”``. The name proves nothing, so the key comes first."""
    return f"{participant.short} “{participant.name}”" if participant.name else participant.short


def persons(known_as: Sequence[ParticipantView]) -> str:
    """One participant with all its root keys."""
    return ", ".join(person(who) for who in known_as)


def reproach(marks: Sequence[MarkView], banned_until_ms: int | None, now_ms: int) -> str:
    """What the log holds against a participant, in words for a table: its marks, and whether it is banned now."""
    banned = banned_until_ms is not None and banned_until_ms > now_ms
    return ", ".join(filter(None, (mark_words(marks), str(RunState.BANNED) if banned else "")))


def mark_words(marks: Sequence[MarkView]) -> str:
    """Marks in words, each once with how often."""
    words = [mark.mark for mark in marks]
    return ", ".join(
        word if words.count(word) == 1 else f"{word} ×{words.count(word)}" for word in dict.fromkeys(words)
    )


# What the search makes has no words of a person: its headline says more than its title.
SEARCH = "search"


def told(run: ProgramView | RunView) -> str:
    """The headline of a run of the search; of a person's or a model's run its own title."""
    return run.headline if run.proposer == SEARCH and run.headline else run.title
