"""A column of a list: its name, its value in a row, and how programs and people read that value. Pure.

A list is declared once. From it come the table on a terminal, the tab-separated lines of a pipe and the table of a
page. JSON is the answer itself.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass
from enum import Flag, auto
from typing import Any, Generic, NamedTuple, TypeVar

from autoresearch.errors import UsageError
from autoresearch.log.standing.answers import MarkView, ParticipantView
from autoresearch.record.encoding import parse_id, short_id
from autoresearch.text import figure, largest_unit, lately, moment, one_line, percent, signed, size, value
from autoresearch.words import DISCREDITED, RunState

# Of a key or digest so many characters tell it apart, and are enough to find it by.
DIGEST_CHARACTERS = 12
# The rest of a text stands in `show`.
TEXT_CHARACTERS = 240


def short(text: str) -> str:
    """The short form of an id in text form; anything else as it is."""
    try:
        return short_id(parse_id(text))
    except UsageError:
        return text


def shortened(text: str) -> str:
    """Text with the short form of each id in it, and the beginning of each long key or digest."""
    return re.sub(r"\b(?:bafy[a-z2-7]{40,}|[0-9a-f]{32,})\b", lambda match: _brief(match.group()), text)


def _brief(word: str) -> str:
    return short(word) if word.startswith("bafy") else f"{word[:DIGEST_CHARACTERS]}…"


def person(participant: ParticipantView) -> str:
    """One participant: ``88224d45 “ann”``. The name proves nothing, so the key comes first."""
    return f"{participant.short} “{participant.name}”" if participant.name else participant.short


def persons(known_as: Sequence[ParticipantView]) -> str:
    """One participant with all its root keys."""
    return ", ".join(map(person, known_as))


def mark_words(marks: Sequence[MarkView]) -> str:
    """Marks in words, each once with how often: ``fabricator, fraud ×2``."""
    words = [mark.mark for mark in marks]
    return ", ".join(
        word if words.count(word) == 1 else f"{word} ×{words.count(word)}" for word in dict.fromkeys(words)
    )


def reproach(marks: Sequence[MarkView], banned_until_ms: int | None, now_ms: int) -> str:
    """What the log holds against a participant, in words for a table: its marks, and whether it is banned now."""
    banned = banned_until_ms is not None and banned_until_ms > now_ms
    return ", ".join(filter(None, (mark_words(marks), str(RunState.BANNED) if banned else "")))


class Face(Flag):
    """Where a list is shown."""

    NOWHERE = 0
    PIPE = auto()
    TERMINAL = auto()
    PAGE = auto()
    PEOPLE = TERMINAL | PAGE
    ALL = PIPE | PEOPLE


class CellFormat(NamedTuple):
    """How values of a kind read: ``plain`` for programs, whole; ``text`` for people, at a time in ms.

    ``right``: numbers stand below each other. ``page`` is the kind of cell on a page; empty: the text. ``look`` is how
    a value looks on a terminal: ``good``, ``bad`` or as all text.
    """

    plain: Callable[[Any], str]
    text: Callable[[Any, int], str]
    right: bool = False
    page: str = ""
    look: Callable[[Any], str] = lambda _: ""


def _plain(content: object) -> str:
    return "" if content is None else str(content)


def _time(time_ms: int, now_ms: int) -> str:
    return lately(time_ms, now_ms) if time_ms else ""


TEXT = CellFormat(_plain, lambda content, _: _plain(content))
# Free text: a page cuts it off where it has no room.
WORDS = CellFormat(_plain, lambda content, _: one_line(content, TEXT_CHARACTERS), page="words")
CODE = CellFormat(_plain, lambda content, _: _plain(content), page="code")
DIGEST = CellFormat(_plain, lambda content, _: content[:DIGEST_CHARACTERS], page="code")
RUN = CellFormat(_plain, lambda record, _: short(record) if record else "", page="run")
RECORD = CellFormat(_plain, lambda record, _: short(record), page="code")
RECORDS = CellFormat(" ".join, lambda records, _: " ".join(map(short, records)), page="records")
PERSON = CellFormat(lambda who: who.key, lambda who, _: person(who), page="person")
MARKS = CellFormat(mark_words, lambda marks, _: mark_words(marks), page="marks")
STATE = CellFormat(
    _plain,
    lambda state, _: _plain(state).replace("_", " "),
    page="state",
    look=lambda state: "bad" if state in DISCREDITED else "good" if state == RunState.CONFIRMED else "",
)
TIME = CellFormat(moment, _time, right=False, page="time")
# A time that programs get as a number.
TIME_MS = CellFormat(_plain, _time, page="time")
VALUE = CellFormat(figure, lambda number, _: "" if number is None else value(number), right=True)
# Numbers in a text of their own.
FIGURES = CellFormat(_plain, lambda content, _: _plain(content), right=True)
CHANGE = CellFormat(figure, lambda number, _: signed(number), right=True, page="signed")
SHARE = CellFormat(figure, lambda share, _: "" if share is None else percent(share), right=True)
METER = CellFormat(figure, lambda share, _: percent(share) if share else "", page="meter")
COUNT = CellFormat(_plain, lambda number, _: str(number) if number else "", right=True, page="count")
SIZE = CellFormat(_plain, lambda count, _: size(count) if count else "", right=True)
COMPUTE_MS = CellFormat(_plain, lambda time_ms, _: largest_unit(time_ms) if time_ms else "", right=True)
COMPUTE_S = CellFormat(
    lambda time_ms: str(time_ms // 1000), lambda time_ms, _: largest_unit(time_ms) if time_ms else "", right=True
)

Row = TypeVar("Row")


@dataclass(frozen=True, slots=True)
class Column(Generic[Row]):
    """A column: its name, its value in a row, and how that reads.

    ``display`` is what people read where that takes more than the value, at a time in ms. ``heading`` stands above it
    where it is not its name: the metric of a task. Columns stand in the order of programs; for people those with a
    higher ``late`` stand further behind. A column that is empty in all rows is not shown to people; one that
    ``varies`` neither where all rows have the same. ``look`` is how a row's cell looks on a terminal, where that is not
    by its value. On a narrow terminal those that are ``optional`` are left out,
    the lowest first. ``is_change``: what a run changed; on a page it follows the run, and the people stand last.
    """

    name: str
    value: Callable[[Row], Any]
    format: CellFormat = TEXT
    _: KW_ONLY
    display: Callable[[Row, int], str] | None = None
    look: Callable[[Row], str] | None = None
    heading: str | None = None
    faces: Face = Face.ALL
    late: int = 0
    optional: int = 0
    varies: bool = False
    is_change: bool = False
    help: str = ""

    @property
    def title(self) -> str:
        """What stands above it."""
        return one_line(self.name if self.heading is None else self.heading)

    def plain(self, row: Row) -> str:
        """The value for a program, in a line."""
        return one_line(self.format.plain(self.value(row)))

    def text(self, row: Row, now_ms: int) -> str:
        """The value for people, in a line."""
        return one_line(self.display(row, now_ms) if self.display else self.format.text(self.value(row), now_ms))

    def looks(self, row: Row) -> str:
        """How it looks on a terminal: ``good``, ``bad`` or as all text."""
        return self.look(row) if self.look else self.format.look(self.value(row))


Columns = tuple[Column[Row], ...]


def visible(columns: Sequence[Column[Row]], rows: Sequence[Row], face: Face, now_ms: int) -> list[Column[Row]]:
    """The columns that people see of these rows, in their order; without rows all that there may be."""
    ordered = sorted(columns, key=lambda column: column.late)
    if face is Face.PAGE and (changes := [column for column in ordered if column.is_change]):
        ordered = [column for column in ordered if not column.is_change]
        run = next((at for at, column in enumerate(ordered) if column.format is RUN), -1)
        ordered[run + 1 : run + 1] = changes
        ordered.sort(key=lambda column: column.format is PERSON)
    return [
        column
        for column in ordered
        if face in column.faces
        and (not rows or any(column.text(row, now_ms) for row in rows))
        and not (column.varies and len({column.plain(row) for row in rows}) == 1)
    ]


def lines(columns: Sequence[Column[Row]], rows: Sequence[Row]) -> list[list[str]]:
    """The cells of each row for a program, whole."""
    piped = [column for column in columns if Face.PIPE in column.faces]
    return [[column.plain(row) for column in piped] for row in rows]
