"""SEARCH/REPLACE blocks as models write them: whole lines, found also where spaces at their ends or before them differ.

Patches of the catalogue apply byte for byte (:mod:`autoresearch.proposers.edits`); a model misquotes.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Sequence

from autoresearch.proposers.edits import Block, EditError

# A line that is quoted in an answer to a model.
_QUOTED_CHARACTERS = 100
# Beyond this many lines no near line is looked for: it takes quadratic time.
_NEAR_LINES = 5_000


def replace_lines(source: str, blocks: Sequence[Block]) -> str:
    """The source after each block in turn; line ends and indentation of the SEARCH lines need not be exact.

    Raises:
        EditError: the SEARCH lines of a block are empty, are not there, or are there more than once.
    """
    lines = source.split("\n")
    for number, block in enumerate(blocks, 1):
        search, replace = _trimmed(block.search), _trimmed(block.replace)
        if not search:
            raise EditError(f"The SEARCH part of block {number} is empty; copy lines of the program into it.")
        at = _only_place(lines, search, number)
        there = lines[at : at + len(search)]
        lines[at : at + len(search)] = _indented(replace, _indent(search), _indent(there))
    return "\n".join(lines)


def _trimmed(text: str) -> list[str]:
    """The lines without empty ones at both ends."""
    lines = text.split("\n")
    while lines and not lines[0].strip():
        lines.pop(0)
    while lines and not lines[-1].strip():
        lines.pop()
    return lines


def _only_place(lines: Sequence[str], search: Sequence[str], number: int) -> int:
    forms: tuple[Callable[[str], str], ...] = (str, str.rstrip, str.strip)
    for form in forms:
        found = _places([form(line) for line in lines], [form(line) for line in search])
        if len(found) > 1:
            raise EditError(
                f"The SEARCH lines of block {number} occur {len(found)} times, first in lines {found[0] + 1} and "
                f"{found[1] + 1}; add lines before or after them until they occur once."
            )
        if found:
            return found[0]
    raise EditError(f"The SEARCH lines of block {number} are not in the program{_near(lines, search)}.")


def _places(lines: Sequence[str], search: Sequence[str]) -> list[int]:
    width = len(search)
    return [at for at in range(len(lines) - width + 1) if lines[at] == search[0] and lines[at : at + width] == search]


def _near(lines: Sequence[str], search: Sequence[str]) -> str:
    """The first line that is missing, and the one of the program that is most like it."""
    known = {line.strip() for line in lines}
    missing = next((line.strip() for line in search if line.strip() not in known), search[0].strip())
    quoted = missing[:_QUOTED_CHARACTERS]
    if missing in known:
        return f": each line is there, but not in this order; copy them as they stand, beginning at “{quoted}”"
    candidates = {_code(line): line for line in sorted(known)} if len(known) <= _NEAR_LINES else {}
    found = difflib.get_close_matches(_code(missing), candidates, 1, 0.5)
    nearest = f"; the nearest line of the program is “{candidates[found[0]][:_QUOTED_CHARACTERS]}”" if found else ""
    return f": “{quoted}” is no line of it{nearest}; copy the lines exactly"


def _code(line: str) -> str:
    """A line without its comment, of which a model often knows less."""
    return line.split("#", maxsplit=1)[0].strip()[:_QUOTED_CHARACTERS]


def _indent(lines: Sequence[str]) -> str:
    first = next((line for line in lines if line.strip()), "")
    return first[: len(first) - len(first.lstrip())]


def _indented(lines: Sequence[str], gave: str, has: str) -> list[str]:
    """The new lines as far to the right as the old ones stand: the model may have lost or added indentation."""
    if gave == has:
        return list(lines)
    return [has + line[len(gave) :] if line.startswith(gave) and line.strip() else line for line in lines]
