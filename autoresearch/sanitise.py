"""What others wrote, made harmless for whoever reads it: on a terminal, in a log file, in a JSON document. Pure.

Harmful is a character that steers a terminal (C0, C1), turns the direction of writing, breaks a line where one is
meant, or cannot be seen: format characters, Unicode tags, variation selectors, fillers. Everything that goes to a
person passes here where it leaves; files that are data (a source in a pipe, a bundle) do not.
"""

from __future__ import annotations

import unicodedata

import msgspec

# Shown in place of what is harmful: a reader sees that something was there.
INSTEAD = "\N{REPLACEMENT CHARACTER}"
NAME_CHARACTERS = 24
# A name stands in quotes beside a key; what closes them could make the rest look like ours.
_QUOTES = str.maketrans("", "", '"“”„‟«»＂')
# Letters, marks and symbols by category, and yet nothing is to be seen of them (Default_Ignorable_Code_Point, and the
# empty Braille pattern).
_UNSEEN = frozenset(
    map(
        chr,
        (
            *(0x034F, 0x115F, 0x1160, 0x17B4, 0x17B5, 0x180B, 0x180C, 0x180D, 0x180F, 0x2800, 0x3164, 0xFFA0),
            *range(0xFE00, 0xFE10),
            *range(0xE0100, 0xE01F0),
        ),
    )
)


def is_harmful(character: str) -> bool:
    """Whether a character does something else than be read; newline and tab do too."""
    # Not printable are the categories C*, Zl, Zp, and spaces other than the common one, which harm nobody.
    return character in _UNSEEN or not (character.isprintable() or unicodedata.category(character) == "Zs")


def sanitised(text: str, *, lines: bool = False) -> str:
    """Text with a replacement character for each harmful one.

    Newlines and tabs become spaces, so that it is one line; with ``lines`` they stay.
    """
    if lines:
        text = text.replace("\r\n", "\n")
    instead = {ord(character): INSTEAD for character in set(text) if is_harmful(character)}
    instead |= {ord(space): space if lines else " " for space in "\n\t"}
    return text.translate(instead)


def one_line(text: str, characters: int | None = None) -> str:
    """Text for a cell: one line, single spaces, of at most so many characters."""
    line = sanitised(" ".join(text.split()))
    return line if characters is None or len(line) <= characters else line[: characters - 1] + "…"


def json_text(answer: object) -> str:
    """An answer as JSON in one line; what would be harmful on a terminal is escaped, so the document says the same.

    Raises:
        TypeError: msgspec can't encode it.
    """
    text = msgspec.json.encode(answer).decode()
    return text.translate({ord(character): _escape(character) for character in filter(is_harmful, set(text))})


def plain_name(text: str) -> str:
    """A name that a participant gave itself, fit to stand in quotes beside its key; empty when nothing is left of it.

    Marks that pile up on a letter are dropped after the second: they reach into the lines above and below.
    """
    kept: list[str] = []
    marks = 0
    for character in unicodedata.normalize("NFC", text.translate(_QUOTES)):
        marks = marks + 1 if unicodedata.category(character) in {"Mn", "Me"} else 0
        if marks <= 2:
            kept.append(" " if is_harmful(character) else character)
    return one_line("".join(kept), NAME_CHARACTERS)


def _escape(character: str) -> str:
    units = character.encode("utf-16-be")
    return "".join(f"\\u{units[at : at + 2].hex()}" for at in range(0, len(units), 2))
