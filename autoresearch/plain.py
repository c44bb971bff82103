"""Strangers' text made harmless: kept to one line, without characters that steer a terminal. Pure."""

from __future__ import annotations

import unicodedata

# Control, format, surrogate, private and unassigned characters, and those that break lines.
_UNSAFE = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
# A name stands in quotes beside a key; what closes them could make the rest look like ours.
_QUOTES = str.maketrans("", "", '"“”„‟«»＂')
NAME_CHARACTERS = 24


def one_line(text: str, characters: int) -> str:
    """Text that cannot move a cursor, hide or turn its neighbours: no control, format or line-breaking characters."""
    plain = "".join(" " if unicodedata.category(c) in _UNSAFE else c for c in text)
    plain = " ".join(plain.split())
    return plain if len(plain) <= characters else plain[: characters - 1] + "…"


def with_article(noun: str) -> str:
    """“a run”, “an identity”: the kind of a record inside a sentence."""
    return f"{'an' if noun[:1] in 'aeiou' else 'a'} {noun}"


def plain_name(text: str) -> str:
    """A name that a participant gave itself, fit to stand in quotes beside its key; empty when nothing is left of it.

    Marks that pile up on a letter are dropped after the second: they reach into the lines above and below.
    """
    kept: list[str] = []
    marks = 0
    for character in unicodedata.normalize("NFC", text.translate(_QUOTES)):
        marks = marks + 1 if unicodedata.category(character) in {"Mn", "Me"} else 0
        if marks <= 2:
            kept.append(character)
    return one_line("".join(kept), NAME_CHARACTERS)
