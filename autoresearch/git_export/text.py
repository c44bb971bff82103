"""Text of others, fit for a commit. Pure.

Commit ids follow from this text, so it must not depend on the version of Python and its Unicode tables. The list of
harmful characters is therefore fixed here: what steers a terminal, turns the direction of writing or can't be seen.
"""

from __future__ import annotations

import re

from autoresearch.sanitise import INSTEAD

_HARMFUL = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u034f\u0600-\u0605\u061c\u06dd\u070f\u08e2\u115f\u1160\u17b4\u17b5\u180b-\u180f"
    "\u200b-\u200f\u2028-\u202e\u2060-\u206f\u2800\u3164\ue000-\uf8ff\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb\ufffe\uffff"
    "\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U0010ffff]"
)


def line(text: str) -> str:
    """Text as one line with single spaces."""
    return re.sub(" +", " ", _harmless(text).replace("\n", " ")).strip(" ")


def lines(text: str) -> str:
    """Text with its lines, none of which ends in spaces, and no empty lines around it."""
    return "\n".join(each.rstrip(" ") for each in _harmless(text).split("\n")).strip("\n")


def _harmless(text: str) -> str:
    return _HARMFUL.sub(INSTEAD, text.replace("\r\n", "\n").replace("\t", " "))
