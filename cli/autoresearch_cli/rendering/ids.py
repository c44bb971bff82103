"""Ids as people read them."""

from __future__ import annotations

from autoresearch.errors import UsageError
from autoresearch.records import parse_id, short_id


def short(text: str) -> str:
    """The short form of an id in text form; anything else as it is."""
    try:
        return short_id(parse_id(text))
    except UsageError:
        return text
