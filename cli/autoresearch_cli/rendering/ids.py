"""Ids as people read them."""

from __future__ import annotations

import re

from autoresearch.errors import UsageError
from autoresearch.records import parse_id, short_id

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
